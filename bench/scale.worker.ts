import { randomInt } from 'node:crypto';
import { CreateTableCommand, DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { acquireGrant } from '../shared/locks/calls/acquire.ts';
import { leasesFromEnvironment } from '../shared/locks/dependencies.ts';
import { shuffle } from './measurement.ts';
import { abandonedLease, seed, seededKey } from './seed.ts';
import { receiveTask, sendProgress, sendResult } from './worker.ts';

export interface ScaleTask {
  /** How many records each table has. */
  sizes: number[];
  repetitions: number;
  /** How many acquires each table gets in a repetition. */
  samples: number;
  /** How many acquires each table gets before the counted ones. */
  warmUp: number;
}

/** The times in milliseconds, by size and then by repetition. */
export type ScaleResult = number[][][];

const BLOCK = 20;

const { sizes, repetitions, samples, warmUp } = await receiveTask<ScaleTask>();
const dynamodb = new DynamoDBClient({});
const fromEnvironment = leasesFromEnvironment();
const TTL_SECONDS = 2;
/** The clock moves past lease and margin before each acquire, so that even in the smallest table every lease that is met again has expired. */
let aheadMs = 0;
const clock = { ...fromEnvironment.clock, now: () => Date.now() + aheadMs };
const dependencies = { ...fromEnvironment, clock };
const call = { signal: new AbortController().signal, timeLeftMs: () => 29_000 };

const tables = await Promise.all(sizes.map(seedTable));
await run(warmUp);
const found: ScaleResult = sizes.map(() => []);
for (let repetition = 1; repetition <= repetitions; repetition++) {
  sendProgress(`scale: ${repetition} of ${repetitions}`);
  (await run(samples)).forEach((times, at) => {
    found[at]?.push(times);
  });
}
sendResult(found);

async function seedTable(size: number) {
  const table = `bench-scale-${size}`;
  await dynamodb.send(
    new CreateTableCommand({
      TableName: table,
      BillingMode: 'PAY_PER_REQUEST',
      AttributeDefinitions: [{ AttributeName: 'key', AttributeType: 'S' }],
      KeySchema: [{ AttributeName: 'key', KeyType: 'HASH' }],
    }),
  );
  await seed(dynamodb, { table, count: size, item: abandonedLease }, (done) =>
    sendProgress(`scale: seeded ${done} of ${size}`),
  );
  return { size, acquire: acquireGrant({ ...dependencies, table }) };
}

async function run(samples: number): Promise<number[][]> {
  const times: number[][] = sizes.map(() => []);
  for (let done = 0; done < samples; done += BLOCK)
    for (const at of shuffle([...tables.keys()]))
      for (let one = 0; one < BLOCK; one++) {
        const { size, acquire } = tables[at] as (typeof tables)[number];
        const key = seededKey(randomInt(size));
        aheadMs += 2 * TTL_SECONDS * 1000;
        const startedAt = performance.now();
        await acquire({ key, holder: 'bench', ttlSeconds: TTL_SECONDS, waitSeconds: 0 }, call);
        times[at]?.push(performance.now() - startedAt);
      }
  return times;
}
