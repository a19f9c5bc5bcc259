import { cleaner } from '../../shared/expiry/clean.ts';
import { cleaningFromEnvironment } from '../../shared/expiry/environment.ts';
import { cleanInput, eventInput } from '../../shared/expiry/inputs.ts';
import { REPORT_NAMES } from '../../shared/expiry/names.ts';
import { lambdaFunction } from '../../shared/lambda/function.ts';
import { SEALED_CURSORS } from '../../shared/lambda/sealed-cursor.ts';

export const clean = (dependencies = cleaningFromEnvironment()) =>
  lambdaFunction({
    name: 'clean',
    input: cleanInput(),
    names: { ...REPORT_NAMES, cursors: SEALED_CURSORS },
    run: cleaner(dependencies),
    logged: ['reportId', 'kinds', 'olderThanSeconds', 'dryRun', 'neverDeletable', 'stoppedBy'],
    audited: true,
    events: { payload: eventInput },
  });

export const handler = clean();
