import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { DEFAULT_QUOTAS } from '../../shared/line/limits/quotas.ts';
import { repairLines } from '../../shared/locks/repair.ts';
import { call } from '../support/emulators/aws.ts';
import { networkError } from '../support/faults/network.ts';
import { failure } from '../support/worlds/leases.ts';
import { poolLineWorld } from '../support/worlds/permits-in-line.ts';

const world = await poolLineWorld();
const { acquire, release, breakPermit, heartbeat, read, park, cancel, repairLine, grantOf, rawItem, rows } = world;
const { clock, requests, steps, removeMark, setRaw, sent, precededBy, untold } = world;
afterAll(() => steps.stop());
beforeEach(() => {
  requests.faultsOf = {};
  requests.sent.length = 0;
  steps.faults = {};
  steps.onTheWay = async () => {};
  steps.requests.length = 0;
  world.messages.length = 0;
});

type Parked = Awaited<ReturnType<typeof park>>;

/** A call that has a minute left at first, and so long once it has sent something. */
const lessAndLess = (leftMs: number) => {
  let leftNow = 60_000;
  requests.faultsOf.GetItem = [
    async (send) => {
      leftNow = leftMs;
      return send();
    },
  ];
  return call({ timeLeftMs: () => leftNow });
};

const told = (action: string, token: string) =>
  steps.requests.filter((one) => one.action === action && one.token === token).length;

