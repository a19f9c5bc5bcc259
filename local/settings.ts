import { assertFree } from './ports.ts';

const PORTS = {
  PORT: ['where the API listens', 3000],
  DYNAMODB_PORT: ['where the DynamoDB emulator listens', 8000],
  S3_PORT: ['where the S3 emulator listens', 9000],
  SFN_PORT: ['where the emulator of Step Functions listens', 8083],
} as const;

const OPTIONS = {
  DATA_DIR: 'folder that keeps tables and objects between runs; without it they are in memory',
  AWS_ENDPOINT_URL_DYNAMODB: 'use the DynamoDB that listens there instead of starting an emulator',
  AWS_ENDPOINT_URL_S3: 'use the S3 that listens there instead of starting an emulator',
  AWS_ENDPOINT_URL_EVENTBRIDGE: 'put events to the EventBridge that listens there instead of the local bus',
  AUTO_CLEAN: 'true: a report is followed by a clean-up, as with the parameter autoClean',
  SCHEDULES: 'off: the functions that serverless.yml schedules are not called',
  LOG_LEVEL: "the functions' log: DEBUG, INFO, WARN (the default here), ERROR, SILENT",
};

/** Those of the functions' variables that may be set; the others are the stack's. */
export const FUNCTION_SETTINGS = [
  'CLOCK_SKEW_MS',
  'FENCE_RETENTION_SECONDS',
  'MAX_WAIT_SECONDS',
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

export const HELP = `npm start: Holdfast on this machine, over emulators of DynamoDB, S3 and Step Functions.

Options, as environment variables:
${lines(Object.entries(PORTS).map(([name, [what, fallback]]) => [name, `${what} (${fallback})`]))}
${lines(Object.entries(OPTIONS))}

The functions' own settings can be set the same way:
${FUNCTION_SETTINGS.map((name) => `  ${name}`).join('\n')}

Ctrl-C stops everything.`;

const taken = new Map<number, string>();

/**
 * The port that a variable names, or its default.
 * @throws Error that names the variable, where it is no port, another variable's too, or not free
 */
export async function portOf(variable: keyof typeof PORTS): Promise<number> {
  const [, fallback] = PORTS[variable];
  const value = process.env[variable] ?? String(fallback);
  const port = Number(value);
  if (!/^\d{1,5}$/.test(value) || port < 1 || port > 65_535)
    throw new Error(`${variable} must be a port from 1 to 65535, not '${value}'`);
  const other = taken.get(port);
  if (other) throw new Error(`${other} and ${variable} are both ${port}`);
  taken.set(port, variable);
  await assertFree(port, variable);
  return port;
}
