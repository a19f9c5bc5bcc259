import { expect, it } from 'vitest';
import { HoldfastError } from '../../shared/errors.ts';
import { acquireGrant } from '../../shared/locks/calls/acquire.ts';
import { breakByFence } from '../../shared/locks/calls/break.ts';
import { extendGrant } from '../../shared/locks/calls/heartbeat.ts';
import { acquireInput } from '../../shared/locks/calls/inputs.ts';
import { releaseGrant } from '../../shared/locks/calls/release.ts';
import { seededIds, seededRandom, testSeed } from '../support/chance/seed.ts';
import { call, testClient } from '../support/emulators/aws.ts';
import { Interleaver } from '../support/faults/interleave.ts';
import { expectAllHappened, goesOn, type Happened, rounds } from '../support/time/rounds.ts';
import { leaseWorld } from '../support/worlds/leases.ts';

const ROUNDS = rounds(1000, 10);
const PERMIT_ROUNDS = rounds(300, 8);
const SKEW_MS = 500;
const { clock, table, rawItem, readKey, dependencies: ofWorld } = await leaseWorld();
const dynamodb = testClient();
let interleaver: Interleaver;
// All rounds share one client, whose gate asks the interleaver of the present round.
new Interleaver(Math.random).gate.call({ turn: () => interleaver.turn() } as Interleaver, dynamodb);

/** When a caller could rightly believe that it held the lease, in true time, counted as the README asks of callers. */
interface Tenure {
  leaseId: string;
  fence: number;
  from: number;
  to: number;
}

const base = testSeed();

it(`concurrent calls for leases keep every promise (${ROUNDS} rounds from seed ${base})`, async () => {
  const happened = { takenOver: 0, lost: 0, beaten: 0, releasedAfterLoss: 0, held: 0 };
  for (let round = 0; goesOn(round, ROUNDS, happened); round++) {
    const seed = base + round;
    const { tenures, errors } = await play(`race-${seed}`, seed, happened);
    const context = `seed ${seed}: ${JSON.stringify(tenures)}`;
    expect(errors, context).toEqual([]);
    expect(new Set(tenures.map(({ fence }) => fence)).size, context).toBe(tenures.length);
    // An answer that came only after its own deadline did not make its caller a holder.
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
      acquire: acquireGrant(dependencies),
      heartbeat: extendGrant(dependencies),
      release: releaseGrant(dependencies),
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
  const { i, e } = item?.h?.M ?? {};
  const standing = i?.S && mine.leaseId.endsWith(i.S) ? Number(e?.N) : Infinity;
  if (standing < promised) errors.push(`shortened by ${promised - standing} ms after it was promised`);
  return { tenures, errors };
}

/** When a caller could rightly believe to hold a permit, in true time. */
interface PermitTenure {
  fence: number;
  weight: number;
  limit: number;
  isExclusive: boolean;
  from: number;
  to: number;
}

it(`permits never pass what a holder asked for (${PERMIT_ROUNDS} rounds from seed ${base})`, async () => {
  const happened = { granted: 0, refused: 0, tookOver: 0, extended: 0, lost: 0, broken: 0, together: 0, exclusive: 0 };
  for (let round = 0; goesOn(round, PERMIT_ROUNDS, happened); round++) {
    const seed = base + round;
    const { tenures, errors } = await playPermits(`permits-${seed}`, seed, happened);
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
    const { used, holders } = await readKey(`permits-${seed}`);
    expect(used, context).toBe(holders.reduce((sum, { weight }) => sum + weight, 0));
  }
  // Only about one round in forty loses a permit, so this count has no minimum.
  expectAllHappened(happened, PERMIT_ROUNDS / 100, ['granted', 'refused']);
}, 240_000);

async function playPermits(key: string, seed: number, happened: Happened) {
  const random = seededRandom(seed);
  interleaver = new Interleaver(random);
  const upTo = (max: number) => 1 + Math.floor(random() * max);
  const tenures: PermitTenure[] = [];
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
        const permit = await acquireGrant(dependencies)(input, call());
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
    { key, leaseId, tenure }: { key: string; leaseId: string; tenure: PermitTenure },
  ) => {
    if (random() < 0.5) {
      const sentAt = clock.now();
      const { remainingMs } = await extendGrant(dependencies)({ key, leaseId }, call());
      // A permit that expired and was then revived was not held in between, so its tenure stays as it is.
      if (clock.now() < tenure.to) tenure.to = Math.max(tenure.to, sentAt + remainingMs);
      count('extended');
    }
    const how = random();
    if (how < 0.3) return; // leaves it to expire
    tenure.to = Math.min(tenure.to, clock.now());
    if (how < 0.4) {
      await breakByFence(dependencies)({ key, fence: tenure.fence }, call()).then(
        () => count('broken'),
        (error) => ['NotFound', 'Conflict'].includes(error.code) || errors.push(String(error)),
      );
    } else await releaseGrant(dependencies)({ key, leaseId }, call());
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
