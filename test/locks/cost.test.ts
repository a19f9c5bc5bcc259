import { afterAll, expect, inject, it } from 'vitest';
import { unitCounter } from '../support/emulators/aws.ts';
import { failure, leaseWorld } from '../support/worlds/leases.ts';
import { lineWorld } from '../support/worlds/line.ts';

const world = await leaseWorld();
const { acquire, heartbeat, release, breakLease, read, clock, requests } = world;

/** As the README's cost table counts them. */
const unitsOf = unitCounter(world.dynamodb);

it('acquire, heartbeat and release cost a write unit, a break a read more', async () => {
  const names = { key: 'reports/2026/nightly', holder: 'arn:aws:lambda:eu-west-1:123456789012:function:nightly' };
  expect(await unitsOf(() => acquire(names))).toEqual([1]);
  const grant = await acquire({ ...names, key: 'other' });
  clock.advance(10);
  expect(await unitsOf(() => heartbeat(grant))).toEqual([1]);
  expect(await unitsOf(() => release(grant))).toEqual([1]);
  clock.advance(10);
  const { fence } = await acquire({ ...names, key: 'other' });
  expect(await unitsOf(() => breakLease({ key: 'other', fence }))).toEqual([1, 1]);
});

it('a repeat of an acquire costs a write unit only with an execution', async () => {
  const plain = { key: 'repeated', requestId: 'r' };
  const execution = 'arn:aws:states:us-east-1:123456789012:execution:machine:run';
  await acquire(plain);
  expect(await unitsOf(() => acquire(plain))).toEqual([]);
  const named = { key: 'of an execution', requestId: 'r', execution };
  await acquire(named);
  expect(await unitsOf(() => acquire(named))).toEqual([1]);
});

it('the largest record of a lease costs at most six write units', async () => {
  const largest = {
    key: 'k'.repeat(1024),
    holder: 'h'.repeat(256),
    requestId: 'r'.repeat(256),
    data: 'd'.repeat(4094),
  };
  const [consumed = 0] = await unitsOf(() => acquire(largest));
  expect(consumed).toBeGreaterThanOrEqual(5);
  expect(consumed).toBeLessThanOrEqual(6);
});

it('a read costs a read unit, and each poll of a race half', async () => {
  const grant = await acquire({ key: 'looked-at' });
  expect(await unitsOf(() => read({ key: 'looked-at' }))).toEqual([1]);
  const waiting = () => failure(acquire({ key: 'looked-at', requestId: 'another', waitSeconds: 1, fair: false }));
  const units = await unitsOf(waiting);
  // The first try loses with an exception, which reports no units.
  expect(units.length).toBeGreaterThan(3);
  expect(new Set(units)).toEqual(new Set([0.5]));
  await release(grant);
});

it('a key that was used the other way costs one write', async () => {
  const lease = await acquire({ key: 'either way' });
  await release(lease);
  requests.sent.length = 0;
  clock.advance(10);
  const permit = await acquire({ key: 'either way', limit: 2 });
  await release(permit);
  clock.advance(10);
  await acquire({ key: 'either way' });
  expect(requests.sent).toEqual(Array(3).fill('UpdateItem'));
});

it('64 callers for 64 permits cost 64 writes, in whatever order they arrive', async () => {
  requests.sent.length = 0;
  const asked = Array.from({ length: 64 }, (_, n) => acquire({ key: 'many', holder: `worker-${n}`, limit: 64 }));
  const granted = await Promise.all(asked);
  expect(requests.sent).toHaveLength(64);
  expect(new Set(granted.map(({ fence }) => fence)).size).toBe(64);
  expect((await world.readKey('many')).used).toBe(64);
});

it('a write pays for the whole record: a write unit for each kilobyte', async () => {
  const costs: number[] = [];
  for (let n = 0; n < 30; n++)
    costs.push(...(await unitsOf(() => acquire({ key: 'units', holder: `worker-${n}`, limit: 200 }))));
  expect(costs.slice(0, 5)).toEqual([1, 1, 1, 1, 1]);
  expect(costs[9]).toBe(2);
  expect(costs[29]).toBe(6);
  // A consistent read costs one unit for each four kilobytes.
  expect(await unitsOf(() => read({ key: 'units' }))).toEqual([2]);
});

const [line, other] = [await lineWorld(), await lineWorld()];
/** Counts the units of all answers. A write that loses its condition is missing: it is an exception without units, and costs one on AWS. */
const lineUnits = unitCounter(line.dynamodb);
const otherUnits = unitCounter(other.dynamodb);
const execution = 'arn:aws:states:eu-west-1:000000000000:execution:nightly:1';
afterAll(() => Promise.all([line.steps.stop(), other.steps.stop()]));

it('parking costs two write units, and one more for an execution', async () => {
  await line.acquire({ key: 'parked' });
  expect(await lineUnits(() => line.park({ key: 'parked' }))).toEqual([1, 1]);
  expect(await lineUnits(() => line.park({ key: 'parked', execution }))).toEqual([2, 1]);
});

it('a hand-off costs a query, a transfer and a deletion', async () => {
  const first = await line.acquire({ key: 'handed' });
  const [second] = [await line.park({ key: 'handed' }), await line.park({ key: 'handed' })];
  expect(await lineUnits(() => line.release(first))).toEqual([1, 1, 1]);
  line.clock.advance(1000);
  expect(await lineUnits(() => line.release(line.grantOf(second.task)))).toEqual([1, 1, 1]);
});

it.runIf(inject('countsUnits'))(
  'storing an execution costs a write unit, and its end without leases two reads',
  async () => {
    expect(await lineUnits(() => line.acquire({ key: 'executed', execution }))).toEqual([2]);
    expect(await lineUnits(() => line.executionEnded(`${execution}-unknown`))).toEqual([0.5, 0.5]); // and again 90 seconds later
  },
);

it.runIf(inject('countsUnits'))('a run of the schedule costs one read unit, and each line under four', async () => {
  expect(await otherUnits(other.repair)).toEqual([0.5, 0.5]);
  await other.acquire({ key: 'repaired' });
  await other.park({ key: 'repaired' });
  // A run begins at a random place in the table, so the order of its requests is open.
  expect((await otherUnits(other.repair)).toSorted()).toEqual([0.5, 0.5, 0.5, 1, 1, 1]);
});
