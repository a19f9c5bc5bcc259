import { reportsFromEnvironment } from '../../shared/expiry/environment.ts';
import { REPORT_NAME_FIELDS, reportInput } from '../../shared/expiry/inputs.ts';
import { REPORT_LEASE } from '../../shared/expiry/progress.ts';
import { createReport } from '../../shared/expiry/report.ts';
import { lambdaFunction } from '../../shared/lambda/function.ts';
import { leasesFromEnvironment } from '../../shared/locks/dependencies.ts';
import { boundHolders } from '../../shared/locks/expired.ts';
import { underLease } from '../../shared/locks/under-lease.ts';
import { SOURCES } from './sources.ts';

export function report(
  dependencies = reportsFromEnvironment(),
  leases = leasesFromEnvironment(process.env, dependencies.dynamodb),
) {
  const create = createReport({ ...dependencies, holders: boundHolders(leases), sources: SOURCES });
  return lambdaFunction({
    name: 'report',
    input: reportInput(),
    nameFields: REPORT_NAME_FIELDS,
    run: (_, call) => underLease(leases, { ...REPORT_LEASE, work: (lease) => create(lease, call) }, call),
    logged: [
      ...[
        'reportId',
        'startedAt',
        'complete',
        'scanned',
        'readUnits',
        'expired',
        'neverDeletable',
        'stoppedBy',
        'announced',
      ],
      ...['key', 'holder', 'fence', 'reason'], // fields of the errors LeaseHeld and LeaseLost
    ],
    audited: true,
    created: ({ complete }) => complete,
    // Another run may hold the lease, or take it over after a pause of this one. Both are normal, and EventBridge must
    // not try again.
    events: { payload: () => ({}), accepts: ['LeaseHeld', 'LeaseLost'] },
  });
}

export const handler = report();
