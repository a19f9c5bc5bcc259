import { describe, expect, it } from 'vitest';
import { capKey } from '../../shared/locks/calls/cap.ts';
import { capInput } from '../../shared/locks/calls/inputs.ts';
import { call } from '../support/emulators/aws.ts';
import { isFull } from '../support/time/rounds.ts';
import { failure } from '../support/worlds/leases.ts';
import { resetting } from '../support/worlds/line.ts';
import { permitLineWorld } from '../support/worlds/permits-in-line.ts';

// The cap of an operator (docs/protocols/cap.md).

const world = await permitLineWorld();
const { acquire, release, heartbeat, read, park, repairLine, rawItem, setRaw, deleteRaw } = world;
const { clock, requests, dependencies } = world;
resetting(world);

const run = capKey(dependencies);
const input = capInput();
const ann = call({ principal: 'ann' });
const cap = (asked: object) => run(input.parse({ reason: 'slow', ...asked }), ann);
const pause = (key: string, more: object = {}) => cap({ key, limit: 0, ...more });
const lift = (key: string) => run(input.parse({ key, limit: null }), ann);
const iso = (ms: number) => new Date(ms).toISOString();
const held = (limit: number) => ({ code: 'LeaseHeld', context: { cap: { limit, reason: 'slow', by: 'ann' } } });
const YEAR_SECONDS = 365 * 86_400;

describe('paused keys', () => {
  it('a paused key refuses each way in, and says who paused it and why', async () => {
    const key = 'refuses';
    expect(await pause(key)).toMatchObject({ cap: { limit: 0, by: 'ann' }, before: null, used: 0, waiting: 0 });
    const refused = await failure(acquire({ key, holder: 'a' }));
    expect(refused).toMatchObject({ ...held(0), message: `${key} is paused by an operator: slow` });
    expect(refused.context).toMatchObject({ retryAfterMs: 60_000 });
    expect(await failure(acquire({ key, holder: 'a', limit: 5 }))).toMatchObject(held(0));
    expect(await failure(acquire({ key, holder: 'a', fair: false }))).toMatchObject(held(0));
    expect(await rawItem(key)).not.toHaveProperty('used');
    expect(await read(key)).toMatchObject({ state: 'free', cap: { limit: 0, until: null } });
  });

  it('a paused key keeps its holder, which extends and releases as ever', async () => {
    const key = 'keeps';
    const grant = await acquire({ key, holder: 'a' });
    expect(await pause(key)).toMatchObject({ used: 1 });
    clock.advance(1000);
    expect(await heartbeat(grant)).toMatchObject({ fence: grant.fence });
    expect(await release(grant)).toMatchObject({ released: true });
    expect(await failure(acquire({ key, holder: 'b' }))).toMatchObject(held(0));
  });

  it('a paused key is not taken over when its holder has expired', async () => {
    const key = 'expired';
    await acquire({ key, holder: 'a', ttlSeconds: 2 });
    await pause(key);
    clock.advance(10_000);
    expect(await failure(acquire({ key, holder: 'b' }))).toMatchObject(held(0));
    await lift(key);
    expect(await acquire({ key, holder: 'b' })).toMatchObject({ previous: { holder: 'a', ended: 'expired' } });
  });

  it('a paused key is not deleted by TTL, whatever its holder writes afterwards', async () => {
    const key = 'ttl';
    const expiry = async () => Number((await rawItem(key))?.lease_expiry?.N) - clock.now() / 1000;
    const grant = await acquire({ key, holder: 'a' });
    await pause(key);
    for (const write of [() => heartbeat(grant), () => heartbeat({ ...grant, ttlSeconds: 90 }), () => release(grant)]) {
      clock.advance(1000);
      await write();
      expect(await expiry()).toBeGreaterThan(YEAR_SECONDS);
    }
    await lift(key);
    await release(await acquire({ key, holder: 'b' }));
    expect(await expiry()).toBeLessThan(YEAR_SECONDS);
  });

  it('a paused key serves its line in order when the pause is lifted', async () => {
    const key = 'line';
    const first = await acquire({ key, holder: 'first', limit: 2, weight: 2 });
    const tasks: Awaited<ReturnType<typeof park>>[] = [];
    for (const holder of ['b', 'c', 'd']) tasks.push(await park({ key, holder, limit: 2 }));
    const states = () => tasks.map(({ task }) => task.state);
    await pause(key);
    await release(first);
    await repairLine(key);
    expect(states()).toEqual(['waiting', 'waiting', 'waiting']);
    expect(await read(key)).toMatchObject({ used: 0, waiting: 3, cap: { limit: 0 } });
    expect(await cap({ key, limit: 1 })).toMatchObject({ before: { limit: 0 }, waiting: 3 });
    expect(states()).toEqual(['succeeded', 'waiting', 'waiting']);
    expect(await lift(key)).toMatchObject({ cap: null, before: { limit: 1 } });
    expect(states()).toEqual(['succeeded', 'succeeded', 'waiting']);
  });

  it('a paused key keeps its exclusive waiter out of a quick release', async () => {
    const key = 'quick';
    const first = await acquire({ key, holder: 'a' });
    const [b, c] = [await park({ key, holder: 'b' }), await park({ key, holder: 'c' })];
    await release(first);
    await pause(key);
    await release(b.task.output as unknown as Parameters<typeof release>[0]);
    expect(c.task.state).toBe('waiting');
    await lift(key);
    expect(c.task.state).toBe('succeeded');
  });

  it('a paused key serves its tasks by the schedule once it ends by itself', async () => {
    const key = 'ends';
    expect(await pause(key, { forSeconds: 60 })).toMatchObject({ cap: { until: iso(clock.now() + 60_000) } });
    const refused = await failure(acquire({ key, holder: 'a' }));
    expect(refused).toMatchObject({ context: { cap: { until: iso(clock.now() + 60_000) } } });
    expect(refused.context).toMatchObject({ retryAfterMs: 60_501 });
    const { task } = await park({ key, holder: 'b', limit: 1 });
    clock.advance(60_400);
    await repairLine(key);
    expect(task.state).toBe('waiting'); // within the margin of the clocks
    clock.advance(200);
    await repairLine(key);
    expect(task.state).toBe('succeeded');
    expect(await read(key)).not.toHaveProperty('cap');
  });
});

