import { resolve } from 'node:path';
import { readService, type Service } from '../infrastructure/read.ts';
import { createTables, type Emulator, startDynamodb } from './dynamodb.ts';
import { startEventBus } from './event-bus.ts';
import { Events } from './events.ts';
import { Functions } from './functions.ts';
import { type Route, startGateway } from './gateway.ts';
import type { LambdaHandler } from './lambda.ts';
import { readOptions } from './options.ts';
import { assertFree } from './ports.ts';
import { createBuckets, startS3 } from './s3.ts';
import { startSchedules } from './schedule.ts';
import { startStepFunctions } from './step-functions/start.ts';

const HELP = `npm start: Holdfast on this machine, over emulators of DynamoDB, S3 and Step Functions.

Options, as environment variables:
  PORT                        where the API listens (3000)
  DYNAMODB_PORT               where the DynamoDB emulator listens (8000)
  S3_PORT                     where the S3 emulator listens (9000)
  SFN_PORT                    where the emulator of Step Functions listens (8083)
  DATA_DIR                    folder that keeps tables and objects between runs; without it they are in memory
  AWS_ENDPOINT_URL_DYNAMODB   use the DynamoDB that listens there instead of starting an emulator
  AWS_ENDPOINT_URL_S3         use the S3 that listens there instead of starting an emulator
  AWS_ENDPOINT_URL_EVENTBRIDGE  put events to the EventBridge that listens there instead of the local bus
  AUTO_CLEAN                  true: a report is followed by a clean-up, as with the parameter autoClean
  SCHEDULES                   off: the functions that serverless.yml schedules are not called
  POWERTOOLS_LOG_LEVEL        the functions' log: DEBUG, INFO, WARN (the default here), ERROR, SILENT

The functions' own settings can be set the same way: CLOCK_SKEW_MS, FENCE_RETENTION_SECONDS, COMMIT_PROTOCOL,
COMMIT_TIMEOUT_MS, MAX_CLOCK_SKEW_RATE, COMMIT_TTL_SECONDS, MULTIPART_THRESHOLD_MIB, MULTIPART_PART_MIB,
POINTER_ATTRIBUTES, REPORT_READ_UNITS_PER_SECOND, REPORT_SEGMENTS, REPORT_GIVE_UP_HOURS,
AUTO_CLEAN_OLDER_THAN_SECONDS.
Ctrl-C stops everything.`;

async function main(): Promise<void> {
  const { values } = readOptions({ help: { type: 'boolean', short: 'h' } });
  if (values.help) return console.log(HELP);

  const port = portFrom('PORT', 3000);
  await assertFree(port, 'PORT');
  const sfnPort = portFrom('SFN_PORT', 8083);
  if (sfnPort === port) throw new Error(`PORT and SFN_PORT are both ${port}`);
  await assertFree(sfnPort, 'SFN_PORT');
  const service = await readService();
  if (!process.env.AWS_ENDPOINT_URL_DYNAMODB && !process.env.AWS_ENDPOINT_URL_S3) useLocalKeys();
  prepareEnvironment(service);
  const running: { stop(): Promise<void> }[] = [];
  const stopAll = async () => void (await Promise.all(running.map((part) => part.stop())));
  stopOnSignal(stopAll); // from now on: a signal may come while an emulator starts
  try {
    const tables = await dynamodb(port);
    running.push(tables);
    const objects = await s3(port);
    running.push(objects);
    process.env.AWS_ENDPOINT_URL_DYNAMODB = tables.endpoint;
    process.env.AWS_ENDPOINT_URL_S3 = objects.endpoint;
    await createTables(tables.endpoint, service.tables);
    await createBuckets(objects.endpoint, service.buckets);
    const functions = new Functions(service, await handlers(service, sfnPort));
    const events = new Events(functions, service);
    const bus = await eventBus(events);
    running.push(bus);
    process.env.AWS_ENDPOINT_URL_EVENTBRIDGE = bus.endpoint; // read when a client sends its first event
    const states = await startStepFunctions(functions, events, service.stateMachines, sfnPort);
    running.push({ stop: async () => events.stop() }, states); // in this order: nobody hears of executions that stop here
    if (process.env.SCHEDULES !== 'off') {
      const schedules = startSchedules(functions);
      running.push({ stop: async () => schedules.stop() });
    }
    const gateway = await startGateway(routes(service, functions), port);
    running.push(gateway);
    console.log(greeting(gateway.url, tables.endpoint, objects.endpoint, states.endpoint));
  } catch (error) {
    await stopAll();
    throw error;
  }
}

async function dynamodb(apiPort: number): Promise<Emulator> {
  const given = process.env.AWS_ENDPOINT_URL_DYNAMODB;
  if (given) return { endpoint: given, stop: async () => {} };
  const port = portFrom('DYNAMODB_PORT', 8000);
  if (port === apiPort) throw new Error(`PORT and DYNAMODB_PORT are both ${port}`);
  await assertFree(port, 'DYNAMODB_PORT');
  const dataDir = process.env.DATA_DIR;
  return startDynamodb(port, dataDir ? resolve(dataDir) : undefined);
}

