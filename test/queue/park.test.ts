import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import type { LeasePage } from '../../shared/leases/read.ts';
import { failure } from '../support/worlds/leases.ts';
import { queueWorld } from '../support/worlds/line.ts';

const world = await queueWorld();
const {
  precededBy,
  acquire,
  release,
  breakLease,
  read,
  park,
  cancel,
  grantOf,
  rawItem,
  putRaw,
  rows,
  clock,
  requests,
  steps,
  repair,
} = world;
afterAll(() => steps.stop());
beforeEach(() => {
  requests.sent.length = 0;
  steps.requests.length = 0;
});

describe('acquire with a task token', () => {
  it('grants a free lease at once, by SendTaskSuccess with what acquire would answer', async () => {
    const { task, parked, ticket } = await park({ key: 'free', holder: 'a', ttlSeconds: 30, data: { run: 7 } });
    expect({ parked, ticket }).toEqual({ parked: false, ticket: expect.stringMatching(/^\d{15}-[0-9a-f-]{36}$/) });
    expect(task.output).toEqual({
      ...{ key: 'free', holder: 'a', fence: clock.now(), data: { run: 7 } },
      leaseId: expect.any(String),
      version: (await rawItem('free'))?.lease_version?.S,
      acquiredAt: new Date(clock.now()).toISOString(),
      expiresAt: new Date(clock.now() + 30_000).toISOString(),
      remainingMs: 30_000,
      waitedMs: 0,
      repeated: false,
      previous: null,
    });
    expect(await rows('free')).toEqual([]);
    expect(await release(grantOf(task))).toMatchObject({ released: true });
  });

  it('parks for a held one, and the release wakes it, with the time that it waited', async () => {
    const first = await acquire({ key: 'held', ttlSeconds: 60 });
    const { task, parked } = await park({ key: 'held', holder: 'b' });
    expect({ parked, state: task.state }).toEqual({ parked: true, state: 'waiting' });
    clock.advance(5000);
    expect(await release(first)).toEqual({ key: 'held', released: true });
    const grant = grantOf(task);
    expect(grant).toMatchObject({ holder: 'b', waitedMs: 5000, remainingMs: 60_000 });
    expect(grant.fence).toBeGreaterThan(first.fence);
    expect(await rows('held')).toEqual([]);
    expect(await rawItem('held')).not.toHaveProperty('waiters');
    await release(grant);
  });

  it('parks for an expired one that nobody took, and has it at once', async () => {
    const first = await acquire({ key: 'expired', ttlSeconds: 2 });
    clock.advance(2500);
    const { task } = await park({ key: 'expired' }); // a millisecond later, the first one after the margin of the clocks
    expect(grantOf(task).previous).toMatchObject({ fence: first.fence, ended: 'expired' });
  });

  it('writes the row that the report of expired records and the repair rely on', async () => {
    await acquire({ key: 'row' });
    const execution = 'arn:aws:states:us-east-1:123456789012:execution:machine:run';
    const target = 'arn:aws:states:us-east-1:123456789012:execution:other:run';
    const asked = { holder: 'b', ttlSeconds: 30, requestId: 'r', data: [1], execution, target, parkSeconds: 10 };
    const { task, ticket } = await park({ key: 'row', ...asked });
    const now = clock.now();
    expect(await rows('row')).toEqual([
      {
        key: { S: 'row' },
        ticket: { S: ticket },
        task_token: { S: task.token },
        holder: { S: 'b' },
        ttl_seconds: { N: '30' },
        request_id: { S: 'r' },
        data: { S: '[1]' },
        execution: { S: execution },
        target: { S: target },
        parked_at: { N: String(now) },
        deadline: { N: String(now + 10_000) },
        ttl: { N: String(Math.ceil((now + 10_000) / 1000) + 86_400) },
      },
    ]);
    expect(ticket.startsWith(String(now).padStart(15, '0'))).toBe(true);
  });

  it('keeps the queue fair: a plain caller that comes while others are parked receives LeaseHeld', async () => {
    const first = await acquire({ key: 'fair', ttlSeconds: 2 });
    const second = await park({ key: 'fair', holder: 'second', ttlSeconds: 2 });
    const third = await park({ key: 'fair', holder: 'third' });
    await release(first);
    expect(second.task.state).toBe('succeeded');
    clock.advance(2501); // the second is gone without a word
    const { code, context } = await failure(acquire({ key: 'fair', holder: 'barger' }));
    expect({ code, holder: context.holder }).toEqual({ code: 'LeaseHeld', holder: 'third' });
    expect(third.task.state).toBe('succeeded'); // by the one that was refused
    expect(await release(grantOf(second.task))).toEqual({ key: 'fair', released: false, reason: 'taken' });
    await release(grantOf(third.task));
    expect(await acquire({ key: 'fair', holder: 'barger' })).toMatchObject({ holder: 'barger' });
  });

  it('ends at its deadline with LeaseHeld, behind a lease that runs on', async () => {
    const first = await acquire({ key: 'deadline', holder: 'long', ttlSeconds: 600 });
    const impatient = await park({ key: 'deadline', parkSeconds: 30 });
    const patient = await park({ key: 'deadline' });
    clock.advance(29_000);
    await repair();
    expect(impatient.task.state).toBe('waiting');
    clock.advance(1001);
    await repair();
    expect(impatient.task).toMatchObject({
      state: 'failed',
      error: 'LeaseHeld',
      cause: { code: 'LeaseHeld', status: 409, key: 'deadline', holder: 'long', fence: first.fence },
    });
    expect(patient.task.state).toBe('waiting');
    expect((await rows('deadline')).map(({ ticket }) => ticket?.S)).toEqual([patient.ticket]);
    await release(first);
    expect(patient.task.state).toBe('succeeded');
  });

  it('the overdue are told by a hand-off too, and where nobody is left the lease is free', async () => {
    const first = await acquire({ key: 'overdue', ttlSeconds: 600 });
    const waiters = [];
    for (let at = 0; at < 5; at++) waiters.push(await park({ key: 'overdue', parkSeconds: 1 }));
    clock.advance(1000);
    expect(await release(first)).toMatchObject({ released: true });
    expect(waiters.map(({ task }) => task.error)).toEqual(Array(5).fill('LeaseHeld'));
    expect(await read({ key: 'overdue' })).toMatchObject({ state: 'released', waiting: 0 });
    expect(await acquire({ key: 'overdue' })).toMatchObject({ repeated: false });
  });

  it('an overdue one that could not be told stays for the schedule, and does not keep the lease from being released', async () => {
    const first = await acquire({ key: 'undecided', ttlSeconds: 600 });
    const overdue = await park({ key: 'undecided', parkSeconds: 1 });
    clock.advance(1000);
    steps.faults.SendTaskFailure = ['refused'];
    expect(await release(first)).toMatchObject({ released: true });
    expect(await read({ key: 'undecided' })).toMatchObject({ state: 'released' });
    expect(await rows('undecided')).toHaveLength(1);
    await repair();
    expect(overdue.task.error).toBe('LeaseHeld');
    expect(await rawItem('undecided')).not.toHaveProperty('waiters');
  });

  it('tells the task of a request that was released already that it is', async () => {
    await release(await acquire({ key: 'over', requestId: 'r' }));
    const { task } = await park({ key: 'over', requestId: 'r' });
    expect(task).toMatchObject({ state: 'failed', error: 'LeaseLost', cause: { reason: 'released' } });
    expect(await rows('over')).toEqual([]);
  });

  it('tells a task that is tried again of the grant that it has', async () => {
    const first = await acquire({ key: 'again', requestId: 'r' });
    const { task, parked } = await park({ key: 'again', requestId: 'r' });
    expect(parked).toBe(false);
    expect(task.output).toMatchObject({ leaseId: first.leaseId, fence: first.fence, repeated: true });
    expect(grantOf(task).version).not.toBe(first.version);
    expect(await rows('again')).toEqual([]);
  });

  it('of another caller of the same name waits its turn', async () => {
    const first = await acquire({ key: 'namesake', requestId: 'r' }, world.as('arn:one'));
    const { task } = await park({ key: 'namesake', requestId: 'r' });
    expect(task.state).toBe('waiting');
    await release(first);
    expect(task.state).toBe('succeeded');
  });

  it('whose own lease has just run out waits until it may be taken', async () => {
    const first = await acquire({ key: 'lapsed', requestId: 'r', ttlSeconds: 2 });
    clock.advance(2200); // over, and within the margin
    const { task, parked } = await park({ key: 'lapsed', requestId: 'r' });
    expect({ parked, state: task.state }).toEqual({ parked: true, state: 'waiting' });
    clock.advance(1000);
    await repair();
    expect(grantOf(task).fence).toBeGreaterThan(first.fence);
  });
});

