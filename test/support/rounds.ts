import { expect } from 'vitest';

const isFull = process.env.RACES === 'full';

/**
 * How many rounds a randomised test plays: ROUNDS of the environment, or all of them with RACES=full
 * (`npm run test:races`), or a few (`npm test`).
 */
export const rounds = (full: number, few = Math.ceil(full / 10)): number =>
  Number(process.env.ROUNDS ?? (isFull ? full : few));

/**
 * A race that never happened proves nothing.
 * @param share of the rounds in which each outcome must have happened when all are played; of a few rounds, in one
 */
export function expectAllHappened(happened: Record<string, number>, played: number, share: number): void {
  for (const [what, count] of Object.entries(happened))
    expect(count, what).toBeGreaterThan(isFull ? played * share : 0);
}