describe('acquire with a task token', () => {
  it('grants a weight of one where another client has taken the weight from the row', async () => {
    const key = 'weightless';
    const first = await acquire({ key, limit: 1 });
    const { task } = await park({ key, limit: 1 });
    const [{ weight: _, ...row } = {}] = await rows(key);
    await world.putTickets([row]);
    await release(first);
    expect(grantOf(task)).toMatchObject({ weight: 1 });
  });

  it('grants a permit at once where there is room, by SendTaskSuccess with what acquire would answer', async () => {
    const asked = { key: 'room', holder: 'a', limit: 5, weight: 2, ttlSeconds: 30, data: { run: 7 } };
    const { task, parked } = await park(asked);
    expect(parked).toBe(false);
    expect(task.output).toEqual({
      ...{ key: 'room', holder: 'a', fence: clock.now() + 1, data: { run: 7 } },
      leaseId: expect.stringMatching(/^p\./),
      version: expect.any(String),
      acquiredAt: new Date(clock.now()).toISOString(),
      expiresAt: new Date(clock.now() + 30_000).toISOString(),
      remainingMs: 30_000,
      ...{ waitedMs: 0, repeated: false, previous: null },
      ...{ mode: 'shared', limit: 5, weight: 2, used: 2 },
    });
    expect(await rows('room')).toEqual([]);
    expect(await rawItem('room')).not.toHaveProperty('waiters');
    expect(await heartbeat(grantOf(task))).toMatchObject({ holder: 'a' });
    expect(await release(grantOf(task))).toMatchObject({ released: true });
  });

  it('parks where there is none, and releases wake as many as fit, in their order', async () => {
    const key = 'order';
    const holders = [
      await acquire({ key, holder: 'x', limit: 3, weight: 2, ttlSeconds: 60 }),
      await acquire({ key, holder: 'y', limit: 3, ttlSeconds: 60 }),
    ];
    const parked = [];
    for (const holder of ['b', 'c', 'd', 'e']) parked.push(await park({ key, holder, limit: 3, parkSeconds: 600 }));
    expect(parked.map((one) => [one.parked, one.task.state])).toEqual(Array(4).fill([true, 'waiting']));
    expect(world.messages).toEqual([{ key: key, delaySeconds: 62 }]); // the first in line has it looked at the end of the holders
    expect(await read(key, { waiters: true })).toMatchObject({
      ...{ used: 3, waiting: 4 },
      waiters: ['b', 'c', 'd', 'e'].map((holder) => ({ kind: 'task', holder })),
    });
    clock.advance(5000);
    expect(await release(holders[0] as { key: string; leaseId: string })).toEqual({ key, released: true });
    expect(parked.map(({ task }) => task.state)).toEqual(['succeeded', 'succeeded', 'waiting', 'waiting']);
    const [b, c] = parked.map(({ task }) => task.output as { fence: number; waitedMs: number } | undefined);
    expect(b?.waitedMs).toBeGreaterThan(4990);
    expect(c?.fence).toBe((b?.fence ?? 0) + 1);
    expect(await read(key)).toMatchObject({ used: 3, waiting: 2 });
    for (const one of [holders[1], b, c]) await release(one as unknown as { key: string; leaseId: string });
    expect(parked.map(({ task }) => task.state)).toEqual(Array(4).fill('succeeded'));
    expect(await rows(key)).toEqual([]);
    expect(await rawItem(key)).not.toHaveProperty('waiters');
  });

  it('keeps all others out while the first does not fit, and a writer before later readers', async () => {
    const key = 'writer';
    const reader = await acquire({ key, holder: 'r', mode: 'shared' });
    const writer = await park({ key, holder: 'w', mode: 'exclusive' });
    const late = await park({ key, holder: 'late', mode: 'shared' });
    expect(await failure(acquire({ key, holder: 'q', mode: 'shared' }))).toMatchObject({
      code: 'LeaseHeld',
      message: 'others are in line: the holders weigh 1, and the limit is 200',
    });
    expect([writer.parked, late.parked]).toEqual([true, true]);
    expect([writer.task.state, late.task.state]).toEqual(['waiting', 'waiting']);
    await release(reader);
    expect([writer.task.state, late.task.state]).toEqual(['succeeded', 'waiting']);
    await release(grantOf(writer.task));
    expect(grantOf(late.task)).toMatchObject({ mode: 'shared', weight: 1 });
  });

  it('takes the places of those who expired', async () => {
    for (const holder of ['x', 'y']) await acquire({ key: 'expired', holder, limit: 2, ttlSeconds: 2 });
    clock.advance(2501);
    expect((await park({ key: 'expired', limit: 2, weight: 2 })).task.state).toBe('succeeded');
    expect(await read('expired')).toMatchObject({ used: 2 });
  });

  it('of a request that has a permit of another weight is refused, and leaves no row', async () => {
    const asked = { key: 'heavier', holder: 'h', limit: 4, requestId: 'r' };
    await park(asked);
    expect(await failure(park({ ...asked, weight: 2 }))).toMatchObject({
      code: 'InvalidRequest',
      context: { issues: [{ path: 'requestId' }] },
    });
    expect(await rows('heavier')).toEqual([]);
    expect(await read('heavier')).toMatchObject({ used: 1 });
  });

  it('of a task that is tried again gives its permit to the new token', async () => {
    const asked = { key: 'again', holder: 'h', limit: 1, requestId: 'r' };
    const first = await park(asked);
    const second = await park(asked);
    expect(grantOf(second.task)).toMatchObject({ leaseId: grantOf(first.task).leaseId, repeated: true });
    expect(second.parked).toBe(false);
    await release(grantOf(second.task));
    const third = await park(asked);
    expect(third.parked).toBe(false);
    expect(third.task).toMatchObject({
      state: 'failed',
      error: 'LeaseLost',
      cause: { reason: 'released', key: 'again', detail: 'the permit is no longer yours: released' },
    });
    expect(await rows('again')).toEqual([]);
  });

  it('receives LeaseHeld when its time is over, by the next release or by the schedule', async () => {
    const key = 'overdue';
    const first = await acquire({ key, holder: 'x', limit: 1, ttlSeconds: 600 });
    const early = await park({ key, limit: 1, parkSeconds: 5 });
    const late = await park({ key, limit: 1, parkSeconds: 50 });
    clock.advance(6000);
    await repairLine(key);
    const detail = 'there is no room: the holders weigh 1, and the limit is 1';
    expect(early.task).toMatchObject({
      state: 'failed',
      error: 'LeaseHeld',
      cause: { key, used: 1, limit: 1, detail },
    });
    clock.advance(50_000);
    await release(first);
    expect(late.task).toMatchObject({ state: 'failed', error: 'LeaseHeld' });
    expect(await rows(key)).toEqual([]);
    expect(await rawItem(key)).not.toHaveProperty('waiters');
  });
});

