import { mkdir, writeFile } from 'node:fs/promises';
import { isBuiltin } from 'node:module';
import { join, resolve } from 'node:path';
import { readService, type Service } from '../infrastructure/read.ts';
import { type Authorizer, jwtAuthorizer } from './authorizer.ts';
import { localPage } from './console.ts';
import { startDurableFunctions } from './durable/start.ts';
import { createTables, startGatedDynamodb } from './dynamodb.ts';
import { type Emulator, givenOr } from './emulator.ts';
import { startEventBus } from './event-bus.ts';
import { Events } from './events.ts';
import { Functions } from './functions.ts';
import { type Route, startGateway } from './gateway.ts';
import { handlersIn } from './handler-files.ts';
import { loadHandler } from './handlers.ts';
import { Issuer } from './issuer.ts';
import type { LambdaHandler } from './lambda.ts';
import { firstStep } from './program.ts';
import { createBuckets, startS3 } from './s3.ts';
import { startSchedules } from './schedule.ts';
import { FUNCTION_SETTINGS, readPorts } from './settings.ts';
import { startSqs } from './sqs.ts';
import { startStepFunctions } from './step-functions/start.ts';
import { endWhenOrphaned } from './watch.ts';

/** The S3 emulator stores objects in SQLite, which Node has since 22.13. */
const CAN_KEEP = isBuiltin('node:sqlite');

/** The options of the command. All other settings come from the environment: see settings.ts. */
export interface StackOptions {
  /** The port of the API. The other servers use the next four ports. */
  port?: number | undefined;
  /** True to keep the data in memory, and lose it at the end. */
  memory?: boolean | undefined;
  /** The files of durable functions. */
  durable?: string[] | undefined;
  /** The files of functions that state machines call. */
  functions?: string[] | undefined;
}

/**
 * Starts Holdfast on this machine, over emulators, until a signal comes. Prints the addresses when everything answers.
 * @throws Error that names a port that is not free, or what cannot be started
 */
export async function startStack({ port: base, memory, durable = [], ...options }: StackOptions): Promise<void> {
  const given = (['DYNAMODB', 'S3'] as const).filter((name) => process.env[`AWS_ENDPOINT_URL_${name}`]);
  const durableHandlers = handlersIn('--durable', durable); // before anything starts
  const userHandlers = handlersIn('--function', options.functions ?? []);
  const ports = await readPorts(base, [
    ...given.map((name) => `${name}_PORT` as const),
    ...(durable.length > 0 ? [] : (['LAMBDA_PORT'] as const)),
  ]);
  const { PORT: port, SFN_PORT: sfnPort, LAMBDA_PORT: lambdaPort } = ports;
  // The folder belongs to the port, so that two stacks that run at the same time do not share it.
  const dataDir = memory || !CAN_KEEP ? undefined : resolve(process.env.DATA_DIR || join('.holdfast', String(port)));
  if (dataDir) await keepOutOfGit();
  const service = await readService();
  if (!process.env.AWS_ENDPOINT_URL_DYNAMODB && !process.env.AWS_ENDPOINT_URL_S3) useLocalCredentials();
  if (durable.length > 0) setDurableEnvironment(lambdaPort);
  prepareEnvironment(service);
  const running: { stop(): Promise<void> }[] = [];
  const stopAll = async () => void (await Promise.all(running.map((part) => part.stop())));
  stopOnSignal(stopAll); // from now on: a signal may come while an emulator starts
  try {
    const tables = await store('DYNAMODB', () => startGatedDynamodb(ports.DYNAMODB_PORT, dataDir));
    running.push(tables);
    const objects = await store('S3', () => startS3(ports.S3_PORT, dataDir));
    running.push(objects);
    process.env.AWS_ENDPOINT_URL_DYNAMODB = tables.endpoint;
    process.env.AWS_ENDPOINT_URL_S3 = objects.endpoint;
    await createTables(tables.endpoint, service.tables);
    await createBuckets(objects.endpoint, service.buckets);
    const functions = new Functions(service, await handlers(service, sfnPort), userHandlers);
    const events = new Events(functions, service);
    const bus = await givenOr('AWS_ENDPOINT_URL_EVENTBRIDGE', () => startEventBus((event) => events.dispatch(event)));
    running.push(bus);
    const queues = await startSqs(events);
    running.push(queues);
    process.env.AWS_ENDPOINT_URL_SQS = queues.url;
    process.env.AWS_ENDPOINT_URL_EVENTBRIDGE = bus.endpoint; // both are read when a client sends its first message
    const states = await startStepFunctions(functions, events, { stateMachines: service.stateMachines, port: sfnPort });
    running.push({ stop: async () => events.stop() }, states); // events first, so that stopping the executions sends no events
    if (durable.length > 0)
      running.push(await startDurableFunctions(events, { handlers: durableHandlers, port: lambdaPort }));
    if (process.env.SCHEDULES !== 'off') {
      const schedules = startSchedules(functions);
      running.push({ stop: async () => schedules.stop() });
    }
    const gateway = await startGateway(routes(service, functions), port, {
      page: localPage(`http://127.0.0.1:${port}`),
      authorizer: await authorizer(process.env.AUTH),
    });
    running.push(gateway);
    console.log(
      greeting({
        ...{ url: gateway.url, dynamodb: tables.endpoint, s3: objects.endpoint, sfn: states.endpoint, dataDir },
        lambda: durable.length > 0 ? process.env.AWS_ENDPOINT_URL_LAMBDA : undefined,
      }),
    );
  } catch (error) {
    await stopAll();
    throw error;
  }
}

