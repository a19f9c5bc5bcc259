import { whyNotFree } from './ports.ts';
import { BEFORE_OPTIONS, PROGRAM } from './program.ts';

const PORTS = {
  PORT: ['where the API listens', 3000],
  DYNAMODB_PORT: ['where the DynamoDB emulator listens', 8000],
  S3_PORT: ['where the S3 emulator listens', 9000],
  SFN_PORT: ['where the emulator of Step Functions listens', 8083],
  LAMBDA_PORT: ['where durable functions listen', 8084],
} as const;

const OPTIONS = {
  DATA_DIR: 'the folder that keeps tables and objects between runs (a folder for each port in .holdfast/)',
  DYNAMODB_EMULATOR: 'dynoxide, java or docker; the default is the first of these on this machine',
  AWS_ENDPOINT_URL_DYNAMODB: 'the URL of a DynamoDB to use instead of an emulator',
  AWS_ENDPOINT_URL_S3: 'the URL of an S3 to use instead of an emulator',
  AWS_ENDPOINT_URL_EVENTBRIDGE: 'the URL of an EventBridge to use instead of the local bus',
  LISTEN_ADDRESS: 'where all servers listen (127.0.0.1); 0.0.0.0 in a container',
  AUTH: 'jwt: every route needs a token, which npm run token prints',
  AUTO_CLEAN: 'true: a clean-up follows each report, as with the parameter autoClean',
  SCHEDULES: 'off: no function runs on a schedule',
  LOG_LEVEL: 'the log of the functions: DEBUG, INFO, WARN (the default here), ERROR, SILENT',
};

/** The variables of the functions that the user may set. The stack sets all others. */
export const FUNCTION_SETTINGS = [
  'CLOCK_SKEW_MS',
  'FENCE_RETENTION_SECONDS',
  'MAX_WAIT_SECONDS',
  'MAX_HELD_CALLS',
  'MAX_WAITERS_PER_KEY',
  'MAX_WAITERS_PER_NAMESPACE',
  'MAX_LEASES_PER_NAMESPACE',
  'JWT_NAMESPACE_CLAIM',
  'NAMESPACE_EXECUTIONS',
  'EXECUTION_STATE_MACHINES',
  'DURABLE_FUNCTIONS',
  'EVENTS',
  'WAITER_OVERDUE_SECONDS',
  'COMMIT_PROTOCOL',
  'COMMIT_TIMEOUT_MS',
  'MAX_CLOCK_SKEW_RATE',
  'COMMIT_TTL_SECONDS',
  'MAX_UPLOAD_MIB',
  'MULTIPART_THRESHOLD_MIB',
  'MULTIPART_PART_MIB',
  'POINTER_ATTRIBUTES',
  'REPORT_READ_UNITS_PER_SECOND',
  'REPORT_SEGMENTS',
  'REPORT_GIVE_UP_HOURS',
  'AUTO_CLEAN_OLDER_THAN_SECONDS',
];

const lines = (described: [name: string, what: string][]) =>
  described.map(([name, what]) => `  ${name.padEnd(28)}  ${what}`).join('\n');

export const HELP = `npm start: Holdfast on this machine, over emulators of DynamoDB, S3, Step Functions and durable functions.

Options:
  --port NUMBER                 where the API listens; the other servers use the next four ports
  --durable FILE                run the durable function in FILE, which exports its handler; for several, repeat the option
  --function FILE               run the function in FILE for your state machines; for several, repeat the option
  --memory                      keep nothing between runs
  --watch                       restart when the code changes

As environment variables:
${lines(Object.entries(PORTS).map(([name, [what, fallback]]) => [name, `${what} (${fallback})`]))}
${lines(Object.entries(OPTIONS))}

Settings of the functions, as environment variables too:
${FUNCTION_SETTINGS.map((name) => `  ${name}`).join('\n')}

Ctrl-C stops everything.`;

type Variable = keyof typeof PORTS;
export type Ports = Record<Variable, number>;

/**
 * Chooses the port of each server: a port after `base` if that is given, otherwise the port that its variable names, otherwise its default.
 * @param unused servers that are not started here
 * @throws Error that names each port that is not valid, is given twice, or is not free
 */
export async function readPorts(base: number | undefined, unused: readonly Variable[] = []): Promise<Ports> {
  const all = Object.keys(PORTS) as Variable[];
  const ports = Object.fromEntries(all.map((variable, index) => [variable, portOf(variable, base, index)])) as Ports;
  const variables = all.filter((variable) => !unused.includes(variable));
  for (const [index, variable] of variables.entries()) {
    const other = variables.slice(0, index).find((one) => ports[one] === ports[variable]);
    if (other) throw new Error(`${other} and ${variable} are both ${ports[variable]}`);
  }
  const faults = await Promise.all(
    variables.map(async (variable) => {
      const why = await whyNotFree(ports[variable]);
      return why ? [`port ${ports[variable]} ${why}; set ${variable} to another one`] : [];
    }),
  );
  const lines = faults.flat();
  if (lines.length > 0)
    throw new Error([...lines, `or move all of them: ${PROGRAM}${BEFORE_OPTIONS} --port 4700`].join('\n'));
  return ports;
}

/** @param index counts the ports after `base` */
function portOf(variable: Variable, base: number | undefined, index: number): number {
  const [, fallback] = PORTS[variable];
  const value = base === undefined ? (process.env[variable] ?? String(fallback)) : String(base + index);
  const port = Number(value);
  if (!/^\d{1,5}$/.test(value) || port < 1 || port > 65_535)
    throw new Error(`${variable} must be a port from 1 to 65535, not '${value}'`);
  return port;
}
