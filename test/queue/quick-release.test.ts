import { PutItemCommand } from '@aws-sdk/client-dynamodb';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { call } from '../support/aws.ts';
import { networkError } from '../support/network.ts';
import { queueWorld } from '../support/queue.ts';

const world = await queueWorld();
const { acquire, release, breakLease, park, grantOf, rawItem, putRaw, rows, clock, requests, steps, dependencies } =
  world;
afterAll(() => steps.stop());
beforeEach(() => {
  requests.faults = [];
  requests.faultsOf = {};
});

let keys = 0;

/** A task has the lease, and others are parked behind it. */
async function lineOf(behind: number) {
  const key = `quick ${keys++}`;
  const first = await acquire({ key, holder: 'first' });
  const parked = [];
  for (let count = 0; count <= behind; count++) parked.push(await park({ key, holder: `task ${count}` }));
  await release(first);
  clock.advance(1000); // the fence of the next grant is that moment
  const [{ task: holder }, ...others] = parked as [(typeof parked)[0], ...typeof parked];
  return { key, grant: grantOf(holder), parked, others };
}

const sentBy = async (act: () => Promise<unknown>) => {
  const before = requests.sent.length;
  await act();
  return requests.sent.slice(before);
};
const QUICK = ['Query', 'UpdateItem', 'DeleteItem']; // the line, the transfer, and the ticket of the task that is told
const PLAIN = ['UpdateItem', 'Query', 'UpdateItem', 'DeleteItem'];

describe('the release of a lease that was granted with others in line', () => {
  it('looks at the line at once, and writes no release that is bound to lose', async () => {
    const { key, grant, others } = await lineOf(2);
    expect(grant.leaseId).toMatch(/\+/);
    expect(await sentBy(() => release(grant))).toEqual(QUICK);
    const next = grantOf(others[0]?.task as never);
    expect(next).toMatchObject({ previous: { holder: 'task 0', fence: grant.fence, ended: 'released' } });
    expect(next.fence).toBeGreaterThan(grant.fence);
    expect(await rawItem(key)).toMatchObject({ turn_ms: { N: '1000' }, holder: { S: 'task 1' } });
  });

  it('tells those in line how long turns last on average, by each turn that a caller ended', async () => {
    const key = `quick ${keys++}`;
    let grant = await acquire({ key, holder: 'first' });
    for (const requestId of ['a', 'b', 'c']) {
      clock.advance(1);
      await world.joinLine(key, requestId);
    }
    for (const [requestId, turnMs, paceMs] of [
      ['a', 27, 30],
      ['b', 54, 33],
    ] as const) {
      clock.advance(turnMs);
      await release(grant);
      grant = await acquire({ key, holder: 'caller', requestId });
      expect(await rawItem(key)).toMatchObject({ pace_ms: { N: String(paceMs) } });
    }
  });

  it('says how many of the arrivals are in line no more', async () => {
    const { key, grant } = await lineOf(2);
    expect(await rawItem(key)).toMatchObject({ waiters: { N: '3' }, line_out: { N: '1' } });
    expect(await sentBy(() => release(grant))).toEqual(QUICK);
    expect(await rawItem(key)).toMatchObject({ waiters: { N: '3' }, line_out: { N: '2' } });
  });

  it('passes over a caller in front of a task that may be leaving, by a clock that is ahead', async () => {
    const { key, grant, others } = await lineOf(1);
    const until = { deadline: { N: String(clock.now() + 400) }, keep_until: { N: String(clock.now() + 5400) } };
    const row = { key: { S: key }, ticket: { S: '000000000000001-leaving' }, ttl_seconds: { N: '10' }, ...until };
    const item = { ...row, holder: { S: 'leaving' }, request_id: { S: 'leaving' } };
    await dependencies.dynamodb.send(new PutItemCommand({ TableName: dependencies.waitersTable, Item: item }));
    expect(await sentBy(() => release(grant))).toEqual(QUICK);
    expect(grantOf(others[0]?.task as never)).toMatchObject({ holder: 'task 1' });
  });

  it('leaves nothing of the grant before', async () => {
    const key = `quick ${keys++}`;
    const first = await acquire({ key, holder: 'first' });
    const execution = 'arn:aws:states:us-east-1:123456789012:execution:machine:gone';
    const holder = await park({ key, holder: 'task 0', execution, data: { of: 'task 0' } });
    await park({ key, holder: 'task 1' });
    await release(first);
    clock.advance(1000);
    expect(await sentBy(() => release(grantOf(holder.task)))).toEqual(QUICK);
    const record = await rawItem(key);
    for (const name of ['execution', 'data', 'next_ticket', 'next_tickets']) expect(record).not.toHaveProperty(name);
    expect(record?.waiters).toBeDefined(); // somebody may have joined since the look
    expect(await release({ key, leaseId: record?.lease_id?.S ?? '' })).toMatchObject({ released: true });
    expect(await rawItem(key)).not.toHaveProperty('waiters');
  });

  it('is repeated in vain: another has the lease', async () => {
    const { key, grant } = await lineOf(1);
    expect(await release(grant)).toEqual({ key, released: true });
    expect(await release(grant)).toEqual({ key, released: false, reason: 'taken' });
  });

  it('finds nobody any more: the lease is free, and so is its mark', async () => {
    const { key, grant, others } = await lineOf(1);
    await world.cancel(key, others[0]?.ticket ?? '');
    expect(await release(grant)).toEqual({ key, released: true });
    const record = await rawItem(key);
    expect(record).not.toHaveProperty('lease_version');
    expect(record).not.toHaveProperty('waiters');
  });

  it('whose answer is lost, and whose next holder has gone on since: not said to have been taken', async () => {
    const { key, grant } = await lineOf(2);
    const moveOn = async () => breakLease({ key, fence: Number((await rawItem(key))?.fence?.N) });
    requests.faultsOf = {
      UpdateItem: [
        async (send) => {
          await send();
          await moveOn();
          throw networkError('ECONNRESET', 'read');
        },
      ],
    };
    expect(await release(grant)).toEqual({ key, released: false, reason: 'unknown' });
  });

  it('whose answer is lost knows its own transfer', async () => {
    const { key, grant, others } = await lineOf(1);
    requests.faultsOf = { UpdateItem: ['lostReply'] };
    expect(await release(grant)).toEqual({ key, released: true });
    expect(grantOf(others[0]?.task as never)).toMatchObject({ holder: 'task 1' });
  });
});