describe('who looks', () => {
  it('sees which execution holds the lease, until it is given back', async () => {
    const execution = 'arn:aws:states:us-east-1:123456789012:execution:machine:run';
    const grant = await acquire({ key: 'run', execution });
    expect(await read({ key: 'run' })).toMatchObject({ execution, ttlSeconds: 60 });
    await release(grant);
    expect(await read({ key: 'run' })).toMatchObject({ state: 'released', execution: null, ttlSeconds: null });
  });

  it('sees how many wait, and who, but no token', async () => {
    const first = await acquire({ key: 'looked' });
    expect(await read({ key: 'looked' })).toMatchObject({ waiting: 0 });
    const b = await park({ key: 'looked', holder: 'b', parkSeconds: 60 });
    const c = await park({ key: 'looked', holder: 'c' });
    expect(await read({ key: 'looked' })).toMatchObject({ state: 'held', waiting: 2 });
    const listing = (await read({ prefix: 'looked' })) as LeasePage;
    expect(listing.leases).toMatchObject([{ key: 'looked', waiting: true, execution: null }]);
    const listed = await read({ key: 'looked', waiters: true, limit: 1 });
    expect(listed).toMatchObject({ waiting: 2 });
    expect('waiters' in listed && listed.waiters).toEqual([
      {
        kind: 'task',
        ticket: b.ticket,
        holder: 'b',
        execution: null,
        parkedAt: new Date(clock.now() - 1).toISOString(),
        deadline: new Date(clock.now() + 59_999).toISOString(),
      },
    ]);
    expect(JSON.stringify(await read({ key: 'looked', waiters: true }))).not.toContain('token-');
    await release(first);
    expect(await read({ key: 'looked', waiters: true })).toMatchObject({
      holder: 'b',
      waiters: [{ ticket: c.ticket }],
    });
  });
});

