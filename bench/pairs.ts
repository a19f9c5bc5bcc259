import { shuffle } from './measurement.ts';

/** Each function prepares a call, which is then timed. */
export interface Contestant {
  /** The call returns what `leaseIdOf` reads. */
  acquire(key: string): () => Promise<unknown>;
  // biome-ignore lint/suspicious/noExplicitAny: what its own call returned
  leaseIdOf(granted: any): string;
  release(key: string, leaseId: string): () => Promise<unknown>;
}

/** The time of each call, in milliseconds. */
export type Samples = { acquire: number[]; release: number[] };

/** Each contestant goes around its own ring of keys, so that the table does not grow. */
const KEYS = 200;
const BLOCK = 10;

const keyOf = (name: string, at: number) => `${name} ${at % KEYS}`;

/** All keys that these contestants use. */
export const keysOf = (names: string[]): string[] =>
  names.flatMap((name) => Array.from({ length: KEYS }, (_, at) => keyOf(name, at)));

/** Acquires and releases a number of pairs with each contestant, in blocks of random order. */
export async function playPairs<Name extends string>(
  contestants: Record<Name, Contestant>,
  pairs: number,
): Promise<Record<Name, Samples>> {
  const names = Object.keys(contestants) as Name[];
  const result = Object.fromEntries(names.map((name) => [name, { acquire: [], release: [] }])) as unknown as Record<
    Name,
    Samples
  >;
  for (let done = 0; done < pairs; done += BLOCK)
    for (const name of shuffle(names))
      for (let at = done; at < done + BLOCK; at++) await pair(contestants[name], keyOf(name, at), result[name]);
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
