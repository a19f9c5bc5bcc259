import { lambdaFunction } from '../../shared/lambda/function.ts';
import { sealedCursors } from '../../shared/lambda/sealed-cursor.ts';
import { leasesFromEnvironment } from '../../shared/locks/dependencies.ts';
import { RATE_LISTS, readRatesInput } from '../../shared/rates/inputs.ts';
import { readRates as run } from '../../shared/rates/read.ts';

export const readRates = (dependencies = leasesFromEnvironment()) =>
  lambdaFunction({
    name: 'readRates',
    input: readRatesInput(),
    names: { ...RATE_LISTS, cursors: sealedCursors('rates') },
    run: run(dependencies),
    logged: ['key', 'by', 'paidUntil'],
  });

export const handler = readRates();
