import { afterAll, expect, it } from 'vitest';
import { seededRandom, testSeed } from '../support/chance/seed.ts';
import type { Task } from '../support/emulators/step-functions.ts';
import { expectAllHappened, goesOn, rounds } from '../support/time/rounds.ts';
import { queueWorld } from '../support/worlds/line.ts';

/** Each plays one round at a time, with a clock and a Step Functions of its own. */
const worlds = await Promise.all([queueWorld(), queueWorld(), queueWorld()]);
afterAll(() => Promise.all(worlds.map(({ steps }) => steps.stop())));

const ROUNDS = rounds(20, 1);
const PARKED = 30;
const TTL_SECONDS = 20;

const base = testSeed();

it(`thirty parked tasks are each granted the key once, in order (${ROUNDS} rounds from seed ${base})`, async () => {
  const happened = { diedParked: 0, deadToken: 0, diedHolding: 0, lostReply: 0, neverTold: 0 };
  let next = 0;
  const lane = async (world: World) => {
    while (goesOn(next, ROUNDS, happened)) {
      const round = next++;
      // The first one without any fault: every grant is a release's doing.
      const chance = round === 0 ? () => 1 : seededRandom(base + round);
      await play(world, `order ${round}`, chance, happened, `seed ${base + round}`);
    }
  };
  await Promise.all(worlds.map(lane));
  expectAllHappened(happened, ROUNDS / 10);
}, 60_000);

type World = (typeof worlds)[number];

interface Waiter {
  task: Task;
  execution: string;
  ticket: string;
  alive: boolean;
}

async function play(
  world: World,
  key: string,
  random: () => number,
  happened: Record<string, number>,
  context: string,
) {
  const { acquire, release, park, repair, executionEnded, clock, steps, grantOf, rows, rawItem } = world;
  const dice = (chance: number, what: string) => {
    const hit = random() < chance;
    if (hit) happened[what] = (happened[what] ?? 0) + 1;
    return hit;
  };
  const first = await acquire({ key, ttlSeconds: 600 });
  const waiters: Waiter[] = [];
  for (let at = 0; at < PARKED; at++) {
    const execution = `arn:aws:states:us-east-1:123456789012:execution:machine:${encodeURIComponent(key)}-${at}`;
    const { task, ticket } = await park({ key, ttlSeconds: TTL_SECONDS, execution });
    steps.executions.set(execution, 'RUNNING');
    waiters.push({ task, ticket, execution, alive: true });
  }
  expect(waiters.map(({ ticket }) => ticket)).toEqual(waiters.map(({ ticket }) => ticket).sort());
  for (const waiter of waiters)
    if (dice(0.1, 'diedParked')) {
      waiter.alive = false;
      waiter.task.state = 'timedOut';
      steps.executions.set(waiter.execution, 'ABORTED');
      if (random() < 0.5) await executionEnded(waiter.execution); // else nobody is told
    } else if (dice(0.05, 'deadToken')) {
      waiter.alive = false;
      steps.tasks.delete(waiter.task.token);
    }
  const alive = waiters.filter((one) => one.alive);
  const order: string[] = [];
  /** The task that has the lease, by its notification. */
  let holder: { leaseId: string; until: number } | undefined;
  steps.onGrant = ({ token, output }) => {
    expect(holder === undefined || holder.until <= clock.now(), `${context}: two at a time`).toBe(true);
    order.push(token);
    const { leaseId, expiresAt } = output as { leaseId: string; expiresAt: string };
    holder = { leaseId, until: Date.parse(expiresAt) };
  };

  await release(first);
  // Whether something went wrong at the hand-off, so that only the schedule, or an event, can put it right.
  let isDisturbed = false;
  /** Whether the last one died and nobody was told. */
  let diedInSilence = false;
  for (let turn = 0; turn < alive.length; turn++) {
    const expected = alive[turn] as Waiter;
    for (let minute = 0; expected.task.state === 'waiting' && minute < 4; minute++) {
      // Not told, or its predecessor died without a word: the schedule sees to it.
      expect(isDisturbed, `${context}: ${turn} was not granted the lease by the release`).toBe(true);
      clock.advance(61_000);
      await repair();
    }
    expect(order.at(-1), `${context}: ${turn}`).toBe(expected.task.token);
    clock.advance(50);
    isDisturbed = false;
    diedInSilence = false;
    if (turn < alive.length - 1) {
      if (dice(0.05, 'lostReply')) steps.faults.SendTaskSuccess = ['lost'];
      else if (dice(0.05, 'neverTold')) steps.faults.SendTaskSuccess = ['refused'];
      isDisturbed = (steps.faults.SendTaskSuccess?.length ?? 0) > 0;
    }
    if (dice(0.1, 'diedHolding')) {
      isDisturbed = true;
      steps.executions.set(expected.execution, 'FAILED');
      holder = undefined; // dead, it does nothing more under its lease
      diedInSilence = random() >= 0.5;
      if (!diedInSilence) await executionEnded(expected.execution);
    } else {
      const grant = grantOf(expected.task);
      holder = undefined;
      expect(await release(grant)).toMatchObject({ released: true });
    }
  }
  for (let minute = 0; minute < 3; minute++) {
    clock.advance(61_000);
    await repair();
  }
  expect(order, context).toEqual(alive.map(({ task }) => task.token));
  expect(new Set(order).size, context).toBe(order.length);
  expect(await rows(key), context).toEqual([]);
  // Where the last holder died, a quick release before it has left the mark on a record that nobody has looked at since.
  if (!diedInSilence) expect(await rawItem(key), context).not.toHaveProperty('mark');
  // A call that comes then waits for nobody, and clears it.
  expect(await acquire({ key, holder: 'newcomer' }), context).toMatchObject({ holder: 'newcomer', repeated: false });
  expect(await rawItem(key), context).not.toHaveProperty('mark');
}