describe('beyond the quota of the line, a task', () => {
  let few: Awaited<ReturnType<typeof poolLineWorld>>;
  beforeAll(async () => {
    few = await poolLineWorld({ quotas: { ...DEFAULT_QUOTAS, waitersPerKey: 2 } });
  });
  afterAll(() => few.steps.stop());

  /** Three permits are held by one, and two tasks are in line. */
  async function full(key: string) {
    const first = await few.acquire({ key, limit: 3, weight: 3 });
    few.requests.sent.length = 0;
    for (const holder of ['b', 'c']) await few.park({ key, holder, limit: 3 });
    expect(few.sent('Query')).toBe(0); // as many as the quota allows
    const task = few.steps.newTask();
    return { first, task, park: () => few.park({ key, holder: 'd', limit: 3 }, task) };
  }

  it('is refused, and ended by the same error', async () => {
    const { task, park } = await full('full');
    const { code, context } = await failure(park());
    expect([code, context]).toEqual(['QueueFull', expect.objectContaining({ key: 'full', limit: 2 })]);
    expect(task).toMatchObject({ state: 'failed', error: 'QueueFull', cause: { key: 'full' } });
    expect(await few.rows('full')).toHaveLength(2);
  });

  it('is refused also where it has ended by itself, and leaves no row', async () => {
    const { task, park } = await full('ended');
    task.state = 'timedOut';
    expect((await failure(park())).code).toBe('QueueFull');
    expect(await few.rows('ended')).toHaveLength(2);
  });

  it('stays in line where Step Functions gives no answer', async () => {
    const { park } = await full('unanswered');
    few.steps.faults.SendTaskFailure = ['refused'];
    expect(await park()).toMatchObject({ parked: true, task: { state: 'waiting' } });
    expect(await few.rows('unanswered')).toHaveLength(3);
  });

  it('keeps the permit that it receives while it is being refused', async () => {
    const { first, task, park } = await full('granted');
    few.steps.onTheWay = async (action) => {
      if (action === 'SendTaskFailure') await few.release(first);
    };
    expect(await park()).toMatchObject({ parked: false });
    expect(few.grantOf(task)).toMatchObject({ holder: 'd', used: 3 });
    expect(await few.read('granted')).toMatchObject({ used: 3, waiting: 0 });
  });
});

it('a line without the hint of how many waiters have left is counted once, and then by one arrival of 32', async () => {
  const key = 'long';
  await acquire({ key, limit: 1 });
  await setRaw(key, 'seq', { N: '1020' });
  const counts: number[] = [];
  for (const holder of ['b', 'c', 'd', 'e', 'f']) {
    requests.sent.length = 0;
    await park({ key, holder, limit: 1 });
    counts.push(sent('Query'));
  }
  expect(counts).toEqual([1, 0, 0, 1, 0]);
});

