import { afterAll, beforeEach, expect, it } from 'vitest';
import { failure, leaseWorld } from '../support/worlds/leases.ts';
import { lineWorld } from '../support/worlds/line.ts';

// What test/line/breaks.ts does not say: requests, attributes, other grants of the key, and `previous`.

const world = await lineWorld();
const { acquire, heartbeat, release, breakLease, read, park, joinLine, grantOf, rawItem, putRaw } = world;
const { clock, requests, steps, precededBy } = world;
afterAll(() => steps.stop());

/** Another instance of the service over the same table. */
const other = await leaseWorld({ table: world.table, clock });

const iso = (epochMs: number) => new Date(epochMs).toISOString();
const TTL_MS = 60_000;
const broken = { code: 'LeaseLost', context: { reason: 'broken', holder: null } };
const KINDS: [kind: string, terms: object][] = [
  ['a lease', {}],
  ['a permit', { limit: 2 }],
];

beforeEach(() => {
  requests.faults = [];
  requests.faultsOf = {};
  requests.sent.length = 0;
});

it.each(KINDS)('a break ends %s with one read and one write', async (key, terms) => {
  const grant = await acquire({ key, holder: 'frozen', ...terms });
  const { fence, leaseId, expiresAt } = grant;
  requests.sent.length = 0;
  expect(await breakLease({ key, fence })).toEqual({
    ...{ key, broken: true, fence, holder: 'frozen', ended: true },
    ...{ holderUntil: expiresAt, lastHeartbeatAt: null },
  });
  expect(requests.sent).toEqual(['GetItem', 'UpdateItem']);
  expect(await release({ key, leaseId })).toEqual({ key, released: false, reason: 'broken' });
  expect(await failure(heartbeat(grant))).toMatchObject(broken);
  clock.advance(1);
  expect((await acquire({ key, holder: 'next' })).fence).toBeGreaterThan(fence);
});

it('a break repeats its answer, without the holder of an ended permit', async () => {
  const lease = await acquire({ key: 'twice' });
  clock.advance(20_000);
  await heartbeat(lease);
  const first = await breakLease({ key: 'twice', fence: lease.fence });
  clock.advance(1000);
  expect(await breakLease({ key: 'twice', fence: lease.fence })).toEqual(first);
  const { key, fence } = await acquire({ key: 'permit twice', limit: 2 });
  await breakLease({ key, fence });
  expect(await breakLease({ key, fence })).toMatchObject({ holder: null, ended: true, holderUntil: null });
});

it('a break spares a grant of another fence, and names its exclusive holder', async () => {
  const key = 'moved on';
  const { fence, expiresAt } = await acquire({ key, holder: 'now' });
  const { code, context } = await failure(breakLease({ key, fence: fence - 1 }));
  expect(code).toBe('Conflict');
  expect(context).toMatchObject({ key, actual: { key, state: 'held', holder: 'now', fence, expiresAt } });
  const permit = await acquire({ key: 'permit moved on', limit: 2 });
  const late = breakLease({ key: permit.key, fence: permit.fence - 1 });
  expect(await failure(late)).toMatchObject({ code: 'NotFound', context: { key: permit.key } });
  for (const one of [key, permit.key]) expect(await read({ key: one })).toMatchObject({ state: 'held', ending: false });
});

it('a break of a free key, or with another fence, is NotFound', async () => {
  expect((await failure(breakLease({ key: 'no such', fence: 1 }))).code).toBe('NotFound');
  const key = 'ended';
  const grant = await acquire({ key });
  await release(grant);
  const { code, context } = await failure(breakLease({ key, fence: grant.fence }));
  expect([code, context]).toEqual(['NotFound', { key }]);
  clock.advance(1);
  const { fence } = await acquire({ key });
  await breakLease({ key, fence });
  for (const another of [fence - 1, fence + 1])
    expect((await failure(breakLease({ key, fence: another }))).code).toBe('NotFound');
});

it('a break of a permit leaves the other holders alone', async () => {
  const key = 'two holders';
  const [a, b] = [await acquire({ key, holder: 'a', limit: 2 }), await acquire({ key, holder: 'b', limit: 2 })];
  expect(await breakLease({ key, fence: a.fence })).toMatchObject({ holder: 'a', ended: true });
  expect(await heartbeat(b)).toMatchObject({ fence: b.fence });
  expect(await breakLease({ key, fence: a.fence })).toMatchObject({ broken: true });
});

