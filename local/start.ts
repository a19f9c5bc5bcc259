import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { createTables, type Emulator, startDynamodb } from './dynamodb.ts';
import { type LambdaHandler, type Route, startGateway } from './gateway.ts';
import { assertFree } from './ports.ts';
import { readService, type Service } from './service.ts';

const HELP = `npm start: Holdfast on this machine, over a DynamoDB emulator.

Options, as environment variables:
  PORT                        where the API listens (3000)
  DYNAMODB_PORT               where the DynamoDB emulator listens (8000)
  DATA_DIR                    folder that keeps the tables between runs; without it they are in memory
  AWS_ENDPOINT_URL_DYNAMODB   use the DynamoDB that listens there instead of starting an emulator
  POWERTOOLS_LOG_LEVEL        the functions' log: DEBUG, INFO, WARN (the default here), ERROR, SILENT

The functions' own settings (CLOCK_SKEW_MS, FENCE_RETENTION_SECONDS) can be set the same way.
Ctrl-C stops everything.`;

async function main(): Promise<void> {
  const { values } = parseArgs({ options: { help: { type: 'boolean', short: 'h' } } });
  if (values.help) return console.log(HELP);

  const port = portFrom('PORT', 3000);
  await assertFree(port, 'PORT');
  const service = await readService();
  prepareEnvironment(service);
  const running: { stop(): Promise<void> }[] = [];
  const stopAll = async () => void (await Promise.all(running.map((part) => part.stop())));
  stopOnSignal(stopAll); // from now on: a signal may come while an emulator starts
  try {
    const tables = await dynamodb(port);
    running.push(tables);
    process.env.AWS_ENDPOINT_URL_DYNAMODB = tables.endpoint;
    await createTables(tables.endpoint, service.tables);
    const gateway = await startGateway(await routes(service), port);
    running.push(gateway);
    console.log(greeting(gateway.url, tables.endpoint));
  } catch (error) {
    await stopAll();
    throw error;
  }
}

async function dynamodb(apiPort: number): Promise<Emulator> {
  const given = process.env.AWS_ENDPOINT_URL_DYNAMODB;
  if (given) return { endpoint: given, stop: async () => {} };
  // A profile or a session of the user's would win over the emulator's keys, or fail before it is asked.
  for (const name of ['AWS_PROFILE', 'AWS_SESSION_TOKEN']) delete process.env[name];
  Object.assign(process.env, { AWS_ACCESS_KEY_ID: 'local', AWS_SECRET_ACCESS_KEY: 'local' });
  const port = portFrom('DYNAMODB_PORT', 8000);
  if (port === apiPort) throw new Error(`PORT and DYNAMODB_PORT are both ${port}`);
  await assertFree(port, 'DYNAMODB_PORT');
  const dataDir = process.env.DATA_DIR;
  return startDynamodb(port, dataDir ? resolve(dataDir) : undefined);
}

function portFrom(variable: string, fallback: number): number {
  const value = process.env[variable] ?? String(fallback);
  if (!/^\d{1,5}$/.test(value) || Number(value) < 1 || Number(value) > 65_535)
    throw new Error(`${variable} must be a port from 1 to 65535, not '${value}'`);
  return Number(value);
}

/** What the user may set, as `--help` says. */
const SETTINGS = ['CLOCK_SKEW_MS', 'FENCE_RETENTION_SECONDS'];

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
async function routes(service: Service): Promise<Route[]> {
  const loaded = service.functions.map(async ({ name, source, timeoutSeconds, routes }) => {
    const { handler } = (await import(`../${source}`)) as { handler: LambdaHandler };
    return routes.map((route) => ({ ...route, functionName: name, timeoutSeconds, handler }));
  });
  return (await Promise.all(loaded)).flat();
}

function stopOnSignal(stop: () => Promise<void>): void {
  let stopping = false;
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.on(signal, () => {
      if (stopping) return;
      stopping = true;
      stop().then(() => process.exit(0));
    });
}

function greeting(url: string, dynamodbUrl: string): string {
  return `Holdfast   ${url}
DynamoDB   ${dynamodbUrl}

Take a first lease:
  curl -s ${url}/v1/leases/acquire -H 'content-type: application/json' -d '{"key": "nightly-report", "holder": "me", "ttlSeconds": 60}'

Ctrl-C stops it.`;
}

main().catch((error: Error) => {
  console.error(`npm start: ${error.message}`);
  process.exit(1);
});