describe('a task that comes to the line of a pool', () => {
  it('and receives its permit by another call before that is marked is told once', async () => {
    const key = 'granted before';
    const first = await acquire({ key, limit: 2, weight: 2 });
    await park({ key, holder: 'b', limit: 2 });
    requests.faultsOf.UpdateItem = [precededBy(() => release(first))];
    const { parked, task } = await park({ key, holder: 'c', limit: 2 });
    expect([parked, grantOf(task)]).toMatchObject([false, { holder: 'c', repeated: false }]);
    expect(told('SendTaskSuccess', task.token)).toBe(1);
    expect(await rows(key)).toEqual([]);
  });

  it('and receives by another call the room that it sees itself is told once', async () => {
    const key = 'granted beside';
    await acquire({ key, limit: 1, ttlSeconds: 2 });
    clock.advance(2600);
    requests.faultsOf.UpdateItem = ['none', precededBy(() => repairLine(key))];
    const { parked, task } = await park({ key, holder: 'c', limit: 1 });
    expect([parked, grantOf(task)]).toMatchObject([false, { holder: 'c' }]);
    expect(told('SendTaskSuccess', task.token)).toBe(1);
  });

  it('and is gone when it receives the room that it sees waits no longer', async () => {
    const task = steps.newTask();
    task.state = 'timedOut';
    expect(await park({ key: 'gone at once', limit: 1 }, task)).toMatchObject({ parked: false });
    expect(await read('gone at once')).toMatchObject({ used: 0, waiting: 0 });
  });

  it('and whose request has a permit that is over waits for a new one', async () => {
    const asked = { key: 'own is over', holder: 'h', limit: 1, requestId: 'r', ttlSeconds: 2 };
    const before = await acquire(asked);
    clock.advance(1999);
    const { parked, task } = await park(asked); // at its very end
    expect([parked, task.state]).toEqual([true, 'waiting']);
    clock.advance(501);
    await repairLine(asked.key);
    expect(grantOf(task)).toMatchObject({ repeated: false, previous: { fence: before.fence, ended: 'expired' } });
  });

  it('and whose request has a permit that changes meanwhile is told of it as it stands then', async () => {
    const asked = { key: 'own changes', holder: 'h', limit: 1, requestId: 'r', ttlSeconds: 60 };
    const { leaseId } = await acquire(asked);
    clock.advance(1000);
    requests.faultsOf.UpdateItem = ['none', precededBy(() => heartbeat({ key: asked.key, leaseId }))];
    const { parked, task } = await park(asked);
    expect([parked, grantOf(task)]).toMatchObject([false, { leaseId, repeated: true, remainingMs: 60_000 }]);
    expect(await rows(asked.key)).toEqual([]);
  });

  it('and whose request has a permit is left to the schedule where Step Functions gives no answer', async () => {
    const asked = { key: 'own, unanswered', holder: 'h', limit: 1, requestId: 'r' };
    const permit = await acquire(asked);
    steps.faults.SendTaskSuccess = ['refused'];
    expect(await park(asked)).toMatchObject({ parked: true, task: { state: 'waiting' } });
    expect(await rows(asked.key)).toHaveLength(1);
    await release(permit);
    steps.faults.SendTaskFailure = ['refused'];
    expect(await park(asked)).toMatchObject({ parked: true, task: { state: 'waiting' } });
    expect(await rows(asked.key)).toHaveLength(2);
  });

  it('and in the place of whose permit another client has written something is told that it is lost', async () => {
    const asked = { key: 'own, foreign', holder: 'h', limit: 1, requestId: 'r' };
    const { leaseId } = await acquire(asked);
    await setRaw(asked.key, `h${leaseId.split('.')[1]}`, { S: 'text' });
    const { parked, task } = await park(asked);
    expect([parked, task]).toMatchObject([
      false,
      { state: 'failed', error: 'LeaseLost', cause: { reason: 'unknown' } },
    ]);
  });
});

describe('a task that is gone', () => {
  it('is passed over, and its request may ask again', async () => {
    const key = 'gone';
    const first = await acquire({ key, holder: 'x', limit: 1 });
    const asked = { key, holder: 'b', limit: 1, requestId: 'r' };
    const dead = await park(asked);
    const next = await park({ key, holder: 'c', limit: 1 });
    dead.task.state = 'timedOut';
    await release(first);
    expect(grantOf(next.task)).toMatchObject({ holder: 'c', used: 1 });
    await release(grantOf(next.task));
    expect(grantOf((await park(asked)).task)).toMatchObject({ holder: 'b' });
  });

  it('ten of them are passed by one call, and the next call goes on', async () => {
    const key = 'many gone';
    const first = await acquire({ key, holder: 'x', limit: 1 });
    const dead = [];
    for (let nth = 0; nth < 10; nth++) dead.push(await park({ key, holder: `d${nth}`, limit: 1 }));
    const next = await park({ key, holder: 'c', limit: 1 });
    for (const { task } of dead) task.state = 'timedOut';
    await release(first);
    expect(next.task.state).toBe('waiting');
    expect(await read(key)).toMatchObject({ used: 0 });
    await repairLine(key);
    expect(grantOf(next.task)).toMatchObject({ holder: 'c' });
  });
});

