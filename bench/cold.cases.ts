/** Compares a function with a bundle of only the clients and commands that it uses, by a first call of both. */
export interface ColdCase {
  /** The source of the bundle: clients that are made when it is loaded, as every function does, and `first`. */
  bare: string;
  /** The source of the commands that a function loads only if a task is parked or a holder is bound. */
  later?: string;
  /** The first call of the function, which sends the same number of requests to the emulators as `first`. */
  payload: object;
  method?: 'GET';
}

/** @param first the requests of `first`. It may reject, because a refusal is also an answer */
const code = (clients: string[], first: string) => `${clients.join('')}
const { env } = process;
export const first = async () => { ${first} };`;

const client = (name: string, commands: string[], { from, settings = '{}' }: { from: string; settings?: string }) =>
  `import { ${name}, ${commands} } from '${from}';
export { ${commands} } from '${from}';
const of${name} = new ${name}(${settings});\n`;
const dynamodb = (...commands: string[]) => client('DynamoDBClient', commands, { from: '@aws-sdk/client-dynamodb' });
const s3 = (...commands: string[]) =>
  client('S3Client', commands, { from: '@aws-sdk/client-s3', settings: '{ forcePathStyle: true }' });

const sfn = (...commands: string[]) => client('SFNClient', commands, { from: '@aws-sdk/client-sfn' });
const NOTIFY = ['SendTaskSuccessCommand', 'SendTaskFailureCommand'];
/** The commands of a hand-off, and of a look at the execution of a bound holder. */
const HAND_OFF =
  sfn(...NOTIFY, 'DescribeExecutionCommand') +
  client('SQSClient', ['SendMessageCommand'], { from: '@aws-sdk/client-sqs' });

const toDynamodb = (command: string, table: string, input: string) =>
  `await ofDynamoDBClient.send(new ${command}({ TableName: env.${table}, ${input} })).catch(() => {});\n`;
const toS3 = (command: string, input = '') =>
  `await ofS3Client.send(new ${command}({ Bucket: env.BUCKET, Key: 'bare', ${input} })).catch(() => {});\n`;

const KEY = "Key: { key: { S: 'bare' } }";
const UPDATE = `${KEY}, UpdateExpression: 'SET holder = :h', ConditionExpression: 'lease_id = :h', ExpressionAttributeValues: { ':h': { S: 'bare' } }`;
const updateLeaseCode = toDynamodb('UpdateItemCommand', 'LEASES_TABLE', UPDATE);
const updateLease = code([dynamodb('UpdateItemCommand')], updateLeaseCode);
const getTicket = toDynamodb(
  'GetItemCommand',
  'WAITERS_TABLE',
  "Key: { key: { S: 'bare' }, ticket: { S: 'bare' } }, ConsistentRead: true",
);
const OF_EXECUTION =
  "IndexName: 'by-execution', KeyConditionExpression: 'execution = :e', ExpressionAttributeValues: { ':e': { S: 'bare' } }";
const HEAD = "KeyConditionExpression: 'pk = :pk', ExpressionAttributeValues: { ':pk': { S: 'bare:main' } }";
const unknown = { key: 'unknown', leaseId: '00000000-0000-4000-8000-000000000000' };

// The bodies of answers are read, because the functions read them too.
const getObject =
  "await ofS3Client.send(new GetObjectCommand({ Bucket: env.BUCKET, Key: 'bare' })).then(({ Body }) => Body.transformToString()).catch(() => {});\n";
const putObject = toS3('PutObjectCommand', "Body: 'bare'");
const times = (count: number | string, act: string) => `for (let at = 0; at < ${count}; at++) {\n${act}}\n`;

/** A first report over empty tables: its lease, four segments of each table at once with a checkpoint after each, and the event. */
const reportOfNothing = `
  const tables = [env.LEASES_TABLE, env.COMMITS_TABLE, env.NAMESERVICE_TABLE, env.WAITERS_TABLE].filter(Boolean);
  const scan = (TableName, Segment) => ofDynamoDBClient.send(new ScanCommand({ TableName, Segment, TotalSegments: 4, Limit: 1000 }));
  ${toDynamodb('PutItemCommand', 'LEASES_TABLE', "Item: { key: { S: 'bare' } }, ConditionExpression: 'attribute_not_exists(fence)'")}
  ${getObject}
  ${putObject}
  for (const table of tables) {
    await Promise.all([0, 1, 2, 3].map((segment) => scan(table, segment)));
    ${times(4, putObject)}
  }
  ${toS3('ListObjectsV2Command', "Prefix: 'bare'")}
  ${times(3, putObject)}
  ${getObject}
  ${putObject}
  ${getObject}
  const { EventBridgeClient, PutEventsCommand } = await import('@aws-sdk/client-eventbridge');
  await new EventBridgeClient({}).send(new PutEventsCommand({ Entries: [{ Source: 'bare', DetailType: 'bare', Detail: '{}' }] }));
  ${putObject}
  ${updateLeaseCode}`;

/** Functions without an AWS client cannot be compared with anything. */
export const WITHOUT_CLIENTS = ['readContract', 'whoami', 'readHealth'];

