import { setTimeout as delay } from 'node:timers/promises';
import { type AttributeValue, BatchWriteItemCommand, UpdateItemCommand } from '@aws-sdk/client-dynamodb';
import { createTables, startDynamodb } from '../local/dynamodb.ts';
import type { LambdaHandler } from '../local/gateway.ts';
import { freePort } from '../local/ports.ts';
import { readService } from '../local/service.ts';
import { dynamodbClient } from '../shared/aws/dynamodb.ts';
import { ledgerItems } from '../shared/nameservice/items.ts';

/** Times in milliseconds. */
export interface NameserviceMeasures {
  /** publishCommit through the built handler against a bare UpdateItem with the same condition. The bar is 1.25. */
  publishCommit: { handlerP50: number; bareP50: number; ratio: number };
  lookUp: { p50: number };
  /** All pages of 1,000. */
  list: { aliases: number; total: number; pages: number };
}

const WARM_UP = 500;
const ROUNDS = 3000;
const LISTED = 5000;

/**
 * Measures the nameservice functions of dist/ (`npm run build` comes first) on an emulator of its own, which is started
 * and stopped here. Calls and bare requests take turns, so that whatever else the machine does hits both. The functions
 * log and count as they do when deployed, into nothing.
 */
export async function measureNameservice(): Promise<NameserviceMeasures> {
  // The emulator needs none of it, but the SDK does.
  Object.assign(process.env, { AWS_REGION: 'us-east-1', AWS_ACCESS_KEY_ID: 'bench', AWS_SECRET_ACCESS_KEY: 'bench' });
  const emulator = await startDynamodb(await freePort());
  try {
    const service = await readService('bench');
    await createTables(emulator.endpoint, service.tables);
    Object.assign(process.env, service.environment, {
      AWS_ENDPOINT_URL_DYNAMODB: emulator.endpoint,
      AWS_LAMBDA_FUNCTION_NAME: 'bench',
    });
    const load = async (name: string): Promise<LambdaHandler> =>
      (await import(`../dist/nameservice/${name}/index.mjs`)).handler;
    const [publish, read] = [await load('publish'), await load('read')];
    return await withoutOutput(() => measure(publish, read));
  } finally {
    await emulator.stop();
  }
}

async function measure(publish: LambdaHandler, read: LambdaHandler): Promise<NameserviceMeasures> {
  const dynamodb = dynamodbClient();
  const table = process.env.NAMESERVICE_TABLE ?? '';
  for (const alias of ['handler', 'bare']) await invoke(publish, { op: 'initLedger', alias });

  const commit = (t: number) =>
    timed(() => invoke(publish, { op: 'publishCommit', alias: 'handler', address: `commit/${t}`, t }));
  const update = (t: number) =>
    timed(() =>
      dynamodb.send(
        new UpdateItemCommand({
          TableName: table,
          Key: { pk: { S: 'bare:main' }, sk: { S: 'head' } },
          UpdateExpression: 'SET updated_at_ms = :now, commit_address = :address, commit_t = :t REMOVE commit_id',
          ConditionExpression: '(attribute_exists(pk)) AND ((attribute_not_exists(commit_t)) OR (commit_t < :t))',
          ExpressionAttributeValues: {
            ':address': { S: `commit/${t}` },
            ':t': { N: String(t) },
            ':now': { N: String(Date.now()) },
          },
          ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
        }),
      ),
    );
  const handled: number[] = [];
  const bare: number[] = [];
  for (let t = 1; t <= WARM_UP + ROUNDS; t++) {
    const [first, second] = t % 2 ? [commit, update] : [update, commit];
    const times = [await first(t), await second(t)];
    if (t % 2 === 0) times.reverse();
    if (t > WARM_UP) {
      handled.push(times[0] ?? 0);
      bare.push(times[1] ?? 0);
    }
  }
  const lookUps: number[] = [];
  for (let i = 0; i < WARM_UP + 1000; i++) lookUps.push(await timed(() => invoke(read, { alias: 'handler' })));

  await seed(dynamodb, table);
  let pages = 0;
  const total = await timed(async () => {
    for (let cursor: string | null | undefined; cursor !== null; pages++) {
      const page = { prefix: 'listed-', limit: 1000, ...(cursor && { cursor }) };
      cursor = ((await invoke(read, page)) as { nextCursor: string | null }).nextCursor;
    }
  });
  const [handlerP50, bareP50] = [median(handled), median(bare)];
  return {
    publishCommit: { handlerP50, bareP50, ratio: handlerP50 / bareP50 },
    lookUp: { p50: median(lookUps.slice(WARM_UP)) },
    list: { aliases: LISTED, total, pages },
  };
}

const CONTEXT = { awsRequestId: 'bench', functionName: 'bench', getRemainingTimeInMillis: () => 10_000 };

const invoke = (handler: LambdaHandler, payload: object): Promise<unknown> => handler(payload, CONTEXT as never);

async function seed(dynamodb: ReturnType<typeof dynamodbClient>, table: string): Promise<void> {
  const items: Record<string, AttributeValue>[] = [];
  for (let i = 0; i < LISTED; i++)
    items.push(...ledgerItems({ name: `listed-${i}`, branch: 'main' }, Date.now(), 'address'));
  for (let from = 0; from < items.length; from += 25) {
    const puts = items.slice(from, from + 25).map((item) => ({ PutRequest: { Item: item } }));
    await dynamodb.send(new BatchWriteItemCommand({ RequestItems: { [table]: puts } }));
  }
}

async function timed(act: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await act();
  return performance.now() - startedAt;
}

function median(times: number[]): number {
  return times.toSorted((a, b) => a - b)[Math.floor(times.length / 2)] ?? Number.NaN;
}

/** The functions' log lines are made and then dropped. */
async function withoutOutput<T>(act: () => Promise<T>): Promise<T> {
  const { write } = process.stdout;
  process.stdout.write = () => true;
  try {
    return await act();
  } finally {
    await delay(0);
    process.stdout.write = write;
  }
}
