import { Logger } from '@aws-lambda-powertools/logger';
import { Metrics, MetricUnit } from '@aws-lambda-powertools/metrics';
import type { HoldfastError } from '../errors.ts';
import type { Invocation } from './adapters.ts';
import type { Internal, Middleware } from './middleware.ts';

const logger = new Logger();
const metrics = new Metrics();

interface Observed {
  /** The fields of input, result and error context that may be logged. */
  logged: readonly string[];
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
export function observation(name: string, { logged, audited, inWords }: Observed): Middleware {
  const picked = (fields: unknown) => pick(fields, [...logged, 'issues']); // what every InvalidRequest says
  const asked = ({ internal: { input }, event }: { internal: Internal; event: unknown }) => {
    if (input === undefined) return {};
    // Without one the call came through lambda:InvokeFunction, and CloudTrail knows its caller.
    const { principal } = event as Invocation;
    return { ...picked(input), ...inWords(input), ...(audited && principal && { caller: principal }) };
  };
  return {
    after: (request) => {
      const { context, internal, response } = request;
      logger.addContext(context);
      logger.info('answered', { ...common(name, internal), ...asked(request), ...picked(response) });
      const { waitedMs } = (response ?? {}) as { waitedMs?: number };
      publish(name, internal, { counts: { Success: 1 }, waitedMs });
    },
    onError: (request) => {
      const { context, error, internal } = request;
      const { code, status, message, context: told, cause } = error as HoldfastError;
      const line = { ...common(name, internal), code, ...asked(request), ...picked(told) };
      const { name: causeName, message: causeMessage } = (cause ?? {}) as Partial<Error>;
      logger.addContext(context);
      if (status < 500) logger.info('refused', line);
      else logger.error(message, { ...line, cause: { name: causeName, message: causeMessage } });
      const counts = {
        [code]: 1,
        ...(status >= 500 && { Faults: 1 }),
        ...(internal.adapter !== 'http' && !internal.accepts?.includes(code) && { TaskFailures: 1 }),
      };
      publish(name, internal, { counts });
    },
  };
}

interface Measured {
  counts: Record<string, number>;
  waitedMs?: number | undefined;
}

function publish(name: string, { arrivedAt }: Internal, { counts, waitedMs }: Measured): void {
  // Lambda counts an invocation at its arrival too, and an alarm subtracts our counts from Lambda's, period by period.
  metrics.setTimestamp(arrivedAt);
  metrics.addDimensions({}); // the service alone, which the alarms watch
  metrics.addDimensions({ function: name });
  for (const [metric, value] of Object.entries(counts)) metrics.addMetric(metric, MetricUnit.Count, value);
  if (waitedMs !== undefined) metrics.addMetric('WaitedMs', MetricUnit.Milliseconds, waitedMs);
  metrics.publishStoredMetrics();
}

function common(name: string, { adapter, startedAt }: Internal) {
  return { function: name, adapter, durationMs: Math.round(performance.now() - startedAt) };
}

function pick(fields: unknown, names: readonly string[]): Record<string, unknown> {
  if (typeof fields !== 'object' || fields === null) return {};
  return Object.fromEntries(Object.entries(fields).filter(([name]) => names.includes(name)));
}
