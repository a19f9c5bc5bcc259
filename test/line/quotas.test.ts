import type { ScanCommandInput } from '@aws-sdk/client-dynamodb';
import { afterAll, expect, it } from 'vitest';
import { acquire as acquireOrPark } from '../../shared/locks/calls/acquire.ts';
import { acquireInput } from '../../shared/locks/calls/inputs.ts';
import { call } from '../support/emulators/aws.ts';
import { failure } from '../support/worlds/leases.ts';
import { lineWorld } from '../support/worlds/line.ts';

const worlds: Awaited<ReturnType<typeof lineWorld>>[] = [];
afterAll(async () => void (await Promise.all(worlds.map(({ steps }) => steps.stop()))));

const input = acquireInput();

/** Few may wait: five in line for a key, and eight in a namespace. */
async function crowdedWorld({ waitersPerKey = 5, waitersPerNamespace = 8 } = {}) {
  const world = await lineWorld({ quotas: { waitersPerKey, waitersPerNamespace } });
  worlds.push(world);
  const enter = acquireOrPark(world.dependencies);
  /** A task of a namespace. The key is as it is stored. */
  const park = (key: string, namespace: string | undefined) => {
    world.clock.advance(1);
    const request = { key, holder: 'tester', taskToken: world.steps.newTask().token };
    return enter(input.parse(request), call({ namespace }));
  };
  /** A call that waits. */
  const wait = (key: string, namespace: string | undefined, more: object = {}) =>
    enter(input.parse({ key, holder: 'caller', waitSeconds: 1, ...more }), call({ namespace }));
  /** Rows of tasks that wait, each with a key and a ticket of its own. */
  const putTasks = async (count: number, nameOf: (at: number) => { key: string; ticket: string }) => {
    await world.acquire({ key: 'template', ttlSeconds: 3600 });
    await park('template', undefined);
    const [template] = await world.rows('template');
    await world.cancel('template', template?.ticket?.S ?? '');
    const named = ({ key, ticket }: ReturnType<typeof nameOf>) => ({
      ...template,
      key: { S: key },
      ticket: { S: ticket },
    });
    await world.putTickets(Array.from({ length: count }, (_, at) => named(nameOf(at))));
    world.requests.sent.length = 0;
  };
  /** Limits each page of the count to `rows`, and calls `read` after each page. */
  const paged = (rows: number, read = () => {}) =>
    world.dynamodb.middlewareStack.add(
      (next, { commandName }) =>
        async (args) => {
          const input = args.input as ScanCommandInput;
          if (commandName !== 'ScanCommand' || input.Limit !== undefined) return next(args);
          const page = await next({ ...args, input: { ...input, Limit: rows } });
          read();
          return page;
        },
      { step: 'initialize' },
    );
  return { ...world, enter, park, wait, putTasks, paged };
}

it('the quota of a key does not count callers that have left', async () => {
  const { acquire, park, wait, rows, clock } = await crowdedWorld();
  await acquire({ key: 'left', ttlSeconds: 3600 });
  for (let one = 0; one < 5; one++) await failure(wait('left', undefined, { requestId: `r${one}` }));
  clock.advance(6000); // the callers can no longer come back
  expect(await rows('left')).toHaveLength(5);
  for (let late = 0; late < 2; late++) expect((await failure(wait('left', undefined))).code).toBe('LeaseHeld');
  clock.advance(6000);
  for (let parked = 0; parked < 5; parked++) await park('left', undefined);
  // The sixth in line is the thirteenth row.
  expect((await failure(park('left', undefined))).code).toBe('QueueFull');
});

it('the quota of a key refuses tasks and calls beyond it', async () => {
  const { acquire, park, wait, rows, steps, release, rawItem } = await crowdedWorld();
  const first = await acquire({ key: 'k' });
  for (let parked = 0; parked < 5; parked++) await park('k', undefined);
  const quota = { key: 'k', quota: 'maxWaitersPerKey', limit: 5, retryAfterMs: 5000 };
  const before = await rows('k');
  expect(await failure(park('k', undefined))).toMatchObject({ code: 'QueueFull', context: quota });
  expect(await failure(wait('k', undefined))).toMatchObject({ code: 'QueueFull', context: quota });
  expect(await rows('k')).toEqual(before);
  expect(await park('another', undefined)).toMatchObject({ parked: false });
  await release(first);
  expect(steps.requests.length).toBeGreaterThan(0);
  expect(await park('k', undefined)).toMatchObject({ parked: true });
  expect(await rawItem('holdfast:full-namespaces')).toBeUndefined();
});

