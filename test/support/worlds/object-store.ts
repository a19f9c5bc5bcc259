import { ConditionalCheckFailedException, type DynamoDBClient, PutItemCommand } from '@aws-sdk/client-dynamodb';
import { CopyObjectCommand, HeadObjectCommand, PutObjectCommand, type S3Client } from '@aws-sdk/client-s3';
import { dynamodbClient } from '../../../shared/aws/dynamodb.ts';
import { s3Client } from '../../../shared/aws/s3.ts';
import type { Clock } from '../../../shared/surroundings/clock.ts';

/** The error of an operation that did not take place, in the words of the crate. */
type Refusal = 'AlreadyExists' | 'Precondition' | 'Generic';
type Result = { etag: string } | { error: Refusal };

interface Clients {
  dynamodb: DynamoDBClient;
  s3: S3Client;
}

/** Writers that bring no client share this one, as the tasks of one process share connections. */
let shared: Clients | undefined;

interface Conflict {
  generation: number;
  timeout: number;
}

interface WriterOptions {
  table: string;
  bucket: string;
  clock: Clock;
  timeoutMs?: number;
  maxClockSkewRate?: number;
  ttlSeconds?: number;
  clients?: Clients;
  /** Runs between the record and the operation: where a writer stalls or crashes. */
  beforeOperation?: () => Promise<void>;
}

/**
 * A writer of the Rust crate object_store 0.12 with `dynamo:<table>`, for tests: the algorithm of its
 * src/aws/dynamo.rs, call by call. It sends HEAD, PutItem of the record, and then the operation without any condition, until the record's
 * timeout. On a conflict it polls every 100 ms, and takes the record over after its timeout times the skew rate.
 */
export class ObjectStoreWriter {
  readonly #dynamodb: DynamoDBClient;
  readonly #s3: S3Client;
  readonly #options: WriterOptions;

  constructor(options: WriterOptions) {
    this.#options = options;
    shared ??= { dynamodb: dynamodbClient(), s3: s3Client() };
    const { dynamodb, s3 } = options.clients ?? shared;
    this.#dynamodb = dynamodb;
    this.#s3 = s3;
  }

  /** PutMode::Create */
  create(path: string, body: string): Promise<Result> {
    return this.#conditional(path, undefined, () => this.#put(path, body));
  }

  /** PutMode::Update */
  update(path: string, body: string, etag: string): Promise<Result> {
    return this.#conditional(path, etag, () => this.#put(path, body));
  }

  copyIfNotExists(from: string, to: string): Promise<Result> {
    const { bucket: Bucket } = this.#options;
    return this.#conditional(to, undefined, async () => {
      const output = await this.#s3.send(new CopyObjectCommand({ Bucket, Key: to, CopySource: `${Bucket}/${from}` }));
      return output.CopyObjectResult?.ETag ?? '';
    });
  }

  /** Writes only the record, and returns it or the one in its way. `seen` is the generation to take over. */
  async lock(path: string, etag: string | undefined, seen?: number): Promise<'ok' | Conflict | undefined> {
    const { table, clock, timeoutMs = 20_000, ttlSeconds = 3600 } = this.#options;
    const command = new PutItemCommand({
      TableName: table,
      Item: {
        path: { S: path },
        etag: { S: etag ?? '*' },
        generation: { N: String(seen === undefined ? 0 : seen + 1) },
        timeout: { N: String(timeoutMs) },
        ttl: { N: String(Math.floor(clock.now() / 1000) + ttlSeconds) },
      },
      ExpressionAttributeNames: { '#pk': 'path' },
      ConditionExpression:
        seen === undefined ? 'attribute_not_exists(#pk)' : 'attribute_exists(#pk) AND generation = :g',
      ...(seen !== undefined && { ExpressionAttributeValues: { ':g': { N: String(seen) } } }),
      ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
    });
    try {
      await this.#dynamodb.send(command);
      return 'ok';
    } catch (error) {
      if (!(error instanceof ConditionalCheckFailedException)) throw error;
      return error.Item && parseConflict(error.Item);
    }
  }

  async #conditional(path: string, etag: string | undefined, operation: () => Promise<string>): Promise<Result> {
    const { clock, maxClockSkewRate = 3 } = this.#options;
    const refusal = await this.#check(path, etag);
    if (refusal) return { error: refusal };
    let seen: number | undefined;
    for (;;) {
      const lockedAt = clock.now();
      const conflict = await this.lock(path, etag, seen);
      if (conflict === 'ok') return this.#operate(operation, lockedAt);
      if (!conflict) return { error: 'Generic' };
      const startedAt = clock.now();
      for (;;) {
        const refusal = await this.#check(path, etag);
        if (refusal) return { error: refusal };
        if (clock.now() - startedAt > conflict.timeout * maxClockSkewRate) break;
        await clock.sleep(100);
      }
      seen = conflict.generation;
    }
  }

  /** The crate drops the operation at the deadline. A request that it has sent may complete all the same. */
  async #operate(operation: () => Promise<string>, lockedAt: number): Promise<Result> {
    const { clock, timeoutMs = 20_000, beforeOperation } = this.#options;
    await beforeOperation?.();
    if (clock.now() - lockedAt > timeoutMs) return { error: 'Generic' };
    return { etag: await operation() };
  }

  async #check(path: string, etag: string | undefined): Promise<Refusal | undefined> {
    const actual = await this.#head(path);
    if (etag === undefined) return actual === undefined ? undefined : 'AlreadyExists';
    return actual === etag ? undefined : 'Precondition';
  }

  async #head(path: string): Promise<string | undefined> {
    try {
      return (await this.#s3.send(new HeadObjectCommand({ Bucket: this.#options.bucket, Key: path }))).ETag;
    } catch (error) {
      if ((error as Error).name === 'NotFound') return undefined;
      throw error;
    }
  }

  async #put(path: string, body: string): Promise<string> {
    const command = new PutObjectCommand({ Bucket: this.#options.bucket, Key: path, Body: body });
    return (await this.#s3.send(command)).ETag ?? '';
  }
}

/** The crate's parser takes strings and unsigned integers, and fails on any attribute of another type. */
function parseConflict(item: Record<string, { S?: string; N?: string }>): Conflict {
  for (const [name, value] of Object.entries(item))
    if (value.S === undefined && !/^\d+$/.test(value.N ?? ''))
      throw new Error(`object_store cannot parse attribute ${name}: ${JSON.stringify(value)}`);
  if (!item.generation?.N || !item.timeout?.N) throw new Error('Failed to extract lease');
  return { generation: Number(item.generation.N), timeout: Number(item.timeout.N) };
}
