import { randomUUID } from 'node:crypto';
import { appendFileSync } from 'node:fs';
import { Agent } from 'node:http';
import { join } from 'node:path';
import { CreateTableCommand, type DynamoDBClient, type DynamoDBClientConfig } from '@aws-sdk/client-dynamodb';
import { CreateBucketCommand, type S3Client } from '@aws-sdk/client-s3';
import type { SFNClient } from '@aws-sdk/client-sfn';
import { ConfiguredRetryStrategy } from '@smithy/core/retry';
import { inject } from 'vitest';
import { renamed } from '../../../infrastructure/read.ts';
import type { Call } from '../../../shared/aws/call.ts';
import { dynamodbClient, MAX_TRIES } from '../../../shared/aws/dynamodb.ts';
import { s3Client } from '../../../shared/aws/s3.ts';
import { networkError, serviceError } from '../faults/cuttable.ts';
import { keepLimits } from '../faults/limits.ts';
import { unsigned } from './endpoint.ts';

const { tables } = inject('service');

/**
 * Creates a table as serverless.yml defines it. `kind` is what it holds there, for example leases.
 * The table does not have a TTL: a test deletes a record itself when the record should vanish.
 */
export async function newTable(kind: string, name = `test-${kind}-${randomUUID()}`): Promise<string> {
  const table = tables.find((one) => one.kind === kind);
  if (!table) throw new Error(`serverless.yml defines no table of ${kind}`);
  await maker.dynamodb.send(new CreateTableCommand(renamed(table, name).definition));
  return name;
}

/** Creates a bucket under a name of its own. */
export async function newBucket(): Promise<string> {
  const name = `test-${randomUUID()}`;
  await maker.s3.send(new CreateBucketCommand({ Bucket: name }));
  return name;
}

/** The connections of all clients of a worker. */
const connections = new Agent({ keepAlive: true, maxSockets: 1000 });

const strategy = () => new ConfiguredRetryStrategy(MAX_TRIES, 1);

/**
 * The client tries as often as those of the functions, without the SDK's pauses, which are seconds of real time. A busy machine answers
 * late. If a time-out cut a try, the SDK would send it again: a test would count it twice, and it might land twice.
 */
export const patient = () => ({
  retryStrategy: strategy(),
  requestHandler: { connectionTimeout: 60_000, requestTimeout: 60_000, httpAgent: connections },
  signer: unsigned,
});

/** The configuration that all clients of a worker share. Working it out takes as long as some requests. */
const configured = { dynamodb: dynamodbClient(patient()), s3: s3Client(patient()) };
for (const { config, middlewareStack } of Object.values(configured)) {
  // A strategy has a budget of retries, which the faults of one test must not use up for the next.
  config.retryStrategy = async () => strategy();
  // Emulators do not use the user agent, which takes a twentieth of a request to work out.
  middlewareStack.remove('getUserAgentMiddleware');
}

keepLimits(configured.dynamodb, (table) => tables.find(({ kind }) => kind === kindOf(table))?.definition);

/** A client with its own middlewares over the configuration of another client. */
const another = <Client extends DynamoDBClient | S3Client>(client: Client): Client =>
  Object.create(client, { middlewareStack: { value: client.middlewareStack.clone() } });

/** The functions' DynamoDB client, for tests. */
export const testClient = (overrides?: DynamoDBClientConfig): DynamoDBClient =>
  overrides ? dynamodbClient({ ...patient(), ...overrides }) : another(configured.dynamodb);

/** The functions' client of S3, for tests. */
export const testS3 = (): S3Client => another(configured.s3);

/** The clients that make tables and buckets. */
const maker = { dynamodb: testClient(), s3: testS3() };

export interface Requests {
  /** The commands that were sent, a line for each try. */
  sent: string[];
  /** The faults of the next tries, in order. A try for which there is none goes through. */
  faults: Fault[];
  /** The faults of one command, which come before the others. */
  faultsOf: Record<string, Fault[]>;
}

/**
 * `lostReply`: the try lands and its answer does not come back. `neverSent`: the network refuses it. `throttle`, `error500`: the answer of
 * the service. `hang`: no answer until the caller gives up. An object: that answer of the service. A function decides about the try, and may
 * send it.
 */
export type Fault =
  | 'none'
  | 'lostReply'
  | 'neverSent'
  | 'throttle'
  | 'error500'
  | 'hang'
  | { name: string; status: number }
  | ((send: () => Promise<unknown>) => Promise<unknown>);

type Client = Pick<DynamoDBClient | S3Client | SFNClient, 'middlewareStack'>;

/** The stacks of both clients take the same middlewares, but their types do not say so. */
const stackOf = (client: Client) => client.middlewareStack as DynamoDBClient['middlewareStack'];

