import type { Clock } from '../surroundings/clock.ts';
import { count, logMetrics, seconds } from '../surroundings/log.ts';
import type { Summary } from './summary.ts';

/**
 * Writes what a complete report found: by service and kind `ExpiredRecords` (count) and `OldestAgeSeconds`; by service
 * `NeverDeletableRecords`, `NamespacesOverQuota` and `ReportCompleted`. What the report did not find is not written, because CloudWatch
 * charges for each metric that has a value, also 0. If `ReportCompleted` is missing, no report completes.
 * @param leasesPerNamespace more than so many held leases and permits are over the quota of a namespace
 */
export function measurer(clock: Clock, leasesPerNamespace: number) {
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