describe('cancel', () => {
  it('takes a task out of the queue and tells it so', async () => {
    const first = await acquire({ key: 'cancel' });
    const b = await park({ key: 'cancel' });
    const c = await park({ key: 'cancel' });
    expect(await cancel('cancel', b.ticket)).toEqual({ key: 'cancel', ticket: b.ticket, cancelled: true });
    const cause = { reason: 'cancelled', status: 412, detail: 'the ticket was cancelled' };
    expect(b.task).toMatchObject({ state: 'failed', error: 'LeaseLost', cause });
    expect(await cancel('cancel', b.ticket)).toMatchObject({ cancelled: false, reason: 'unknown' });
    await release(first);
    expect(c.task.state).toBe('succeeded');
    expect(await cancel('cancel', c.ticket)).toMatchObject({ cancelled: false, reason: 'granted' });
  });

  it('says where the task was gone, and keeps the ticket where Step Functions gives no answer', async () => {
    await acquire({ key: 'cancel-gone' });
    const { task, ticket } = await park({ key: 'cancel-gone' });
    steps.faults.SendTaskFailure = ['refused'];
    expect(await failure(cancel('cancel-gone', ticket))).toMatchObject({
      code: 'Unavailable',
      context: { retryAfterMs: 1000 },
    });
    expect(await rows('cancel-gone')).toHaveLength(1);
    task.state = 'timedOut';
    expect(await cancel('cancel-gone', ticket)).toMatchObject({ cancelled: false, reason: 'gone' });
    const made = await park({ key: 'cancel-gone' }, { token: 'made up', state: 'waiting' });
    expect(await cancel('cancel-gone', made.ticket)).toMatchObject({ cancelled: false, reason: 'gone' });
    expect(await rows('cancel-gone')).toEqual([]);
  });

  it('says where the task is granted the lease while the message is on its way', async () => {
    const first = await acquire({ key: 'cancel-granted' });
    const { task, ticket } = await park({ key: 'cancel-granted' });
    steps.onTheWay = async (action) => void (action === 'SendTaskFailure' && (await release(first)));
    expect(await cancel('cancel-granted', ticket)).toMatchObject({ cancelled: false, reason: 'granted' });
    steps.onTheWay = async () => {};
    expect(await release(grantOf(task))).toMatchObject({ released: true });
  });
});