/** The case of each function, by its name in serverless.yml. @param unique differs in each call */
export const coldCases = (unique: string): Record<string, ColdCase | undefined> => ({
  acquire: {
    bare: code(
      [dynamodb('PutItemCommand', 'GetItemCommand')],
      toDynamodb('PutItemCommand', 'LEASES_TABLE', "Item: { key: { S: 'bare' } }, ConditionExpression: 'attribute_not_exists(fence)'"), // biome-ignore format: one line
    ),
    later: dynamodb('UpdateItemCommand', 'QueryCommand', 'DeleteItemCommand') + HAND_OFF,
    payload: { key: unique, holder: 'bench' },
  },
  heartbeat: { bare: updateLease, payload: unknown },
  release: {
    bare: updateLease,
    later: dynamodb('QueryCommand', 'DeleteItemCommand') + HAND_OFF,
    payload: unknown,
  },
  breakLease: {
    bare: updateLease,
    later: dynamodb('QueryCommand', 'DeleteItemCommand', 'GetItemCommand') + HAND_OFF,
    payload: { key: 'unknown', fence: 1 },
  },
  readLeases: {
    bare: code(
      [dynamodb('GetItemCommand', 'ScanCommand')],
      toDynamodb('GetItemCommand', 'LEASES_TABLE', `${KEY}, ConsistentRead: true`),
    ),
    later: dynamodb('QueryCommand'),
    payload: { key: 'unknown' },
    method: 'GET',
  },
  withdraw: {
    bare: code(
      [dynamodb('GetItemCommand', 'DeleteItemCommand')],
      toDynamodb('GetItemCommand', 'LEASES_TABLE', `${KEY}, ConsistentRead: true`),
    ),
    payload: { key: 'unknown', requestId: 'unknown', holder: 'unknown' },
  },
  onceBegin: { bare: updateLease, later: dynamodb('GetItemCommand'), payload: { key: unique, holder: 'bench' } },
  onceComplete: { bare: updateLease, payload: { key: 'unknown', leaseId: 'o.unknown' } },
  onceForget: { bare: updateLease, payload: { key: 'unknown', fence: 1 } },
  readOnce: {
    bare: code(
      [dynamodb('GetItemCommand', 'ScanCommand')],
      toDynamodb('GetItemCommand', 'LEASES_TABLE', `${KEY}, ConsistentRead: true`),
    ),
    payload: { key: 'unknown' },
    method: 'GET',
  },
  rateReserve: {
    bare: updateLease,
    payload: { key: unique, holder: 'bench', rates: [{ limit: 1, per: '1s' }] },
  },
  rateSettle: { bare: updateLease, payload: { key: 'unknown', reservation: 'r.nnnnnnnnnnnnnnnn.1.1', cancel: true } },
  rateForget: {
    bare: code([dynamodb('DeleteItemCommand')], toDynamodb('DeleteItemCommand', 'LEASES_TABLE', KEY)),
    payload: { key: 'unknown', paidUntil: '2026-11-26T15:36:42.273Z' },
  },
  readRates: {
    bare: code(
      [dynamodb('GetItemCommand', 'ScanCommand')],
      toDynamodb('GetItemCommand', 'LEASES_TABLE', `${KEY}, ConsistentRead: true`),
    ),
    payload: { key: 'unknown' },
    method: 'GET',
  },
  cancelWaiter: {
    bare: code(
      [dynamodb('GetItemCommand', 'DeleteItemCommand'), sfn('SendTaskFailureCommand')],
      getTicket + toDynamodb('GetItemCommand', 'LEASES_TABLE', `${KEY}, ConsistentRead: true`),
    ),
    payload: { key: 'unknown', ticket: 'unknown' },
  },
  capKey: { bare: updateLease, payload: { key: unique, limit: 0, reason: 'bench' } },
  runNext: {
    bare: code(
      [dynamodb('GetItemCommand', 'UpdateItemCommand')],
      getTicket + toDynamodb('GetItemCommand', 'LEASES_TABLE', `${KEY}, ConsistentRead: true`),
    ),
    payload: { key: 'unknown', ticket: 'unknown' },
  },
  repairQueues: {
    bare: code(
      [
        dynamodb('GetItemCommand', 'UpdateItemCommand', 'ScanCommand', 'QueryCommand', 'DeleteItemCommand'),
        sfn(...NOTIFY, 'DescribeExecutionCommand'),
      ],
      toDynamodb('ScanCommand', 'WAITERS_TABLE', 'Limit: 1'),
    ),
    payload: {},
  },
  executionEnded: {
    bare: code(
      [
        dynamodb('GetItemCommand', 'UpdateItemCommand', 'QueryCommand', 'DeleteItemCommand'),
        sfn(...NOTIFY, 'DescribeExecutionCommand'),
      ],
      toDynamodb('QueryCommand', 'WAITERS_TABLE', OF_EXECUTION) +
        toDynamodb('QueryCommand', 'LEASES_TABLE', OF_EXECUTION),
    ),
    payload: { execution: 'arn:aws:states:us-east-1:000000000000:execution:bench:unknown' },
  },
  commit: {
    bare: code(
      [
        dynamodb('PutItemCommand', 'UpdateItemCommand', 'GetItemCommand'),
        s3(
          ...['HeadObjectCommand', 'PutObjectCommand', 'CopyObjectCommand', 'CreateMultipartUploadCommand'],
          ...[
            'UploadPartCommand',
            'UploadPartCopyCommand',
            'CompleteMultipartUploadCommand',
            'AbortMultipartUploadCommand',
          ],
        ),
      ],
      toS3('HeadObjectCommand') +
        toDynamodb('PutItemCommand', 'COMMITS_TABLE', "Item: { path: { S: 'bare' }, etag: { S: '*' } }") +
        toS3('PutObjectCommand', "Body: 'first'"),
    ),
    payload: { path: `cold/${unique}`, ifNoneMatch: '*', body: 'first' },
  },
  resetFence: {
    bare: code(
      [
        dynamodb('PutItemCommand', 'UpdateItemCommand', 'GetItemCommand'),
        s3(
          ...['HeadObjectCommand', 'PutObjectCommand', 'CopyObjectCommand', 'CreateMultipartUploadCommand'],
          ...[
            'UploadPartCommand',
            'UploadPartCopyCommand',
            'CompleteMultipartUploadCommand',
            'AbortMultipartUploadCommand',
          ],
        ),
      ],
      toS3('HeadObjectCommand'),
    ),
    payload: { path: 'unknown', ifMatch: '"x"', expectedFence: { key: 'k', token: 1 }, fence: null },
  },
  stageUpload: {
    bare: code(
      [s3('PutObjectCommand'), "import { getSignedUrl } from '@aws-sdk/s3-request-presigner';\n"],
      "await getSignedUrl(ofS3Client, new PutObjectCommand({ Bucket: env.BUCKET, Key: 'bare' }));",
    ),
    payload: {},
  },
  readCommit: {
    bare: code(
      [dynamodb('GetItemCommand'), s3('HeadObjectCommand')],
      toDynamodb('GetItemCommand', 'COMMITS_TABLE', "Key: { path: { S: 'bare' }, etag: { S: '*' } }") +
        toS3('HeadObjectCommand'),
    ),
    payload: { path: 'unknown' },
    method: 'GET',
  },
  readInFlight: {
    bare: code(
      [dynamodb('ScanCommand'), s3('HeadObjectCommand')],
      `const { Items = [] } = await ofDynamoDBClient.send(new ScanCommand({ TableName: env.COMMITS_TABLE, Limit: 1000 }));
       await Promise.all(Items.map(async () => { ${toS3('HeadObjectCommand')} }));`,
    ),
    payload: {},
    method: 'GET',
  },
  publish: {
    bare: code(
      [dynamodb('UpdateItemCommand', 'TransactWriteItemsCommand', 'QueryCommand')],
      `const Item = (sk) => ({ pk: { S: 'bare:main' }, sk: { S: sk } });
       const TransactItems = ['meta', 'head', 'index', 'config', 'status'].map((sk) => ({ Put: { TableName: env.NAMESERVICE_TABLE, Item: Item(sk) } }));
       await ofDynamoDBClient.send(new TransactWriteItemsCommand({ TransactItems }));`,
    ),
    payload: { op: 'initLedger', alias: unique },
  },
  repairNames: {
    bare: code(
      [dynamodb('UpdateItemCommand', 'TransactWriteItemsCommand', 'QueryCommand')],
      toDynamodb(
        'UpdateItemCommand',
        'NAMESERVICE_TABLE',
        "Key: { pk: { S: 'bare:main' }, sk: { S: 'meta' } }, UpdateExpression: 'SET retracted = :f', ConditionExpression: 'retracted = :t', ExpressionAttributeValues: { ':t': { BOOL: true }, ':f': { BOOL: false } }",
      ),
    ),
    payload: { op: 'unretract', alias: 'unknown', expected: { kind: 'ledger' } },
  },
  report: {
    bare: code(
      [
        dynamodb('ScanCommand', 'PutItemCommand', 'UpdateItemCommand'),
        s3('GetObjectCommand', 'PutObjectCommand', 'ListObjectsV2Command'),
      ],
      reportOfNothing,
    ),
    later: sfn('DescribeExecutionCommand'),
    payload: {},
  },
  readExpired: {
    bare: code([s3('GetObjectCommand')], times(2, getObject)),
    payload: { reportId: 'unknown' },
    method: 'GET',
  },
  clean: {
    bare: code(
      [dynamodb('DeleteItemCommand'), s3('GetObjectCommand', 'HeadObjectCommand', 'DeleteObjectCommand')],
      times(2, getObject),
    ),
    later: dynamodb('UpdateItemCommand', 'QueryCommand') + HAND_OFF,
    payload: { reportId: 'unknown' },
  },
  readNames: {
    bare: code(
      [dynamodb('QueryCommand', 'BatchGetItemCommand')],
      toDynamodb('QueryCommand', 'NAMESERVICE_TABLE', `${HEAD}, ConsistentRead: true`),
    ),
    payload: { alias: 'unknown' },
    method: 'GET',
  },
});
