import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { leaseWorld } from '../support/worlds/leases.ts';
import { permitLineWorld } from '../support/worlds/permits-in-line.ts';

type Attributes = Record<string, AttributeValue>;

const n = (value: number): AttributeValue => ({ N: String(value) });
const s = (value: string): AttributeValue => ({ S: value });

describe('leases', async () => {
  const { acquire, putRaw } = await leaseWorld();

  const AT_MS = 1_600_000_000_000;
  const AT = '2020-09-13T12:26:40.000Z';
  /** The last millisecond that a Date can hold. */
  const LAST = 8_640_000_000_000_000;

  const entry = {
    h: s('before'),
    m: s('its request'),
    e: n(AT_MS),
    b: n(1),
    t: n(1),
    a: n(1),
    w: n(1_000_000),
    u: n(1),
  };
  const held = { ...entry, i: s('id'), v: s('version') };
  const released = { ...entry, p: s('released') };
  /** What a grant from the line keeps of the holder before it. */
  const kept = { prev_holder: s('kept'), prev_fence: n(3), prev_ended: s('broken'), prev_at: n(AT_MS) };
  const previousOf = (ended: string, at = AT) => ({ holder: 'before', fence: 5, ended, at });
  const ofKept = { holder: 'kept', fence: 3, ended: 'broken', at: AT };
  /** The entry of a grant that did not reach its caller: its end did not leave the name of a holder. */
  const { h: _, ...nameless } = entry;

  /** A record with this entry of its last holder. */
  const record = (map: Attributes, more: Attributes = {}): Attributes => ({
    ...{ h: { M: map }, fence: n(5), used: n('i' in map ? 1_000_000 : 0), freed_at: n(AT_MS), lease_expiry: n(1) },
    ...('i' in map && { lease_version: s('holdfast') }),
    ...more,
  });

  it.each<[string, Attributes, object | null]>([
    ['whose lease expired', record(held), previousOf('expired')],
    ['that released it', record(released), previousOf('released')],
    ['whose lease was broken', record({ ...released, p: s('broken') }), previousOf('broken')],
    ['that released it because an operator broke it', record({ ...released, s: n(1) }), previousOf('broken')],
    ['whose execution ended', record({ ...released, p: s('executionEnded') }), previousOf('executionEnded')],
    [
      'that released it at the last instant of all',
      record(released, { freed_at: n(LAST) }),
      previousOf('released', '+275760-09-13T00:00:00.000Z'),
    ],
    ['that left no fence', record(released, { fence: s('5') }), 'Unavailable' as never],
    ['that left no time', record(released, { freed_at: s('5') }), 'Unavailable' as never],
    ['that left a time beyond all instants', record({ ...held, e: n(-LAST - 1) }), null],
    ['that a third-party client was', { lease_version: s('v'), lease_expiry: n(1), fence: n(5) }, null],
    [
      'whose grant did not reach its caller, after another holder',
      record({ ...nameless, q: { BOOL: true } }, kept),
      ofKept,
    ],
    [
      'that left a name hides whom it came after',
      record({ ...released, q: { BOOL: true } }, kept),
      previousOf('released'),
    ],
    ['whose record has what an earlier grant has left', record(nameless, kept), null],
  ])('`previous` names the holder before: %s', async (key, attributes, previous) => {
    await putRaw({ key: s(key), ...attributes });
    const answer = await acquire({ key }).catch(({ code }) => ({ repeated: false, previous: code }));
    expect(answer).toMatchObject({ repeated: false, previous });
  });

  it.each<[string, AttributeValue | undefined]>([
    ['prev_holder', undefined],
    ['prev_holder', n(1)],
    ['prev_ended', s('vanished')],
    ['prev_fence', n(1.5)],
    ['prev_fence', s('3')],
    ['prev_at', undefined],
    ['prev_at', s(AT)],
    ['prev_at', n(LAST + 1)],
  ])('`previous` is left out if a part of it is unusable: %s is %j', async (name, value) => {
    const { [name]: _, ...others } = { ...kept } as Attributes;
    const key = `half ${name} ${JSON.stringify(value)}`;
    await putRaw({
      key: s(key),
      ...record({ ...nameless, q: { BOOL: true } }, others),
      ...(value && { [name]: value }),
    });
    expect((await acquire({ key })).previous).toBeNull();
  });
});