async function s3(apiPort: number): Promise<Emulator> {
  const given = process.env.AWS_ENDPOINT_URL_S3;
  if (given) return { endpoint: given, stop: async () => {} };
  const port = portFrom('S3_PORT', 9000);
  if (port === apiPort) throw new Error(`PORT and S3_PORT are both ${port}`);
  await assertFree(port, 'S3_PORT');
  const dataDir = process.env.DATA_DIR;
  return startS3(port, dataDir ? resolve(dataDir) : undefined);
}

async function eventBus(events: Events): Promise<Emulator> {
  const given = process.env.AWS_ENDPOINT_URL_EVENTBRIDGE;
  return given ? { endpoint: given, stop: async () => {} } : startEventBus((event) => events.dispatch(event));
}

function portFrom(variable: string, fallback: number): number {
  const value = process.env[variable] ?? String(fallback);
  if (!/^\d{1,5}$/.test(value) || Number(value) < 1 || Number(value) > 65_535)
    throw new Error(`${variable} must be a port from 1 to 65535, not '${value}'`);
  return Number(value);
}

/** A profile or a session of the user's would win over the emulators' keys, or fail before they are asked. */
function useLocalKeys(): void {
  for (const name of ['AWS_PROFILE', 'AWS_SESSION_TOKEN']) delete process.env[name];
  Object.assign(process.env, { AWS_ACCESS_KEY_ID: 'local', AWS_SECRET_ACCESS_KEY: 'local' });
}

/** What the user may set, as `--help` says. */
const SETTINGS = [
  ...['CLOCK_SKEW_MS', 'FENCE_RETENTION_SECONDS'],
  ...['COMMIT_PROTOCOL', 'COMMIT_TIMEOUT_MS', 'MAX_CLOCK_SKEW_RATE', 'COMMIT_TTL_SECONDS'],
  ...['MULTIPART_THRESHOLD_MIB', 'MULTIPART_PART_MIB', 'POINTER_ATTRIBUTES'],
  ...['REPORT_READ_UNITS_PER_SECOND', 'REPORT_SEGMENTS', 'REPORT_GIVE_UP_HOURS', 'AUTO_CLEAN_OLDER_THAN_SECONDS'],
];

/** What Lambda would have set before a function is loaded. */
function prepareEnvironment({ environment }: Service): void {
  for (const [name, value] of Object.entries(environment))
    if (!SETTINGS.includes(name) && !name.startsWith('POWERTOOLS_')) process.env[name] = value;
  const defaults: Record<string, string> = {
    ...environment,
    POWERTOOLS_LOG_LEVEL: 'WARN', // a line for each request would bury this terminal
    POWERTOOLS_METRICS_DISABLED: 'true',
    AWS_REGION: 'us-east-1',
    AWS_ACCESS_KEY_ID: 'local',
    AWS_SECRET_ACCESS_KEY: 'local',
  };
  for (const [name, value] of Object.entries(defaults)) process.env[name] ??= value;
}

/** Loaded only now: the functions read their environment when they are imported. */
async function handlers({ functions }: Service, sfnPort: number): Promise<Record<string, LambdaHandler>> {
  process.env.AWS_ENDPOINT_URL_SFN = `http://127.0.0.1:${sfnPort}`;
  const loaded = functions.map(async ({ name, source }) => {
    const { handler } = (await import(`../${source}`)) as { handler: LambdaHandler };
    return [name, handler] as const;
  });
  return Object.fromEntries(await Promise.all(loaded));
}

const routes = (service: Service, { all }: Functions): Route[] =>
  service.functions.flatMap(({ name, routes }) =>
    all.flatMap((lambda) => (lambda.name === name ? routes.map((route) => ({ ...lambda, ...route })) : [])),
  );

function stopOnSignal(stop: () => Promise<void>): void {
  let stopping = false;
  const end = () => {
    if (stopping) return;
    stopping = true;
    stop().then(() => process.exit(0));
  };
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, end);
  if (process.env.npm_lifecycle_event === 'start') onceOrphaned(end);
}

/** A signal to npm alone ends npm and the shell that it runs scripts in, and does not come through to here. */
function onceOrphaned(end: () => void): void {
  const parent = process.ppid;
  setInterval(() => process.ppid !== parent && end(), 250).unref();
}

function greeting(url: string, dynamodbUrl: string, s3Url: string, sfnUrl: string): string {
  return `Holdfast        ${url}
DynamoDB        ${dynamodbUrl}
S3              ${s3Url}
Step Functions  ${sfnUrl}

Take a first lease:
  curl -s ${url}/v1/leases/acquire -H 'content-type: application/json' -d '{"key": "nightly-report", "holder": "me", "ttlSeconds": 60}'

Ctrl-C stops it.`;
}

main().catch((error: Error) => {
  console.error(`npm start: ${error.message}`);
  process.exit(1);
});
