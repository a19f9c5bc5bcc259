import { describe, expect, it } from 'vitest';
import { rounds } from '../support/rounds.ts';
import { testSeed } from '../support/seed.ts';
import { missing, run } from './campaign.ts';
import { noFaults } from './faults.ts';
import { faultyService } from './service.ts';
import { planWorld, play } from './world.ts';

const HISTORIES = rounds(16, 3);
const services = await Promise.all([faultyService(), faultyService()]);
const [service] = services;

describe('histories under faults', () => {
  it('are the same again for the same seed', async () => {
    const seed = testSeed();
    const played = async () => {
      const { entries } = await play(planWorld(seed, ['commits', 'queue', 'pools', 'expiry']), service, noFaults());
      return entries.map(({ actor, call, calledAt, answeredAt, outcome, faults }) => [
        [actor, call, calledAt, answeredAt],
        [outcome, faults],
      ]);
    };
    expect([seed, await played()]).toEqual([seed, await played()]);
  });

  it('break no promise (a few of them; npm run faults plays many)', async () => {
    const seed = testSeed();
    const result = await run({ seed, mostHistories: HISTORIES, mostMs: 60_000, only: [] }, services);
    expect([seed, result.failed?.plan.seed, result.failed?.violations]).toEqual([seed, undefined, undefined]);
    expect(result.histories).toBe(HISTORIES);
  });

  it('tell which faults never struck', async () => {
    const result = await run({ seed: 1, mostHistories: 0, mostMs: 0, only: [] }, services);
    expect(missing(result)).toEqual(Object.keys(noFaults()));
  });
});
