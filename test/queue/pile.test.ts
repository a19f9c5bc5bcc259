import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { call, unitCounter } from '../support/emulators/aws.ts';
import { failure } from '../support/worlds/leases.ts';
import { queueWorld } from '../support/worlds/line.ts';

const world = await queueWorld();
const { acquire, release, read, park, repair, repairKey, repairWith } = world;
const { putTickets, callerRow, rawItem, rows, clock, requests, steps } = world;
const unitsOf = unitCounter(world.dynamodb);
afterAll(() => steps.stop());
beforeEach(() => {
  requests.sent.length = 0;
  requests.faultsOf = {};
});

const sum = (units: number[]) => units.reduce((all, one) => all + one, 0);
const queries = () => requests.sent.filter((sent) => sent === 'Query').length;

/** Rows of callers that gave up, whose places are over from this moment on. */
const over = (key: string, count: number) =>
  Array.from({ length: count }, (_, index) =>
    callerRow(key, `over ${String(index).padStart(5, '0')}`, {
      deadline: { N: '1' },
      keep_until: { N: String(clock.now()) },
    }),
  );

/** Before or behind all others. */
const first = (key: string) => callerRow(key, 'first', { ticket: { S: '000000000000000-first' } });
const last = (key: string) => callerRow(key, 'last', { ticket: { S: '999999999999999-last' } });