describe('permits', async () => {
  const world = await permitLineWorld();
  const { acquire, release, breakPermit, park, grantOf, repairLine, rawItem, keepWaiting, clock, steps, requests } =
    world;
  afterAll(() => steps.stop());
  beforeEach(() => {
    steps.faults = {};
    requests.faultsOf = {};
  });

  const expired = (holder: string) => ({ holder, ended: 'expired', fence: expect.any(Number), at: expect.any(String) });

  /** Lets the grants expire, with no other call in between. */
  const expire = () => clock.advance(2501);

  it('`previous` of a permit is null if there was room', async () => {
    const first = await acquire({ key: 'room', limit: 1 });
    const { task } = await park({ key: 'room', holder: 'b', limit: 1 });
    await release(first);
    expect([first.previous, grantOf(task).previous]).toEqual([null, null]);
    await breakPermit({ key: 'room', fence: grantOf(task).fence });
    expect((await acquire({ key: 'room', holder: 'c', limit: 1 })).previous).toBeNull();
  });

  it('`previous` of a permit names each holder once', async () => {
    const key = 'several';
    // v, w and x end at once, and before y.
    const [ends, holders] = [clock.now() + 4000, ['y', 'v', 'w', 'x']];
    for (const holder of holders) {
      await acquire({ key, holder, limit: 4, ttlSeconds: holder === 'y' ? 4 : 2 });
    }
    const parked = [];
    for (const holder of ['b', 'c', 'd']) parked.push((await park({ key, holder, limit: 4 })).task);
    clock.set(ends + 501);
    await repairLine(key);
    expect(parked.map((task) => grantOf(task).previous)).toEqual([expired('y'), expired('x'), expired('w')]);
  });

  it('`previous` of a permit reaches a call that waits', async () => {
    const key = 'waits';
    await acquire({ key, holder: 'x', limit: 1, ttlSeconds: 2 });
    const granted = await acquire({ key, holder: 'b', limit: 1, waitSeconds: 10, requestId: 'r' });
    expect(granted.previous).toEqual(expired('x'));
    expect(JSON.stringify(await rawItem(key))).not.toContain('"q"');
    expect(await acquire({ key, holder: 'b', limit: 1, requestId: 'r' })).toMatchObject({
      repeated: true,
      previous: null,
    });
  });

  it('`previous` of a permit reaches a task that is notified late', async () => {
    const key = 'schedule';
    await acquire({ key, holder: 'x', limit: 1, ttlSeconds: 2 });
    const { task } = await park({ key, holder: 'b', limit: 1 });
    expire();
    steps.faults.SendTaskSuccess = ['refused', 'refused', 'refused'];
    await repairLine(key);
    expect(task.state).toBe('waiting');
    steps.faults = {};
    clock.advance(11_000);
    await repairLine(key);
    expect(grantOf(task).previous).toEqual(expired('x'));
  });

  it('`previous` of a permit skips those that never received theirs', async () => {
    const key = 'passed on';
    await acquire({ key, holder: 'x', limit: 1, ttlSeconds: 2 });
    const dead = await park({ key, holder: 'gone', limit: 1 });
    const next = await park({ key, holder: 'b', limit: 1 });
    dead.task.state = 'timedOut';
    expire();
    await repairLine(key);
    expect(grantOf(next.task).previous).toEqual(expired('x'));

    const other = 'passed on by a call';
    const asked = acquire({ key: other, holder: 'x', limit: 1, ttlSeconds: 2 });
    await asked;
    requests.faultsOf.GetItem = Array(50).fill(() => Promise.reject(new Error('this call has died in line')));
    await acquire({ key: other, holder: 'dead', limit: 1, waitSeconds: 5 }).catch(() => {});
    requests.faultsOf = {};
    const [row] = await world.rows(other);
    await keepWaiting(other, row?.ticket?.S ?? '', clock.now() + 60_000);
    const { task } = await park({ key: other, holder: 'c', limit: 1 });
    expire();
    await repairLine(other);
    expect(task.state).toBe('waiting');
    clock.advance(2501);
    await repairLine(other);
    expect(grantOf(task).previous).toEqual(expired('x'));
  });
});