describe('an answer that is lost', () => {
  it('of the message to the task: the schedule renews the permit, and tells it again', async () => {
    const key = 'told';
    const first = await acquire({ key, holder: 'x', limit: 1, ttlSeconds: 60 });
    const { task } = await park({ key, holder: 'b', limit: 1, ttlSeconds: 60 });
    steps.faults.SendTaskSuccess = ['refused'];
    await release(first);
    expect(task.state).toBe('waiting');
    expect(await read(key, { waiters: true })).toMatchObject({ used: 1, waiting: 0, waiters: [] });
    await repairLine(key);
    expect(task.state).toBe('waiting'); // the call that granted it may still tell it
    clock.advance(10_000);
    await repairLine(key);
    expect(grantOf(task)).toMatchObject({ holder: 'b', remainingMs: 60_000, repeated: false });
    expect(await rows(key)).toEqual([]);
  });

  it('of a message that has landed: the permit stays', async () => {
    const key = 'told twice';
    const first = await acquire({ key, holder: 'x', limit: 1, ttlSeconds: 60 });
    const { task } = await park({ key, holder: 'b', limit: 1, ttlSeconds: 60 });
    steps.faults.SendTaskSuccess = ['lost'];
    await release(first);
    clock.advance(10_000);
    expect(await repairLine(key)).toMatchObject({ granted: 0, told: 0, unanswered: 0 });
    expect(await rows(key)).toEqual([]);
    expect(await read(key)).toMatchObject({ used: 1, holders: [{ holder: 'b' }] });
    expect((await release(grantOf(task))).released).toBe(true);
  });

  it('of the write that grants: the grant is told all the same, once', async () => {
    const key = 'lost grant';
    const first = await acquire({ key, holder: 'x', limit: 1 });
    const { task } = await park({ key, holder: 'b', limit: 1 });
    requests.faultsOf.UpdateItem = ['none', 'lostReply']; // the release, and the grant
    await release(first);
    expect(grantOf(task)).toMatchObject({ holder: 'b', used: 1 });
    expect(steps.grants.filter((token) => token === task.token)).toHaveLength(1);
    expect(await rows(key)).toEqual([]);
  });

  it('of the write that grants, and the task came again before the next try: the permit of its new token stays', async () => {
    const key = 'lost grant, new token';
    const asked = { key, holder: 'b', requestId: 'tried-twice', limit: 1, ttlSeconds: 60 };
    const first = await acquire({ key, holder: 'x', limit: 1 });
    const old = await park(asked);
    old.task.state = 'timedOut';
    const again = steps.newTask();
    requests.faultsOf.UpdateItem = [
      'none', // the release
      async (send) => {
        await send();
        await park(asked, again);
        throw networkError('ECONNRESET', 'read');
      },
    ];
    await release(first);
    const grant = grantOf(again);
    expect(grant).toMatchObject({ holder: 'b', repeated: true });
    expect(await read(key)).toMatchObject({ used: 1, holders: [{ fence: grant.fence }] });
    expect(await release(grant)).toMatchObject({ released: true });
    await repairLine(key);
    expect(await rows(key)).toEqual([]);
  });

  it('of a call that died after its row: the schedule marks the record and grants', async () => {
    const key = 'died';
    const first = await acquire({ key, holder: 'x', limit: 1, ttlSeconds: 60 });
    const { task } = await park({ key, holder: 'b', limit: 1 });
    await removeMark(key);
    await repairLine(key);
    expect(await rawItem(key)).toHaveProperty('waiters');
    await removeMark(key);
    await release(first); // knows of nobody
    expect(task.state).toBe('waiting');
    await repairLine(key);
    expect(grantOf(task)).toMatchObject({ holder: 'b' });
  });

  it('of a release that died before it looked at the line: its repeat looks', async () => {
    const key = 'repeat';
    const first = await acquire({ key, holder: 'x', limit: 1, ttlSeconds: 60 });
    const { task } = await park({ key, holder: 'b', limit: 1 });
    requests.faultsOf.Query = ['error500', 'error500', 'error500'];
    expect(await release(first)).toEqual({ key, released: true });
    expect(task.state).toBe('waiting');
    expect(await read(key)).toMatchObject({ used: 0, waiting: 1 });
    expect((await failure(acquire({ key, holder: 'c', limit: 1 }))).code).toBe('LeaseHeld'); // and gives to the line
    expect(grantOf(task)).toMatchObject({ holder: 'b' });
  });
});