/** Two keys of team-a have four waiters each, which is the quota of the namespace. The repair has counted them. */
async function fullWorld(quotas?: Parameters<typeof crowdedWorld>[0]) {
  const world = await crowdedWorld(quotas);
  const { acquire, park, repair } = world;
  for (const key of ['team-a/1', 'team-a/2', 'team-b/1', 'free']) await acquire({ key, ttlSeconds: 3600 });
  for (const key of ['team-a/1', 'team-a/2']) for (let at = 0; at < 4; at++) await park(key, 'team-a');
  await repair();
  world.clock.advance(ASKED_AGAIN_MS);
  return world;
}

it('the quota of a namespace refuses its tasks and calls beyond it', async () => {
  const { park, wait, rows, rawItem, requests, acquire } = await fullWorld();
  const before = await rawItem('team-a/1');
  requests.sent.length = 0;
  const quota = { key: 'team-a/1', quota: 'maxWaitersPerNamespace', limit: 8 };
  expect(await failure(park('team-a/1', 'team-a'))).toMatchObject({ code: 'QueueFull', context: quota });
  expect(requests.sent).toEqual(['GetItem']);
  // Only the first try is sent, because a function reads the full namespaces once in ten seconds.
  expect(await failure(wait('team-a/1', 'team-a'))).toMatchObject({ code: 'QueueFull', context: quota });
  expect(requests.sent).toEqual(['GetItem', 'UpdateItem']);
  expect(await rows('team-a/1')).toHaveLength(4);
  expect(await rawItem('team-a/1')).toEqual(before);
  // A call that does not wait does not read the quota.
  requests.sent.length = 0;
  expect(await acquire({ key: 'team-a/3' }, call({ namespace: 'team-a' }))).toMatchObject({ repeated: false });
  expect(requests.sent).toEqual(['UpdateItem']);
});

it('a task that parks in a full namespace fails, with its earlier ticket', async () => {
  const { rows, release, steps, enter, acquire, rawItem } = await fullWorld();
  const held = await acquire({ key: 'team-a/3' });
  const task = steps.newTask();
  const request = input.parse({ key: 'team-a/3', holder: 'twice', requestId: 'r', taskToken: task.token });
  await enter(request, call()); // by an administrator, who is not in the namespace
  expect(await failure(enter(request, call({ namespace: 'team-a' })))).toMatchObject({ code: 'QueueFull' });
  expect(task).toMatchObject({ state: 'failed', error: 'QueueFull', cause: { quota: 'maxWaitersPerNamespace' } });
  await release(held);
  expect(await rawItem('team-a/3')).not.toHaveProperty('lease_version');
  expect(await rows('team-a/3')).toEqual([]);
});

it('a task that has a grant may park in a full namespace', async () => {
  const { steps, enter, rawItem } = await fullWorld();
  const task = steps.newTask();
  const request = input.parse({ key: 'team-a/3', holder: 'twice', requestId: 'r', taskToken: task.token });
  await enter(request, call());
  expect(task.state).toBe('succeeded');
  expect(await enter(request, call({ namespace: 'team-a' }))).toMatchObject({ parked: false });
  expect(await rawItem('team-a/3')).toHaveProperty('lease_version');
});

it('park in a full namespace is Unavailable without a notice', async () => {
  const { steps, enter } = await fullWorld();
  const task = steps.newTask();
  const request = input.parse({ key: 'team-a/3', holder: 'late', taskToken: task.token });
  steps.faults.SendTaskFailure = ['refused'];
  const asked = () => failure(enter(request, call({ namespace: 'team-a' })));
  expect(await asked()).toMatchObject({ code: 'Unavailable', context: { retryAfterMs: 1000 } });
  expect(await asked()).toMatchObject({ code: 'QueueFull' });
  expect(task).toMatchObject({ state: 'failed', error: 'QueueFull' });
});

it('the quota of a namespace lets in other namespaces, and callers without a namespace', async () => {
  const { park, rows } = await fullWorld();
  expect(await park('team-b/1', 'team-b')).toMatchObject({ parked: true });
  expect(await park('free', undefined)).toMatchObject({ parked: true });
  expect(await park('team-a/2', undefined)).toMatchObject({ parked: true }); // an administrator
  expect(await rows('team-a/2')).toHaveLength(5);
});

