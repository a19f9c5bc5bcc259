import { afterAll, expect, it } from 'vitest';
import { call } from '../support/emulators/aws.ts';
import { isFull } from '../support/time/rounds.ts';
import { lineWorld } from '../support/worlds/line.ts';

const worlds: { steps: { stop(): Promise<void> } }[] = [];
const newWorld = async () => {
  const world = await lineWorld();
  worlds.push(world);
  return world;
};
type World = Awaited<ReturnType<typeof newWorld>>;
afterAll(() => Promise.all(worlds.map(({ steps }) => steps.stop())));

/** Keys that are held for `ttlSeconds`, each with a parked task. */
async function withLines({ acquire, park }: World, { keys, ttlSeconds = 3600 }: { keys: number; ttlSeconds?: number }) {
  const tasks = [];
  for (let at = 0; at < keys; at++) {
    await acquire({ key: `key ${at}`, ttlSeconds });
    tasks.push((await park({ key: `key ${at}`, parkSeconds: 1800 })).task);
  }
  return tasks;
}

/** Lets all requests that are under way at one moment take the same time, one round trip. @returns how many round trips there were */
function roundTrips({ dynamodb }: World): () => number {
  let [trips, busy] = [0, 0];
  let waiting: (() => void)[] = [];
  const goOn = () => {
    if (busy > 0 || waiting.length === 0) return;
    trips++;
    busy = waiting.length;
    for (const go of waiting.splice(0)) go();
  };
  const soon = () => setImmediate(() => setImmediate(goOn));
  dynamodb.middlewareStack.add(
    (next) => async (args) => {
      await new Promise<void>((go) => {
        waiting = [...waiting, go];
        soon();
      });
      try {
        return await next(args);
      } finally {
        busy--;
        soon();
      }
    },
    { step: 'initialize', name: 'roundTrips' },
  );
  return () => trips;
}

const KEYS = isFull ? 150 : 40;

it(`a run of the schedule sees ${KEYS} lines in ${KEYS / 2} round trips`, async () => {
  const world = await newWorld();
  await withLines(world, { keys: KEYS });
  const trips = roundTrips(world);
  const timeLeftMs = () => 5000 + 5 * (KEYS / 2 - trips()); // each takes 5 ms, and the last five seconds begin no key
  expect(await world.repairWith(call({ timeLeftMs }))).toMatchObject({ keys: KEYS, complete: true });
});

it('a run counts what it does for keys at once', async () => {
  const world = await newWorld();
  const tasks = await withLines(world, { keys: 10, ttlSeconds: 60 });
  world.clock.advance(61_000);
  expect(await world.repair()).toMatchObject({ keys: 10, granted: 10, notified: 0, unanswered: 0 });
  expect(tasks.every(({ state }) => state === 'succeeded')).toBe(true);
  const denied = await newWorld();
  await withLines(denied, { keys: 10 });
  denied.clock.advance(1_801_000);
  // Each run sends twice: it fails the overdue, and then checks who is next.
  denied.steps.faults.SendTaskFailure = Array(20).fill('denied');
  expect(await denied.repair()).toMatchObject({ keys: 10, granted: 0, unanswered: 10 });
});

it('a run of the schedule sees each key once, by few requests', async () => {
  const world = await newWorld();
  await withLines(world, { keys: 40 });
  for (const key of ['long a', 'long b', 'long c']) {
    await world.acquire({ key, ttlSeconds: 3600 });
    await world.putTickets(Array.from({ length: 100 }, (_, at) => world.callerRow(key, `${key} ${at}`)));
  }
  world.requests.sent.length = 0;
  expect(await world.repair()).toMatchObject({ keys: 43, complete: true });
  expect(world.requests.sent.filter((command) => command === 'Scan').length).toBeLessThan(25);
});

it('a run that fails to read a key ends what it began', async () => {
  const world = await newWorld();
  const tasks = await withLines(world, { keys: 5, ttlSeconds: 60 });
  world.clock.advance(61_000);
  const denied = { name: 'AccessDeniedException', status: 400 };
  world.requests.faultsOf.Scan = ['none', 'none', denied];
  await expect(world.repair()).rejects.toMatchObject({ code: 'Unavailable' });
  const notified = tasks.filter(({ state }) => state === 'succeeded').length;
  expect(notified).toBeGreaterThan(0);
  expect(world.steps.grants).toHaveLength(notified);
});

it.each([
  [5000, 0],
  [4999, 1],
])('a run with %i ms left measures %i cut short', async (leftMs, cutShort) => {
  const world = await newWorld();
  await withLines(world, { keys: 1 });
  const noted: number[] = [];
  const measure = (name: string, value: number) => void (name === 'RepairsCutShort' && noted.push(value));
  await world.repairWith(call({ timeLeftMs: () => leftMs, measure }));
  expect(noted).toEqual(Array(cutShort).fill(1));
});
