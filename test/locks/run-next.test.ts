import { expect, it } from 'vitest';
import { runNext } from '../../shared/locks/calls/run-next.ts';
import { DEFAULT_QUOTAS } from '../../shared/locks/dependencies.ts';
import { call } from '../support/emulators/aws.ts';
import { isFull } from '../support/time/rounds.ts';
import { resetting } from '../support/worlds/line.ts';
import { permitLineWorld } from '../support/worlds/permits-in-line.ts';

// The waiter that an operator moves to the front of its line (docs/protocols/queue.md#run-next).

const world = await permitLineWorld({ quotas: { ...DEFAULT_QUOTAS, maxHeldCalls: 100 } });
const { acquire, release, read, park, cancel, repairLine, rawItem, putTicket, callerRow, rows } = world;
const { clock, requests, dependencies } = world;
resetting(world);

const move = runNext(dependencies);
const ann = call({ principal: 'ann' });
const next = (key: string, ticket: string) => move({ key, ticket }, ann);
type Parked = Awaited<ReturnType<typeof park>>;
/** The key is held, and three tasks wait. */
async function line(key: string, terms: object = {}) {
  const holder = await acquire({ key, holder: 'first', ...terms });
  const tasks: Parked[] = [];
  for (const one of ['b', 'c', 'd']) tasks.push(await park({ key, holder: one, ...terms }));
  const served = () => tasks.filter(({ task }) => task.state === 'succeeded').map(({ holder: name }) => name);
  return { holder, tasks: tasks as [Parked, Parked, Parked], served };
}
const proofOf = ({ task }: Parked) => task.output as unknown as { key: string; leaseId: string };

it('a moved task is served before all others, and once', async () => {
  const key = 'once';
  const { holder, tasks, served } = await line(key);
  const [b, c, d] = tasks;
  expect(await next(key, d.ticket)).toEqual({ key, ticket: d.ticket, moved: true, before: null });
  const { waiters } = await read(key, { waiters: true });
  expect(waiters?.map(({ holder: name, movedBy }) => [name, movedBy])).toEqual([
    ['d', 'ann'],
    ['b', undefined],
    ['c', undefined],
  ]);
  await release(holder);
  expect(served()).toEqual(['d']);
  expect(await rawItem(key)).not.toHaveProperty('moved');
  await release(proofOf(d));
  expect(served()).toEqual(['b', 'd']);
  await release(proofOf(b));
  expect(c.task.state).toBe('succeeded');
});

it('the quick release of a grant from the line serves the moved waiter', async () => {
  const key = 'quick';
  const { holder, tasks, served } = await line(key);
  await release(holder);
  await next(key, tasks[2].ticket);
  await release(proofOf(tasks[0]));
  expect(served()).toEqual(['b', 'd']);
});

it('the last of two moved waiters counts, and the answer names the other', async () => {
  const key = 'two';
  const { holder, tasks, served } = await line(key);
  await next(key, tasks[1].ticket);
  expect(await next(key, tasks[2].ticket)).toMatchObject({ moved: true, before: tasks[1].ticket });
  await release(holder);
  expect(served()).toEqual(['d']);
});

it('no waiter passes a moved waiter that does not fit', async () => {
  const key = 'heavy';
  const { holder, tasks, served } = await line(key, { limit: 2 });
  expect(served()).toEqual(['b']);
  const heavy = await park({ key, holder: 'heavy', limit: 2, weight: 2 });
  await next(key, heavy.ticket);
  await release(holder);
  expect([...served(), heavy.task.state]).toEqual(['b', 'waiting']);
  await release(proofOf(tasks[0]));
  expect([...served(), heavy.task.state]).toEqual(['b', 'succeeded']);
});

it.runIf(isFull)(
  'the last of 1,000 tasks is served by the next grant once moved',
  async () => {
    const key = 'long';
    const holder = await acquire({ key, holder: 'first' });
    const tasks: Parked[] = [];
    for (let nth = 0; nth < 1000; nth++) tasks.push(await park({ key, holder: `t${nth}` }));
    const last = tasks.at(-1) as Parked;
    await next(key, last.ticket);
    await release(holder);
    expect(last.task.state).toBe('succeeded');
    expect(tasks.filter(({ task }) => task.state === 'succeeded')).toHaveLength(1);
  },
  60_000,
);

