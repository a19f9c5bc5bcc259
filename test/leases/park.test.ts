import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import type { KeyPage } from '../../shared/locks/listed-keys.ts';
import { failure } from '../support/worlds/leases.ts';
import { queueWorld } from '../support/worlds/line.ts';

// What only a lease has of test/line/parks.ts: its attributes, its listing and its requests.

const world = await queueWorld();
const { acquire, release, read, park, grantOf, rawItem, putRaw, rows, clock, requests, steps, precededBy } = world;
afterAll(() => steps.stop());
beforeEach(() => {
  requests.faultsOf = {};
  requests.sent.length = 0;
  steps.requests.length = 0;
});
const execution = 'arn:aws:states:us-east-1:123456789012:execution:machine:run';

it('a task writes the row that the report of expired records and the repair rely on', async () => {
  await acquire({ key: 'row' });
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

it('a reader sees which execution holds the lease, and a listing says whether tasks wait', async () => {
  const grant = await acquire({ key: 'run', execution });
  await park({ key: 'run' });
  await park({ key: 'run' });
  expect(await read({ key: 'run' })).toMatchObject({ state: 'held', execution, ttlSeconds: 60, waiting: 2 });
  expect(((await read({ prefix: 'run' })) as KeyPage).leases).toMatchObject([{ key: 'run', waiting: 2, execution }]);
  expect(((await read({ key: 'run', waiters: true, limit: 1 })) as { waiters?: [] }).waiters).toHaveLength(1);
  await release(grant);
  expect(await read({ key: 'run' })).toMatchObject({ state: 'held', execution: null });
});

it('a task waits behind a caller that takes the free lease between the mark and the grant', async () => {
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

it('the unnotified task of a released lease receives LeaseLost when the next task takes the free lease', async () => {
  const asked = { key: 'given back', holder: 'b', requestId: 'shared' };
  const first = await acquire({ key: asked.key });
  const { task } = await park(asked);
  steps.faults.SendTaskSuccess = ['refused'];
  await release(first);
  const shared = await acquire(asked);
  const { waiters: _, ...unmarked } = (await rawItem(asked.key)) ?? {}; // a third-party client has dropped the mark
  await putRaw(unmarked);
  expect(await release(shared)).toMatchObject({ released: true });
  expect(task.state).toBe('waiting');
  const next = await park({ key: asked.key, holder: 'next' });
  expect(grantOf(next.task)).toMatchObject({ holder: 'next' });
  expect(task).toMatchObject({ state: 'failed', error: 'LeaseLost', cause: { reason: 'released' } });
});

describe('the requests of a line', () => {
  it('acquire and release without waiters send one write each', async () => {
    await release(await acquire({ key: 'plain' }));
    expect(requests.sent).toEqual(['PutItem', 'UpdateItem']);
    expect(steps.requests).toEqual([]);
  });

  it('a plain caller that comes to an expired lease before a parked task hands off, and does not try again', async () => {
    await acquire({ key: 'passing by', ttlSeconds: 2 });
    const { task } = await park({ key: 'passing by' });
    clock.advance(2000 + 501);
    requests.sent.length = 0;
    expect((await failure(acquire({ key: 'passing by', holder: 'plain' }))).code).toBe('LeaseHeld');
    expect(requests.sent).toEqual(['PutItem', 'Query', 'UpdateItem', 'DeleteItem']);
    expect(task.state).toBe('succeeded');
  });

  it('a release with a task in line sends the release that loses, a query, the transfer, and the deletion of the ticket', async () => {
    const first = await acquire({ key: 'cost' });
    await park({ key: 'cost' });
    requests.sent.length = 0;
    await release(first);
    expect(requests.sent).toEqual(['UpdateItem', 'Query', 'UpdateItem', 'DeleteItem']);
    expect(steps.requests.map(({ action }) => action)).toEqual(['SendTaskSuccess']);
  });

  it('a task that parks behind another task for an expired lease writes its ticket and its mark, and hands off to that task', async () => {
    await acquire({ key: 'behind', ttlSeconds: 2 });
    const { task } = await park({ key: 'behind' });
    clock.advance(2000 + 501);
    requests.sent.length = 0;
    expect(await park({ key: 'behind' })).toMatchObject({ parked: true });
    expect(task.state).toBe('succeeded');
    expect(requests.sent).toEqual(['PutItem', 'UpdateItem', 'Query', 'UpdateItem', 'DeleteItem']);
  });
});
