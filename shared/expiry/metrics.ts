import { Metrics, MetricUnit } from '@aws-lambda-powertools/metrics';
import type { Summary } from './summary.ts';

/**
 * Writes what a complete report found: by service and kind `ExpiredRecords` (count) and `OldestAgeSeconds`; by service
 * `NeverDeletableRecords` and `ReportCompleted`, whose absence is what tells that no report completes.
 */
export function measurer(metrics = new Metrics()) {
  return ({ expired, neverDeletable }: Summary): void => {
    for (const [kind, { count, oldestAgeSeconds }] of Object.entries(expired)) {
      metrics.addDimensions({ kind });
      metrics.addMetric('ExpiredRecords', MetricUnit.Count, count);
      metrics.addMetric('OldestAgeSeconds', MetricUnit.Seconds, oldestAgeSeconds);
      metrics.publishStoredMetrics();
    }
    metrics.addDimensions({});
    metrics.addMetric('NeverDeletableRecords', MetricUnit.Count, neverDeletable);
    metrics.addMetric('ReportCompleted', MetricUnit.Count, 1);
    metrics.publishStoredMetrics();
  };
}