it.each(KINDS)('a break that waits marks %s with one read and one write', async (kind, terms) => {
  const key = `marked ${kind}`;
  const { leaseId, fence } = await acquire({ key, holder: 'worker', ...terms });
  clock.advance(20_000);
  const { expiresAt } = await heartbeat({ key, leaseId });
  const heartbeatAt = clock.now();
  clock.advance(5000);
  requests.sent.length = 0;
  expect(await breakLease({ key, fence, wait: true })).toEqual({
    ...{ key, broken: true, fence, holder: 'worker', ended: false },
    ...{ holderUntil: expiresAt, lastHeartbeatAt: iso(heartbeatAt) },
  });
  expect(requests.sent).toEqual(['GetItem', 'UpdateItem']);
  expect(await read({ key })).toMatchObject({ state: 'held', holder: 'worker', ending: true, expiresAt });
  expect(await failure(acquire({ key, holder: 'next' }))).toMatchObject({ code: 'LeaseHeld' });
});

it.each(KINDS)('a break that waits reports an odd part of the entry of %s', async (kind, terms) => {
  const key = `odd ${kind}`;
  const { fence } = await acquire({ key, ...terms });
  const item = (await rawItem(key)) ?? {};
  const [name = '', entry] = Object.entries(item).find(([, { M: map }]) => map?.i !== undefined) ?? [];
  await putRaw({ ...item, [name]: { M: { ...entry?.M, c: { S: 'odd' } } } });
  expect(await failure(breakLease({ key, fence, wait: true }))).toMatchObject({ code: 'Unavailable' });
});

it('a break that waits names the expiry of a heartbeat that landed before it', async () => {
  const { key, leaseId, fence } = await acquire({ key: 'beat first' });
  clock.advance(20_000);
  requests.faultsOf.UpdateItem = [precededBy(() => other.heartbeat({ key, leaseId }))];
  const answer = await breakLease({ key, fence, wait: true });
  expect(answer).toMatchObject({ ended: false, holderUntil: iso(clock.now() + TTL_MS) });
  expect(answer.lastHeartbeatAt).toBe(iso(clock.now()));
});

it.each(KINDS)('a break that waits does not find a grant once %s was released', async (kind, terms) => {
  const grant = await acquire({ key: `release first: ${kind}`, ...terms });
  requests.faultsOf.UpdateItem = [precededBy(() => other.release(grant))];
  const late = breakLease({ key: grant.key, fence: grant.fence, wait: true });
  expect(await failure(late)).toMatchObject({ code: 'NotFound' });
});

it('a break that waits covers a grant that is claimed during the break', async () => {
  const key = 'claimed meanwhile';
  const first = await acquire({ key, holder: 'first' });
  const { ticket } = await joinLine(key, 'r');
  await release(first);
  const claim = () => acquire({ key, holder: 'caller', requestId: 'r', ticket, ttlSeconds: 10 });
  requests.faultsOf.UpdateItem = [precededBy(claim)];
  const fence = Number((await rawItem(key))?.fence?.N);
  expect(await breakLease({ key, fence, wait: true })).toMatchObject({ ended: false });
});

it('a break that waits refuses a repeat that read the grant before the mark', async () => {
  const key = 'read before';
  const first = await acquire({ key, holder: 'first' });
  const { task } = await park({ key, holder: 'worker', requestId: 'r' });
  await release(first);
  const { fence, expiresAt } = grantOf(task);
  clock.advance(1000);
  requests.faultsOf.UpdateItem = ['none', precededBy(() => breakLease({ key, fence, wait: true }))]; // the new version
  const repeat = acquire({ key, holder: 'worker', requestId: 'r' });
  expect(await failure(repeat)).toMatchObject(broken);
  expect(await read({ key })).toMatchObject({ expiresAt, ending: true });
});

it('a repeated break and the schedule notify a task that could not be notified', async () => {
  for (const key of ['repeated', 'not repeated']) {
    const first = await acquire({ key });
    const { task } = await park({ key, holder: 'task', requestId: 'r' });
    steps.faults = { SendTaskSuccess: ['refused'], SendTaskFailure: ['denied', 'denied', 'denied'] };
    await release(first);
    const next = key === 'not repeated' ? await park({ key, holder: 'next' }) : undefined;
    const one = { key, fence: Number((await rawItem(key))?.fence?.N) };
    expect(await breakLease(one)).toMatchObject({ broken: true, ended: true });
    steps.faults = {};
    if (next) await release(grantOf(next.task));
    else expect(await breakLease(one)).toMatchObject({ broken: true, ended: true });
    await world.repairKey(key);
    expect(task).toMatchObject({ error: 'LeaseLost', cause: { reason: 'broken' } });
    expect(await world.rows(key)).toEqual([]);
  }
});
