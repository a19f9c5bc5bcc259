import { cleaner } from '../../shared/expiry/clean.ts';
import { cleaningFromEnvironment } from '../../shared/expiry/environment.ts';
import { cleanInput, eventInput } from '../../shared/expiry/inputs.ts';
import { REPORT_PAGES } from '../../shared/expiry/names.ts';
import { lambdaFunction } from '../../shared/lambda/function.ts';

export const clean = (dependencies = cleaningFromEnvironment()) =>
  lambdaFunction({
    name: 'clean',
    input: cleanInput(),
    names: REPORT_PAGES,
    run: cleaner(dependencies),
    logged: ['reportId', 'kinds', 'olderThanSeconds', 'dryRun', 'neverDeletable', 'stoppedBy'],
    events: { payload: eventInput },
  });

export const handler = clean();