describe('a task whose ticket stands, and what happens before it is marked', () => {
  beforeEach(() => {
    requests.faultsOf = {};
  });
  it('a release grants it the lease: it is told once', async () => {
    const held = await acquire({ key: 'granted on the way' });
    await park({ key: held.key, holder: 'in front', parkSeconds: 1 });
    clock.advance(2000); // its mark stays, so the release looks at the line
    requests.faultsOf.UpdateItem = [precededBy(() => release(held))];
    const { task, parked } = await park({ key: held.key, holder: 'b' });
    expect([parked, grantOf(task)]).toMatchObject([false, { holder: 'b' }]);
    expect(steps.requests.filter(({ token }) => token === task.token)).toHaveLength(1);
  });

  it('its own lease, which has run out, is broken: it is told so', async () => {
    const first = await acquire({ key: 'broken on the way', requestId: 'r', ttlSeconds: 2 });
    clock.advance(2200); // over, and within the margin
    const breaks = precededBy(() => breakLease({ key: first.key, fence: first.fence }));
    requests.faultsOf.UpdateItem = ['none', breaks]; // the first mark meets its own lease
    const { task, parked } = await park({ key: first.key, requestId: 'r' });
    expect({ parked, task }).toMatchObject({
      parked: false,
      task: { error: 'LeaseLost', cause: { reason: 'broken' } },
    });
    expect(await rows(first.key)).toEqual([]);
  });

  it('an operator cancels it: it waits no more', async () => {
    requests.faultsOf.UpdateItem = [
      precededBy(async () => {
        const [row] = await rows('cancelled on the way');
        await cancel('cancelled on the way', row?.ticket?.S ?? '');
      }),
    ];
    const { task, parked } = await park({ key: 'cancelled on the way' });
    expect([parked, task.error]).toEqual([false, 'LeaseLost']);
    expect(await read({ key: 'cancelled on the way' })).toMatchObject({ state: 'free' });
  });

  it('another caller takes the free lease: it waits behind that one, whose release finds it', async () => {
    const others: { leaseId: string; key: string }[] = [];
    requests.faultsOf.UpdateItem = [
      'none', // the mark
      precededBy(async () => others.push(await acquire({ key: 'taken on the way', holder: 'other' }))),
    ];
    const { task, parked } = await park({ key: 'taken on the way' });
    expect([parked, (await rawItem('taken on the way'))?.waiters]).toEqual([true, { N: '1' }]);
    for (const other of others) await release(other);
    expect(task.state).toBe('succeeded');
  });

  it('that of the grant before is still there, whose lease is free: its task is told that it was released', async () => {
    const asked = { key: 'given back', holder: 'b', requestId: 'shared' };
    const first = await acquire({ key: asked.key });
    const { task } = await park(asked);
    steps.faults.SendTaskSuccess = ['refused'];
    await release(first);
    const shared = await acquire(asked);
    const { waiters: _, ...unmarked } = (await rawItem(asked.key)) ?? {}; // another client has dropped the mark
    await putRaw(unmarked);
    expect(await release(shared)).toMatchObject({ released: true });
    expect(task.state).toBe('waiting');
    const next = await park({ key: asked.key, holder: 'next' });
    expect(grantOf(next.task)).toMatchObject({ holder: 'next' });
    expect(task).toMatchObject({ state: 'failed', error: 'LeaseLost', cause: { reason: 'released' } });
  });
});

