import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import {
  BatchWriteItemCommand,
  type CreateTableCommandInput,
  DynamoDBClient,
  paginateScan,
} from '@aws-sdk/client-dynamodb';
import { DeleteObjectsCommand, ListObjectsV2Command } from '@aws-sdk/client-s3';
import { ConfiguredRetryStrategy } from '@smithy/core/retry';
import { readService, renamed } from '../../infrastructure/read.ts';
import { createTables, startDynamodb } from '../../local/dynamodb.ts';
import { type Emulator, givenOr } from '../../local/emulator.ts';
import type { LambdaHandler } from '../../local/lambda.ts';
import { freePort } from '../../local/ports.ts';
import { createBuckets } from '../../local/s3.ts';
import { durableFunctions } from '../../shared/aws/durable-functions.ts';
import { dynamodbClient, type Item, MAX_TRIES } from '../../shared/aws/dynamodb.ts';
import { s3Client } from '../../shared/aws/s3.ts';
import { stepFunctionsClient } from '../../shared/aws/step-functions.ts';
import { HoldfastError } from '../../shared/errors.ts';
import type { ReportDependencies } from '../../shared/expiry/dependencies.ts';
import {
  DEFAULT_QUOTAS,
  type LeaseDependencies,
  type Quotas,
  type RepairMessage,
} from '../../shared/locks/dependencies.ts';
import { ANY_EXECUTION } from '../../shared/locks/executions/allowed.ts';
import type { Clock } from '../../shared/surroundings/clock.ts';
import type { Ids } from '../../shared/surroundings/ids.ts';
import { unsigned } from '../../test/support/emulators/endpoint.ts';
import { keepLimits } from '../../test/support/faults/limits.ts';
import { DurableModel } from './durable.ts';
import { currentThread } from './simulation.ts';
import { StepFunctionsModel } from './step-functions.ts';
import { injectIntoDynamodb, injectIntoLambda, injectIntoS3, injectIntoStepFunctions, type Questions } from './wire.ts';

/** What a function of the service takes from the thread in which it runs. */
export interface Machine {
  clock: Clock;
  ids: Ids;
}

export const CLOCK_SKEW_MS = 500;
export const COMMIT_TIMEOUT_MS = 20_000;
export const MAX_CLOCK_SKEW_RATE = 3;
/** A short retention, so that the clean-up finds something within a history. */
export const FENCE_RETENTION_SECONDS = 60;
const COMMIT_TTL_SECONDS = 60;

/** Requests time out in simulated time (wire.ts), so a slow machine must not end them in real time. */
const PATIENT = { requestHandler: { connectionTimeout: 600_000, requestTimeout: 600_000 } };

/** The service over emulators, whose clients meet faults. */
export interface FaultyService {
  /** The handlers of the present world. */
  readonly handlers: Record<string, LambdaHandler>;
  timeoutSeconds: Record<string, number>;
  leases: string;
  commits: string;
  bucket: string;
  stepFunctions: StepFunctionsModel;
  durable: DurableModel;
  questions: Questions;
  /** Receives the messages that start the repair of a key. */
  messages: { send(message: RepairMessage): void };
  /**
   * Begins a world without anything of earlier worlds. Otherwise a seed would not give the same history again, because the
   * schedules read all that is stored, and the environment of a function remembers what it met.
   */
  begin(quotas?: Quotas): Promise<void>;
  /** Clients with faults. Third-party clients use them to reach the stores directly. */
  dynamodb: DynamoDBClient;
  s3: ReturnType<typeof s3Client>;
  /** Sends each request once. */
  s3Once: ReturnType<typeof s3Client>;
}

