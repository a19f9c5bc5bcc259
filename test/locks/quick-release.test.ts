import { afterAll, beforeEach, expect, it } from 'vitest';
import { call } from '../support/emulators/aws.ts';
import { lineWorld } from '../support/worlds/line.ts';

const world = await lineWorld();
const { acquire, release, breakLease, park, joinLine, grantOf, rawItem, putRaw, rows, clock, requests, steps } = world;
/** The entry of the exclusive holder. */
const entryOf = async (key: string) => (await rawItem(key))?.h?.M;
const holderOf = async (key: string) => (await entryOf(key))?.h?.S;
const ticketOf = async (key: string) => (await entryOf(key))?.k?.S;
const { putTicket, putTickets, callerRow, precededBy, lostAfter } = world;
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
  clock.advance(1000); // the next fence is the time of the clock
  const [{ task: holder }, ...others] = parked as [(typeof parked)[0], ...typeof parked];
  return { key, grant: grantOf(holder), parked, others };
}

/** Calls that join the line, one after another. */
async function joinAll(key: string, ...requestIds: string[]) {
  for (const requestId of requestIds) {
    clock.advance(1);
    await joinLine(key, requestId);
  }
}

/** The next waiter, which has left by a clock that is ahead by the whole margin. */
const leaving = (key: string) => callerRow(key, 'leaving', { deadline: { N: String(clock.now() + 500) } });

const sentBy = async (act: () => Promise<unknown>) => {
  const before = requests.sent.length;
  await act();
  return requests.sent.slice(before);
};
const QUICK = ['Query', 'UpdateItem', 'DeleteItem']; // the line, the transfer, and the ticket of the notified task
const PLAIN = ['UpdateItem', 'Query', 'UpdateItem', 'DeleteItem'];

it('a quick release reads the line first', async () => {
  const { key, grant, others } = await lineOf(2);
  expect(grant.leaseId).toMatch(/\+/);
  expect(await sentBy(() => release(grant))).toEqual(QUICK);
  const next = grantOf(others[0]?.task as never);
  expect(next).toMatchObject({ previous: { holder: 'task 0', fence: grant.fence, ended: 'released' } });
  expect(next.fence).toBeGreaterThan(grant.fence);
  expect([(await rawItem(key))?.turn_ms, await holderOf(key)]).toEqual([{ N: '1000' }, 'task 1']);
  clock.advance(1000);
  expect(await sentBy(() => release(next))).toEqual(QUICK);
  expect(grantOf(others[1]?.task as never).leaseId).not.toMatch(/\+/); // no caller waits behind the task
});

it('a quick release reads one page of a long line', async () => {
  const { key, grant } = await lineOf(1);
  await putTickets(Array.from({ length: 13 }, (_, index) => callerRow(key, `caller ${index + 10}`)));
  expect(await sentBy(() => release(grant))).toEqual(['Query', 'UpdateItem']);
  expect([await holderOf(key), (await rawItem(key))?.line_out]).toEqual(['caller 10', { N: '2' }]);
});

