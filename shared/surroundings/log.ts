import { systemClock } from './clock.ts';

/** Metrics that go out with a line, in CloudWatch's embedded metric format. */
export interface Metrics {
  /** Epoch milliseconds: the period in which CloudWatch counts them. */
  at: number;
  /** Names of fields: CloudWatch counts each metric once for each list, by the service and their values. */
  dimensions: string[][];
  values: Record<string, Measured>;
}

interface Measured {
  /** Of a list, CloudWatch counts each value. */
  value: number | number[];
  unit: 'Count' | 'Milliseconds' | 'Seconds';
}

/** A metric takes no more values from one line. */
const MAX_METRIC_VALUES = 100;

export const count = (value: number): Measured => ({ value, unit: 'Count' });
export const milliseconds = (value: number): Measured => ({ value, unit: 'Milliseconds' });
export const seconds = (value: number): Measured => ({ value, unit: 'Seconds' });

const LEVELS = ['DEBUG', 'INFO', 'WARN', 'ERROR', 'SILENT'] as const;
type Level = (typeof LEVELS)[number];

export const measured = (value: number[], unit: Measured['unit']): Measured => ({ value, unit });

/**
 * Writes one line of JSON to standard output, which Lambda keeps as one event: what happened, and the metrics with it. CloudWatch bills by the
 * byte and a write takes longer than making the line, so nothing has a second line of its own. Below the level `LOG_LEVEL` the metrics go out alone.
 * @param fields what JSON can hold. Never a lease id, a version or a task token: they are proofs.
 */
export function logLine(level: Exclude<Level, 'SILENT'>, fields: LogFields, metrics?: Metrics): void {
  if (LEVELS.indexOf(level) < settings.least) {
    logMetrics(metrics, fields);
    return;
  }
  const timestamp = new Date(systemClock.now()).toISOString();
  writeLine({ level, timestamp, service: settings.service, ...fields }, metrics);
  for (const more of restOf(metrics)) writeMetrics(more, fields);
}

export interface LogFields extends Record<string, unknown> {
  message: string;
}

/** Writes the metrics alone. @param fields among which the dimensions' values are */
export function logMetrics(metrics: Metrics | undefined, fields: Record<string, unknown> = {}): void {
  if (!metrics || !settings.namespace) return;
  for (const part of [metrics, ...restOf(metrics)]) writeMetrics(part, fields);
}

function writeMetrics(metrics: Metrics, fields: Record<string, unknown>): void {
  const values = metrics.dimensions.flat().map((name) => [name, fields[name]]);
  writeLine({ service: settings.service, ...Object.fromEntries(values) }, metrics);
}

/** Read once: a look at the environment is a system's call, and this is done at each invocation. */
const settings = readSettings(process.env);

/** Without a namespace there are no metrics. @throws Error naming the variable at fault */
function readSettings(env: NodeJS.ProcessEnv) {
  const { LOG_LEVEL = 'INFO', SERVICE_NAME: service = 'holdfast', METRICS_NAMESPACE: namespace } = env;
  const least = LEVELS.indexOf(LOG_LEVEL.toUpperCase() as Level);
  if (least < 0) throw new Error(`LOG_LEVEL must be one of ${LEVELS.join(', ')}, not '${LOG_LEVEL}'`);
  return { least, service, namespace };
}

/** One write, because each is a system's call and takes longer than making the line. */
function writeLine(line: Record<string, unknown>, metrics: Metrics | undefined): void {
  const text = JSON.stringify(line);
  process.stdout.write(metrics && settings.namespace ? `${text.slice(0, -1)},${embedded(metrics)}}\n` : `${text}\n`);
}

/** The members of a line that are its metrics. Most of their text is the same at each call, so it is made once. */
function embedded({ at, dimensions, values }: Metrics): string {
  let members = '';
  let kind = `${dimensions}`;
  for (const [name, { value, unit }] of Object.entries(values)) {
    members += `"${name}":${Number.isFinite(value) ? value : JSON.stringify(inOneLine(value))},`;
    kind += `/${name} ${unit}`;
  }
  const directive = directives.get(kind) ?? directiveOf(dimensions, values);
  directives.set(kind, directive);
  return `${members}"_aws":{"Timestamp":${at},"CloudWatchMetrics":[${directive}]}`;
}

const directives = new Map<string, string>();

/** https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html */
const directiveOf = (dimensions: Metrics['dimensions'], values: Metrics['values']): string =>
  JSON.stringify({
    Namespace: settings.namespace,
    Dimensions: dimensions.map((names) => ['service', ...names]),
    Metrics: Object.entries(values).map(([Name, { unit }]) => ({ Name, Unit: unit })),
  });

/** One value, or as many as a line takes. */
const inOneLine = (value: number | number[]) =>
  Array.isArray(value) ? (value.length === 1 ? value[0] : value.slice(0, MAX_METRIC_VALUES)) : value;

/** The values of long lists that a line leaves out, in lines of their own. */
function* restOf(metrics: Metrics | undefined): Generator<Metrics> {
  if (!metrics || !settings.namespace) return;
  for (const [name, { value, unit }] of Object.entries(metrics.values))
    for (let from = MAX_METRIC_VALUES; Array.isArray(value) && from < value.length; from += MAX_METRIC_VALUES)
      yield { ...metrics, values: { [name]: { value: value.slice(from, from + MAX_METRIC_VALUES), unit } } };
}