it('the quota of a namespace is counted once in a run', async () => {
  const { park, acquire, repair, requests, clock, rawItem } = await fullWorld({ waitersPerKey: 4 });
  const quota = 'maxWaitersPerNamespace';
  expect(await failure(park('team-a/1', 'team-a'))).toMatchObject({ code: 'QueueFull', context: { quota } });
  for (const key of ['team-a/3', 'free-1', 'free-2']) {
    await acquire({ key, ttlSeconds: 3600 });
    for (let at = 0; at < 4; at++) await park(key, undefined);
  }
  requests.sent.length = 0;
  await repair();
  expect(requests.sent.filter((command) => command === 'Scan')).toHaveLength(8); // one of them counts
  const { full, lease_expiry } = (await rawItem('holdfast:full-namespaces')) ?? {};
  expect(full).toEqual({ SS: ['team-a'] });
  expect(lease_expiry).toEqual({ N: `${Math.ceil(clock.now() / 1000) + 86_400}` });
});

it('a namespace is counted even if one line alone exceeds its quota', async () => {
  const { acquire, putTasks, repair, rawItem } = await crowdedWorld({ waitersPerKey: 4 });
  await acquire({ key: 'team-a/1', ttlSeconds: 3600 });
  await putTasks(8, (at) => ({ key: 'team-a/1', ticket: String(at) }));
  await repair();
  expect((await rawItem('holdfast:full-namespaces'))?.full).toEqual({ SS: ['team-a'] });
});

it('a count that fails does not keep a run from its keys', async () => {
  const { acquire, park, repair, repairKey, requests, clock, rows } = await crowdedWorld({ waitersPerKey: 8 });
  await acquire({ key: 'team-a/1', ttlSeconds: 60 });
  await park('team-a/1', 'team-a');
  requests.sent.length = 0;
  await repairKey('team-a/1');
  expect(requests.sent).not.toContain('Scan');
  clock.advance(61_000);
  requests.faultsOf.Scan = ['none', { name: 'AccessDeniedException', status: 400 }]; // the key, and the count
  expect((await failure(repair())).code).toBe('Unavailable');
  expect(await rows('team-a/1')).toEqual([]);
});

it('a function asks for the full namespaces every ten seconds', async () => {
  const { park, requests, clock } = await fullWorld();
  const asks = async (afterMs: number) => {
    clock.advance(afterMs - 1); // the park takes another millisecond
    requests.sent.length = 0;
    expect((await failure(park('team-a/1', 'team-a'))).code).toBe('QueueFull');
    return requests.sent.length;
  };
  expect([await asks(0), await asks(9999), await asks(1), await asks(-1)]).toEqual([1, 0, 1, 1]);
  expect(await asks(LAPSED_MS - 2 * ASKED_AGAIN_MS)).toBe(1);
  expect(await park('team-a/1', 'team-a')).toMatchObject({ parked: true });
});

it('the quota of a namespace counts at most a hundred pages', async () => {
  const { acquire, putTasks, paged, repair, requests, rawItem } = await crowdedWorld({
    waitersPerKey: 101,
    waitersPerNamespace: 101,
  });
  await acquire({ key: 'team-a/1', ttlSeconds: 3600 });
  await putTasks(101, (at) => ({ key: 'team-a/1', ticket: String(at) }));
  paged(1);
  await repair();
  expect(requests.sent.filter((command) => command === 'Scan')).toHaveLength(100 + 3);
  expect(await rawItem('holdfast:full-namespaces')).toBeUndefined();
});

it.each([
  ['sees the rest in more', 10_001, ['team-a']],
  ['does not call a namespace full by what it has not seen', 10_000, undefined],
])('the quota of a namespace counts for half the time, and %s', async (_, leftMs, full) => {
  const { putTasks, paged, repairWith, rawItem } = await crowdedWorld({ waitersPerKey: 8 });
  await putTasks(8, (at) => ({ key: 'team-a/1', ticket: String(at) }));
  let timeLeftMs = 20_000;
  paged(7, () => {
    timeLeftMs = leftMs;
  });
  await repairWith(call({ timeLeftMs: () => timeLeftMs }));
  expect((await rawItem('holdfast:full-namespaces'))?.full?.SS).toEqual(full);
});

