import { readingFromEnvironment } from '../../shared/expiry/environment.ts';
import { REPORT_NAME_FIELDS, readInput } from '../../shared/expiry/inputs.ts';
import { reader } from '../../shared/expiry/read.ts';
import { lambdaFunction } from '../../shared/lambda/function.ts';
import { sealedCursors } from '../../shared/lambda/sealed-cursor.ts';

export const readExpired = (dependencies = readingFromEnvironment()) =>
  lambdaFunction({
    name: 'readExpired',
    input: readInput(),
    nameFields: { ...REPORT_NAME_FIELDS, cursors: sealedCursors('expired') },
    run: reader(dependencies),
    logged: ['reportId', 'kind', 'startedAt', 'complete', 'scanned', 'readUnits', 'expired', 'neverDeletable'],
  });

export const handler = readExpired();