/** Keeps the folder out of Git, because it may be in any project. */
async function keepOutOfGit(): Promise<void> {
  await mkdir('.holdfast', { recursive: true });
  await writeFile(join('.holdfast', '.gitignore'), '*\n');
}

/** The endpoint that the environment names, or an emulator. */
const store = (service: 'DYNAMODB' | 'S3', start: () => Promise<Emulator>): Promise<Emulator> =>
  givenOr(`AWS_ENDPOINT_URL_${service}`, start);

/** Removes the profile and the session of the user, which would take precedence over the credentials of the emulators, or fail before any request. */
function useLocalCredentials(): void {
  for (const name of ['AWS_PROFILE', 'AWS_SESSION_TOKEN']) delete process.env[name];
  Object.assign(process.env, { AWS_ACCESS_KEY_ID: 'local', AWS_SECRET_ACCESS_KEY: 'local' });
}

/** Sets the environment of the functions of the service, and of the user's handlers, which run in this process too. */
function setDurableEnvironment(port: number): void {
  process.env.AWS_ENDPOINT_URL_LAMBDA = `http://127.0.0.1:${port}`;
  process.env.DURABLE_FUNCTIONS ??= '*';
}

/** Sets the variables that Lambda sets before a function is loaded. */
function prepareEnvironment({ environment }: Service): void {
  for (const [name, value] of Object.entries(environment))
    if (!FUNCTION_SETTINGS.includes(name) && name !== 'LOG_LEVEL') process.env[name] = value;
  process.env.METRICS_NAMESPACE = ''; // a local stack does not collect metrics
  const defaults: Record<string, string> = {
    ...environment,
    LOG_LEVEL: 'WARN', // a line for each request would bury this terminal
    AWS_REGION: 'us-east-1',
    AWS_ACCESS_KEY_ID: 'local',
    AWS_SECRET_ACCESS_KEY: 'local',
    AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED: 'true', // the SDK runs in Lambda's Node when deployed
  };
  for (const [name, value] of Object.entries(defaults)) process.env[name] ??= value;
}

/** Loads the functions only when their environment is set, because they read it when they are imported. */
async function handlers({ functions }: Service, sfnPort: number): Promise<Record<string, LambdaHandler>> {
  process.env.AWS_ENDPOINT_URL_SFN = `http://127.0.0.1:${sfnPort}`;
  const loaded = functions.map(async ({ name, source }) => {
    return [name, await loadHandler(source)] as const;
  });
  return Object.fromEntries(await Promise.all(loaded));
}

const routes = (service: Service, { all }: Functions): Route[] =>
  service.functions.flatMap(({ name, routes }) =>
    all.flatMap((lambda) => (lambda.name === name ? routes.map((route) => ({ ...lambda, ...route })) : [])),
  );

/** @throws Error if the variable has another value than jwt */
async function authorizer(auth: string | undefined): Promise<Authorizer | undefined> {
  if (!auth) return undefined;
  if (auth !== 'jwt') throw new Error(`AUTH must be jwt, or not be set, not '${auth}'`);
  const { routeScopes } = await import('./route-scopes.ts');
  return jwtAuthorizer(await Issuer.of(), routeScopes);
}

function stopOnSignal(stop: () => Promise<void>): void {
  let stopping = false;
  const end = () => {
    if (stopping) return;
    stopping = true;
    stop().then(() => process.exit(0));
  };
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, end);
  if (['start', 'npx'].includes(process.env.npm_lifecycle_event ?? '')) endWhenOrphaned(end);
}

interface Started {
  url: string;
  dynamodb: string;
  s3: string;
  sfn: string;
  lambda: string | undefined;
  dataDir: string | undefined;
}

function greeting({ url, dynamodb, s3, sfn, lambda, dataDir }: Started): string {
  return `Holdfast        ${url}  (open it to see who holds what)
DynamoDB        ${dynamodb}
S3              ${s3}
Step Functions  ${sfn}${lambda ? `\nDurable         ${lambda}` : ''}
State           ${dataDir ? `${dataDir}  (--memory keeps none)` : `in memory${CAN_KEEP ? '' : ' (Node 22.13 or newer keeps it)'}`}

Take a first lease, in another terminal:
  ${firstStep(url)}

Ctrl-C stops it.`;
}
