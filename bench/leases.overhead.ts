import { builtFunction } from './functions.ts';
import { shuffle } from './measurement.ts';
import { receiveTask, sendProgress, sendResult } from './worker.ts';

export interface OverheadTask {
  /** The bundle of bare-sdk.ts. */
  bareSdk: string;
  samples: number;
}

/** Milliseconds of each call. */
type Samples = { acquire: number[]; release: number[] };
export type OverheadResult = { built: Samples; bare: Samples };

/** Each contestant goes round a ring of keys of its own, so that the table stays as large as it is. */
const KEYS = 200;
const BLOCK = 10;
const WARM_UP = 600;

const { bareSdk, samples } = await receiveTask<OverheadTask>();
const bare: typeof import('./bare-sdk.ts') = await import(bareSdk);
const acquire = await builtFunction('leases/acquire');
const release = await builtFunction('leases/release');

interface Contestant {
  acquire(key: string): Promise<string>;
  release(key: string, leaseId: string): Promise<unknown>;
}

const contestants: Record<keyof OverheadResult, Contestant> = {
  built: {
    acquire: async (key) => (await acquire<{ leaseId: string }>({ key, holder: 'bench', ttlSeconds: 60 })).leaseId,
    release: (key, leaseId) => release({ key, leaseId }),
  },
  bare,
};

await run(WARM_UP);
sendResult(await run(samples));

async function run(samples: number): Promise<OverheadResult> {
  const result: OverheadResult = { built: { acquire: [], release: [] }, bare: { acquire: [], release: [] } };
  for (let done = 0; done < samples; done += BLOCK) {
    for (const name of shuffle(['built', 'bare'] as const satisfies string[] as (keyof OverheadResult)[]))
      for (let at = done; at < done + BLOCK; at++) await pair(contestants[name], `${name} ${at % KEYS}`, result[name]);
    if (done % 1000 === 0) sendProgress(`overhead: ${done} of ${samples}`);
  }
  return result;
}

async function pair(contestant: Contestant, key: string, { acquire, release }: Samples): Promise<void> {
  const startedAt = performance.now();
  const leaseId = await contestant.acquire(key);
  const acquiredAt = performance.now();
  await contestant.release(key, leaseId);
  acquire.push(acquiredAt - startedAt);
  release.push(performance.now() - acquiredAt);
}
