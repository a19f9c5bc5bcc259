import { expect, it } from 'vitest';
import { exitingAfter } from '../support/faults/mortal.ts';
import { failure } from '../support/worlds/leases.ts';
import { resetting } from '../support/worlds/line.ts';
import { permitLineWorld } from '../support/worlds/permits-in-line.ts';

// Who in line receives a permit, who is passed over, and which rows go.

const world = await permitLineWorld();
const { acquire, release, park, cancel, read, repairLine, rawItem, rows } = world;
const { clock, requests, steps, sent, unnotified } = world;
resetting(world);

const noticesOf = (action: string) => steps.requests.filter((one) => one.action === action).length;
const holders = async (key: string) => (await read(key)).holders.map(({ holder }) => holder);
const waits = (key: string, more: object = {}) => acquire({ key, holder: 'dead', limit: 1, waitSeconds: 20, ...more });
/** A call that exits after it has written its row and its mark. @returns its ticket */
const exitInLine = async (key: string, more: object = {}) => {
  const before = new Set((await rows(key)).map(({ ticket }) => ticket?.S));
  await exitingAfter(3, () => waits(key, more));
  clock.advance(1); // so that the next ticket is later
  return (await rows(key)).map(({ ticket }) => ticket?.S ?? '').find((ticket) => !before.has(ticket)) ?? '';
};

it('a call deletes each expired row once, even if it reads the line again', async () => {
  const key = 'once';
  await acquire({ key, holder: 'x', limit: 2, ttlSeconds: 2 });
  const y = await acquire({ key, holder: 'y', limit: 2 });
  await exitInLine(key, { limit: 2, waitSeconds: 1 });
  await park({ key, holder: 'overdue', limit: 2, parkSeconds: 1 });
  const { task } = await park({ key, holder: 'b', limit: 2 });
  await park({ key, holder: 'heavy', limit: 2, weight: 2 });
  clock.advance(6000);
  requests.sent.length = 0;
  await release(y);
  expect([task.state, sent('DeleteItem'), noticesOf('SendTaskFailure')]).toEqual(['succeeded', 3, 1]);
  expect(await read(key)).toMatchObject({ used: 1, waiting: 1 });
});

it('a caller may claim its permit, of its weight, within the margin', async () => {
  const key = 'within the margin';
  const first = await acquire({ key, limit: 1 });
  await exitInLine(key, { requestId: 'r' });
  await release(first);
  const [before] = (await read(key)).holders;
  clock.advance(2200);
  const heavier = { key, holder: 'dead', requestId: 'r', limit: 2, weight: 2 };
  expect(await failure(acquire(heavier))).toMatchObject({ code: 'InvalidRequest' });
  const granted = await acquire({ key, holder: 'dead', requestId: 'r', limit: 1 });
  expect(granted).toMatchObject({ repeated: false, fence: before?.fence, remainingMs: 60_000 });
});

it('rows of held permits do not keep a waiter from an expired permit', async () => {
  const key = 'stand';
  await acquire({ key, holder: 'x', limit: 3, ttlSeconds: 11 });
  const first = await acquire({ key, holder: 'y', limit: 3, weight: 2 });
  await exitInLine(key, { holder: 'c', limit: 3 });
  clock.advance(10_000);
  await unnotified(first, { limit: 3 });
  const { task } = await park({ key, holder: 'b', limit: 3 });
  clock.advance(1600);
  await repairLine(key);
  expect([task.state, await holders(key)]).toEqual(['succeeded', ['c', 'unnotified', 'b']]);
});

it.each(['a task', 'a caller'])('rows of held permits of %s do not keep the mark', async (kind) => {
  const key = `alone ${kind}`;
  const first = await acquire({ key, limit: 2, weight: 2 });
  if (kind === 'a caller') await exitInLine(key, { limit: 2 });
  const parked = kind === 'a task' ? await unnotified(first, { limit: 2 }) : await release(first);
  expect(parked).toBeDefined();
  const { ticket } = await park({ key, holder: 'heavy', limit: 2, weight: 2 });
  expect(await rawItem(key)).toHaveProperty('mark');
  await cancel(key, ticket);
  expect([(await rows(key)).length, (await rawItem(key))?.mark]).toEqual([1, undefined]);
  expect(await acquire({ key, holder: 'new', limit: 2 })).toMatchObject({ used: 2 });
});

it('a second waiter of a request does not keep the mark', async () => {
  const key = 'call and task';
  const first = await acquire({ key, limit: 1 });
  const asked = { holder: 'c', requestId: 'r', limit: 1 };
  await exitInLine(key, asked);
  await park({ key, ...asked });
  await release(first);
  expect(await rawItem(key)).not.toHaveProperty('mark');
});

it('the record names the next waiter, even if others come after it', async () => {
  const key = 'hint';
  await acquire({ key, limit: 1 });
  const { ticket } = await park({ key, holder: 'b', limit: 1 });
  await park({ key, holder: 'c', limit: 1 });
  await exitInLine(key);
  expect(await rawItem(key)).toMatchObject({ next_ticket: { S: ticket } });
});

/** The caller c has a permit that it has not claimed. `claim` lets it ask again. */
async function unclaimed(key: string) {
  const first = await acquire({ key, limit: 1 });
  await exitInLine(key, { requestId: 'r' });
  await release(first);
  const [{ fence } = { fence: 0 }] = (await read(key)).holders;
  const asked = { key, holder: 'dead', requestId: 'r', limit: 1, ttlSeconds: 2 };
  return { fence, claim: (more: object = {}) => acquire({ ...asked, ...more }) };
}

it('a claim is not made twice, and waits for the margin', async () => {
  const { fence, claim } = await unclaimed('claim over');
  await claim(); // c claims for the ttl of this call, not of the call that joined the line
  clock.advance(1999);
  expect(await claim()).toMatchObject({ fence, repeated: true, remainingMs: 1 });
  clock.advance(1);
  expect(await failure(claim())).toMatchObject({ code: 'LeaseHeld' });
  clock.advance(501);
  const again = await claim();
  expect(again).toMatchObject({ repeated: false, remainingMs: 2000 });
  expect(again.fence).toBeGreaterThan(Number(fence));
});

it('a cancel costs two reads, and more only if the ticket is there', async () => {
  const key = 'cancel none';
  await acquire({ key, limit: 1 });
  const { ticket } = await park({ key, holder: 'b', limit: 1 });
  requests.sent.length = 0;
  expect(await cancel(key, 'none')).toMatchObject({ cancelled: false, reason: 'unknown' });
  expect(requests.sent).toEqual(Array(2).fill('GetItem')); // the row, and the record
  requests.sent.length = 0;
  expect(await cancel(key, ticket)).toMatchObject({ cancelled: true });
  expect(requests.sent).toEqual(['GetItem', 'GetItem', 'DeleteItem', 'Query', 'UpdateItem']);
});
