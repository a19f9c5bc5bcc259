import { preparedFunction } from './functions.ts';
import { shuffle } from './measurement.ts';
import { receiveTask, sendProgress, sendResult } from './worker.ts';

/** A call never runs the compiled code of another one's SDK: functions do not share theirs either. */
export interface Bundles {
  acquire: string;
  release: string;
}

export interface OverheadTask {
  /** Of bare-sdk.ts and leases.domain.ts. */
  bareSdk: Bundles;
  domain: Bundles;
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
type Bare = typeof import('./bare-sdk.ts');
type Domain = typeof import('./leases.domain.ts');
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

/** Each prepares a call, which is then timed. */
interface Contestant {
  /** The call returns what `leaseIdOf` reads. */
  acquire(key: string): () => Promise<unknown>;
  // biome-ignore lint/suspicious/noExplicitAny: what its own call returned
  leaseIdOf(granted: any): string;
  release(key: string, leaseId: string): () => Promise<unknown>;
}

const asked = { holder: 'bench', ttlSeconds: 60 };
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
  const granted = await timed(contestant.acquire(key), acquire);
  await timed(contestant.release(key, contestant.leaseIdOf(granted)), release);
}

async function timed<Output>(call: () => Promise<Output>, samples: number[]): Promise<Output> {
  const startedAt = performance.now();
  const output = await call();
  samples.push(performance.now() - startedAt);
  return output;
}