/** Starts emulators, unless the environment names running ones. */
export async function startStores(): Promise<{ stop(): Promise<void> }> {
  const { environment } = await readService('faults');
  const local = { AWS_REGION: 'us-east-1', AWS_ACCESS_KEY_ID: 'local', AWS_SECRET_ACCESS_KEY: 'local' };
  const quiet = { LOG_LEVEL: 'SILENT', METRICS_NAMESPACE: '' };
  Object.assign(process.env, environment, local, quiet);
  const dynamodb = await givenOr('AWS_ENDPOINT_URL_DYNAMODB', async () => startDynamodb(await freePort()));
  process.env.AWS_ENDPOINT_URL_DYNAMODB = dynamodb.endpoint;
  const s3 = await givenOr('AWS_ENDPOINT_URL_S3', s3InWorker);
  process.env.AWS_ENDPOINT_URL_S3 = s3.endpoint;
  return { stop: async () => void (await Promise.all([dynamodb.stop(), s3.stop()])) };
}

async function s3InWorker(): Promise<Emulator> {
  const worker = new Worker(new URL('./s3-worker.ts', import.meta.url));
  const [endpoint] = await once(worker, 'message');
  return { endpoint, stop: async () => void (await worker.terminate()) };
}

/** The real handlers over tables and a bucket of their own. */
export async function faultyService(): Promise<FaultyService> {
  const { functions, tables } = await readService('faults');
  const run = randomUUID();
  const nameOf = (kind: string) => `faults-${kind}-${run}`;
  const named = tables.map((table) => renamed(table, nameOf(table.kind)));
  const dynamodbEndpoint = process.env.AWS_ENDPOINT_URL_DYNAMODB ?? '';
  await createTables(dynamodbEndpoint, named);
  const bucket = nameOf('bucket');
  await createBuckets(process.env.AWS_ENDPOINT_URL_S3 ?? '', [bucket]);

  const dynamodb = dynamodbClient({ signer: unsigned, ...PATIENT });
  const s3 = s3Client(PATIENT);
  // A retry strategy has a budget, which the faults of one history must not use up for the next one.
  for (const { config } of [dynamodb, s3]) config.retryStrategy = async () => new ConfiguredRetryStrategy(MAX_TRIES, 0);
  injectIntoDynamodb(dynamodb);
  keepLimits(dynamodb, (table) => named.find(({ definition }) => definition.TableName === table)?.definition);
  injectIntoS3(s3);
  const s3Once = s3Client({ retryStrategy: new ConfiguredRetryStrategy(1, 0), ...PATIENT });
  injectIntoS3(s3Once);
  const model = new StepFunctionsModel();
  const sfn = stepFunctionsClient({ requestHandler: model as never, signer: unsigned });
  const durable = new DurableModel();
  const lambda = durableFunctions({ requestHandler: durable as never, signer: unsigned });
  const questions: Questions = { maxMs: 0 };
  injectIntoLambda(lambda.client, questions);
  const messages: FaultyService['messages'] = { send: () => {} };
  injectIntoStepFunctions(sfn, questions);
  const machine = () => currentThread()?.locals as Machine;
  const shared = {
    dynamodb,
    s3,
    clock: { now: () => machine().clock.now(), sleep: (ms: number) => machine().clock.sleep(ms) },
    ids: { uuid: () => machine().ids.uuid(), random: () => machine().ids.random() },
    clockSkewMs: CLOCK_SKEW_MS,
    stepFunctions: async () => sfn,
    durableFunctions: async () => lambda,
    executions: { ...ANY_EXECUTION, durableFunctions: '*' },
    repairLater: async (message: RepairMessage) => messages.send(message),
  };
  const direct = { dynamodb: new DynamoDBClient({ endpoint: dynamodbEndpoint, signer: unsigned }), s3: s3Client() };
  const loaded = await load();
  const locations = {
    leases: nameOf('leases'),
    waiters: nameOf('waiters'),
    commits: nameOf('commits'),
    nameservice: nameOf('nameservice'),
    bucket,
  };
  let present: Record<string, LambdaHandler> = {};
  return {
    get handlers() {
      return present;
    },
    timeoutSeconds: Object.fromEntries(functions.map(({ name, timeoutSeconds }) => [name, timeoutSeconds])),
    leases: nameOf('leases'),
    commits: nameOf('commits'),
    bucket,
    stepFunctions: model,
    durable,
    questions,
    messages,
    begin: async (quotas = DEFAULT_QUOTAS) => {
      model.forget();
      durable.forget();
      questions.maxMs = 0;
      present = handlers(loaded, { ...shared, quotas }, locations);
      await Promise.all(named.map(({ definition }) => removeRows(direct.dynamodb, definition)));
      await removeObjects(direct.s3, bucket);
    },
    dynamodb,
    s3,
    s3Once,
  };
}

