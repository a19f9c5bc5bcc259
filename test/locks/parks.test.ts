import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DEFAULT_QUOTAS } from '../../shared/locks/dependencies.ts';
import { call } from '../support/emulators/aws.ts';
import { failure } from '../support/worlds/leases.ts';
import { resetting } from '../support/worlds/line.ts';
import { permitLineWorld } from '../support/worlds/permits-in-line.ts';

const world = await permitLineWorld();
const { acquire, release, heartbeat, read, park, repairLine, grantOf, rawItem, rows } = world;
const { clock, requests, steps, setRaw } = world;
resetting(world);

type Parked = Awaited<ReturnType<typeof park>>;

it('releases serve as many tasks as fit, in their order', async () => {
  const key = 'order';
  const x = await acquire({ key, holder: 'x', limit: 3, weight: 2, ttlSeconds: 60 });
  const y = await acquire({ key, holder: 'y', limit: 3, ttlSeconds: 60 });
  const parked: Parked[] = [];
  for (const holder of ['b', 'c', 'd', 'e']) parked.push(await park({ key, holder, limit: 3, parkSeconds: 600 }));
  const states = () => parked.map(({ task }) => task.state);
  expect(states()).toEqual(Array(4).fill('waiting'));
  expect(world.messages).toEqual([{ key: key, delaySeconds: 62 }]); // the message arrives when the holders expire
  expect(await read(key)).toMatchObject({ used: 3, waiting: 4 });
  await release(x);
  expect(states()).toEqual(['succeeded', 'succeeded', 'waiting', 'waiting']);
  const [b, c] = parked.map(({ task }) => task.output as { key: string; leaseId: string; fence: number });
  expect(c?.fence).toBe((b?.fence ?? 0) + 1);
  expect(await read(key)).toMatchObject({ used: 3, waiting: 2 });
  for (const one of [y, b, c]) if (one) await release(one);
  expect(states()).toEqual(Array(4).fill('succeeded'));
  expect(await rows(key)).toEqual([]);
  expect(await rawItem(key)).not.toHaveProperty('mark');
});

it('a task whose request has a permit of another weight is not parked', async () => {
  const asked = { key: 'heavier', holder: 'h', limit: 4, requestId: 'r' };
  await park(asked);
  expect(await failure(park({ ...asked, weight: 2 }))).toMatchObject({
    code: 'InvalidRequest',
    context: { issues: [{ path: 'requestId' }] },
  });
  expect(await rows('heavier')).toEqual([]);
  expect(await read('heavier')).toMatchObject({ used: 1 });
});

describe('full lines', () => {
  let few: Awaited<ReturnType<typeof permitLineWorld>>;
  beforeAll(async () => {
    few = await permitLineWorld({ quotas: { ...DEFAULT_QUOTAS, waitersPerKey: 2 } });
  });
  afterAll(() => few.steps.stop());

  /** One holder has three permits, and two tasks are in line. */
  async function full(key: string) {
    const first = await few.acquire({ key, limit: 3, weight: 3 });
    few.requests.sent.length = 0;
    for (const holder of ['b', 'c']) await few.park({ key, holder, limit: 3 });
    expect(few.sent('Query')).toBe(0); // as many as the quota allows
    const task = few.steps.newTask();
    return { first, task, park: () => few.park({ key, holder: 'd', limit: 3 }, task) };
  }

  it('a task beyond the quota stays in line if Step Functions does not answer', async () => {
    const { park } = await full('unanswered');
    few.steps.faults.SendTaskFailure = ['refused'];
    expect(await park()).toMatchObject({ parked: true, task: { state: 'waiting' } });
    expect(await few.rows('unanswered')).toHaveLength(3);
  });

  it('a task beyond the quota keeps a permit that it receives first', async () => {
    const { first, task, park } = await full('granted');
    few.steps.onTheWay = async (action) => {
      if (action === 'SendTaskFailure') await few.release(first);
    };
    expect(await park()).toMatchObject({ parked: false });
    expect(few.grantOf(task)).toMatchObject({ holder: 'd', used: 3 });
    expect(await few.read('granted')).toMatchObject({ used: 3, waiting: 0 });
  });
});

it('a task receives LeaseLost if its permit was written over', async () => {
  const asked = { key: 'own, foreign', holder: 'h', limit: 1, requestId: 'r' };
  const { leaseId } = await acquire(asked);
  await setRaw(asked.key, `h${leaseId.split('.')[1]}`, { S: 'text' });
  const { parked, task } = await park(asked);
  expect([parked, task]).toMatchObject([false, { error: 'LeaseLost', cause: { reason: 'unknown' } }]);
});

it('a run costs little for a marked line whose holder goes on', async () => {
  const key = 'goes on';
  await acquire({ key, limit: 1 });
  await park({ key, holder: 'b', limit: 1 });
  await repairLine(key); // notes the next message
  requests.sent.length = 0;
  await repairLine(key);
  expect(requests.sent).toEqual(['GetItem', 'Query', 'Query']);
});

it('a notice or a heartbeat by a slow clock does not shorten a permit', async () => {
  const asked = { key: 'behind', holder: 'h', limit: 1, requestId: 'r', ttlSeconds: 30 };
  const { expiresAt } = grantOf((await park(asked)).task);
  clock.advance(-400);
  const again = grantOf((await park(asked)).task);
  expect(again.expiresAt).toBe(expiresAt);
  clock.advance(10);
  expect((await heartbeat(again)).expiresAt).toBe(again.expiresAt);
  clock.advance(400);
  expect((await heartbeat(again)).expiresAt).toBe(new Date(clock.now() + 30_000).toISOString());
});

it('the message to a task names the key without the namespace', async () => {
  const task = steps.newTask();
  const as = call({ namespace: 'team-a' });
  const { acquire: acquireOrPark } = await import('../../shared/locks/calls/acquire.ts');
  const terms = { limit: 1, ttlSeconds: 60, waitSeconds: 0, sleepMs: 0, fair: true, taskToken: task.token };
  const asked = { key: 'team-a/render', holder: 'h', ...terms };
  await acquireOrPark(world.dependencies)(asked, as);
  expect(task.output).toMatchObject({ key: 'render', used: 1 });
});

it('a task writes the row that others rely on', async () => {
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
