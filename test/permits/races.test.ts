import { expect, it } from 'vitest';
import { HoldfastError } from '../../shared/errors.ts';
import { acquirePermit } from '../../shared/permits/acquire.ts';
import { breakPermitByFence } from '../../shared/permits/break.ts';
import { extendPermit } from '../../shared/permits/heartbeat.ts';
import { releasePermit } from '../../shared/permits/release.ts';
import { seededIds, seededRandom, testSeed } from '../support/chance/seed.ts';
import { call, testClient } from '../support/emulators/aws.ts';
import { Interleaver } from '../support/faults/interleave.ts';
import { expectAllHappened, goesOn, type Happened, rounds } from '../support/time/rounds.ts';
import { poolWorld } from '../support/worlds/permits.ts';

const ROUNDS = rounds(300, 8);
const SKEW_MS = 500;
const { clock, read, dependencies: ofWorld } = await poolWorld();
const dynamodb = testClient();
let interleaver: Interleaver;
// One client for all rounds: its gate asks whichever interleaver runs now.
new Interleaver(Math.random).gate.call({ turn: () => interleaver.turn() } as Interleaver, dynamodb);

/** When a caller could rightly believe to hold a permit, in true time. */
interface Tenure {
  fence: number;
  weight: number;
  limit: number;
  isExclusive: boolean;
  from: number;
  to: number;
}

const base = testSeed();

it(`permits, weights, readers and writers never pass what a holder asked for (${ROUNDS} rounds from seed ${base})`, async () => {
  const happened = { granted: 0, refused: 0, tookOver: 0, extended: 0, lost: 0, broken: 0, together: 0, exclusive: 0 };
  for (let round = 0; goesOn(round, ROUNDS, happened); round++) {
    const seed = base + round;
    const { tenures, errors } = await play(`race-${seed}`, seed, happened);
    const context = `seed ${seed}: ${JSON.stringify(tenures)}`;
    expect(errors, context).toEqual([]);
    expect(new Set(tenures.map(({ fence }) => fence)).size, context).toBe(tenures.length);
    for (const { from } of tenures) {
      const together = tenures.filter((one) => one.from <= from && from < one.to);
      if (together.length > 1) happened.together++;
      const weight = together.reduce((sum, one) => sum + one.weight, 0);
      expect(weight, context).toBeLessThanOrEqual(Math.max(0, ...together.map(({ limit }) => limit)));
      if (together.some(({ isExclusive }) => isExclusive)) expect(together, context).toHaveLength(1);
    }
    const { used, holders } = await read(`race-${seed}`);
    expect(used, context).toBe(holders.reduce((sum, { weight }) => sum + weight, 0));
  }
  // A loss is rare: about one in forty rounds.
  expectAllHappened(happened, ROUNDS / 100, ['granted', 'refused']);
}, 240_000);

async function play(key: string, seed: number, happened: Happened) {
  const random = seededRandom(seed);
  interleaver = new Interleaver(random);
  const upTo = (most: number) => 1 + Math.floor(random() * most);
  const tenures: Tenure[] = [];
  const errors: string[] = [];
  const count = (what: string) => {
    happened[what] = (happened[what] ?? 0) + 1;
  };

  const actor = (nth: number) => async () => {
    const offset = Math.floor(random() * (SKEW_MS + 1));
    const ids = seededIds(seed * 100 + nth);
    const dependencies = { ...ofWorld, dynamodb, ids, clock: { ...clock, now: () => clock.now() + offset } };
    const isExclusive = random() < 0.25;
    const limit = upTo(3);
    const asked = isExclusive ? { mode: 'exclusive' as const } : { limit, weight: upTo(limit) };
    for (let tries = 0; tries < 3; tries++)
      try {
        const sentAt = clock.now();
        const input = { key, holder: `actor-${nth}`, ttlSeconds: 2, waitSeconds: 0, ...asked };
        const permit = await acquirePermit(dependencies)(input, call());
        count('granted');
        if (isExclusive) count('exclusive');
        if (permit.previous) count('tookOver');
        const { fence, weight = 0 } = permit;
        const tenure = { fence, weight, limit: isExclusive ? weight : limit, isExclusive, from: clock.now(), to: 0 };
        tenure.to = sentAt + permit.waitedMs + permit.remainingMs;
        if (tenure.from < tenure.to) tenures.push(tenure);
        await hold(dependencies, { key, leaseId: permit.leaseId, tenure });
        return;
      } catch (error) {
        if (!(error instanceof HoldfastError) || !['LeaseHeld', 'LeaseLost'].includes(error.code)) throw error;
        count(error.code === 'LeaseHeld' ? 'refused' : 'lost');
        if (error.code === 'LeaseLost') return;
      }
  };

  const hold = async (
    dependencies: typeof ofWorld,
    { key, leaseId, tenure }: { key: string; leaseId: string; tenure: Tenure },
  ) => {
    if (random() < 0.5) {
      const sentAt = clock.now();
      const { remainingMs } = await extendPermit(dependencies)({ key, leaseId }, call());
      // A permit that its holder let lapse, and that was revived, was not held in between.
      if (clock.now() < tenure.to) tenure.to = Math.max(tenure.to, sentAt + remainingMs);
      count('extended');
    }
    const how = random();
    if (how < 0.3) return; // leaves it to expire
    tenure.to = Math.min(tenure.to, clock.now());
    if (how < 0.4) {
      await breakPermitByFence(dependencies)({ key, fence: tenure.fence }, call()).then(
        () => count('broken'),
        (error) => error.code === 'NotFound' || errors.push(String(error)),
      );
    } else await releasePermit(dependencies)({ key, leaseId }, call());
  };

  const pass = async () => {
    for (const _ of [1, 2, 3, 4]) {
      await interleaver.turn();
      clock.advance(Math.floor(random() * 1500));
    }
  };
  await interleaver.run([...[1, 2, 3, 4, 5].map(actor), pass].filter((_, nth) => nth > 3 || random() < 0.8));
  clock.advance(5000);
  return { tenures, errors };
}