describe('caps', () => {
  it('a cap bounds the weight in use, whatever limit callers name', async () => {
    const key = 'bounds';
    const ask = (weight: number) => acquire({ key, holder: `w${weight}`, limit: 10, weight });
    await cap({ key, limit: 3 });
    const two = await ask(2);
    expect(await failure(ask(3))).toMatchObject({ ...held(3), context: { used: 2 } });
    await ask(1);
    await release(two);
    expect(await ask(2)).toMatchObject({ used: 3 });
  });

  it('a cap grants a heavier request alone', async () => {
    const key = 'heavier';
    await cap({ key, limit: 3 });
    const one = await acquire({ key, holder: 'one', limit: 10 });
    expect(await failure(acquire({ key, holder: 'five', limit: 10, weight: 5 }))).toMatchObject(held(3));
    await release(one);
    expect(await acquire({ key, holder: 'five', limit: 10, weight: 5 })).toMatchObject({ used: 5 });
  });

  it('a cap at or above the limit does not cost a second write', async () => {
    const key = 'covers';
    await cap({ key, limit: 5 });
    requests.sent.length = 0;
    await release(await acquire({ key, holder: 'a', limit: 5 }));
    clock.advance(10);
    await acquire({ key, holder: 'b' });
    expect(world.sent('UpdateItem')).toBe(3);
  });

  it('a cap costs one more write where it bounds a grant', async () => {
    const key = 'costs';
    await cap({ key, limit: 4 });
    requests.sent.length = 0;
    await acquire({ key, holder: 'a', limit: 5 });
    expect(world.sent('UpdateItem')).toBe(2);
  });

  it('a cap that is lowered while a second try is under way is obeyed', async () => {
    const key = 'lowered';
    await cap({ key, limit: 4 });
    let tries = 0;
    const lowering = async (send: () => Promise<unknown>) => {
      if (++tries === 2) await world.precededBy(() => pause(key))(send);
      return send();
    };
    requests.faultsOf.UpdateItem = [lowering, lowering];
    expect(await failure(acquire({ key, holder: 'a', limit: 5 }))).toMatchObject(held(0));
  });
});

