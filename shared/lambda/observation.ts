import type { Context } from 'aws-lambda';
import { MEASURES, type Measure } from '../aws/call.ts';
import type { HoldfastError } from '../errors.ts';
import { count, type LogFields, logLine, type Metrics, measured, milliseconds } from '../surroundings/log.ts';
import type { Invocation } from './adapters.ts';
import type { Internal, Middleware } from './middleware.ts';

/** The options of a function for its log lines, see `function.ts`. */
interface ObservationOptions {
  name: string;
  logged: readonly string[];
  audited?: boolean;
  derivedFields?(input: unknown): Record<string, unknown>;
}

/**
 * Writes one log line for each invocation, with its metrics. CloudWatch counts them by service, and by service and
 * function:
 * - the outcome: `Success` or the error code
 * - `Faults`: answers with a status of 500 and above
 * - `TaskFailures`: errors that were thrown on purpose, to a task or for an event. Lambda counts them among its Errors
 * - `WaitedMs` of each new grant
 * - the measures of the call itself
 */
export function observation({ name, logged, audited, derivedFields }: ObservationOptions): Middleware {
  const names = [...logged, 'issues']; // the field of each InvalidRequest
  /**
   * Adds fields of the input, and the caller. A caller who used lambda:InvokeFunction does not have a principal here;
   * CloudTrail knows it.
   */
  const addInput = (line: LogFields, { internal: { input }, event }: { internal: Internal; event: unknown }): void => {
    if (input === undefined) return;
    const { principal } = event as Invocation;
    addPicked(line, input, names);
    Object.assign(line, derivedFields?.(input));
    if (audited && principal) line.caller = principal;
  };
  return {
    before: (request) => {
      const { internal, context } = request;
      const invocation = request.event as Invocation;
      invocation.measure = measuring(internal);
      invocation.log = ({ message, ...line }) =>
        logLine('INFO', { message, function: name, ...line, traceId: context.awsRequestId });
    },
    after: (request) => {
      const { internal, response } = request;
      const { waitedMs, repeated } = (response ?? {}) as { waitedMs?: number; repeated?: boolean };
      const line = commonFields('answered', name, request);
      addInput(line, request);
      addPicked(line, response, names);
      const waited = waitedMs !== undefined && !repeated ? { WaitedMs: milliseconds(waitedMs) } : undefined;
      logLine('INFO', line, metrics(internal, { Success: count(1), ...waited }));
    },
    onError: (request) => {
      const { error, internal } = request;
      const { code, status, message, context: fields, cause } = error as HoldfastError;
      const faulty = status >= 500;
      const { name: causeName, message: causeMessage } = (cause ?? {}) as Partial<Error>;
      const line = commonFields(faulty ? message : 'refused', name, request);
      line.code = code;
      addInput(line, request);
      addPicked(line, fields, names);
      if (faulty) line.cause = { name: causeName, message: causeMessage };
      logLine(
        faulty ? 'ERROR' : 'INFO',
        line,
        metrics(internal, {
          [code]: count(1),
          ...(faulty && { Faults: count(1) }),
          ...(internal.adapter !== 'http' && !internal.accepts?.includes(code) && { TaskFailures: count(1) }),
        }),
      );
    },
  };
}

/** Counts the metrics for the whole service, which the alarms watch, and for each function. */
const DIMENSIONS = [[], ['function']];

/**
 * The metrics of an invocation, counted at its arrival like Lambda's own: an alarm subtracts these counts from
 * Lambda's, period by period.
 */
const metrics = ({ arrivedAt, measured }: Internal, values: Metrics['values']): Metrics => ({
  at: arrivedAt,
  dimensions: DIMENSIONS,
  values: measured ? { ...values, ...valuesOf(measured) } : values,
});

const measuring = (internal: Internal) => (measure: Measure, value: number) => {
  const values = internal.measured?.[measure];
  if (values) values.push(value);
  else internal.measured = { ...internal.measured, [measure]: [value] };
};

const valuesOf = (all: NonNullable<Internal['measured']>): Metrics['values'] =>
  Object.fromEntries(Object.entries(all).map(([name, values]) => [name, measured(values, MEASURES[name as Measure])]));

/**
 * The first fields of a line. More fields are added to the same object, because a copy would cost time at every call.
 */
function commonFields(message: string, name: string, { internal, context }: { internal: Internal; context: Context }) {
  const { adapter, startedAt, namespace } = internal;
  const line: LogFields = { message, function: name, adapter };
  if (namespace !== undefined) line.namespace = namespace;
  line.durationMs = Math.round(performance.now() - startedAt);
  line.traceId = context.awsRequestId;
  return Object.assign(line, tracing());
}

/**
 * The id of the trace. Lambda sets the variable even if the invocation is not traced, and then the log does not name a
 * trace.
 */
function tracing(): { xrayTraceId?: string } | undefined {
  const [, xrayTraceId] = /Root=([^;]+).*;Sampled=1/.exec(process.env._X_AMZN_TRACE_ID ?? '') ?? [];
  return xrayTraceId === undefined ? undefined : { xrayTraceId };
}

function addPicked(line: LogFields, fields: unknown, names: readonly string[]): void {
  if (typeof fields !== 'object' || fields === null) return;
  for (const name of names) if (Object.hasOwn(fields, name)) line[name] = (fields as LogFields)[name];
}
