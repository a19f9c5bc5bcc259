import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { Timeline } from '../support/time/timeline.ts';
import { failure } from '../support/worlds/leases.ts';
import { permitLineWorld } from '../support/worlds/permits-in-line.ts';

// What test/line/callers.ts and test/line/asking-again.ts do not say: requests, several holders, and calls that race.

const timeline = new Timeline();
const { now, sleep, later } = timeline;
const world = await permitLineWorld({ clock: timeline });
const { acquire, release, rows, repairLine, requests, steps } = world;
afterAll(() => steps.stop());
beforeEach(() => {
  requests.faultsOf = {};
});

let keys = 0;
const newKey = () => `key ${keys++}`;
const held = () => acquire({ key: newKey(), holder: 'first', ttlSeconds: 60 });
const waiting = (key: string, holder: string, more: object = {}) =>
  acquire({ key, holder, ttlSeconds: 10, waitSeconds: 20, ...more });

it('a call in line costs seven requests and its polls', async () => {
  const first = await held();
  requests.sent.length = 0;
  const [, grant] = await timeline.play(
    () => later(300, () => release(first)),
    () => waiting(first.key, 'second'),
  );
  expect(requests.sent.filter((command) => command !== 'GetItem')).toEqual([
    ...['UpdateItem', 'PutItem', 'UpdateItem'], // the first try, the ticket, the mark
    ...['UpdateItem', 'Query', 'UpdateItem'], // the release that loses, the line, the transfer
    ...['UpdateItem', 'DeleteItem'], // the claim and the ticket, at once
  ]);
  await release(grant);
});

it('a call reads its own row consistently, and the record if left out', async () => {
  const { key } = await held();
  const { table, waitersTable } = world.dependencies;
  const again: number[] = [];
  requests.faultsOf.GetItem = Array(1000).fill((send: () => Promise<unknown>) => {
    again.push(now());
    return send();
  });
  const { result, asked: reads } = await world.leavingOut(table, () =>
    timeline.play(() => failure(waiting(key, 'b', { waitSeconds: 2 }))),
  );
  requests.faultsOf = {};
  expect(result[0]).toMatchObject({ code: 'LeaseHeld', context: { holder: 'first' } });
  expect(reads[0]?.items).toMatchObject({ [waitersTable]: { ConsistentRead: true } });
  expect(again).toContain(reads[0]?.at);
});

const asking = (key: string, holder: string, more: object = {}) => waiting(key, holder, { limit: 2, ...more });
/** Acquires, holds for `holdMs`, and releases. */
const turn = async (key: string, holder: string, holdMs: number, more: object = {}) => {
  const grant = await asking(key, holder, more);
  const grantedAt = now();
  await sleep(holdMs);
  await release(grant);
  return { ...grant, grantedAt, releasedAt: now() };
};
type Turn = Awaited<ReturnType<typeof turn>>;

it('a writer is served before readers that came later, and then the readers together', async () => {
  const key = newKey();
  const reading = { limit: undefined, mode: 'shared' };
  const readers = [await asking(key, 'r1', reading), await asking(key, 'r2', reading)];
  const writer = () => turn(key, 'writer', 500, { limit: undefined, mode: 'exclusive' });
  const late = ['r3', 'r4', 'r5'].map((name) => () => later(100, () => turn(key, name, 500, reading)));
  const free = readers.map((permit) => () => later(1000, () => release(permit)));
  const [w, ...others] = await timeline.play(writer, ...late, ...free);
  const after = others.slice(0, 3) as Turn[];
  for (const one of after) expect(one.grantedAt).toBeGreaterThanOrEqual((w as Turn).releasedAt);
  const [least, most] = [Math.min(...after.map((r) => r.releasedAt)), Math.max(...after.map((r) => r.grantedAt))];
  expect(most).toBeLessThan(least); // at one time
});

it('a caller that asks again by other terms has a new position', async () => {
  const key = newKey();
  const [first, second] = [await asking(key, 'x'), await asking(key, 'y')];
  const [held] = await timeline.play(() => failure(asking(key, 'b', { waitSeconds: 1, requestId: 'b' })));
  const retryWith = held.context.retryWith as { requestId: string; ticket: string };
  const [, , grant] = await timeline.play(
    () => later(500, () => release(first)),
    () => later(1500, () => release(second)),
    () => asking(key, 'b', { limit: 1, ...retryWith }),
  );
  expect(grant).toMatchObject({ limit: 1, used: 1 });
  expect(grant.waitedMs).toBeGreaterThanOrEqual(1500);
  await timeline.play(() => later(10_000, () => repairLine(key)));
  expect(await rows(key)).toEqual([]);
});

describe('callers that race', () => {
  const own = { holder: 'R', requestId: 'r', limit: 1, fair: false };
  const writes = () => requests.sent.filter((command) => command === 'UpdateItem').length;

  it('a racing call has no position, and writes only if it sees room', async () => {
    const key = newKey();
    await asking(key, 'x', { limit: 1, ttlSeconds: 60 });
    requests.sent.length = 0;
    const [refused] = await timeline.play(() => failure(acquire({ key, ...own, waitSeconds: 2 })));
    expect(refused.code).toBe('LeaseHeld');
    expect(refused.context).not.toHaveProperty('place');
    expect([writes(), await rows(key)]).toEqual([1, []]);
  });

  it('a call that races is answered with the permit of a duplicate call', async () => {
    const key = newKey();
    await asking(key, 'x', { limit: 1, ttlSeconds: 60 });
    const [answer, { leaseId }] = await timeline.play(
      () => acquire({ key, ...own, waitSeconds: 4 }),
      () => later(1000, () => acquire({ key, ...own, limit: 2 })),
    );
    expect(answer).toMatchObject({ leaseId, repeated: true });
    expect(answer.waitedMs).toBeLessThan(1300);
  });
});
