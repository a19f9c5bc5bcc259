import { readingFromEnvironment } from '../../shared/expiry/environment.ts';
import { REPORT_NAMES, readInput } from '../../shared/expiry/inputs.ts';
import { reader } from '../../shared/expiry/read.ts';
import { lambdaFunction } from '../../shared/lambda/function.ts';
import { sealedCursors } from '../../shared/lambda/sealed-cursor.ts';

export const readExpired = (dependencies = readingFromEnvironment()) =>
  lambdaFunction({
    name: 'readExpired',
    input: readInput(),
    names: { ...REPORT_NAMES, cursors: sealedCursors('expired') },
    run: reader(dependencies),
    logged: ['reportId', 'kind', 'startedAt', 'complete', 'scanned', 'readUnits', 'expired', 'neverDeletable'],
  });

export const handler = readExpired();
