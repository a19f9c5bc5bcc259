import type { Clock } from '../clock.ts';
import { count, logMetrics, seconds } from '../log.ts';
import type { Summary } from './summary.ts';

/**
 * Writes what a complete report found: by service and kind `ExpiredRecords` (count) and `OldestAgeSeconds`; by service
 * `NeverDeletableRecords` and `ReportCompleted`. If `ReportCompleted` is missing, no report completes.
 */
export function measurer(clock: Clock) {
  return ({ expired, neverDeletable }: Summary): void => {
    const at = clock.now();
    for (const [kind, { count: found, oldestAgeSeconds }] of Object.entries(expired))
      logMetrics(
        {
          ...{ at, dimensions: [['kind']] },
          values: { ExpiredRecords: count(found), OldestAgeSeconds: seconds(oldestAgeSeconds) },
        },
        { kind },
      );
    const values = { NeverDeletableRecords: count(neverDeletable), ReportCompleted: count(1) };
    logMetrics({ at, dimensions: [[]], values });
  };
}
