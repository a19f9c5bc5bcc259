import type { Clock } from '../surroundings/clock.ts';
import { count, logMetrics, seconds } from '../surroundings/log.ts';
import type { Summary } from './summary.ts';

/**
 * Writes what a complete report found: by service and kind `ExpiredRecords` (count) and `OldestAgeSeconds`; by service
 * `NeverDeletableRecords`, `NamespacesOverQuota` and `ReportCompleted`. If `ReportCompleted` is missing, no report completes.
 * @param leasesPerNamespace more than so many held leases and permits are over the quota of a namespace
 */
export function measurer(clock: Clock, leasesPerNamespace: number) {
  return ({ expired, neverDeletable, heldByNamespace }: Summary): void => {
    const at = clock.now();
    for (const [kind, { count: found, oldestAgeSeconds }] of Object.entries(expired))
      logMetrics(
        {
          ...{ at, dimensions: [['kind']] },
          values: { ExpiredRecords: count(found), OldestAgeSeconds: seconds(oldestAgeSeconds) },
        },
        { kind },
      );
    const over = heldByNamespace.filter(({ leases }) => leases > leasesPerNamespace).length;
    const values = {
      NeverDeletableRecords: count(neverDeletable),
      NamespacesOverQuota: count(over),
      ReportCompleted: count(1),
    };
    logMetrics({ at, dimensions: [[]], values });
  };
}