/** A BatchWriteItem takes at most this many items. */
const MAX_AT_ONCE = 25;

/** Empties a table, which is faster than a new one. */
async function removeRows(
  dynamodb: DynamoDBClient,
  { TableName: table = '', KeySchema: schema = [] }: CreateTableCommandInput,
): Promise<void> {
  const names = Object.fromEntries(schema.map(({ AttributeName: name = '' }, nth) => [`#k${nth}`, name]));
  const keysAlone = { ProjectionExpression: Object.keys(names).join(', '), ExpressionAttributeNames: names };
  const keys: Item[] = [];
  for await (const { Items: items = [] } of paginateScan({ client: dynamodb }, { TableName: table, ...keysAlone }))
    keys.push(...items);
  while (keys.length > 0) {
    const requests = keys.splice(0, MAX_AT_ONCE).map((Key) => ({ DeleteRequest: { Key } }));
    await dynamodb.send(new BatchWriteItemCommand({ RequestItems: { [table]: requests } }));
  }
}

async function removeObjects(s3: FaultyService['s3'], bucket: string): Promise<void> {
  for (;;) {
    const { Contents: objects = [] } = await s3.send(new ListObjectsV2Command({ Bucket: bucket }));
    if (objects.length === 0) return;
    const keys = objects.map(({ Key }) => ({ Key }));
    await s3.send(new DeleteObjectsCommand({ Bucket: bucket, Delete: { Objects: keys } }));
  }
}

type Shared = Pick<FaultyService, 'dynamodb' | 's3'> &
  Machine &
  Pick<LeaseDependencies, 'clockSkewMs' | 'stepFunctions' | 'durableFunctions' | 'executions' | 'repairLater'> & {
    quotas: Quotas;
  };

/** The file of each function, below functions/. */
const FILES = {
  acquire: 'leases/acquire',
  heartbeat: 'leases/heartbeat',
  release: 'leases/release',
  breakLease: 'leases/break',
  capKey: 'leases/cap',
  runNext: 'leases/next',
  readLeases: 'leases/read',
  cancelWaiter: 'leases/cancel',
  repairQueues: 'leases/repair',
  withdraw: 'leases/withdraw',
  executionEnded: 'leases/execution-ended',
  onceBegin: 'once/begin',
  onceComplete: 'once/complete',
  onceForget: 'once/forget',
  readOnce: 'once/read',
  rateReserve: 'rates/reserve',
  rateSettle: 'rates/settle',
  rateForget: 'rates/forget',
  readRates: 'rates/read',
  commit: 'commits/commit',
  stageUpload: 'commits/stage-upload',
  readCommit: 'commits/read',
  resetFence: 'commits/reset-fence',
  publish: 'nameservice/publish',
  readNames: 'nameservice/read',
  repairNames: 'nameservice/repair',
  report: 'expiry/report',
  readExpired: 'expiry/read',
  clean: 'expiry/clean',
};

type Functions = Record<keyof typeof FILES, (...dependencies: object[]) => LambdaHandler>;

/** Imports the functions only now, because they read their environment when they are loaded. */
async function load(): Promise<Functions> {
  const loaded = Object.entries(FILES).map(async ([name, file]) => {
    const module = await import(/* @vite-ignore */ new URL(`../../functions/${file}.ts`, import.meta.url).href);
    return [name, module[name]] as const;
  });
  return Object.fromEntries(await Promise.all(loaded)) as Functions;
}

