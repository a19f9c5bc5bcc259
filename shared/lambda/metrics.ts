/** A value of one invocation: how often, or how long. */
export type Metrics = Record<string, { value: number; unit: 'Count' | 'Milliseconds' }>;

const DIMENSIONS = [['service'], ['service', 'function']];

/**
 * Tells CloudWatch the metrics of one invocation, by service and by service and function, in its embedded metric format
 * ("Specification: Embedded metric format" in its user guide): a line on standard output. Written here and not by a
 * library because every invocation pays for it: a library's store and checks took 5% of an acquire, and 12 kB to load.
 * @param arrivedAt epoch milliseconds
 */
export function publishMetrics(functionName: string, arrivedAt: number, metrics: Metrics, env = process.env): void {
  if (env.POWERTOOLS_METRICS_DISABLED === 'true') return;
  const entries = Object.entries(metrics);
  const line = {
    _aws: {
      // Lambda counts an invocation at its arrival too, and an alarm subtracts our counts from Lambda's, by period.
      Timestamp: arrivedAt,
      CloudWatchMetrics: [
        {
          Namespace: env.POWERTOOLS_METRICS_NAMESPACE,
          Dimensions: DIMENSIONS,
          Metrics: entries.map(([Name, { unit: Unit }]) => ({ Name, Unit })),
        },
      ],
    },
    service: env.POWERTOOLS_SERVICE_NAME,
    function: functionName,
    ...Object.fromEntries(entries.map(([name, { value }]) => [name, value])),
  };
  // Not by console.log: Lambda puts time and request id before what comes that way, and the line would not be JSON.
  process.stdout.write(`${JSON.stringify(line)}\n`);
}
