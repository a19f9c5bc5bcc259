import { expect } from 'vitest';
import { seededRandom, testSeed } from '../chance/seed.ts';

/**
 * Whether random and long tests are played in full: RACES=full, as `npm run test:races` sets it. That run takes every file
 * which imports this one (vitest.config.ts).
 */
export const isFull = process.env.RACES === 'full';

/** The part of the rounds that a full run plays: the variable SHARE, as CI sets it, or all. */
const share = Number(process.env.SHARE ?? 1);

/**
 * How many rounds a random test plays: the variable ROUNDS, or all rounds or their SHARE in a full run, or a few rounds (`npm test`).
 */
export const rounds = (full: number, few = Math.ceil(full / 10)): number =>
  Number(process.env.ROUNDS ?? (isFull ? Math.max(few, Math.ceil(share * full)) : few));

/** How often each event happened that a random test wants to see. */
export type Happened = Record<string, number>;

const lacking = (happened: Happened): string[] =>
  Object.entries(happened).flatMap(([what, count]) => (count === 0 ? [what] : []));

/**
 * Whether another round is played. A race that never happened proves nothing, so a full run goes on, within reason, until
 * everything has happened once, whatever its seed. A short one plays as many as it is asked for, so that it takes as long for every seed.
 */
export const goesOn = (played: number, asked: number, happened: Happened): boolean =>
  played < asked || (isFull && lacking(happened).length > 0 && played < Math.max(10 * asked, 300));

/**
 * Expects in a full run that everything has happened. The few rounds of a short run need not show everything.
 * @param least how often each must have happened in all rounds: by the seed, and not by the speed of the machine
 * @param always what every round shows
 */
export function expectAllHappened(happened: Happened, least = 1, always: string[] = []): void {
  for (const what of always) expect(happened[what], what).toBeGreaterThan(0);
  if (!isFull) return;
  expect(lacking(happened)).toEqual([]);
  for (const [what, count] of Object.entries(happened)) expect(count, what).toBeGreaterThanOrEqual(least);
}

/** Counts from 1: all numbers in a full run, otherwise every fifth, from a start that the seed chooses. */
export function* counting(): Generator<number> {
  const [first = 1] = isFull ? [1] : aFew(1, [1, 2, 3, 4, 5]);
  for (let at = first; ; at += isFull ? 1 : 5) yield at;
}

/** A full run that plays a part of the rounds, beside a run of `npm test` with the same seed (.ci/run). */
export const isPart = isFull && share < 1;

/** All cases, or their SHARE, in a full run. Otherwise a few that the seed chooses, because the cases differ in little. */
export function aFew<Case>(few: number, cases: readonly Case[]): Case[] {
  if (isFull && !isPart) return [...cases];
  const count = isPart ? Math.max(few, Math.ceil(share * cases.length)) : few;
  const random = seededRandom(testSeed());
  const left = [...cases];
  return Array.from({ length: count }, () => left.splice(Math.floor(random() * left.length), 1)).flat();
}
