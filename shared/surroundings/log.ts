import { systemClock } from './clock.ts';

/** The metrics of a log line, in CloudWatch's embedded metric format. */
export interface Metrics {
  /** The time at which CloudWatch counts the metrics, in epoch milliseconds. */
  at: number;
  /**
   * Lists of fields of the line. For each list, CloudWatch counts the metrics by the service and the values of the
   * fields.
   */
  dimensions: string[][];
  values: Record<string, Measured>;
}

interface Measured {
  /** If this is a list, CloudWatch counts each of its values. */
  value: number | number[];
  unit: 'Count' | 'Milliseconds' | 'Seconds';
}

/** The most values of a metric that CloudWatch accepts in one line. */
const MAX_METRIC_VALUES = 100;

export const count = (value: number): Measured => ({ value, unit: 'Count' });
export const milliseconds = (value: number): Measured => ({ value, unit: 'Milliseconds' });
export const seconds = (value: number): Measured => ({ value, unit: 'Seconds' });

const LEVELS = ['DEBUG', 'INFO', 'WARN', 'ERROR', 'SILENT'] as const;
type Level = (typeof LEVELS)[number];

export const measured = (value: number[], unit: Measured['unit']): Measured => ({ value, unit });

/**
 * Writes one line of JSON to standard output, with what happened and its metrics. They share a line, because CloudWatch
 * bills by the byte, and writing a line takes longer than making it. Below the level `LOG_LEVEL`, only the metrics are
 * written.
 * @param fields JSON values. Never a lease id, a version or a task token: a reader of the log could use it
 */
export function logLine(level: Exclude<Level, 'SILENT'>, fields: LogFields, metrics?: Metrics): void {
  if (LEVELS.indexOf(level) < settings.minLevel) {
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

/** Writes a line of metrics only. @param fields the fields that `dimensions` names, among others */
export function logMetrics(metrics: Metrics | undefined, fields: Record<string, unknown> = {}): void {
  if (!metrics || !settings.namespace) return;
  for (const part of [metrics, ...restOf(metrics)]) writeMetrics(part, fields);
}

function writeMetrics(metrics: Metrics, fields: Record<string, unknown>): void {
  const values = metrics.dimensions.flat().map((name) => [name, fields[name]]);
  writeLine({ service: settings.service, ...Object.fromEntries(values) }, metrics);
}

/** The settings of the log. They are read at the start, because reading the environment takes a system call. */
const settings = readSettings(process.env);

/** Without METRICS_NAMESPACE, metrics are not written. @throws Error naming a variable with a wrong value */
function readSettings(env: NodeJS.ProcessEnv) {
  const { LOG_LEVEL = 'INFO', SERVICE_NAME: service = 'holdfast', METRICS_NAMESPACE: namespace } = env;
  const minLevel = LEVELS.indexOf(LOG_LEVEL.toUpperCase() as Level);
  if (minLevel < 0) throw new Error(`LOG_LEVEL must be one of ${LEVELS.join(', ')}, not '${LOG_LEVEL}'`);
  return { minLevel, service, namespace };
}

/** Writes line and metrics with a single system call, because each call takes longer than making the line. */
function writeLine(line: Record<string, unknown>, metrics: Metrics | undefined): void {
  const text = JSON.stringify(line);
  process.stdout.write(metrics && settings.namespace ? `${text.slice(0, -1)},${embedded(metrics)}}\n` : `${text}\n`);
}

/**
 * The metrics as members of a line's JSON. Most of their text is the same at each call, so it is kept in `directives`.
 */
function embedded({ at, dimensions, values }: Metrics): string {
  let members = '';
  let kind = `${dimensions}`;
  for (const [name, { value, unit }] of Object.entries(values)) {
    members += `"${name}":${Number.isFinite(value) ? value : JSON.stringify(valueInLine(value))},`;
    kind += `/${name} ${unit}`;
  }
  const directive = directives.get(kind) ?? directiveOf(dimensions, values);
  directives.set(kind, directive);
  return `${members}"_aws":{"Timestamp":${at},"CloudWatchMetrics":[${directive}]}`;
}

const directives = new Map<string, string>();

/**
 * https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html
 */
const directiveOf = (dimensions: Metrics['dimensions'], values: Metrics['values']): string =>
  JSON.stringify({
    Namespace: settings.namespace,
    Dimensions: dimensions.map((names) => ['service', ...names]),
    Metrics: Object.entries(values).map(([Name, { unit }]) => ({ Name, Unit: unit })),
  });

/** The value of a metric in the line of its call: a number, or as many numbers as a line may have. */
const valueInLine = (value: number | number[]) =>
  Array.isArray(value) ? (value.length === 1 ? value[0] : value.slice(0, MAX_METRIC_VALUES)) : value;

/** The further values of long lists, for lines of their own. */
function* restOf(metrics: Metrics | undefined): Generator<Metrics> {
  if (!metrics || !settings.namespace) return;
  for (const [name, { value, unit }] of Object.entries(metrics.values))
    for (let from = MAX_METRIC_VALUES; Array.isArray(value) && from < value.length; from += MAX_METRIC_VALUES)
      yield { ...metrics, values: { [name]: { value: value.slice(from, from + MAX_METRIC_VALUES), unit } } };
}