it.runIf(isFull)(
  '1,000 tasks behind a pause begin within 100 ms of the lift, in order',
  async () => {
    const key = 'long';
    await pause(key);
    const tasks: Awaited<ReturnType<typeof park>>[] = [];
    for (let nth = 0; nth < 1000; nth++) tasks.push(await park({ key, holder: `t${nth}` }));
    const served = () => tasks.findIndex(({ task }) => task.state === 'waiting');
    expect(served()).toBe(0);
    const begin = performance.now();
    await lift(key);
    expect(performance.now() - begin).toBeLessThan(100);
    for (let nth = 1; nth <= 20; nth++) {
      expect(served()).toBe(nth);
      await release(tasks[nth - 1]?.task.output as unknown as Parameters<typeof release>[0]);
    }
  },
  60_000,
);

describe('late commands', () => {
  it('a late cap changes nothing after a lift, even of an uncapped key', async () => {
    const key = 'late';
    let late = async () => {};
    requests.faultsOf.UpdateItem = [
      async (send) => {
        late = async () => void (await send());
        throw new Error('the request is under way');
      },
    ];
    await failure(pause(key));
    clock.advance(1);
    expect(await lift(key)).toMatchObject({ cap: null, before: null });
    await late().catch(() => {});
    expect(await rawItem(key)).not.toHaveProperty('cap');
    await acquire({ key, holder: 'a' });
  });

  it('a late command of the same millisecond as another counts as a later one', async () => {
    const key = 'same';
    await pause(key);
    expect(await cap({ key, limit: 2, reason: 'fewer' })).toMatchObject({ before: { limit: 0 } });
    expect(await read(key)).toMatchObject({ cap: { limit: 2, reason: 'fewer' } });
  });
});

it('one command caps lock and rates, and one command lifts both', async () => {
  const key = 'both';
  const rates = [{ limit: 20, per: '1m' }];
  const named = [{ name: 'requests', limit: 20, per: '1m' }];
  expect(await cap({ key, rates })).toMatchObject({ cap: { limit: null, rates: named }, before: null });
  clock.advance(1);
  expect(await pause(key)).toMatchObject({ cap: { limit: 0, rates: named }, before: { limit: null } });
  expect(await cap({ key, limit: 3 })).toMatchObject({ cap: { limit: 3, rates: named }, before: { limit: 0 } });
  const lifted = await run(input.parse({ key, limit: null, rates: null }), ann);
  expect(lifted).toMatchObject({ cap: null, before: { limit: 3, rates: named } });
});

it('a cap leaves the lease of a third-party client its expiry', async () => {
  const key = 'theirs';
  const seconds = String(Math.ceil(clock.now() / 1000) + 20);
  await setRaw(key, 'lease_version', { S: 'theirs' });
  await setRaw(key, 'lease_expiry', { N: seconds });
  expect(await pause(key)).toMatchObject({ cap: { limit: 0 }, used: 1 });
  expect(await rawItem(key)).toMatchObject({ lease_expiry: { N: seconds }, cap: { N: '0' } });
  expect(await lift(key)).toMatchObject({ cap: null, before: { limit: 0 } });
  expect(await rawItem(key)).toMatchObject({ lease_expiry: { N: seconds } });
  await deleteRaw(key);
});

it.each([
  ['reason', { limit: 0, reason: undefined }],
  ['forSeconds', { limit: null, forSeconds: 5 }],
  ['limit', { limit: 3, kind: 'once' }],
  ['limit', { limit: 201 }],
  ['limit', {}],
  ['rates', { rates: [] }],
  ['rates', { limit: 0, kind: 'once', rates: null }],
  [
    'rates',
    {
      rates: [
        { limit: 1, per: '1m' },
        { limit: 2, per: '1m' },
      ],
    },
  ],
])('a wrong %s is refused', (field, asked) => {
  const parsed = input.safeParse({ key: 'wrong', reason: 'slow', ...asked });
  expect(parsed.error?.issues.map(({ path }) => path.join('.'))).toEqual([field]);
});