describe('the schedule', () => {
  it('ends a task whose time is over also behind one that waits, and counts those that give no answer', async () => {
    const key = 'behind';
    const first = await acquire({ key, limit: 1, ttlSeconds: 60 });
    const waits = await park({ key, holder: 'b', limit: 1 });
    const over = await park({ key, holder: 'c', limit: 1, parkSeconds: 1 });
    clock.advance(1000);
    steps.faults.SendTaskFailure = ['refused'];
    expect(await repairLine(key)).toMatchObject({ told: 0, unanswered: 1 });
    expect(await rows(key)).toHaveLength(2);
    expect(await repairLine(key)).toMatchObject({ told: 0, unanswered: 0 });
    expect([waits.task.state, over.task.state]).toEqual(['waiting', 'failed']);
    await release(first);
  });

  it('tells a task of its permit though its time in line is over, for three minutes after that', async () => {
    const key = 'three minutes';
    const first = await acquire({ key, limit: 1, ttlSeconds: 60 });
    const execution = steps.newExecution('RUNNING');
    const { task } = await untold(first, { limit: 1, parkSeconds: 1, ttlSeconds: 3600, execution });
    clock.advance(2000);
    await repairLine(key);
    expect(task.state).toBe('waiting'); // the call that granted it may still tell it
    clock.advance(179_000);
    expect(await repairLine(key)).toMatchObject({ told: 0 });
    expect([task.state, (await rows(key)).length]).toEqual(['waiting', 1]);
    clock.advance(-1);
    expect(await repairLine(key)).toMatchObject({ told: 1, unanswered: 0 });
    expect(grantOf(task)).toMatchObject({ holder: 'untold', remainingMs: 3_600_000 });
    expect(steps.requests.map(({ action }) => action)).not.toContain('DescribeExecution');
    expect(await rows(key)).toEqual([]);
  });

  it('tells a task of its permit under a new version each time, and counts those that give no answer', async () => {
    const key = 'each time';
    const { task } = await untold(await acquire({ key, limit: 1 }), { limit: 1, ttlSeconds: 60 });
    clock.advance(10_000);
    steps.faults.SendTaskSuccess = ['refused'];
    expect(await repairLine(key)).toMatchObject({ told: 0, unanswered: 1 });
    expect(await rows(key)).toHaveLength(1);
    const [[, { M: entry } = {}] = []] = Object.entries((await rawItem(key)) ?? {}).filter(([, { M: map }]) => map);
    expect(await repairLine(key)).toMatchObject({ told: 1, unanswered: 0 });
    expect(grantOf(task).version).not.toBe(entry?.v?.S);
  });

  it('leaves a task alone whose permit is extended by another call meanwhile', async () => {
    const key = 'extended';
    const { task } = await untold(await acquire({ key, limit: 1 }), { limit: 1, ttlSeconds: 60 });
    clock.advance(10_000);
    requests.faultsOf.UpdateItem = [precededBy(() => repairLine(key))];
    expect(await repairLine(key)).toMatchObject({ told: 0, unanswered: 0 });
    expect([task.state, told('SendTaskSuccess', task.token)]).toEqual(['succeeded', 2]); // with the one that was refused
  });

  it('leaves alone a task whose permit is over, until the line grants it another', async () => {
    const key = 'permit is over';
    const { task } = await untold(await acquire({ key, limit: 1 }), { limit: 1, ttlSeconds: 10 });
    clock.advance(10_000);
    expect(await repairLine(key)).toMatchObject({ granted: 0, told: 0 });
    expect(task.state).toBe('waiting');
    clock.advance(501);
    expect(await repairLine(key)).toMatchObject({ granted: 1, told: 0 });
    expect(grantOf(task)).toMatchObject({ remainingMs: 10_000 });
  });

  it('the schedule notifies another token of a request of the permit that the first token has, as a repeat', async () => {
    const key = 'another token';
    const first = await acquire({ key, limit: 1 });
    const asked = { key, holder: 'b', requestId: 'r', limit: 1, ttlSeconds: 60 };
    const [one, two] = [await park(asked), await park(asked)];
    await release(first);
    clock.advance(10_000);
    expect(await repairLine(key)).toMatchObject({ granted: 0, told: 0 });
    const { leaseId } = grantOf(one.task);
    expect([grantOf(one.task), grantOf(two.task)]).toMatchObject([{ repeated: false }, { leaseId, repeated: true }]);
    expect(await rows(key)).toEqual([]);
  });

  it('has little to send where a line has its mark, and its holder goes on', async () => {
    const key = 'goes on';
    await acquire({ key, limit: 1 });
    await park({ key, holder: 'b', limit: 1 });
    requests.sent.length = 0;
    await repairLine(key);
    expect(requests.sent).toEqual(['GetItem', ...Array(3).fill('Query')]);
  });

  it.each([
    [5000, 1],
    [4999, 0],
  ])('with %i ms left tells %i task more', async (leftMs, tasks) => {
    const key = `tells with ${leftMs}`;
    await untold(await acquire({ key, limit: 1 }), { limit: 1 });
    clock.advance(10_000);
    const repaired = repairLines(world.dependencies)({ key: key }, lessAndLess(leftMs));
    expect(await repaired).toMatchObject({ told: tasks });
  });

  it.each([
    [5000, 'succeeded'],
    [4999, 'waiting'],
  ])('with %i ms left after it has passed ten tasks that are gone: the next one is %s', async (leftMs, state) => {
    const key = `passes with ${leftMs}`;
    await acquire({ key, limit: 1, ttlSeconds: 2 });
    const gone: Parked['task'][] = [];
    for (let nth = 0; nth < 10; nth++) gone.push((await park({ key, holder: `d${nth}`, limit: 1 })).task);
    const { task } = await park({ key, holder: 'next', limit: 1 });
    for (const one of gone) one.state = 'timedOut';
    clock.advance(2600);
    let left = 60_000;
    requests.faultsOf.DeleteItem = [
      ...Array(9).fill('none'),
      async (send) => {
        left = leftMs;
        return send();
      },
    ];
    await repairLines(world.dependencies)({ key: key }, call({ timeLeftMs: () => left }));
    expect(task.state).toBe(state);
  });
});

