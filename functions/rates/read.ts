import { lambdaFunction } from '../../shared/lambda/function.ts';
import { sealedCursors } from '../../shared/lambda/sealed-cursor.ts';
import { KEY_OR_PAGE_NAME_FIELDS } from '../../shared/listings/key-or-page.ts';
import { leasesFromEnvironment } from '../../shared/locks/dependencies.ts';
import { readRatesInput } from '../../shared/rates/inputs.ts';
import { readRates as run } from '../../shared/rates/read.ts';

export const readRates = (dependencies = leasesFromEnvironment()) =>
  lambdaFunction({
    name: 'readRates',
    input: readRatesInput(),
    nameFields: { ...KEY_OR_PAGE_NAME_FIELDS, cursors: sealedCursors('rates') },
    run: run(dependencies),
    logged: ['key', 'by', 'paidUntil'],
  });

export const handler = readRates();
