import {
  type AttributeValue,
  DeleteItemCommand,
  GetItemCommand,
  PutItemCommand,
  ScanCommand,
} from '@aws-sdk/client-dynamodb';
import {
  DeleteObjectCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  type S3Client,
} from '@aws-sdk/client-s3';
import { commit } from '../../../functions/commits/commit.ts';
import { readInFlight } from '../../../functions/commits/in-flight.ts';
import { readCommit } from '../../../functions/commits/read.ts';
import { resetFence } from '../../../functions/commits/reset-fence.ts';
import { stageUpload } from '../../../functions/commits/stage-upload.ts';
import { s3Client } from '../../../shared/aws/s3.ts';
import { commitObject, replaceFence } from '../../../shared/commits/commit.ts';
import type { CommitDependencies } from '../../../shared/commits/dependencies.ts';
import { listInFlight } from '../../../shared/commits/in-flight.ts';
import { commitInput, inFlightInput, resetFenceInput } from '../../../shared/commits/inputs.ts';
import { stagingKey } from '../../../shared/commits/paths.ts';
import { readPath } from '../../../shared/commits/read.ts';
import { worldIds } from '../chance/seed.ts';
import {
  call,
  madeAtFirstCall,
  newBucket,
  newTable,
  noteCommand,
  noteCommands,
  patient,
  testClient,
  testS3,
  watch,
} from '../emulators/aws.ts';
import { documented } from '../stack/contract.ts';
import { ManualClock } from '../time/clock.ts';

const MIB = 1024 ** 2;

const [toCommit, toReset, toList] = [commitInput(), resetFenceInput(), inFlightInput()];

/** A client that presigns uploads, without checksums. */
const uploadClient = () =>
  s3Client({ requestChecksumCalculation: 'WHEN_REQUIRED', requestHandler: patient().requestHandler });

/** A table and a bucket of its own, a clock to move, and the commit calls over them: as domain calls and as handlers. */
export async function commitWorld(overrides: Partial<CommitDependencies> = {}) {
  const clock = new ManualClock();
  const dynamodb = testClient();
  const s3 = testS3();
  const dependencies: CommitDependencies = {
    dynamodb,
    s3,
    clock,
    ids: worldIds(),
    table: overrides.table ?? (await newTable('commits')),
    bucket: overrides.bucket ?? (await newBucket()),
    protocol: 'dynamo',
    commitTimeoutMs: 20_000,
    maxClockSkewRate: 3,
    clockSkewMs: 500,
    commitTtlSeconds: 3600,
    maxUploadBytes: 16 * MIB,
    multipartThresholdBytes: 6 * MIB,
    partBytes: 5 * MIB,
    ...overrides,
  };
  const { table, bucket } = dependencies;
  // Reads have their own clients, so that a test does not count their requests among those of a commit.
  const read = readPath({ ...dependencies, dynamodb: testClient(), s3: testS3() });
  const listing = { ...dependencies, dynamodb: testClient(), s3: testS3() };
  noteCommands('commit', dynamodb);
  noteCommands('commit', s3);
  noteCommands('readInFlight', listing.dynamodb);
  noteCommands('readInFlight', listing.s3);
  const raw = rawClients(table, bucket);

  return {
    clock,
    dependencies,
    table,
    bucket,
    /** What was sent to DynamoDB, and what to S3. */
    records: watch(dynamodb),
    objects: watch(s3),
    commit: (input: object, as = call()) => documented('commit', commitObject(dependencies))(toCommit.parse(input), as),
    resetFence: (input: object, as = call()) =>
      documented('resetFence', replaceFence(dependencies))(toReset.parse(input), as),
    /** Another instance of the service, with clients and faults of its own. */
    another: (change: Partial<CommitDependencies> = {}) => anotherService(dependencies, change, 'commit'),
    /** An instance for an administrator, who resets fences but does not commit. */
    administrator: (change: Partial<CommitDependencies> = {}) => anotherService(dependencies, change, 'resetFence'),
    read: (path: string) => read({ path }, call()),
    inFlight: (query: object = {}) => listInFlight(listing)(toList.parse(query), call()),
    /** The requests of `inFlight`. */
    listRequests: [watch(listing.dynamodb), watch(listing.s3)],
    handlers: functionHandlers(dependencies),
    ...raw,
  };
}

/** The commit protocols. A test of both plays one of them, which the seed chooses. */
export const PROTOCOLS = ['dynamo', 'native'] as const;

export type CommitWorld = Awaited<ReturnType<typeof commitWorld>>;

