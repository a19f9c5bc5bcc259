import { readingFromEnvironment } from '../../shared/expiry/environment.ts';
import { REPORT_NAME_FIELDS, readReportInput } from '../../shared/expiry/inputs.ts';
import { readReport } from '../../shared/expiry/read.ts';
import { lambdaFunction } from '../../shared/lambda/function.ts';
import { sealedCursors } from '../../shared/lambda/sealed-cursor.ts';

export const readExpired = (dependencies = readingFromEnvironment()) =>
  lambdaFunction({
    name: 'readExpired',
    input: readReportInput(),
    nameFields: { ...REPORT_NAME_FIELDS, cursors: sealedCursors('expired') },
    run: readReport(dependencies),
    logged: ['reportId', 'kind', 'startedAt', 'complete', 'scanned', 'readUnits', 'expired', 'neverDeletable'],
  });

export const handler = readExpired();