it('the quota of a namespace names a thousand namespaces at most', async () => {
  const { putTasks, repairWith, requests, rawItem } = await crowdedWorld({ waitersPerNamespace: 1 });
  await putTasks(1001, (at) => ({ key: `team-${at}/1`, ticket: '1' }));
  let timeLeftMs = 30_000;
  requests.faultsOf.UpdateItem = [
    (send) => {
      timeLeftMs = 1000; // not enough for the other keys
      return send();
    },
  ];
  expect(await repairWith(call({ timeLeftMs: () => timeLeftMs }))).toMatchObject({ complete: false });
  expect((await rawItem('holdfast:full-namespaces'))?.full?.SS).toHaveLength(1000);
});

it('the quota of a namespace keeps the position of a call that asks again', async () => {
  const { wait, clock, park, acquire, repair } = await crowdedWorld();
  for (const key of ['team-a/1', 'team-a/2']) await acquire({ key, ttlSeconds: 3600 });
  // Two such waits are longer than the ten seconds after which a function reads the full namespaces again.
  const asked = { requestId: 'r', waitSeconds: 6 };
  const { context } = await failure(wait('team-a/1', 'team-a', asked));
  expect(context).toMatchObject({ place: 1 });
  for (const key of ['team-a/1', 'team-a/2']) for (let at = 0; at < 4; at++) await park(key, 'team-a');
  await repair();
  const again = await failure(wait('team-a/1', 'team-a', { ...asked, ...(context.retryWith as object) }));
  expect(again).toMatchObject({ code: 'LeaseHeld', context: { place: 1 } });
  expect(await failure(park('team-a/2', 'team-a'))).toMatchObject({ code: 'QueueFull' });
  clock.advance(1000);
  expect(await failure(wait('team-a/1', 'team-a', { ...asked, ...(context.retryWith as object) }))).toMatchObject({
    code: 'LeaseHeld',
    context: { place: 1 },
  });
});

it('the quota of a namespace lets callers in after fewer are counted', async () => {
  const { park, clock, repair, rows, cancel } = await fullWorld();
  expect(await failure(park('team-a/1', 'team-a'))).toMatchObject({ code: 'QueueFull' });
  for (const { ticket } of (await rows('team-a/1')).slice(2)) await cancel('team-a/1', ticket?.S ?? '');
  expect(await failure(park('team-a/1', 'team-a'))).toMatchObject({ code: 'QueueFull' });
  await repair();
  clock.advance(ASKED_AGAIN_MS);
  expect(await park('team-a/1', 'team-a')).toMatchObject({ parked: true });
});

it('a namespace with few keys in line is not counted', async () => {
  const { acquire, park, repair, requests, rawItem } = await crowdedWorld({ waitersPerKey: 3 });
  for (const key of ['team-a/1', 'free-1', 'free-2']) {
    await acquire({ key, ttlSeconds: 3600 });
    await park(key, key.startsWith('free') ? undefined : 'team-a');
  }
  requests.sent.length = 0;
  await repair();
  expect(requests.sent).not.toContain('UpdateItem'); // a count is written down
  expect(await rawItem('holdfast:full-namespaces')).toBeUndefined();
});

it('a run that was frozen does not overwrite a younger count', async () => {
  const { park, repair, clock, rawItem, putRaw } = await fullWorld();
  const counted = await rawItem('holdfast:full-namespaces');
  expect(counted?.full).toEqual({ SS: ['team-a'] });
  const younger = {
    ...counted,
    key: { S: 'holdfast:full-namespaces' },
    counted_at: { N: `${clock.now() + 5000}` },
    full: { SS: ['team-c'] },
  };
  await putRaw(younger);
  await repair();
  expect(await rawItem('holdfast:full-namespaces')).toEqual(younger);
  expect(await park('team-b/1', 'team-b')).toMatchObject({ parked: true });
});

it('a count of the future is not believed, and is counted again', async () => {
  const { park, repair, clock, rawItem, putRaw } = await fullWorld();
  const counted = await rawItem('holdfast:full-namespaces');
  const ahead = { N: `${clock.now() + 3_600_000}` };
  await putRaw({ ...counted, key: { S: 'holdfast:full-namespaces' }, counted_at: ahead });
  clock.advance(ASKED_AGAIN_MS);
  expect(await park('team-a/1', 'team-a')).toMatchObject({ parked: true });
  await repair();
  expect((await rawItem('holdfast:full-namespaces'))?.counted_at).not.toEqual(ahead);
});

/** After this time a function reads the full namespaces again. */
const ASKED_AGAIN_MS = 10_000;
const LAPSED_MS = 150_000;
