import { afterAll, expect, it } from 'vitest';
import { HoldfastError } from '../../shared/errors.ts';
import { seededRandom, testSeed } from '../support/chance/seed.ts';
import type { Fault } from '../support/emulators/aws.ts';
import { expectAllHappened, goesOn, type Happened, rounds } from '../support/time/rounds.ts';
import { Timeline } from '../support/time/timeline.ts';
import { permitLineWorld } from '../support/worlds/permits-in-line.ts';

const ROUNDS = rounds(100, 2);
const timeline = new Timeline();
const { now, sleep } = timeline;
const world = await permitLineWorld({ clock: timeline });
const { acquire, park, release, repairLine, read, rows, requests, steps, grantOf } = world;
afterAll(() => steps.stop());

/** When a caller could rightly believe that it held a permit. */
interface Tenure {
  holder: string;
  fence: number;
  weight: number;
  limit: number;
  isExclusive: boolean;
  askedAt: number;
  from: number;
  to: number;
}

const base = testSeed();

it(`waiters are served in order, and never too many (${ROUNDS} rounds from seed ${base})`, async () => {
  const happened = { callers: 0, tasks: 0, exclusive: 0, together: 0, waited: 0, died: 0, leftEarly: 0, faults: 0 };
  for (let round = 0; goesOn(round, ROUNDS, happened); round++) {
    const seed = base + round;
    const key = `round ${seed}`;
    const { tenures, inOrder } = await play(key, seed, happened);
    const context = `seed ${seed}: ${JSON.stringify(tenures)}`;
    for (const { from } of tenures) {
      const together = tenures.filter((one) => one.from <= from && from < one.to);
      if (together.length > 1) happened.together++;
      const weight = together.reduce((sum, one) => sum + one.weight, 0);
      if (together.some(({ isExclusive }) => isExclusive)) expect(together, context).toHaveLength(1);
      else expect(weight, context).toBeLessThanOrEqual(Math.max(0, ...together.map(({ limit }) => limit)));
    }
    if (inOrder) {
      const arrivals = tenures.toSorted((one, other) => one.fence - other.fence).map(({ askedAt }) => askedAt);
      expect(arrivals, context).toEqual(arrivals.toSorted((one, other) => one - other));
    }
    timeline.advance(60_000);
    await repairLine(key);
    await acquire({ key, holder: 'last', mode: 'exclusive' });
    expect(await read(key), context).toMatchObject({ waiting: 0, holders: [{ holder: 'last' }] });
    expect(await rows(key), context).toEqual([]);
  }
  expectAllHappened(happened, ROUNDS / 50, ['callers']);
}, 240_000);

async function play(key: string, seed: number, happened: Happened) {
  const random = seededRandom(seed);
  const chance = (probability: number) => random() < probability;
  const count = (what: string) => {
    happened[what] = (happened[what] ?? 0) + 1;
  };
  const tenures: Tenure[] = [];
  const most = 1 + Math.floor(random() * 3);
  const hasFaults = chance(0.5);
  let [left, over] = [0, false];
  const faults: Fault[] = ['lostReply', 'neverSent', 'error500'];
  requests.faults = hasFaults
    ? Array.from({ length: 400 }, () => (chance(0.06) ? (faults[Math.floor(random() * 3)] as Fault) : 'none'))
    : [];
  if (hasFaults) count('faults');

  const actor = (nth: number) => {
    const isExclusive = chance(0.2);
    const weight = 1 + Math.floor(random() * most);
    const asked = isExclusive ? { mode: 'exclusive' } : { limit: most, weight };
    const [arrival, hold, dies] = [40 * nth + Math.floor(random() * 30), Math.floor(random() * 1500), chance(0.15)];
    const isTask = chance(0.4);
    const ttlSeconds = 3 + Math.floor(random() * 3);
    const input = { key, holder: `h${nth}`, requestId: `r${nth}`, ttlSeconds, ...asked };

    const held = async (
      grant: { leaseId: string; fence: number; remainingMs: number },
      askedAt: number,
      at: number,
    ) => {
      const to = at + grant.remainingMs;
      const tenure = {
        holder: `h${nth}`,
        weight: isExclusive ? 1 : weight,
        limit: isExclusive ? 1 : most,
        isExclusive,
      };
      const own = { ...tenure, fence: grant.fence, askedAt, from: now(), to };
      tenures.push(own);
      if (isExclusive) count('exclusive');
      if (own.from - askedAt > 100) count('waited');
      if (dies) return count('died');
      await sleep(hold);
      own.to = Math.min(own.to, now());
      await tried(() => release({ key, leaseId: grant.leaseId }));
    };
    const asCaller = async () => {
      count('callers');
      const [askedAt, waitSeconds] = [now(), chance(0.1) ? 1 : 20];
      let sentAt = now();
      const grant = await tried(() => {
        sentAt = now();
        return acquire({ ...input, waitSeconds });
      });
      if (!grant) {
        left++;
        count('leftEarly');
      } else await held(grant, askedAt, Math.max(sentAt, sentAt + grant.waitedMs));
    };
    const asTask = async () => {
      count('tasks');
      const [askedAt, task] = [now(), steps.newTask()];
      const parked = await tried(() => park(input, task));
      if (!parked && task.state === 'waiting') left++;
      while (task.state === 'waiting' && !over) await sleep(25);
      if (task.state === 'succeeded') {
        const grant = grantOf(task) as unknown as { leaseId: string; fence: number; remainingMs: number };
        await held(grant, askedAt, now() - 25);
      } else left++;
    };
    return () => sleep(arrival).then(isTask ? asTask : asCaller);
  };

  /** Sends a call again if its answer was lost. */
  async function tried<T>(act: () => Promise<T>): Promise<T | undefined> {
    for (let tries = 0; tries < 4; tries++)
      try {
        return await act();
      } catch (error) {
        if (!(error instanceof HoldfastError)) throw error;
        if (['LeaseHeld', 'LeaseLost'].includes(error.code)) return undefined;
        left++; // by then the caller has another position
      }
    return undefined;
  }

  const schedule = async () => {
    for (let runs = 0; runs < 8; runs++) {
      await sleep(5000);
      await tried(() => repairLine(key));
    }
    over = true;
  };
  const actors = Array.from({ length: 6 }, (_, nth) => actor(nth));
  await timeline.play(...actors, schedule);
  requests.faults = [];
  return { tenures, inOrder: left === 0 && !hasFaults };
}
