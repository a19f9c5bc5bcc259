import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { ledgerItems } from '../shared/nameservice/items.ts';
import { builtFunction } from './functions.ts';
import { shuffle } from './measurement.ts';
import { seed } from './seed.ts';
import { receiveTask, sendProgress, sendResult } from './worker.ts';

export interface NameserviceTask {
  /** The bundle of nameservice.bare.ts. */
  bareSdk: string;
  samples: number;
  aliases: number;
  /** How many calls come before the counted ones. */
  warmUp: number;
}

/** How long the calls took, in milliseconds. */
export interface NameserviceResult {
  /** The time of each publishCommit. */
  built: number[];
  bare: number[];
  reads: number[];
  /** The time to list all aliases, in pages of 1,000. */
  list: number;
}

const BLOCK = 10;

const { bareSdk, samples, aliases, warmUp } = await receiveTask<NameserviceTask>();
const bare: typeof import('./nameservice.bare.ts') = await import(bareSdk);
const publish = await builtFunction('nameservice/publish');
const read = await builtFunction('nameservice/read');

for (const alias of ['built', 'bare']) await publish({ op: 'initLedger', alias });
const contestants = {
  built: (t: number) => publish({ op: 'publishCommit', alias: 'built', address: `commit/${t}`, t }),
  bare: (t: number) => bare.publishCommit('bare', `commit/${t}`, t),
};

await race(0, warmUp);
const { built, bare: bareTimes } = await race(warmUp, samples);
const reads: number[] = [];
for (let i = 0; i < warmUp + samples / 2; i++) reads.push(await time(() => read({ alias: 'built' })));
await seedAliases();
const list = await time(listAll);
sendResult({ built, bare: bareTimes, reads: reads.slice(warmUp), list });

/** The contestants take turns in blocks, so that other work of the machine affects both. */
async function race(from: number, samples: number): Promise<Pick<NameserviceResult, 'built' | 'bare'>> {
  const result = { built: [] as number[], bare: [] as number[] };
  for (let done = 0; done < samples; done += BLOCK) {
    for (const name of shuffle(['built', 'bare'] as ('built' | 'bare')[]))
      for (let t = from + done + 1; t <= from + done + BLOCK; t++)
        result[name].push(await time(() => contestants[name](t)));
    if (done % 1000 === 0) sendProgress(`nameservice: ${done} of ${samples}`);
  }
  return result;
}

async function time(act: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await act();
  return performance.now() - startedAt;
}

async function seedAliases(): Promise<void> {
  const items = Array.from({ length: aliases }, (_, i) =>
    ledgerItems({ name: `listed-${i}`, branch: 'main' }, { now: Date.now(), style: 'address' }),
  ).flat();
  const item = (at: number) => items[at] as (typeof items)[number];
  await seed(new DynamoDBClient({}), { table: process.env.NAMESERVICE_TABLE ?? '', count: items.length, item });
}

async function listAll(): Promise<void> {
  let listed = 0;
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const query = { prefix: 'listed-', limit: 1000, ...(cursor && { cursor }) };
    const page = await read<{ records: object[]; nextCursor: string | null }>(query);
    listed += page.records.length;
    cursor = page.nextCursor;
  }
  if (listed !== aliases) throw new Error(`listed ${listed} of ${aliases} aliases`);
}
