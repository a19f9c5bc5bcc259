import { DeleteItemCommand } from '@aws-sdk/client-dynamodb';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { acquireOrParkPermit } from '../../shared/permits/acquire.ts';
import { call } from '../support/emulators/aws.ts';
import { networkError } from '../support/faults/network.ts';
import { failure } from '../support/worlds/leases.ts';
import { poolLineWorld } from '../support/worlds/permits-in-line.ts';

const world = await poolLineWorld();
const { acquire, release, breakPermit, park, read, rawItem, clock, requests, steps } = world;
const { dynamodb, dependencies } = world;
afterAll(() => steps.stop());
beforeEach(() => {
  requests.faultsOf = {};
  requests.sent.length = 0;
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

/** Marks the record, and leaves nobody in line. */
const leaveMark = async (terms: { key: string; limit: number }) => {
  const { ticket } = await park({ ...terms, holder: 'gone', weight: terms.limit });
  const Key = { key: { S: terms.key }, ticket: { S: ticket } };
  await dynamodb.send(new DeleteItemCommand({ TableName: dependencies.waitersTable, Key }));
};

describe('the mark of a pool stays for a task that comes', () => {
  it('the mark of a pool stays for a task that joins between the look at the line and the grant to the only waiter', async () => {
    const key = 'newcomer';
    const terms = { key, limit: 2, ttlSeconds: 600 };
    const [, y] = [await acquire({ ...terms, holder: 'x' }), await acquire({ ...terms, holder: 'y' })];
    const { task } = await park({ ...terms, holder: 'b' });
    beforeTheGrant(() => park({ ...terms, holder: 'late', weight: 2 })); // it does not fit, and looks no further
    await release(y);
    expect(task.state).toBe('succeeded');
    expect(await rawItem(key)).toHaveProperty('mark');
  });

  it('the mark of a pool stays for a task that joins between the look at the line and the first of two writes that grant', async () => {
    const key = 'two-writes';
    const terms = { key, limit: 10, ttlSeconds: 600 };
    await acquire({ ...terms, holder: 'x' });
    const y = await acquire({ ...terms, holder: 'y', weight: 9 });
    const parked = [];
    for (let n = 0; n < 6; n++) parked.push(await park({ ...terms, holder: `b${n}` }));
    beforeTheGrant(() => park({ ...terms, holder: 'late', weight: 10 }));
    await release(y);
    expect(parked.map(({ task }) => task.state)).toEqual(Array(6).fill('succeeded'));
    expect(await rawItem(key)).toHaveProperty('mark');
  });
});

it('a task hears of its permit, though the answer of the write was lost, and another permit of that write has ended since', async () => {
  const terms = { key: 'lost and broken', limit: 2, ttlSeconds: 600 };
  const first = await acquire({ ...terms, holder: 'x', weight: 2 });
  const [, { task }] = [await park({ ...terms, holder: 'b' }), await park({ ...terms, holder: 'c' })];
  requests.faultsOf.UpdateItem = [
    'none',
    async (send: () => Promise<unknown>) => {
      await send();
      const { holders } = await read(terms.key);
      await breakPermit({ key: terms.key, fence: holders[0]?.fence ?? 0 });
      throw networkError('ECONNRESET', 'read');
    },
  ];
  await release(first);
  expect(task.state).toBe('succeeded');
  expect((await read(terms.key)).holders).toMatchObject([{ holder: 'c' }]);
});

describe('the line of a pool is looked at again', () => {
  it('the line of a pool is looked at again by a break whose first try got no answer, and not by its repeat', async () => {
    const terms = { key: 'unanswered break', limit: 1, ttlSeconds: 600 };
    const { fence } = await acquire({ ...terms, holder: 'x' });
    const { task } = await park({ ...terms, holder: 'b' });
    await park({ ...terms, holder: 'c' });
    requests.faultsOf.UpdateItem = ['lostReply'];
    expect(await breakPermit({ key: terms.key, fence })).toMatchObject({ broken: true });
    expect(task.state).toBe('succeeded');
    requests.sent.length = 0;
    expect(await breakPermit({ key: terms.key, fence })).toMatchObject({ broken: true });
    expect(requests.sent).toEqual(['GetItem']);
  });

  it('the line of a pool is looked at again if more permits have expired than one write ends, and the first in line needs the room of all', async () => {
    const terms = { key: 'crowd', limit: 21 };
    for (let n = 0; n < 21; n++) await acquire({ ...terms, holder: `x${n}`, ttlSeconds: 2 });
    const { task } = await park({ ...terms, holder: 'heavy', weight: 21 });
    clock.advance(2600);
    expect((await failure(acquire({ ...terms, holder: 'c' }))).code).toBe('LeaseHeld');
    expect(task.state).toBe('succeeded');
  });
});

describe('a call that meets a line and does not wait', () => {
  it('a call that meets a line and does not wait asks once if there is no room', async () => {
    const terms = { key: 'full', limit: 1, ttlSeconds: 600 };
    await acquire({ ...terms, holder: 'x' });
    await park({ ...terms, holder: 'b' });
    requests.sent.length = 0;
    expect((await failure(acquire({ ...terms, holder: 'c' }))).code).toBe('LeaseHeld');
    expect(requests.sent).toEqual(['UpdateItem']);
  });

  it('a call that meets a line and does not wait looks at the line once if there is room, and no more if the room is too small for the first', async () => {
    const terms = { key: 'heavy first', limit: 3, ttlSeconds: 600 };
    await acquire({ ...terms, holder: 'x', weight: 2 });
    await park({ ...terms, holder: 'heavy', weight: 2 });
    requests.sent.length = 0;
    const { code, message } = await failure(acquire({ ...terms, holder: 'light' }));
    expect([code, message]).toEqual([
      'LeaseHeld',
      'other waiters are in line: the holders weigh 2, and the limit is 3',
    ]);
    expect(requests.sent).toEqual(['UpdateItem', 'Query']);
  });

  it('a call that meets an empty line looks at it once too if a waiter joined before the call asked again', async () => {
    const terms = { key: 'came again', limit: 2, ttlSeconds: 600 };
    await acquire({ ...terms, holder: 'x' });
    await leaveMark(terms);
    requests.faultsOf.UpdateItem = [
      'none', // its own try
      'none', // takes the mark off
      async (send: () => Promise<unknown>) => {
        await park({ ...terms, holder: 'heavy', weight: 2 });
        requests.sent.length = 0;
        return send();
      },
    ];
    expect((await failure(acquire({ ...terms, holder: 'light' }))).code).toBe('LeaseHeld');
    expect(requests.sent).toEqual([]);
  });
});

it('a grant of the line notes who is next, by which callers pace their looks', async () => {
  const terms = { key: 'next', limit: 1, ttlSeconds: 600 };
  const first = await acquire({ ...terms, holder: 'x' });
  const [b, c] = [await park({ ...terms, holder: 'b' }), await park({ ...terms, holder: 'c' })];
  expect((await rawItem(terms.key))?.next).toEqual({ S: b.ticket });
  await release(first);
  expect((await rawItem(terms.key))?.next).toEqual({ S: c.ticket });
});

it('a task that is parked counts, and one that has its permit at once does not', async () => {
  const ask = acquireOrParkPermit(dependencies);
  const counted = async () => {
    const noted: unknown[] = [];
    const asked = { key: 'counted', holder: 'task', limit: 1, ttlSeconds: 600, waitSeconds: 0 };
    const measure = (...one: unknown[]) => void noted.push(one);
    await ask({ ...asked, taskToken: steps.newTask().token }, call({ measure }));
    return noted.filter((one) => String(one).startsWith('Parked,'));
  };
  expect([await counted(), await counted()]).toEqual([[], [['Parked', 1]]]);
});

it('fences rise also if TTL has deleted the record of a pool', async () => {
  const terms = { key: 'deleted', limit: 2 };
  const first = await acquire({ ...terms, holder: 'x' });
  const Key = { key: { S: 'deleted' } };
  await dynamodb.send(new DeleteItemCommand({ TableName: dependencies.table, Key }));
  clock.advance(1);
  expect((await acquire({ ...terms, holder: 'y' })).fence).toBeGreaterThan(first.fence);
});
