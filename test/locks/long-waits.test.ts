import { EventBridgeClient } from '@aws-sdk/client-eventbridge';
import { afterAll, beforeEach, expect, it, vi } from 'vitest';
import { repairQueues } from '../../functions/leases/repair.ts';
import { startEventBus } from '../../local/event-bus.ts';
import type { BusEvent } from '../../local/events.ts';
import { eventBus } from '../../shared/aws/event-bus.ts';
import { acquire as acquireOrPark } from '../../shared/locks/calls/acquire.ts';
import { acquireInput } from '../../shared/locks/calls/inputs.ts';
import { repairLines } from '../../shared/locks/calls/repair.ts';
import { type LastPut, LongWaits } from '../../shared/locks/line/long-waits.ts';
import { systemClock } from '../../shared/surroundings/clock.ts';
import { call } from '../support/emulators/aws.ts';
import { throughTask } from '../support/stack/adapters.ts';
import { lineWorld } from '../support/worlds/line.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

const events: BusEvent[] = [];
const bus = await startEventBus((event) => void events.push(event));
const client = new EventBridgeClient({ endpoint: bus.endpoint });
const waitEvents = { overdueMs: HOUR, put: eventBus('holdfast-test', client) };
const worlds: Awaited<ReturnType<typeof lineWorld>>[] = [];
afterAll(() => Promise.all([bus.stop(), ...worlds.map(({ steps }) => steps.stop())]));
beforeEach(() => {
  events.length = 0;
});

const byKey = (one: BusEvent['detail'], other: BusEvent['detail']) => (String(one.key) < String(other.key) ? -1 : 1);

/** A world whose schedule sees the keys of one test. `run` returns the details of the events that a run of the schedule puts. */
async function waitWorld(more: object = {}) {
  const world = await lineWorld({ waitEvents, ...more });
  worlds.push(world);
  const seen = async (schedule: () => Promise<unknown>) => {
    events.length = 0;
    await schedule();
    return events.map(({ detail }) => detail);
  };
  const place = (key: string, holder: string, keptMs: number) => {
    const [ticket, awake] = [
      `p${String(world.clock.now()).padStart(15, '0')}-${holder}`,
      { N: String(world.clock.now()) },
    ];
    const asleep = { deadline: { N: '0' }, keep_until: { N: String(world.clock.now() + keptMs) }, awake_at: awake };
    return world.putTicket(world.callerRow(key, holder, { ticket: { S: ticket }, ...asleep }));
  };
  return {
    ...world,
    place,
    run: () => seen(() => world.repair()),
    /** A run in another process. */
    runElsewhere: () => seen(() => repairLines(world.dependencies)({}, call())),
  };
}

it('an event follows each period of the longest wait for a key', async () => {
  const { acquire, park, clock, run } = await waitWorld();
  const held = await acquire({ key: 'migrate', holder: 'deploy/311', ttlSeconds: 86_400 });
  const { ticket } = await park({ key: 'migrate', holder: 'deploy/312' });
  await park({ key: 'migrate', holder: 'deploy/313' });
  clock.advance(HOUR - 2 * MINUTE);
  expect(await run()).toEqual([]);
  clock.advance(2 * MINUTE);
  const first = {
    ...{ key: 'migrate', namespace: null, waiting: 2, times: 1, service: 'holdfast-test' },
    oldest: { ticket, holder: 'deploy/312', waitedSeconds: 3600 },
    held: { holder: 'deploy/311', fence: held.fence, since: held.acquiredAt },
    cap: null,
  };
  expect(await run()).toEqual([first]);
  expect(events).toMatchObject([{ source: 'holdfast', 'detail-type': 'Lease Waited' }]);
  clock.advance(MINUTE);
  expect(await run()).toEqual([]);
  clock.advance(HOUR - MINUTE);
  expect(await run()).toEqual([{ ...first, times: 2, oldest: { ...first.oldest, waitedSeconds: 7200 } }]);
});

it('a skipped run does not lose an event, which another process repeats', async () => {
  const { acquire, park, clock, run, runElsewhere } = await waitWorld();
  await acquire({ key: 'k', ttlSeconds: 86_400 });
  const { ticket } = await park({ key: 'k' });
  clock.advance(HOUR + MINUTE + 59_000);
  const named = [{ key: 'k', times: 1, oldest: { ticket } }];
  expect(await run()).toMatchObject(named);
  expect(await runElsewhere()).toMatchObject(named);
  clock.advance(2000);
  expect(await runElsewhere()).toEqual([]);
});

it('a caller that sleeps waits too, and one that has left does not', async () => {
  const { acquire, park, clock, place, joinLine, run } = await waitWorld();
  await acquire({ key: 'k', ttlSeconds: 86_400 });
  await place('k', 'gone', HOUR / 2);
  await joinLine('k', 'also-gone');
  clock.advance(1000);
  await place('k', 'asleep', 2 * HOUR);
  clock.advance(1000);
  await park({ key: 'k', holder: 'awake' });
  clock.advance(HOUR);
  expect(await run()).toMatchObject([{ key: 'k', waiting: 2, oldest: { holder: 'asleep', waitedSeconds: 3601 } }]);
});

