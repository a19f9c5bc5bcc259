import { describe, expect, it } from 'vitest';
import { HoldfastError } from '../../shared/errors.ts';
import { acquireLease } from '../../shared/leases/acquire.ts';
import { extendLease } from '../../shared/leases/heartbeat.ts';
import { releaseLease } from '../../shared/leases/release.ts';
import { acquireInput } from '../../shared/locks/inputs.ts';
import { seededIds, seededRandom, testSeed } from '../support/chance/seed.ts';
import { call, testClient } from '../support/emulators/aws.ts';
import { Interleaver } from '../support/faults/interleave.ts';
import { expectAllHappened, goesOn, rounds } from '../support/time/rounds.ts';
import { leaseWorld } from '../support/worlds/leases.ts';

const ROUNDS = rounds(1000, 10);
const SKEW_MS = 500;
const { clock, table, rawItem, dependencies: ofWorld } = await leaseWorld();
const dynamodb = testClient();
let interleaver: Interleaver;
// One client for all rounds: its gate asks whichever interleaver runs now.
new Interleaver(Math.random).gate.call({ turn: () => interleaver.turn() } as Interleaver, dynamodb);

/** When a caller could rightly believe to hold the lease, in true time, counted as the README tells callers to. */
interface Tenure {
  leaseId: string;
  fence: number;
  from: number;
  to: number;
}

describe('races', () => {
  const base = testSeed();

  it(`races of heartbeats, releases and take-overs leave one holder at a time, and take no promise back (${ROUNDS} rounds from seed ${base})`, async () => {
    const happened = { takenOver: 0, lost: 0, beaten: 0, releasedAfterLoss: 0, held: 0 };
    for (let round = 0; goesOn(round, ROUNDS, happened); round++) {
      const seed = base + round;
      const { tenures, errors } = await play(`race-${seed}`, seed, happened);
      const context = `seed ${seed}: ${JSON.stringify(tenures)}`;
      expect(errors, context).toEqual([]);
      expect(new Set(tenures.map(({ fence }) => fence)).size, context).toBe(tenures.length);
      // An answer that came only after its own deadline made nobody a holder.
      const [first, ...others] = tenures.filter(({ from, to }) => from < to).sort((a, b) => a.from - b.from);
      let previous = first;
      for (const tenure of others) {
        expect(tenure.fence, context).toBeGreaterThan(previous?.fence ?? 0);
        expect(tenure.from, context).toBeGreaterThanOrEqual(previous?.to ?? 0);
        previous = tenure;
      }
    }
    expectAllHappened(happened, ROUNDS / 50);
  }, 90_000);
});

async function play(key: string, seed: number, happened: Record<string, number>) {
  const random = seededRandom(seed);
  interleaver = new Interleaver(random);
  const tenures: Tenure[] = [];
  const errors: string[] = [];
  const count = (what: string) => {
    happened[what] = (happened[what] ?? 0) + 1;
  };

  /** The calls of one invocation, on a machine whose clock is off by up to half the margin. */
  const invocation = () => {
    const offset = Math.floor((random() - 0.5) * SKEW_MS);
    const skewed = { ...clock, now: () => clock.now() + offset, sleep: clock.sleep };
    const dependencies = {
      ...ofWorld,
      dynamodb,
      table,
      clock: skewed,
      ids: seededIds(Math.floor(random() * 2 ** 31)),
      clockSkewMs: SKEW_MS,
      maxWaitSeconds: 20,
      fenceRetentionSeconds: 3600,
    };
    return {
      acquire: acquireLease(dependencies),
      heartbeat: extendLease(dependencies),
      release: releaseLease(dependencies),
    };
  };

  const acquire = async (holder: string) => {
    const sentAt = clock.now();
    const grant = await invocation().acquire(acquireInput().parse({ key, holder, ttlSeconds: 2 }), call());
    const tenure = { leaseId: grant.leaseId, fence: grant.fence, from: clock.now(), to: sentAt + grant.remainingMs };
    tenures.push(tenure);
    return tenure;
  };
  const tolerate = (codes: string[], what: string) => (error: unknown) => {
    if (error instanceof HoldfastError && codes.includes(error.code)) count(what);
    else errors.push(String(error));
  };

  let first: Tenure | undefined;
  const begin = async () => {
    first = await acquire('first');
  };
  await interleaver.run([begin]);
  if (!first) throw new Error('the free key was not granted');
  const mine = first;

  const beat = async () => {
    const sentAt = clock.now();
    const { remainingMs, expiresAt } = await invocation().heartbeat({ key, leaseId: mine.leaseId }, call());
    count('beaten');
    promised = Math.max(promised, Date.parse(expiresAt));
    if (stopped || mine.to < clock.now()) return; // it had given up before the answer came
    mine.to = Math.max(mine.to, sentAt + remainingMs);
  };
  let promised = 0;
  let stopped = false;
  const letGo = async () => {
    stopped = true;
    mine.to = Math.min(mine.to, clock.now()); // a holder stops work before it releases
    const { released } = await invocation().release({ key, leaseId: mine.leaseId }, call());
    if (!released) count('releasedAfterLoss');
  };
  const takeOver = async () => {
    await acquire('rival');
    count('takenOver');
  };
  const pass = async () => {
    for (const _ of [1, 2, 3]) {
      await interleaver.turn();
      clock.advance(Math.floor(random() * 1500));
    }
  };
  const heartbeats = () => beat().catch(tolerate(['LeaseLost'], 'lost'));
  const releases = () => letGo().catch((error) => void errors.push(`release: ${error}`));
  const takeOvers = () => takeOver().catch(tolerate(['LeaseHeld'], 'held'));
  const cast = [heartbeats, heartbeats, releases, releases, takeOvers, takeOvers, pass, pass];
  await interleaver.run(cast.filter(() => random() < 0.6));
  const item = await rawItem(key);
  const standing = item?.lease_id?.S === mine.leaseId && item.lease_version ? Number(item.expires_at?.N) : Infinity;
  if (standing < promised) errors.push(`shortened by ${promised - standing} ms after it was promised`);
  return { tenures, errors };
}
