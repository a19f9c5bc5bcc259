import { Logger } from '@aws-lambda-powertools/logger';
import { Metrics, MetricUnit } from '@aws-lambda-powertools/metrics';
import type { HoldfastError } from '../errors.ts';
import type { Middleware } from './middleware.ts';

const logger = new Logger();
const metrics = new Metrics();

/** What of input, result and error context may be logged. Lease ids, versions and request ids are proofs: never. */
const LOGGED = ['key', 'holder', 'fence', 'waitedMs', 'repeated', 'released', 'reason', 'issues'];

/**
 * One log line and one metric record for each invocation. Metrics, by service and by service and function: the outcome
 * (`Success` or the error code), `Faults` (answers of status 500 and above), `TaskFailures` (errors thrown on purpose,
 * which Lambda counts among its Errors) and `WaitedMs`.
 */
export function observation(name: string): Middleware {
  return {
    before: (request) => {
      request.internal.startedAt = performance.now();
    },
    after: ({ context, internal, response }) => {
      logger.addContext(context);
      logger.info('answered', { ...common(name, internal), ...logged(internal.input), ...logged(response) });
      count(name, 'Success');
      const { waitedMs } = (response ?? {}) as { waitedMs?: number };
      if (waitedMs !== undefined) metrics.addMetric('WaitedMs', MetricUnit.Milliseconds, waitedMs);
      metrics.publishStoredMetrics();
    },
    onError: ({ context, error, internal }) => {
      const { code, status, message, context: told, cause } = error as HoldfastError;
      const line = { ...common(name, internal), code, ...logged(internal.input), ...logged(told) };
      const { name: causeName, message: causeMessage } = (cause ?? {}) as Partial<Error>;
      logger.addContext(context);
      if (status < 500) logger.info('refused', line);
      else logger.error(message, { ...line, cause: { name: causeName, message: causeMessage } });
      count(name, code);
      if (status >= 500) metrics.addMetric('Faults', MetricUnit.Count, 1);
      if (internal.door === 'task') metrics.addMetric('TaskFailures', MetricUnit.Count, 1);
      metrics.publishStoredMetrics();
    },
  };
}

function common(name: string, { door, startedAt }: Record<string, unknown>) {
  return { function: name, door, durationMs: Math.round(performance.now() - Number(startedAt)) };
}

function logged(fields: unknown): Record<string, unknown> {
  if (typeof fields !== 'object' || fields === null) return {};
  return Object.fromEntries(Object.entries(fields).filter(([name]) => LOGGED.includes(name)));
}

function count(name: string, outcome: string): void {
  metrics.addDimensions({}); // the service alone, which the alarm on faults watches
  metrics.addDimensions({ function: name });
  metrics.addMetric(outcome, MetricUnit.Count, 1);
}