it('a quick release notes how long holds last on average', async () => {
  const key = `quick ${keys++}`;
  let grant = await acquire({ key, holder: 'first' });
  await joinAll(key, 'a', 'b', 'c');
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

it.each(['quick', 'plain'])('a %s release passes over a caller that may be leaving', async (how) => {
  const { key, grant, others } = await lineOf(1);
  await putTicket(leaving(key));
  if (how === 'quick') expect(await sentBy(() => release(grant))).toEqual(QUICK);
  else await breakLease(grant);
  expect(grantOf(others[0]?.task as never)).toMatchObject({ holder: 'task 1' });
});

it.each([true, false])('a quick release passes over a withdrawn caller (quick: %s)', async (quick) => {
  const key = `quick ${keys++}`;
  const first = await acquire({ key, holder: 'first' });
  await joinAll(key, 'a', 'b', 'c');
  await release(first);
  const grant = await acquire({ key, holder: 'caller', requestId: 'a' });
  await world.withdraw({ key, holder: 'caller', requestId: 'b' });
  clock.advance(1);
  if (quick) expect(await sentBy(() => release(grant))).toEqual(['Query', 'UpdateItem']);
  else await breakLease(grant);
  expect(await ticketOf(key)).toBe((await rows(key)).at(-1)?.ticket?.S);
  expect((await rows(key))[0]).toHaveProperty('cancelled_at');
});

it('a quick release does not keep an attribute of the grant before', async () => {
  const key = `quick ${keys++}`;
  const first = await acquire({ key, holder: 'first' });
  const execution = 'arn:aws:states:us-east-1:123456789012:execution:machine:gone';
  const holder = await park({ key, holder: 'task 0', execution, data: { of: 'task 0' } });
  const { task } = await park({ key, holder: 'task 1' });
  await release(first);
  clock.advance(1000);
  expect(await sentBy(() => release(grantOf(holder.task)))).toEqual(QUICK);
  const record = await rawItem(key);
  for (const name of ['execution', 'next_ticket']) expect(record).not.toHaveProperty(name);
  expect(record?.h?.M).not.toHaveProperty('d');
  expect(record).toHaveProperty('mark'); // a waiter may have joined since the read
  expect(await release(grantOf(task))).toMatchObject({ released: true });
  expect(await rawItem(key)).not.toHaveProperty('mark');
});

it('a repeated quick release answers the same, and does not end the next grant', async () => {
  const { key, grant, others } = await lineOf(1);
  for (const _ of ['first', 'again']) expect(await release(grant)).toEqual({ key, released: true });
  expect(await release(grantOf(others[0]?.task as never))).toMatchObject({ released: true });
});

it('a quick release that finds an empty line frees the lease', async () => {
  const { key, grant, others } = await lineOf(1);
  await world.cancel(key, others[0]?.ticket ?? '');
  expect(await release(grant)).toEqual({ key, released: true });
  for (const name of ['lease_version', 'mark']) expect(await rawItem(key)).not.toHaveProperty(name);
});

it('a quick release with a lost answer is done, whatever the next holder did', async () => {
  const { key, grant } = await lineOf(2);
  const movesOn = async () => breakLease({ key, fence: Number((await rawItem(key))?.fence?.N) });
  requests.faultsOf.UpdateItem = [lostAfter(movesOn)];
  expect(await release(grant)).toEqual({ key, released: true });
});

it('a made-up lease id with the ticket of another proves nothing', async () => {
  const { key, grant, others } = await lineOf(2);
  const [before, line] = [await rawItem(key), await rows(key)];
  for (const ticket of [others[0]?.ticket, others[1]?.ticket, 'x']) {
    const guess = { key, leaseId: `00000000-0000-4000-8000-000000000000+${ticket}` };
    expect(await release(guess)).toMatchObject({ key, released: false });
  }
  expect([await rawItem(key), await rows(key)]).toEqual([before, line]);
  expect(await release(grant)).toMatchObject({ released: true });
});

it('a quick release whose fence would not rise falls back to the plain one', async () => {
  const { key, grant } = await lineOf(1);
  clock.advance(-1000);
  expect(await sentBy(() => release(grant))).toEqual(['Query', 'UpdateItem', ...PLAIN]);
  expect(Number((await rawItem(key))?.fence?.N)).toBeGreaterThan(grant.fence);
});

it('a ticket that is still there does not bring a second grant', async () => {
  const { key, grant, parked, others } = await lineOf(1);
  const row = { key: { S: key }, ticket: { S: parked[0]?.ticket ?? '' }, holder: { S: 'task 0' } };
  await putTicket({ ...row, task_token: { S: 'dead' }, deadline: { N: String(clock.now() + 60_000) } });
  await release(grant);
  expect(grantOf(others[0]?.task as never)).toMatchObject({ holder: 'task 1' });
  expect(await rows(key)).toEqual([]);
});

it('a quick release near the end of its invocation does not serve the line', async () => {
  const { key, grant, others } = await lineOf(1);
  expect(await release(grant, call({ timeLeftMs: () => 1999 }))).toEqual({ key, released: true });
  expect(others[0]?.task.state).toBe('waiting');
  expect(await rawItem(key)).not.toHaveProperty('lease_version');
  await world.repairKey(key);
  expect(grantOf(others[0]?.task as never)).toMatchObject({ holder: 'task 1' });
});

it.each([
  ['holder', { holder: { S: 'another' } }],
  ['authenticated caller', { holder: { S: 'first' }, principal: { S: 'another' } }],
])('a ticket of another %s is that of another request', async (_, whose) => {
  const key = `quick ${keys++}`;
  const first = await acquire({ key, holder: 'first', requestId: 'r' });
  await park({ key });
  const ticket = callerRow(key, 'other', { request_id: { S: 'r' }, ...whose });
  await putTicket(ticket);
  await release(first);
  expect(await ticketOf(key)).toBe(ticket.ticket.S);
});

it.each([
  ['arrivals', { S: 'many' }],
  ['arrivals', { N: '1e100' }],
  ['next_ticket', { N: '1' }],
  ['turn_ms', { S: 'long' }],
])('a record in which another client has changed %s to %o', async (name, value) => {
  const { key, grant, others } = await lineOf(2);
  const { [name]: _, ...record } = (await rawItem(key)) ?? {};
  await putRaw({ ...record, ...(value && { [name]: value }) } as never);
  expect(await release(grant)).toEqual({ key, released: true });
  expect(grantOf(others[0]?.task as never)).toMatchObject({ holder: 'task 1' });
});

it('a hand-off notes the first tickets behind the new holder', async () => {
  const key = `quick ${keys++}`;
  const first = await acquire({ key });
  const next = await park({ key });
  const between = String(clock.now() + 1).padStart(15, '0');
  const ticketAt = (index: number) => ({ ticket: { S: `${between}-${index + 10}` } });
  await putTickets(Array.from({ length: 30 }, (_, index) => callerRow(key, `caller ${index}`, ticketAt(index))));
  await release(first);
  const { line_out: out, next_tickets: names } = (await rawItem(key)) ?? {};
  const named = Array.from({ length: 24 }, (_, index) => String(index + 10));
  expect([await ticketOf(key), out?.N, names?.S?.split(' ')]).toEqual([next.ticket, '1', named]);
});

it.each([1, 2])('a hand-off keeps the mark for a task behind %i', async (waiting) => {
  const key = `quick ${keys++}`;
  const first = await acquire({ key });
  for (let count = 0; count < waiting; count++) await park({ key });
  requests.faultsOf.UpdateItem = [
    'none', // the release loses by the mark
    precededBy(() => park({ key, holder: 'newcomer' })),
  ];
  const sent = await sentBy(() => release(first));
  expect((await rawItem(key))?.mark).toBeDefined();
  // The line is read again only if the release saw no waiter behind the one that it served.
  expect(sent.filter((command) => command === 'Query')).toHaveLength(waiting === 1 ? 2 : 1);
});

it('a hand-off does not put back a mark that another call has removed', async () => {
  const key = `quick ${keys++}`;
  const first = await acquire({ key });
  const [next] = [await park({ key }), await park({ key })];
  requests.faultsOf.UpdateItem = [
    'none', // the release loses by the mark
    precededBy(async () => {
      const { mark: _, arrivals: __, ...cleared } = (await rawItem(key)) ?? {};
      await putRaw(cleared);
    }),
  ];
  await release(first);
  expect(grantOf(next.task)).toMatchObject({ key });
  expect(await rawItem(key)).not.toHaveProperty('mark');
});