it('a moved waiter that has left does not stop the line', async () => {
  const key = 'left';
  const { holder, tasks, served } = await line(key);
  await next(key, tasks[2].ticket);
  await cancel(key, tasks[2].ticket);
  await release(holder);
  expect(served()).toEqual(['b']);
  expect(await rawItem(key)).not.toHaveProperty('moved');
});

it('a waiter that an operator moves during a grant to another stays moved', async () => {
  const key = 'beside';
  const { holder, tasks, served } = await line(key);
  await next(key, tasks[1].ticket);
  requests.faultsOf.UpdateItem = [
    (send) => send(),
    world.precededBy(async () => {
      clock.advance(1);
      await next(key, tasks[2].ticket);
    }),
  ];
  await release(holder);
  expect(served()).toEqual(['d']);
});

it.each([
  [
    'granted',
    async (key: string, { holder, tasks }: Awaited<ReturnType<typeof line>>) => {
      await release(holder);
      return { key, ticket: tasks[0].ticket };
    },
  ],
  ['unknown', async (key: string) => ({ key, ticket: '000000000000001-nobody' })],
  [
    'gone',
    async (key: string) => {
      await putTicket({ ...callerRow(key, 'gone'), cancelled_at: { N: '1' } });
      return { key, ticket: '000000000000001-gone' };
    },
  ],
] as const)('a waiter that cannot be moved is answered %s', async (reason, waiter) => {
  const key = `not ${reason}`;
  const asked = await waiter(key, await line(key));
  expect(await move(asked, ann)).toEqual({ ...asked, moved: false, reason });
  expect(await rawItem(key)).not.toHaveProperty('moved');
});

it.each([
  ['without a row', false],
  ['with the row of its last call', true],
])('a moved caller that sleeps, %s, keeps the free key until it is late', async (how, hasRow) => {
  const key = `sleeper ${how}`;
  const { holder, tasks, served } = await line(key);
  const ticket = `${String(clock.now()).padStart(15, '0')}-sleeper`;
  const due = clock.now() + 30_000;
  const times = { deadline: { N: '0' }, keep_until: { N: String(due + 60_000) }, awake_at: { N: String(due) } };
  await putTicket({ ...callerRow(key, 'sleeper'), ticket: { S: `p${ticket}` }, ...times });
  const over = { deadline: { N: String(clock.now()) }, keep_until: { N: String(clock.now() + 5000) } };
  if (hasRow) await putTicket({ ...callerRow(key, 'sleeper'), ticket: { S: ticket }, ...over });
  expect(await next(key, ticket)).toMatchObject({ moved: true });
  await release(holder);
  clock.advance(39_000);
  await repairLine(key);
  expect(served()).toEqual([]);
  expect(await read(key)).toMatchObject({ state: 'released', waiting: 4 });
  clock.advance(2000);
  await repairLine(key);
  expect(served()).toEqual(['b']);
  expect(await rows(key)).toHaveLength(3);
  expect(tasks[1].task.state).toBe('waiting');
});

it('a moved caller that sleeps takes the free key when it comes back', async () => {
  const key = 'comes back';
  const { holder, served } = await line(key);
  const asked = { key, holder: 'sleeper', requestId: 'r', waitSeconds: 5, sleepMs: 60_000 };
  const far = await acquire(asked).catch((error) => error);
  expect(far.context).toMatchObject({ retryWith: { ticket: expect.any(String) } });
  const { ticket } = far.context.retryWith;
  await next(key, ticket);
  await release(holder);
  expect(served()).toEqual([]);
  clock.advance(1000);
  expect(await acquire({ ...asked, ticket })).toMatchObject({ holder: 'sleeper' });
  expect(await rawItem(key)).not.toHaveProperty('moved');
});
