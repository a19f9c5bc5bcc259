import { readingFromEnvironment } from '../../shared/expiry/environment.ts';
import { readInput } from '../../shared/expiry/inputs.ts';
import { REPORT_PAGES } from '../../shared/expiry/names.ts';
import { reader } from '../../shared/expiry/read.ts';
import { lambdaFunction } from '../../shared/lambda/function.ts';

export const readExpired = (dependencies = readingFromEnvironment()) =>
  lambdaFunction({
    name: 'readExpired',
    input: readInput(),
    names: REPORT_PAGES,
    run: reader(dependencies),
    logged: ['reportId', 'kind', 'startedAt', 'complete', 'scanned', 'readUnits', 'expired', 'neverDeletable'],
  });

export const handler = readExpired();
