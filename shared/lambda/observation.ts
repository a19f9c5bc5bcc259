import { Logger } from '@aws-lambda-powertools/logger';
import { systemClock } from '../clock.ts';
import type { HoldfastError } from '../errors.ts';
import { type Metrics, publishMetrics } from './metrics.ts';
import type { Middleware } from './middleware.ts';

const logger = new Logger();

/** What of input, result and error context may be logged. Lease ids, versions and request ids are proofs: never. */
const LOGGED = ['key', 'holder', 'fence', 'waitedMs', 'repeated', 'released', 'reason', 'issues'];

/**
 * One log line and one metric record for each invocation. Metrics, by service and by service and function: the outcome
 * (`Success` or the error code), `Faults` (answers of status 500 and above), `TaskFailures` (errors thrown on purpose,
 * which Lambda counts among its Errors) and `WaitedMs`.
 */
export function observation(name: string): Middleware {
  return {
    before: ({ internal }) => {
      internal.arrivedAt = systemClock.now();
      internal.startedAt = performance.now();
    },
    after: ({ context, internal, response }) => {
      logger.addContext(context);
      logger.info('answered', { ...common(name, internal), ...logged(internal.input), ...logged(response) });
      const { waitedMs } = (response ?? {}) as { waitedMs?: number };
      publishMetrics(name, internal.arrivedAt, {
        Success: ONCE,
        ...(waitedMs !== undefined && { WaitedMs: { value: waitedMs, unit: 'Milliseconds' } }),
      });
    },
    onError: ({ context, error, internal }) => {
      const { code, status, message, context: told, cause } = error as HoldfastError;
      const line = { ...common(name, internal), code, ...logged(internal.input), ...logged(told) };
      const { name: causeName, message: causeMessage } = (cause ?? {}) as Partial<Error>;
      logger.addContext(context);
      if (status < 500) logger.info('refused', line);
      else logger.error(message, { ...line, cause: { name: causeName, message: causeMessage } });
      publishMetrics(name, internal.arrivedAt, {
        [code]: ONCE,
        ...(status >= 500 && { Faults: ONCE }),
        ...(internal.door === 'task' && { TaskFailures: ONCE }),
      });
    },
  };
}

const ONCE: Metrics[string] = { value: 1, unit: 'Count' };

function common(name: string, { door, startedAt }: Record<string, unknown>) {
  return { function: name, door, durationMs: Math.round(performance.now() - Number(startedAt)) };
}

function logged(fields: unknown): Record<string, unknown> {
  if (typeof fields !== 'object' || fields === null) return {};
  return Object.fromEntries(Object.entries(fields).filter(([name]) => LOGGED.includes(name)));
}
