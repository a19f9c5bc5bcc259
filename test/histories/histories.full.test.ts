import { expect, it } from 'vitest';
import { missing, run } from '../../verification/histories/campaign.ts';
import { noFaults } from '../../verification/histories/faults.ts';
import { faultyService } from '../../verification/histories/service.ts';
import { type Plan, planWorld, play } from '../../verification/histories/world.ts';
import { testSeed } from '../support/chance/seed.ts';
import { rounds } from '../support/time/rounds.ts';

const HISTORIES = rounds(16);
const services = await Promise.all([faultyService(), faultyService()]);
const [service] = services;

const struck = ({ steps, ...plan }: Plan, faultRate: number): Plan => ({
  ...plan,
  steps: steps.map((step) => ({ ...step, faultRate, mostly: 'error500' })),
});

// The simulation does not order the answers of requests that are sent at once, so on a busy machine their order differs. The schedule works on
// several keys at once, so only one capability is played; and a call in line sends several requests at once, so `queue` is left out.
it.each(['commits', 'permits', 'expiry'])(
  'histories of %s are the same again for the same seed',
  async (capability) => {
    const seed = testSeed();
    const plan = struck(planWorld(seed, [capability]), 0.3);
    const played = async () => {
      const { entries } = await play(plan, service, noFaults());
      return entries.map(({ actor, call, calledAt, answeredAt, outcome, faults }) => [
        [actor, call, calledAt, answeredAt],
        [outcome, faults],
      ]);
    };
    const first = await played();
    // A client that counted its retries over all histories would have none left by now.
    for (const other of [seed + 1, seed + 2, seed + 3])
      await play(struck(planWorld(other, ['leases', 'commits']), 1), service, noFaults());
    expect([seed, await played()]).toEqual([seed, first]);
  },
);

it('histories give two runs of the repair ids of their own', async () => {
  const { failed } = await run({ seed: 1_024_725, maxHistories: 1, maxMs: 60_000, only: [] }, services);
  expect(failed?.violations).toBeUndefined();
});

it('histories under faults keep every promise (npm run verify -- faults plays many)', async () => {
  const seed = testSeed();
  const result = await run({ seed, maxHistories: HISTORIES, maxMs: 60_000, only: [] }, services);
  expect([seed, result.failed?.plan.seed, result.failed?.violations]).toEqual([seed, undefined, undefined]);
  expect(result.histories).toBe(HISTORIES);
});

it('histories under faults report which faults never struck', async () => {
  const result = await run({ seed: 1, maxHistories: 0, maxMs: 0, only: [] }, services);
  expect(missing(result)).toEqual(Object.keys(noFaults()));
});
