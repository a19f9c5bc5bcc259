import fc from 'fast-check';
import type { Ids } from '../../../shared/surroundings/ids.ts';

/** Mulberry32, by Tommy Ettinger (public domain): small, fast, and good enough to choose interleavings. */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Ids that are the same for the same seed, in the shape of version 4 UUIDs. */
export function seededIds(seed: number): Ids {
  const random = seededRandom(seed);
  const hex = (digits: number) => Array.from({ length: digits }, () => Math.floor(random() * 16).toString(16)).join('');
  return { random, uuid: () => `${hex(8)}-${hex(4)}-4${hex(3)}-8${hex(3)}-${hex(12)}` };
}

const drawn = Math.floor(Math.random() * 2 ** 31);

/** The seed of everything random in this run: the variable SEED, which repeats a failure, or a new seed. */
export const testSeed = (): number => Number(process.env.SEED ?? drawn);

let worlds = 0;

/** The ids of a world. Worlds may share tables, so no two worlds of a file make the same ids. */
export const worldIds = (): Ids => seededIds(testSeed() + worlds++);

/**
 * Begins a file of tests, so that it makes the same ids as if it ran alone. Files share a worker.
 * @param first the first number of the ids, if a file plays several times against one emulator: it takes a known ClientRequestToken for a repeat
 */
export function beginFile(first = 0): void {
  worlds = first;
}

/** Any code point except half of a surrogate pair. `unit: 'binary'` would do the same, but takes a second in each worker. */
const codePoint = fc
  .integer({ min: 0, max: 0x10ffff - 0x800 })
  .map((nth) => String.fromCodePoint(nth < 0xd800 ? nth : nth + 0x800));

/** Text of any characters, control characters among them. It is well-formed. */
export const anyText = (length: { minLength?: number; maxLength?: number } = {}): fc.Arbitrary<string> =>
  fc.string({ unit: codePoint, ...length });