describe('operators', () => {
  it('cancel a ticket: its task fails, and those behind it come in', async () => {
    const key = 'cancel';
    const first = await acquire({ key, holder: 'x', limit: 3 });
    const heavy = await park({ key, holder: 'heavy', limit: 3, weight: 3 });
    const light = await park({ key, holder: 'light', limit: 3 });
    expect(await cancel(key, heavy.ticket)).toEqual({ key, ticket: heavy.ticket, cancelled: true });
    expect(heavy.task).toMatchObject({ state: 'failed', error: 'LeaseLost', cause: { reason: 'cancelled', key } });
    expect(heavy.task.cause).toMatchObject({ detail: 'the ticket was cancelled' });
    expect(grantOf(light.task)).toMatchObject({ used: 2 });
    expect(await cancel(key, heavy.ticket)).toMatchObject({ cancelled: false, reason: 'unknown' });
    expect(await cancel(key, light.ticket)).toMatchObject({ cancelled: false, reason: 'granted' });
    await release(first);
  });

  it('break a permit of which its task has not heard: the task learns so', async () => {
    const key = 'break';
    const first = await acquire({ key, holder: 'x', limit: 1 });
    const { task } = await park({ key, holder: 'b', limit: 1 });
    steps.faults.SendTaskSuccess = ['refused'];
    await release(first);
    const { holders } = await read(key);
    expect(await breakPermit({ key, fence: holders[0]?.fence ?? 0 })).toMatchObject({ broken: true, holder: 'b' });
    expect(task).toMatchObject({ state: 'failed', error: 'LeaseLost', cause: { reason: 'broken' } });
    expect(await rows(key)).toEqual([]);
  });
});

it('a heartbeat by a clock that is behind shortens no permit of which its task was told again by that clock', async () => {
  const asked = { key: 'behind', holder: 'h', limit: 1, requestId: 'r', ttlSeconds: 30 };
  await park(asked);
  clock.advance(-400);
  const again = grantOf((await park(asked)).task);
  clock.advance(10);
  expect((await heartbeat(again)).expiresAt).toBe(again.expiresAt);
  clock.advance(400);
  expect((await heartbeat(again)).expiresAt).toBe(new Date(clock.now() + 30_000).toISOString());
});

it('tells tasks of a namespace the key as they wrote it', async () => {
  const task = steps.newTask();
  const as = call({ namespace: 'team-a' });
  const { acquireOrParkPermit } = await import('../../shared/permits/acquire.ts');
  const asked = { key: 'team-a/render', holder: 'h', limit: 1, ttlSeconds: 60, waitSeconds: 0, taskToken: task.token };
  await acquireOrParkPermit(world.dependencies)(asked, as);
  expect(task.output).toMatchObject({ key: 'render', used: 1 });
});
