import { DeleteItemCommand } from '@aws-sdk/client-dynamodb';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { failure } from '../support/leases.ts';
import { poolLineWorld } from '../support/pool-line.ts';

const world = await poolLineWorld();
const { acquire, release, park, rawItem, repairLine, clock, requests, steps, dynamodb, dependencies } = world;
afterAll(() => steps.stop());
beforeEach(() => {
  requests.faultsOf = {};
});

/** What happens before the second UpdateItem from now on arrives: the first is that of the release. */
const beforeTheGrant = (what: () => Promise<unknown>) => {
  requests.faultsOf.UpdateItem = [
    'none',
    async (send: () => Promise<unknown>) => {
      await what();
      return send();
    },
  ];
};

describe('the mark of a pool stays for a task that comes', () => {
  it('between the look at the line and the grant to the only one in it', async () => {
    const key = 'newcomer';
    const terms = { key, limit: 2, ttlSeconds: 600 };
    const [, y] = [await acquire({ ...terms, holder: 'x' }), await acquire({ ...terms, holder: 'y' })];
    const { task } = await park({ ...terms, holder: 'b' });
    beforeTheGrant(() => park({ ...terms, holder: 'late', weight: 2 })); // it does not fit, and looks no further
    await release(y);
    expect(task.state).toBe('succeeded');
    expect(await rawItem(key)).toHaveProperty('waiters');
  });

  it('between the look at the line and the first of two writes that grant', async () => {
    const key = 'two-writes';
    const terms = { key, limit: 10, ttlSeconds: 600 };
    await acquire({ ...terms, holder: 'x' });
    const y = await acquire({ ...terms, holder: 'y', weight: 9 });
    const parked = [];
    for (let n = 0; n < 6; n++) parked.push(await park({ ...terms, holder: `b${n}` }));
    beforeTheGrant(() => park({ ...terms, holder: 'late', weight: 10 }));
    await release(y);
    expect(parked.map(({ task }) => task.state)).toEqual(Array(6).fill('succeeded'));
    expect(await rawItem(key)).toHaveProperty('waiters');
  });
});

it('a task whose ticket is written late finds what was released meanwhile, and does not wait for the schedule', async () => {
  const terms = { key: 'late-ticket', limit: 1, ttlSeconds: 600 };
  const first = await acquire({ ...terms, holder: 'x' });
  requests.faultsOf.PutItem = [
    async (send: () => Promise<unknown>) => {
      await release(first);
      return send();
    },
  ];
  const { task, parked } = await park({ ...terms, holder: 'b' });
  expect([parked, task.state]).toEqual([false, 'succeeded']);
});

describe('the line of a pool is looked at again', () => {
  it('by a release whose first try got no answer', async () => {
    const terms = { key: 'unanswered', limit: 1, ttlSeconds: 600 };
    const first = await acquire({ ...terms, holder: 'x' });
    const { task } = await park({ ...terms, holder: 'b' });
    requests.faultsOf.UpdateItem = ['lostReply'];
    expect(await release(first)).toMatchObject({ released: true });
    expect(task.state).toBe('succeeded');
  });

  it('but takes no permit from a holder whose margin is not over', async () => {
    const terms = { key: 'margin', limit: 1 };
    await acquire({ ...terms, holder: 'x', ttlSeconds: 2 });
    const { task } = await park({ ...terms, holder: 'b' });
    clock.advance(2400);
    await repairLine('margin');
    expect(task.state).toBe('waiting');
    clock.advance(200);
    await repairLine('margin');
    expect(task.state).toBe('succeeded');
  });

  it('where more have expired than one write ends, and the first in line needs the room of all', async () => {
    const terms = { key: 'crowd', limit: 21 };
    for (let n = 0; n < 21; n++) await acquire({ ...terms, holder: `x${n}`, ttlSeconds: 2 });
    const { task } = await park({ ...terms, holder: 'heavy', weight: 21 });
    clock.advance(2600);
    expect((await failure(acquire({ ...terms, holder: 'c' }))).code).toBe('LeaseHeld');
    expect(task.state).toBe('succeeded');
  });
});

it('fences rise also where TTL has deleted the record of a pool', async () => {
  const terms = { key: 'deleted', limit: 2 };
  const first = await acquire({ ...terms, holder: 'x' });
  const Key = { key: { S: 'deleted' }, row: { S: '#' } };
  await dynamodb.send(new DeleteItemCommand({ TableName: dependencies.poolsTable, Key }));
  clock.advance(1);
  expect((await acquire({ ...terms, holder: 'y' })).fence).toBeGreaterThan(first.fence);
});