function handlers(
  functions: Functions,
  shared: Shared,
  {
    leases,
    waiters,
    commits,
    nameservice,
    bucket,
  }: Record<'leases' | 'waiters' | 'commits' | 'nameservice' | 'bucket', string>,
): Record<string, LambdaHandler> {
  const ofLeases: LeaseDependencies = {
    ...shared,
    table: leases,
    maxWaitSeconds: 20,
    fenceRetentionSeconds: FENCE_RETENTION_SECONDS,
    waitersTable: waiters,
  };
  /** The dependencies of a process with the client's `directTransport`, which cannot ask about executions. */
  const ofDirect: LeaseDependencies = {
    ...ofLeases,
    durableFunctions: undefined,
    stepFunctions: () => Promise.reject(new HoldfastError('Unavailable', 'this process has no client')),
  };
  const ofCommits = {
    ...shared,
    table: commits,
    bucket,
    protocol: 'dynamo' as const,
    commitTimeoutMs: COMMIT_TIMEOUT_MS,
    maxClockSkewRate: MAX_CLOCK_SKEW_RATE,
    commitTtlSeconds: COMMIT_TTL_SECONDS,
    maxUploadBytes: 1024 ** 3,
    multipartThresholdBytes: 256 * 1024 ** 2,
    partBytes: 8 * 1024 ** 2,
  };
  const natively = { ...ofCommits, protocol: 'native' as const };
  const ofNames = { ...shared, table: nameservice, pointerStyle: 'address' as const };
  const ofReports: Omit<ReportDependencies, 'holders' | 'sources'> = {
    ...shared,
    locations: {
      leasesTable: leases,
      commitsTable: commits,
      nameserviceTable: nameservice,
      waitersTable: waiters,
      bucket,
    },
    margins: {
      clockSkewMs: CLOCK_SKEW_MS,
      fenceRetentionSeconds: FENCE_RETENTION_SECONDS,
      maxClockSkewRate: MAX_CLOCK_SKEW_RATE,
    },
    segments: 1,
    readUnitsPerSecond: 0,
    pageRows: 10,
    partRows: 3,
    giveUpAfterMs: 24 * 3_600_000,
    announce: async () => {},
    measure: () => {},
  };
  return {
    acquire: functions.acquire(ofLeases),
    acquireDirectly: functions.acquire(ofDirect),
    heartbeat: functions.heartbeat(ofLeases),
    release: functions.release(ofLeases),
    breakLease: functions.breakLease(ofLeases),
    capKey: functions.capKey(ofLeases),
    runNext: functions.runNext(ofLeases),
    readLeases: functions.readLeases(ofLeases),
    cancelWaiter: functions.cancelWaiter(ofLeases),
    withdraw: functions.withdraw(ofLeases),
    repairQueues: functions.repairQueues(ofLeases),
    executionEnded: functions.executionEnded(ofLeases),
    onceBegin: functions.onceBegin(ofLeases),
    onceComplete: functions.onceComplete(ofLeases),
    onceForget: functions.onceForget(ofLeases),
    readOnce: functions.readOnce(ofLeases),
    rateReserve: functions.rateReserve(ofLeases),
    rateSettle: functions.rateSettle(ofLeases),
    rateForget: functions.rateForget(ofLeases),
    readRates: functions.readRates(ofLeases),
    report: functions.report(ofReports, ofLeases),
    readExpired: functions.readExpired(ofReports),
    clean: functions.clean(ofReports, ofLeases),
    commit: functions.commit(ofCommits),
    stageUpload: functions.stageUpload(ofCommits),
    readCommit: functions.readCommit(ofCommits),
    commitNatively: functions.commit(natively),
    resetFence: functions.resetFence(ofCommits),
    resetFenceNatively: functions.resetFence(natively),
    publish: functions.publish(ofNames),
    readNames: functions.readNames(ofNames),
    repairNames: functions.repairNames(ofNames),
  };
}
