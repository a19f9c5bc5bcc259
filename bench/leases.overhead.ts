import { builtFunction } from './functions.ts';
import { shuffle } from './measurement.ts';
import { receiveTask, sendProgress, sendResult } from './worker.ts';

export interface OverheadTask {
  /** The bundles of bare-sdk.ts and leases.domain.ts. */
  bareSdk: string;
  domain: string;
  repetitions: number;
  /** Acquire and release pairs of each contestant in a repetition. */
  pairs: number;
}

/** Milliseconds of each call. */
type Samples = { acquire: number[]; release: number[] };
type Name = 'bare' | 'domain' | 'built';
/** One for each repetition. */
export type OverheadResult = Record<Name, Samples>[];

/** Each contestant goes round a ring of keys of its own, so that the table stays as large as it is. */
const KEYS = 200;
const BLOCK = 10;
const WARM_UP = 600;

const task = await receiveTask<OverheadTask>();
const bare: typeof import('./bare-sdk.ts') = await import(task.bareSdk);
const domain: typeof import('./leases.domain.ts') = await import(task.domain);
const acquire = await builtFunction('leases/acquire');
const release = await builtFunction('leases/release');

interface Contestant {
  acquire(key: string): Promise<{ leaseId: string }>;
  release(key: string, leaseId: string): Promise<unknown>;
}

const asked = { holder: 'bench', ttlSeconds: 60 };
const contestants: Record<Name, Contestant> = {
  built: {
    acquire: (key) => acquire({ key, ...asked }),
    release: (key, leaseId) => release({ key, leaseId }),
  },
  domain: {
    acquire: (key) => domain.acquire({ key, ...asked, waitSeconds: 0 }),
    release: domain.release,
  },
  bare: {
    acquire: async (key) => ({ leaseId: await bare.acquire(key) }),
    release: bare.release,
  },
};

await run(WARM_UP);
const result: OverheadResult = [];
for (let repetition = 1; repetition <= task.repetitions; repetition++) {
  sendProgress(`overhead: ${repetition} of ${task.repetitions}`);
  result.push(await run(task.pairs));
}
sendResult(result);

async function run(pairs: number): Promise<Record<Name, Samples>> {
  const samples = () => ({ acquire: [], release: [] });
  const result: Record<Name, Samples> = { built: samples(), domain: samples(), bare: samples() };
  for (let done = 0; done < pairs; done += BLOCK)
    for (const name of shuffle<Name>(['built', 'domain', 'bare']))
      for (let at = done; at < done + BLOCK; at++) await pair(contestants[name], `${name} ${at % KEYS}`, result[name]);
  return result;
}

async function pair(contestant: Contestant, key: string, { acquire, release }: Samples): Promise<void> {
  const startedAt = performance.now();
  const { leaseId } = await contestant.acquire(key);
  const acquiredAt = performance.now();
  await contestant.release(key, leaseId);
  acquire.push(acquiredAt - startedAt);
  release.push(performance.now() - acquiredAt);
}
