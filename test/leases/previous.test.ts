import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import { describe, expect, it } from 'vitest';
import { leaseWorld } from '../support/worlds/leases.ts';

const { acquire, putRaw } = await leaseWorld();

type Attributes = Record<string, AttributeValue>;

const n = (value: number): AttributeValue => ({ N: String(value) });
const s = (value: string): AttributeValue => ({ S: value });

const SECOND = 1_600_000_000;
const AT = '2020-09-13T12:26:40.000Z';
/** The last that a Date can hold. */
const LAST = 8_640_000_000_000_000;

const named = { holder: s('before'), fence: n(5) };
const held = { ...named, lease_version: s('v'), lease_expiry: n(SECOND) };
const ended = { ...named, released_at: n(SECOND * 1000) };
/** What a grant from the queue keeps of the holder before it. */
const kept = { prev_holder: s('kept'), prev_fence: n(3), prev_ended: s('broken'), prev_at: n(SECOND * 1000) };
const told = (how: string, at = AT) => ({ holder: 'before', fence: 5, ended: how, at });

describe('the holder before', () => {
  it.each<[string, Attributes, object | null]>([
    ['whose lease expired', { ...held, expires_at: n(SECOND * 1000) }, told('expired')],
    ['whose lease another client extended, in whole seconds', held, told('expired', '2020-09-13T12:26:41.000Z')],
    ['that gave it back', ended, told('released')],
    ['whose lease was broken', { ...ended, broken_at: n(1) }, told('broken')],
    [
      'whose execution ended',
      { fence: n(5), released_at: n(SECOND * 1000), ...kept, prev_ended: s('executionEnded') },
      { holder: 'kept', fence: 3, ended: 'executionEnded', at: AT },
    ],
    [
      'that gave it back at the last instant of all',
      { ...named, released_at: n(LAST) },
      told('released', '+275760-09-13T00:00:00.000Z'),
    ],
    ['that left no fence', { holder: s('before'), released_at: n(SECOND * 1000) }, null],
    ['that left no time', named, null],
    ['that left a time beyond all instants', { ...named, released_at: n(LAST + 1) }, null],
    ['whose expiry is no instant', { ...held, expires_at: n(-LAST - 1) }, null],
    ['that left no name passes on whom it came after', kept, { ...told('broken'), holder: 'kept', fence: 3 }],
    ['that left a name hides whom it came after', { ...ended, ...kept }, told('released')],
  ])('`previous` names the holder before: %s', async (key, attributes, previous) => {
    await putRaw({ key: s(key), ...attributes });
    expect(await acquire({ key })).toMatchObject({ repeated: false, previous });
  });

  it.each<[string, AttributeValue | undefined]>([
    ['prev_holder', undefined],
    ['prev_holder', n(1)],
    ['prev_ended', undefined],
    ['prev_ended', s('vanished')],
    ['prev_fence', undefined],
    ['prev_fence', n(1.5)],
    ['prev_fence', s('3')],
    ['prev_at', undefined],
    ['prev_at', s(AT)],
    ['prev_at', n(LAST + 1)],
  ])('`previous` is left out if a part of it is unusable: %s is %j', async (name, value) => {
    const { [name]: _, ...others } = { ...kept } as Attributes;
    const key = `half ${name} ${JSON.stringify(value)}`;
    await putRaw({ key: s(key), ...others, ...(value && { [name]: value }) });
    expect((await acquire({ key })).previous).toBeNull();
  });
});