/** @param name the function whose role must allow what is sent */
function anotherService(
  dependencies: CommitDependencies,
  change: Partial<CommitDependencies>,
  name: 'commit' | 'resetFence',
) {
  const dynamodb = testClient();
  const s3 = testS3();
  const own = { ...dependencies, dynamodb, s3, ...change };
  noteCommands(name, dynamodb);
  noteCommands(name, s3);
  return {
    records: watch(own.dynamodb),
    objects: watch(own.s3),
    commit: (input: object, as = call()) => commitObject(own)(toCommit.parse(input), as),
    resetFence: (input: object, as = call()) => replaceFence(own)(toReset.parse(input), as),
  };
}

/** Direct access of the test to the table and the bucket. */
function rawClients(table: string, bucket: string) {
  const dynamodb = testClient();
  const s3 = testS3();
  const key = (path: string, etag: string) => ({ path: { S: path }, etag: { S: etag } });
  const head = (path: string) => s3.send(new HeadObjectCommand({ Bucket: bucket, Key: path }));
  return {
    rawRecord: async (path: string, etag = '*'): Promise<Record<string, AttributeValue> | undefined> =>
      (await dynamodb.send(new GetItemCommand({ TableName: table, Key: key(path, etag), ConsistentRead: true }))).Item,
    putRecord: (item: Record<string, AttributeValue>) =>
      dynamodb.send(new PutItemCommand({ TableName: table, Item: item })),
    deleteRecord: (path: string, etag = '*') =>
      dynamodb.send(new DeleteItemCommand({ TableName: table, Key: key(path, etag) })),
    allRecords: async () =>
      (await dynamodb.send(new ScanCommand({ TableName: table, ConsistentRead: true }))).Items ?? [],
    rawPut: async (path: string, body: string | Uint8Array, more: object = {}): Promise<string> =>
      (await s3.send(new PutObjectCommand({ Bucket: bucket, Key: path, Body: body, ...more }))).ETag ?? '',
    rawDelete: (path: string) => s3.send(new DeleteObjectCommand({ Bucket: bucket, Key: path })),
    body: async (path: string) => (await bytesOf(s3, bucket, path))?.toString(),
    bytes: (path: string) => bytesOf(s3, bucket, path),
    rawHead: head,
    rawMetadata: async (path: string) => (await head(path)).Metadata ?? {},
    rawEtag: async (path: string) => (await head(path)).ETag ?? '',
    allObjects: async () =>
      ((await s3.send(new ListObjectsV2Command({ Bucket: bucket }))).Contents ?? []).map(({ Key = '' }) => Key),
    /** A staged upload without the presigned URL. */
    stage: async (body: string | Uint8Array, more: object = {}): Promise<string> => {
      const uploadId = crypto.randomUUID();
      await s3.send(new PutObjectCommand({ Bucket: bucket, Key: stagingKey(uploadId), Body: body, ...more }));
      return uploadId;
    },
  };
}

async function bytesOf(s3: S3Client, bucket: string, path: string): Promise<Buffer | undefined> {
  try {
    const { Body } = await s3.send(new GetObjectCommand({ Bucket: bucket, Key: path }));
    return Buffer.from((await Body?.transformToByteArray()) ?? []);
  } catch (error) {
    if ((error as Error).name === 'NoSuchKey') return undefined;
    throw error;
  }
}

/** A record as the Rust crate object_store writes it. */
export const foreignRecord = (
  path: string,
  { etag = '*', generation = 0, timeout = 20_000, ttl = 2_000_000_000 } = {},
): Record<string, AttributeValue> => ({
  path: { S: path },
  etag: { S: etag },
  generation: { N: String(generation) },
  timeout: { N: String(timeout) },
  ttl: { N: String(ttl) },
});

/** The deployed handlers, each with clients of its own. */
function functionHandlers(dependencies: CommitDependencies) {
  const clients = (name: string) => {
    const dynamodb = testClient();
    const s3 = testS3();
    noteCommands(name, dynamodb);
    noteCommands(name, s3);
    return { ...dependencies, dynamodb, s3 };
  };
  noteCommand('stageUpload', 'S3:PutObject');
  return {
    commit: madeAtFirstCall(() => commit(clients('commit'))),
    readCommit: madeAtFirstCall(() => readCommit(clients('readCommit'))),
    readInFlight: madeAtFirstCall(() => readInFlight(clients('readInFlight'))),
    resetFence: madeAtFirstCall(() => resetFence(clients('resetFence'))),
    stageUpload: madeAtFirstCall(() => stageUpload({ ...dependencies, s3: uploadClient() })),
  };
}