it('an event names the key and the namespace as the waiter does', async () => {
  const { acquire, dependencies, steps, clock, run } = await waitWorld();
  await acquire({ key: 'team-a/migrate', ttlSeconds: 86_400 });
  const asked = { key: 'team-a/migrate', holder: 'h', taskToken: steps.newTask().token };
  await acquireOrPark(dependencies)(acquireInput().parse(asked), call({ namespace: 'team-a' }));
  clock.advance(HOUR);
  expect(await run()).toMatchObject([{ key: 'migrate', namespace: 'team-a' }]);
});

it('an event names the longest holder, and the longest waiter without a grant', async () => {
  const { acquire, release, park, clock, run, steps } = await waitWorld();
  const { fence } = await acquire({ key: 'permits', holder: 'old', limit: 2, ttlSeconds: 86_400 });
  await acquire({ key: 'permits', holder: 'ends first', limit: 2, ttlSeconds: 7200 });
  await park({ key: 'permits', holder: 'third', limit: 2 });
  const lease = await acquire({ key: 'lease', ttlSeconds: 60 });
  await park({ key: 'lease', holder: 'granted', ttlSeconds: 86_400 });
  await park({ key: 'lease', holder: 'waits' });
  steps.faults.SendTaskSuccess = ['refused', 'refused'];
  await release(lease);
  clock.advance(HOUR);
  expect((await run()).toSorted(byKey)).toMatchObject([
    { key: 'lease', oldest: { holder: 'waits' }, held: { holder: 'granted' } },
    { key: 'permits', oldest: { holder: 'third' }, held: { holder: 'old', fence } },
  ]);
});

it('a key that comes free in the run does not have an event', async () => {
  const { acquire, park, clock, run, grantOf } = await waitWorld();
  await acquire({ key: 'k', ttlSeconds: 600 });
  const { task } = await park({ key: 'k' });
  clock.advance(HOUR);
  expect(await run()).toEqual([]);
  expect(grantOf(task).key).toBe('k');
});

it('a run puts the events of all keys, and a message does not', async () => {
  const { acquire, park, clock, run, repairKey } = await waitWorld();
  const keys = Array.from({ length: 11 }, (_, at) => `key-${at}`);
  for (const key of keys) {
    await acquire({ key, ttlSeconds: 86_400 });
    await park({ key });
  }
  clock.advance(HOUR);
  await repairKey('key-0');
  expect(events).toEqual([]);
  expect((await run()).map(({ key }) => key).toSorted()).toEqual(keys.toSorted());
});

it('a run survives a bus that is down, and the next puts the event', async () => {
  const put = vi.fn(async (...[type, details, signal]: Parameters<typeof waitEvents.put>) => {
    if (put.mock.calls.length === 1) throw new Error('the bus is down');
    await waitEvents.put(type, details, signal);
  });
  const { acquire, park, clock, run, repair } = await waitWorld({ waitEvents: { overdueMs: HOUR, put } });
  await acquire({ key: 'k', ttlSeconds: 86_400 });
  await park({ key: 'k' });
  clock.advance(HOUR);
  expect(await repair()).toMatchObject({ keys: 1, complete: true });
  expect(events).toEqual([]);
  clock.advance(MINUTE);
  expect(await run()).toMatchObject([{ key: 'k', times: 1 }]);
});

it('a process remembers an event only while a run may put it again', async () => {
  const { acquire, park, clock, dependencies } = await waitWorld();
  await acquire({ key: 'k', ttlSeconds: 86_400 });
  await park({ key: 'k' });
  const lastPut: LastPut = new Map();
  const sizeAfter = async (ms: number) => {
    clock.advance(ms);
    const longWaits = new LongWaits(dependencies, waitEvents, lastPut);
    await longWaits.check('k', call());
    await longWaits.put(call());
    return lastPut.size;
  };
  expect(await sizeAfter(HOUR)).toBe(1);
  expect(await sizeAfter(MINUTE)).toBe(1);
  expect(await sizeAfter(MINUTE)).toBe(0);
  expect(events).toHaveLength(1);
});

it('the deployed function puts events only with events=ENABLED, after waiterOverdueSeconds', async () => {
  const { table, dependencies, acquire, putTicket, callerRow } = await waitWorld({ clock: systemClock });
  const { fence } = await acquire({ key: 'team-a/k', ttlSeconds: 3600 });
  const now = systemClock.now();
  const times = { deadline: { N: String(now + HOUR) }, keep_until: { N: String(now + HOUR) } };
  const ticket = `${String(now - MINUTE).padStart(15, '0')}-first`;
  await putTicket(callerRow('team-a/k', 'caller', { ticket: { S: ticket }, namespace: { S: 'team-a' }, ...times }));
  const settings = { LEASES_TABLE: table, WAITERS_TABLE: dependencies.waitersTable, SERVICE_NAME: 'holdfast-deployed' };
  const own = { AWS_ENDPOINT_URL_EVENTBRIDGE: bus.endpoint, WAITER_OVERDUE_SECONDS: '60' };
  for (const [EVENTS, details] of [
    ['DISABLED', []],
    ['ENABLED', [{ key: 'k', namespace: 'team-a', oldest: { ticket }, held: { fence }, service: 'holdfast-deployed' }]],
  ] as const) {
    for (const [name, value] of Object.entries({ ...settings, ...own, EVENTS })) vi.stubEnv(name, value);
    expect(await throughTask(repairQueues(), {})).toMatchObject({ body: { keys: 1, complete: true } });
    expect(events.map(({ detail }) => detail)).toMatchObject(details);
  }
  vi.unstubAllEnvs();
});
