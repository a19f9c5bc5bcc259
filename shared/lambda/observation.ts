import type { Context } from 'aws-lambda';
import { MEASURES, type Measure } from '../aws/call.ts';
import type { HoldfastError } from '../errors.ts';
import { count, logLine, type Metrics, measured, milliseconds } from '../log.ts';
import type { Invocation } from './adapters.ts';
import type { Internal, Middleware } from './middleware.ts';

interface Observed {
  /** The fields of input, result and error context that may be logged. */
  logged: readonly string[];
  /** Whether the line names the caller. */
  audited: boolean;
  /** Further log fields that are derived from the input. */
  inWords(input: unknown): Record<string, unknown>;
}

/**
 * One log line for each invocation, with its metrics, by service and by service and function: the outcome (`Success` or the error code), `Faults`
 * (answers of status 500 and above), `TaskFailures` (errors thrown on purpose to a task or for an event, which Lambda counts among its Errors),
 * `WaitedMs` of each new grant, and what the call measured itself.
 */
export function observation(name: string, { logged, audited, inWords }: Observed): Middleware {
  const names = new Set([...logged, 'issues']); // every InvalidRequest has it
  const asked = ({ internal: { input }, event }: { internal: Internal; event: unknown }) => {
    if (input === undefined) return {};
    // Without a principal the call came by lambda:InvokeFunction, and CloudTrail knows its caller.
    const { principal } = event as Invocation;
    return { ...pick(input, names), ...inWords(input), ...(audited && principal && { caller: principal }) };
  };
  return {
    before: (request) => {
      const { internal, event } = request;
      request.event = { ...(event as Invocation), measure: measuring(internal) };
    },
    after: (request) => {
      const { context, internal, response } = request;
      const { waitedMs, repeated } = (response ?? {}) as { waitedMs?: number; repeated?: boolean };
      logLine(
        'INFO',
        { message: 'answered', ...common(name, internal, context), ...asked(request), ...pick(response, names) },
        metrics(internal, {
          Success: count(1),
          ...(waitedMs !== undefined && !repeated && { WaitedMs: milliseconds(waitedMs) }),
        }),
      );
    },
    onError: (request) => {
      const { context, error, internal } = request;
      const { code, status, message, context: told, cause } = error as HoldfastError;
      const faulty = status >= 500;
      const { name: causeName, message: causeMessage } = (cause ?? {}) as Partial<Error>;
      logLine(
        faulty ? 'ERROR' : 'INFO',
        {
          message: faulty ? message : 'refused',
          ...common(name, internal, context),
          ...{ code, ...asked(request), ...pick(told, names) },
          ...(faulty && { cause: { name: causeName, message: causeMessage } }),
        },
        metrics(internal, {
          [code]: count(1),
          ...(faulty && { Faults: count(1) }),
          ...(internal.adapter !== 'http' && !internal.accepts?.includes(code) && { TaskFailures: count(1) }),
        }),
      );
    },
  };
}

/** Lambda counts an invocation at its arrival too, and an alarm subtracts our counts from Lambda's, period by period. */
const metrics = ({ arrivedAt, measured }: Internal, values: Metrics['values']): Metrics => ({
  at: arrivedAt,
  dimensions: [[], ['function']], // the alarms watch the service alone
  values: { ...values, ...valuesOf(measured) },
});

const measuring = (internal: Internal) => (measure: Measure, value: number) => {
  const values = internal.measured?.[measure];
  if (values) values.push(value);
  else internal.measured = { ...internal.measured, [measure]: [value] };
};

const valuesOf = (all: Internal['measured'] = {}): Metrics['values'] =>
  Object.fromEntries(Object.entries(all).map(([name, values]) => [name, measured(values, MEASURES[name as Measure])]));

function common(
  name: string,
  { adapter, startedAt, namespace }: Internal,
  { awsRequestId }: Pick<Context, 'awsRequestId'>,
) {
  const durationMs = Math.round(performance.now() - startedAt);
  return {
    function: name,
    adapter,
    ...(namespace !== undefined && { namespace }),
    durationMs,
    traceId: awsRequestId,
    ...tracing(),
  };
}

/** Lambda leaves the trace of each invocation in the environment, also where nobody traces: then it would be bytes that nothing points to. */
function tracing(): { xrayTraceId?: string } {
  const [, xrayTraceId] = /Root=([^;]+).*;Sampled=1/.exec(process.env._X_AMZN_TRACE_ID ?? '') ?? [];
  return xrayTraceId === undefined ? {} : { xrayTraceId };
}

function pick(fields: unknown, names: ReadonlySet<string>): Record<string, unknown> {
  if (typeof fields !== 'object' || fields === null) return {};
  const picked: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(fields)) if (names.has(name)) picked[name] = value;
  return picked;
}