describe('a pile of rows of callers that are over', () => {
  it('goes by one run of the schedule, behind a lease that runs, five rows at a time', async () => {
    const key = 'goes at once';
    await acquire({ key, ttlSeconds: 600 });
    await putTickets([...over(key, 452), last(key)]);
    let [underWay, most] = [0, 0];
    requests.faultsOf.DeleteItem = Array(452).fill(async (send: () => Promise<unknown>) => {
      most = Math.max(most, ++underWay);
      const answer = await send();
      underWay--;
      return answer;
    });
    await repair();
    expect(await rows(key)).toHaveLength(1);
    expect(most).toBe(5);
  });

  it.each([
    [20_000, 0],
    [19_999, 50],
  ])('with %i of 40,000 ms left after the first row, %i of 150 are left to the next run', async (leftMs, rest) => {
    const key = `left ${leftMs}`;
    await acquire({ key, ttlSeconds: 600 });
    await putTickets(over(key, 150));
    let left = 40_000;
    requests.faultsOf.DeleteItem = [
      async (send) => {
        left = leftMs;
        return send();
      },
    ];
    await repairWith(call({ timeLeftMs: () => left }));
    expect(await rows(key)).toHaveLength(rest);
    await repair();
    expect(await rows(key)).toEqual([]);
  });

  it('loses a hundred rows by a message, because other keys wait behind it', async () => {
    const key = 'by a message';
    await acquire({ key, ttlSeconds: 600 });
    await putTickets(over(key, 150));
    await repairKey(key);
    expect(await rows(key)).toHaveLength(50);
  });

  it.each([
    ['with 20000 of 40,000 ms left', 20_000, 0],
    ['with 19999 of 40,000 ms left', 19_999, 13],
  ])('is ended together with overdue tasks, as long as half of the run is left: %s', async (_, leftMs, rest) => {
    const key = `beside tasks ${leftMs}`;
    await acquire({ key, ttlSeconds: 600 });
    const { keep_until: _keepUntil, ...task } = callerRow(key, 'task', { deadline: { N: '1' } });
    const tasks = Array.from({ length: 3 }, (_row, index) => ({
      ...task,
      ticket: { S: `000000000000001-over 00050-${index}` }, // among those rows
      task_token: { S: `token-none-${index}` },
      request_id: { S: `task ${index}` },
    }));
    await putTickets([...tasks, ...over(key, 110)]);
    let looks = 0;
    await repairWith(call({ timeLeftMs: () => (looks++ < 2 ? 40_000 : leftMs) }));
    expect(await rows(key)).toHaveLength(rest);
    await repair();
    expect(await rows(key)).toEqual([]);
  });

  it('of 818 rows: a release passes them, and grants the lease to the task behind', async () => {
    const key = 'passed';
    const lease = await acquire({ key });
    const { task } = await park({ key });
    await putTickets(over(key, 818));
    await release(lease);
    expect(task.state).toBe('succeeded');
  });

  it('of 819 rows and more: a release stops there, the lease is free with its mark, and the schedule grants it to the task behind', async () => {
    const key = 'stops';
    const lease = await acquire({ key });
    const { task } = await park({ key });
    await putTickets(over(key, 850));
    requests.sent.length = 0;
    const units = sum(await unitsOf(() => release(lease)));
    expect(units).toBeLessThan(100);
    expect(queries()).toBe(6);
    expect(await rows(key)).toHaveLength(841);
    expect(await rawItem(key)).not.toHaveProperty('lease_version');
    expect(await rawItem(key)).toHaveProperty('waiters');
    expect(task.state).toBe('waiting');

    expect(await failure(acquire({ key, holder: 'barger' }))).toMatchObject({ code: 'LeaseHeld' });
    const next = await park({ key });
    expect([next.parked, next.task.state]).toEqual([true, 'waiting']);
    await repair();
    expect([task.state, next.task.state]).toEqual(['succeeded', 'waiting']);
    expect(await rows(key)).toHaveLength(1);
  });

  it('of callers that keep their places is none: the quota counts those, and a release passes them all', async () => {
    const key = 'kept';
    const lease = await acquire({ key });
    const { task } = await park({ key });
    const kept = { keep_until: { N: String(clock.now() + 1) } };
    await putTickets(over(key, 850).map((row) => ({ ...row, ...kept })));
    await release(lease);
    expect(task.state).toBe('succeeded');
  });

  it('behind the first in line: the lease goes to that one, and the mark stays for those behind', async () => {
    const key = 'in between';
    const lease = await acquire({ key });
    await world.joinLine(key, 'marks');
    await putTickets([first(key), ...over(key, 819)]);
    await release(lease);
    expect(await rawItem(key)).toMatchObject({ holder: { S: 'first' }, waiters: { N: '1' }, line_out: { N: '11' } });
  });

  it('ends the count of those who wait, for a reader and for a call that leaves', async () => {
    const key = 'counted';
    await acquire({ key, ttlSeconds: 600 });
    await world.joinLine(key, 'behind');
    await putTickets([first(key), ...over(key, 450)]);
    requests.sent.length = 0;
    expect(await read({ key })).toMatchObject({ waiting: 1 });
    expect(await read({ key, waiters: true })).toMatchObject({ waiting: 1, waiters: [{ holder: 'first' }] });
    expect(queries()).toBe(4);
    const left = await failure(acquire({ key, holder: 'leaves', waitSeconds: 1 }));
    expect(left).toMatchObject({ code: 'LeaseHeld', context: { waiting: 1, place: 2 } });
    expect(queries()).toBe(6);
    await repair();
    expect(await read({ key })).toMatchObject({ waiting: 2 });
  });

  it('counts to its end where it is smaller', async () => {
    const key = 'counted through';
    await acquire({ key, ttlSeconds: 600 });
    await world.joinLine(key, 'behind');
    await putTickets(over(key, 199));
    expect(await read({ key })).toMatchObject({ waiting: 1 });
  });

  it('lets the repair put a lost mark back, because somebody may wait behind it', async () => {
    const key = 'unmarked';
    await acquire({ key, ttlSeconds: 600 });
    await putTickets([...over(key, 450), last(key)]);
    expect(await rawItem(key)).not.toHaveProperty('waiters');
    requests.sent.length = 0;
    await repairKey(key);
    expect(queries()).toBe(1 + 5);
    expect(await rawItem(key)).toHaveProperty('waiters');
  });
});