/** Counts what a client really sends, and lets a test inject faults. It is innermost in the SDK's stack, next to the wire. */
export function watch(client: Client): Requests {
  const requests: Requests = { sent: [], faults: [], faultsOf: {} };
  stackOf(client).add(
    (next, context) => async (args) => {
      const command = String(context.commandName).replace(/Command$/, '');
      requests.sent.push(command);
      const fault = requests.faultsOf[command]?.shift() ?? requests.faults.shift() ?? 'none';
      if (typeof fault === 'function') return fault(() => next(args)) as ReturnType<typeof next>;
      if (typeof fault === 'object') throw serviceError(fault.name, fault.status);
      switch (fault) {
        case 'none':
          return next(args);
        case 'lostReply':
          await next(args);
          throw networkError('ECONNRESET', 'read');
        case 'neverSent':
          throw networkError('ECONNREFUSED', 'connect');
        case 'throttle':
          throw serviceError('ProvisionedThroughputExceededException', 400);
        case 'error500':
          throw serviceError('InternalServerError', 500);
        case 'hang':
          return untilAborted(context);
      }
    },
    { step: 'deserialize', priority: 'low', name: 'watch' },
  );
  return requests;
}

function untilAborted(context: object): Promise<never> {
  const { abortSignal } = Reflect.get(context, '__smithy_context') as { abortSignal?: AbortSignal };
  return new Promise((_, reject) => {
    const abort = () => reject(Object.assign(new Error('Request aborted'), { name: 'AbortError' }));
    if (abortSignal?.aborted) abort();
    else abortSignal?.addEventListener('abort', abort);
  });
}

/** Notes for the test of the roles that a function sends a command, or lets its caller send it: `S3:PutObject`. */
export function noteCommand(functionName: string, command: string): void {
  appendFileSync(join(inject('seenCommands'), functionName), `${command}\n`);
}

/** Notes for the test of the roles which commands a function sends, and to which tables and indexes: `DynamoDB:Query leases/index/by-execution`. */
export function noteCommands(functionName: string, client: Client): void {
  const noted = new Set<string>();
  stackOf(client).add(
    (next, context) => async (args) => {
      const command = `${context.clientName}.${context.commandName}`.replace(/Client\.(\w+)Command$/, ':$1');
      for (const needed of command.startsWith('DynamoDB:') ? withTables(command, args.input as Asked) : [command]) {
        if (!noted.has(needed)) noteCommand(functionName, needed);
        noted.add(needed);
      }
      return next(args);
    },
    { step: 'deserialize', priority: 'low', name: 'noteCommands' },
  );
}

/** The fields in which commands of DynamoDB name their tables. */
interface Asked {
  TableName?: string;
  IndexName?: string;
  RequestItems?: object;
  TransactItems?: Record<string, Asked>[];
}

/** The command for each table that it names. A transaction needs only the permissions of its parts. */
function withTables(command: string, { TableName, IndexName, RequestItems, TransactItems }: Asked): string[] {
  if (TransactItems)
    return TransactItems.flatMap((item) =>
      Object.entries(item).flatMap(([part, asked]) => withTables(`DynamoDB:${part}Item`, asked)),
    );
  const tables = RequestItems === undefined ? [TableName ?? ''] : Object.keys(RequestItems);
  return tables.map((table) => `${command} ${kindOf(table)}${IndexName === undefined ? '' : `/index/${IndexName}`}`);
}

/** The kind of a table, whose name is `test-<kind>-...` even if `newTable` did not make it. */
const kindOf = (table: string) => /^test-([a-z]+)-/.exec(table)?.[1] ?? table;

/** A domain call with time to spare. */
export function call(overrides: Partial<Call> = {}): Call {
  return { principal: undefined, signal: new AbortController().signal, timeLeftMs: () => 30_000, ...overrides };
}

/** Measures what `act` costs: the request units that DynamoDB reports for each request, a number for each table. */
export function unitCounter(client: { middlewareStack: DynamoDBClient['middlewareStack'] }) {
  let units: number[] = [];
  client.middlewareStack.add(
    (next) => async (args) => {
      Object.assign(args.input, { ReturnConsumedCapacity: 'TOTAL' });
      const result = await next(args);
      const { ConsumedCapacity: consumed } = result.output as { ConsumedCapacity?: object };
      for (const { CapacityUnits } of [consumed ?? {}].flat() as { CapacityUnits?: number }[])
        units.push(CapacityUnits ?? Number.NaN);
      return result;
    },
    { step: 'initialize' },
  );
  return async (act: () => Promise<unknown>): Promise<number[]> => {
    units = [];
    await act();
    return units;
  };
}

/**
 * A handler that is made at its first call. To make one takes as long as some requests, and most worlds never call most of
 * theirs.
 */
export function madeAtFirstCall<Handler extends (...args: never[]) => unknown>(make: () => Handler): Handler {
  let made: Handler | undefined;
  return ((...args: Parameters<Handler>) => {
    made ??= make();
    return made(...args);
  }) as Handler;
}