describe('a lease id that somebody makes up', () => {
  it('with the ticket of another proves nothing, and changes nothing', async () => {
    const { key, grant, others } = await lineOf(2);
    const [before, line] = [await rawItem(key), await rows(key)];
    for (const ticket of [others[0]?.ticket, others[1]?.ticket, 'x']) {
      const guess = { key, leaseId: `00000000-0000-4000-8000-000000000000+${ticket}` };
      expect(await release(guess)).toEqual({ key, released: false, reason: 'taken' });
    }
    expect(await rawItem(key)).toEqual(before);
    expect(await rows(key)).toEqual(line);
    expect(await release(grant)).toMatchObject({ released: true });
  });
});

describe('what the plain release decides', () => {
  it('a fence that would not rise', async () => {
    const { key, grant } = await lineOf(1);
    clock.advance(-1000);
    expect(await sentBy(() => release(grant))).toEqual(['Query', 'UpdateItem', ...PLAIN]);
    expect(Number((await rawItem(key))?.fence?.N)).toBeGreaterThan(grant.fence);
  });

  it('a ticket that is still there: its task is not granted the lease a second time', async () => {
    const { key, grant, parked, others } = await lineOf(1);
    const row = { key: { S: key }, ticket: { S: parked[0]?.ticket ?? '' }, holder: { S: 'task 0' } };
    const item = { ...row, task_token: { S: 'dead' }, deadline: { N: String(clock.now() + 60_000) } };
    await dependencies.dynamodb.send(new PutItemCommand({ TableName: dependencies.waitersTable, Item: item }));
    await release(grant);
    expect(grantOf(others[0]?.task as never)).toMatchObject({ holder: 'task 1' });
    expect(await rows(key)).toEqual([]);
  });

  it('an invocation whose time is nearly up: the lease is given to nobody, and the queue grants it', async () => {
    const { key, grant, others } = await lineOf(1);
    expect(await release(grant, call({ timeLeftMs: () => 1999 }))).toEqual({ key, released: true });
    expect(others[0]?.task.state).toBe('waiting');
    expect(await rawItem(key)).not.toHaveProperty('lease_version');
    await world.repairKey(key);
    expect(grantOf(others[0]?.task as never)).toMatchObject({ holder: 'task 1' });
  });

  it('a task that is overdue: it is told so, and the next one has the lease', async () => {
    const key = `quick ${keys++}`;
    const first = await acquire({ key, holder: 'first' });
    const holder = await park({ key, holder: 'task 0' });
    const late = await park({ key, holder: 'late', parkSeconds: 5 });
    const next = await park({ key, holder: 'next' });
    await release(first);
    clock.advance(6000);
    await release(grantOf(holder.task));
    expect(late.task).toMatchObject({ state: 'failed', error: 'LeaseHeld' });
    expect(grantOf(next.task)).toMatchObject({ holder: 'next' });
  });

  it('a second ticket of the request whose lease ends: a request has one grant', async () => {
    const { key, grant, others } = await lineOf(1);
    const record = await rawItem(key);
    const until = { deadline: { N: String(clock.now() + 60_000) }, keep_until: { N: String(clock.now() + 65_000) } };
    const own = { key: { S: key }, ticket: { S: '000000000000001-again' }, ttl_seconds: { N: '10' }, ...until };
    const item = { ...own, holder: record?.holder ?? { S: '' }, request_id: record?.request_id ?? { S: '' } };
    await dependencies.dynamodb.send(new PutItemCommand({ TableName: dependencies.waitersTable, Item: item }));
    await release(grant);
    expect(grantOf(others[0]?.task as never)).toMatchObject({ holder: 'task 1' });
    expect(await rows(key)).toEqual([]);
  });

  it.each([
    ['waiters', { S: 'many' }],
    ['waiters', { N: '1e100' }],
    ['line_out', { S: 'some' }],
    ['acquired_at', { S: 'now' }],
    ['holder', undefined],
  ])('a record in which another client has changed %s to %o', async (name, value) => {
    const { key, grant, others } = await lineOf(2);
    const { [name]: _, ...record } = (await rawItem(key)) ?? {};
    await putRaw({ ...record, ...(value && { [name]: value }) } as never);
    expect(await release(grant)).toEqual({ key, released: true });
    expect(grantOf(others[0]?.task as never)).toMatchObject({ holder: 'task 1' });
  });
});
