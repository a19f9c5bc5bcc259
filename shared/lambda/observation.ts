import { Logger } from '@aws-lambda-powertools/logger';
import { Metrics, MetricUnit } from '@aws-lambda-powertools/metrics';
import type { HoldfastError } from '../errors.ts';
import type { Invocation } from './adapters.ts';
import type { Internal, Middleware } from './middleware.ts';

const logger = new Logger();
const metrics = new Metrics();

/** What of input, result and error context may be logged. Lease ids and versions are proofs: never. */
const LOGGED = [
  ...['key', 'holder', 'fence', 'waitedMs', 'repeated', 'released', 'reason', 'issues'],
  ...['path', 'etag', 'size', 'generation', 'protocol', 'highest'],
  ...['op', 'alias', 'outcome', 'created'],
  ...['reportId', 'kind', 'kinds', 'olderThanSeconds', 'dryRun', 'neverDeletable'],
  ...['startedAt', 'complete', 'scanned', 'readUnits', 'expired', 'stoppedBy', 'announced'],
  ...[
    'ticket',
    'parked',
    'cancelled',
    'execution',
    'again',
    'tickets',
    'freed',
    'kept',
    'keys',
    'granted',
    'told',
    'unanswered',
  ],
];

interface Observed {
  /** Whether the line names the caller. */
  audited: boolean;
  /** What the log tells of an input in other words than its own. */
  inWords(input: unknown): Record<string, unknown>;
}

/**
 * One log line and one metric record for each invocation. Metrics, by service and by service and function: the outcome
 * (`Success` or the error code), `Faults` (answers of status 500 and above), `TaskFailures` (errors thrown on purpose to a task or for an event,
 * which Lambda counts among its Errors) and `WaitedMs`.
 */
export function observation(name: string, { audited, inWords }: Observed): Middleware {
  const asked = ({ internal: { input }, event }: { internal: Internal; event: unknown }) => {
    if (input === undefined) return {};
    // Without one the call came through lambda:InvokeFunction, and CloudTrail knows its caller.
    const { principal } = event as Invocation;
    return { ...logged(input), ...inWords(input), ...(audited && principal && { caller: principal }) };
  };
  return {
    after: (request) => {
      const { context, internal, response } = request;
      logger.addContext(context);
      logger.info('answered', { ...common(name, internal), ...asked(request), ...logged(response) });
      const { waitedMs } = (response ?? {}) as { waitedMs?: number };
      publish(name, internal, { Success: 1 }, waitedMs);
    },
    onError: (request) => {
      const { context, error, internal } = request;
      const { code, status, message, context: told, cause } = error as HoldfastError;
      const line = { ...common(name, internal), code, ...asked(request), ...logged(told) };
      const { name: causeName, message: causeMessage } = (cause ?? {}) as Partial<Error>;
      logger.addContext(context);
      if (status < 500) logger.info('refused', line);
      else logger.error(message, { ...line, cause: { name: causeName, message: causeMessage } });
      publish(name, internal, {
        [code]: 1,
        ...(status >= 500 && { Faults: 1 }),
        ...(internal.door !== 'http' && !internal.accepts?.includes(code) && { TaskFailures: 1 }),
      });
    },
  };
}

function publish(name: string, { arrivedAt }: Internal, counts: Record<string, number>, waitedMs?: number): void {
  // Lambda counts an invocation at its arrival too, and an alarm subtracts our counts from Lambda's, period by period.
  metrics.setTimestamp(arrivedAt);
  metrics.addDimensions({}); // the service alone, which the alarms watch
  metrics.addDimensions({ function: name });
  for (const [metric, value] of Object.entries(counts)) metrics.addMetric(metric, MetricUnit.Count, value);
  if (waitedMs !== undefined) metrics.addMetric('WaitedMs', MetricUnit.Milliseconds, waitedMs);
  metrics.publishStoredMetrics();
}

function common(name: string, { door, startedAt }: Internal) {
  return { function: name, door, durationMs: Math.round(performance.now() - startedAt) };
}

function logged(fields: unknown): Record<string, unknown> {
  if (typeof fields !== 'object' || fields === null) return {};
  return Object.fromEntries(Object.entries(fields).filter(([name]) => LOGGED.includes(name)));
}
