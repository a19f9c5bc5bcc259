import type { Clock } from '../surroundings/clock.ts';
import { count, logMetrics, seconds } from '../surroundings/log.ts';
import type { Summary } from './summary.ts';

/**
 * Writes the metrics of a complete report: `ExpiredRecords` and `OldestAgeSeconds` by service and kind, and
 * `NeverDeletableRecords`, `NamespacesOverQuota` and `ReportCompleted` by service. A count of 0 is not written, because
 * CloudWatch charges for each metric that has a value. `ReportCompleted` is always written: if it is missing, reports
 * do not complete.
 * @param leasesPerNamespace the quota of held leases and permits in a namespace
 */
export function measureReport(clock: Clock, leasesPerNamespace: number) {
  return ({ expired, neverDeletable, heldByNamespace }: Summary): void => {
    const at = clock.now();
    for (const [kind, { count: found, oldestAgeSeconds }] of Object.entries(expired))
      if (found > 0)
        logMetrics(
          {
            ...{ at, dimensions: [['kind']] },
            values: { ExpiredRecords: count(found), OldestAgeSeconds: seconds(oldestAgeSeconds) },
          },
          { kind },
        );
    const over = heldByNamespace.filter(({ leases }) => leases > leasesPerNamespace).length;
    const values = {
      ...(neverDeletable > 0 && { NeverDeletableRecords: count(neverDeletable) }),
      ...(over > 0 && { NamespacesOverQuota: count(over) }),
      ReportCompleted: count(1),
    };
    logMetrics({ at, dimensions: [[]], values });
  };
}
