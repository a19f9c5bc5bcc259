import { cleanExpired } from '../../shared/expiry/clean.ts';
import { cleaningFromEnvironment } from '../../shared/expiry/environment.ts';
import { cleanInput, eventInput, REPORT_NAME_FIELDS } from '../../shared/expiry/inputs.ts';
import { lambdaFunction } from '../../shared/lambda/function.ts';
import { sealedCursors } from '../../shared/lambda/sealed-cursor.ts';
import { leasesFromEnvironment } from '../../shared/locks/dependencies.ts';
import { boundHolders } from '../../shared/locks/expired.ts';
import { SOURCES } from './sources.ts';

export const clean = (
  dependencies = cleaningFromEnvironment(),
  leases = leasesFromEnvironment(process.env, dependencies.dynamodb),
) =>
  lambdaFunction({
    name: 'clean',
    input: cleanInput(),
    nameFields: { ...REPORT_NAME_FIELDS, cursors: sealedCursors('expired') },
    run: cleanExpired({ ...dependencies, holders: boundHolders(leases), sources: SOURCES }),
    logged: ['reportId', 'kinds', 'olderThanSeconds', 'dryRun', 'neverDeletable', 'stoppedBy'],
    audited: true,
    events: { payload: eventInput },
  });

export const handler = clean();