describe('a task that is tried again under its own grant, and cannot be told', () => {
  it('keeps its ticket: the schedule grants it the lease anew once that is over', async () => {
    const asked = { key: 'again in vain', holder: 'b', requestId: 'again' };
    await park(asked);
    steps.faults.SendTaskSuccess = ['refused'];
    const { task, parked } = await park(asked);
    expect([parked, task.state, await rows(asked.key)]).toMatchObject([true, 'waiting', { length: 1 }]);
    clock.advance(61_000);
    await repair();
    expect(grantOf(task)).toMatchObject({ holder: 'b', repeated: false });
  });
});

describe('a parked acquire whose write gets no answer names the requestId that a retry must bring', () => {
  const lost: 'lostReply'[] = ['lostReply', 'lostReply', 'lostReply'];
  beforeEach(() => {
    requests.faults = [];
    requests.faultsOf = {};
  });

  it.each([
    ['of the ticket', 'PutItem'],
    ['of the mark', 'UpdateItem'],
  ] as const)('%s', async (name, command) => {
    for (const requestId of [undefined, `mine ${name}`]) {
      const key = `${name} ${requestId}`;
      if (name === 'of the mark') await acquire({ key, holder: 'before' });
      requests.faultsOf[command] = [...lost];
      const tried = steps.newTask();
      const { code, context } = await failure(park({ key, ...(requestId && { requestId }) }, tried));
      tried.state = 'timedOut'; // a call that fails ends its try of the task
      expect(code).toBe('OutcomeUnknown');
      expect(context.retryWith).toEqual({ requestId: requestId ?? expect.stringMatching(/^[0-9a-f-]{36}$/) });
      const again = await park({ key, ...(context.retryWith as object) });
      if (name === 'of the mark') expect(again.parked).toBe(true);
      else expect(again.task.state).toBe('succeeded');
    }
  });

  it('of the hand-off to itself, of a renewal, and of the deletion of a ticket', async () => {
    for (const name of ['of the hand-off', 'of a renewal', 'of a deletion']) {
      if (name !== 'of the hand-off') await park({ key: name, requestId: 'r' });
      if (name === 'of a deletion') requests.faultsOf.DeleteItem = [...lost];
      else requests.faultsOf.UpdateItem = ['none', ...lost];
      const { code, context } = await failure(park({ key: name, requestId: 'r' }));
      expect([code, context.retryWith]).toEqual(['OutcomeUnknown', { requestId: 'r' }]);
      expect(grantOf((await park({ key: name, requestId: 'r' })).task)).toMatchObject({ repeated: true });
    }
  });
});

describe('what nobody parked costs', () => {
  it('acquire and release: one write each, and nothing of the queue', async () => {
    await release(await acquire({ key: 'plain' }));
    expect(requests.sent).toEqual(['PutItem', 'UpdateItem']);
    expect(steps.requests).toEqual([]);
  });

  it('a plain caller that comes to an expired lease before the task that is parked: the same, and no second try', async () => {
    await acquire({ key: 'passing by', ttlSeconds: 2 });
    const { task } = await park({ key: 'passing by' });
    clock.advance(2000 + 501);
    requests.sent.length = 0;
    expect((await failure(acquire({ key: 'passing by', holder: 'plain' }))).code).toBe('LeaseHeld');
    expect(requests.sent).toEqual(['PutItem', 'Query', 'UpdateItem', 'DeleteItem']);
    expect(task.state).toBe('succeeded');
  });

  it('a hand-off: the release that loses, a query, the transfer, and the ticket', async () => {
    const first = await acquire({ key: 'cost' });
    await park({ key: 'cost' });
    requests.sent.length = 0;
    await release(first);
    expect(requests.sent).toEqual(['UpdateItem', 'Query', 'UpdateItem', 'DeleteItem']);
    expect(steps.requests.map(({ action }) => action)).toEqual(['SendTaskSuccess']);
  });

  it('a task that parks behind another for an expired lease: its ticket and its mark, and the hand-off to the other', async () => {
    await acquire({ key: 'behind', ttlSeconds: 2 });
    const { task } = await park({ key: 'behind' });
    clock.advance(2000 + 501);
    requests.sent.length = 0;
    expect(await park({ key: 'behind' })).toMatchObject({ parked: true });
    expect(task.state).toBe('succeeded');
    expect(requests.sent).toEqual(['PutItem', 'UpdateItem', 'Query', 'UpdateItem', 'DeleteItem']);
  });
});
