import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { preparedFunction } from './functions.ts';
import { type Contestant, keysOf, playPairs, type Samples } from './pairs.ts';
import { freeKey, seed } from './seed.ts';
import { receiveTask, sendProgress, sendResult } from './worker.ts';

/** Each contestant has its own copy of the SDK with its compiled code, because functions do not share theirs either. */
export interface Bundles {
  acquire: string;
  release: string;
}

export interface OverheadTask {
  /** Further fields of acquire. */
  terms: { limit?: number };
  /** The bundles of bare-sdk.ts or bare-permits.ts, and of locks.domain.ts. */
  bareSdk: Bundles;
  domain: Bundles;
  repetitions: number;
  /** How many pairs of acquire and release each contestant runs in a repetition. */
  pairs: number;
  /** How many pairs each contestant runs before the counted ones. */
  warmUp: number;
}

type Name = 'bare' | 'domain' | 'built';
export type OverheadResult = Record<Name, Samples>[];

const task = await receiveTask<OverheadTask>();
type Bare = typeof import('./bare-sdk.ts');
type Domain = typeof import('./locks.domain.ts');
const bare: Pick<Bare, 'acquire' | 'release'> = {
  acquire: ((await import(task.bareSdk.acquire)) as Bare).acquire,
  release: ((await import(task.bareSdk.release)) as Bare).release,
};
const domain: Pick<Domain, 'acquire' | 'release'> = {
  acquire: ((await import(task.domain.acquire)) as Domain).acquire,
  release: ((await import(task.domain.release)) as Domain).release,
};
const acquire = await preparedFunction('leases/acquire');
const release = await preparedFunction('leases/release');

const asked = { holder: 'bench', ttlSeconds: 60, ...task.terms };
const contestants: Record<Name, Contestant> = {
  built: {
    acquire: (key) => acquire.prepare({ key, ...asked }),
    leaseIdOf: (granted) => acquire.read<{ leaseId: string }>(granted).leaseId,
    release: (key, leaseId) => release.prepare({ key, leaseId }),
  },
  domain: {
    acquire: (key) => () => domain.acquire({ key, ...asked, waitSeconds: 0 }),
    leaseIdOf: ({ leaseId }) => leaseId,
    release: (key, leaseId) => () => domain.release(key, leaseId),
  },
  bare: {
    acquire: (key) => () => bare.acquire(key),
    leaseIdOf: (leaseId) => leaseId,
    release: (key, leaseId) => () => bare.release(key, leaseId),
  },
};

if (task.terms.limit !== undefined) await formPools(keysOf(Object.keys(contestants)));
await playPairs(contestants, task.warmUp);
const result: OverheadResult = [];
for (let repetition = 1; repetition <= task.repetitions; repetition++) {
  sendProgress(`overhead: ${repetition} of ${task.repetitions}`);
  result.push(await playPairs(contestants, task.pairs));
}
sendResult(result);

async function formPools(keys: string[]): Promise<void> {
  const item = (at: number) => freeKey(keys[at] ?? '');
  await seed(new DynamoDBClient({}), { table: process.env.LEASES_TABLE ?? '', count: keys.length, item });
}
