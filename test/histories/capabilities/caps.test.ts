import { describe, expect, it } from 'vitest';
import type { Item } from '../../../shared/aws/dynamodb.ts';
import { EXCLUSIVE_PATH, EXCLUSIVE_WEIGHT } from '../../../shared/locks/record/identity.ts';
import type { HolderEntry } from '../../../shared/locks/record/record.ts';
import {
  CAP_KEPT,
  capKept,
  LAST_COMMAND,
  PAUSE_KEPT,
  pauseKept,
  termsUnder,
} from '../../../verification/histories/capabilities/caps.model.ts';
import { roomIsHad } from '../../../verification/histories/capabilities/record.model.ts';
import { BEGIN } from '../../../verification/histories/clocks.ts';
import { entry, facts, landedOn, promises } from '../../../verification/histories/handmade.ts';
import type { Entry } from '../../../verification/histories/history.ts';
import { effectsOf, type LockState, NO_LOCK } from '../../../verification/histories/landed.ts';

const KEY = 'w-p0';

const command = (times: [number, number?], input: object) =>
  entry('capKey', { key: KEY, ...input }, times, 'ok', {}, { actor: 'operator' });
const holder = (name: string, fence: number, weight = 1) =>
  ({
    name,
    id: name,
    holder: name,
    fence,
    weight,
    path: weight === EXCLUSIVE_WEIGHT ? EXCLUSIVE_PATH : name,
  }) as HolderEntry;
/** A call, and the record after its write. */
const left = (ms: number, entries: HolderEntry[], more: Partial<LockState> = {}, call = 'acquire') =>
  entry(
    call,
    { key: KEY, holder: 'h' },
    [ms - 5, ms + 5],
    'ok',
    {},
    {
      landed: landedOn(KEY, { what: 'lock', ms, state: { ...NO_LOCK, entries, ...more } }),
    },
  );
const check = (...history: Entry[]) => promises(capKept(history, KEY, facts));

describe('caps', () => {
  const [a, b] = [holder('a', 1), holder('b', 2)];

  it('a grant never exceeds a cap between its answer and the next command', () => {
    const cap = command([1000, 1010], { limit: 1 });
    expect(check(cap, left(1500, [a]), left(1600, [a, b]))).toEqual([CAP_KEPT]);
    expect(check(cap, left(1005, [a]), left(1008, [a, b]))).toEqual([]);
    expect(check(cap, command([1400, 1700], { limit: null }), left(1500, [a]), left(1600, [a, b]))).toEqual([]);
    expect(check(command([1000, 1010], { limit: 0 }), left(1500, [a]))).toEqual([CAP_KEPT]);
    expect(check(command([1000, 1010], { limit: 0 }), left(900, [a]), left(1500, [a]))).toEqual([]);
  });

  it('the checker does not demand a cap that may have ended or changed', () => {
    expect(check(command([1000, 1010], { limit: 0, forSeconds: 1 }), left(2500, [a]))).toEqual([]);
    const pause = command([1000, 1010], { limit: 0 });
    expect(check(command([900, 2000], { limit: null }), pause, left(2500, [a]))).toEqual([]);
    expect(check(entry('capKey', { key: KEY, limit: null }, [100]), pause, left(2500, [a]))).toEqual([]);
    expect(check(command([100, 110], { limit: null }), pause, left(2500, [a]))).toEqual([CAP_KEPT]);
    expect(check(command([1000, 1010], { limit: 0, kind: 'once' }), left(2500, [a]))).toEqual([]);
  });

  it('the checker accepts a request heavier than the cap only alone', () => {
    const cap = command([1000, 1010], { limit: 2 });
    expect(check(cap, left(1500, [holder('c', 3, 5)]))).toEqual([]);
    expect(check(cap, left(1500, [holder('c', 3, EXCLUSIVE_WEIGHT)]))).toEqual([]);
    expect(check(cap, left(1500, [a]), left(1600, [a, holder('c', 3, 5)]))).toEqual([CAP_KEPT]);
  });

  it('the checker finds a write that shows another cap without a later command', () => {
    const on = (limit: number | undefined, capAt: number | undefined) => ({
      ...(limit !== undefined && { cap: { limit, until: undefined } }),
      capAt,
    });
    const commands = [left(1000, [], on(3, 5), 'capKey'), left(1100, [], on(undefined, 6), 'capKey')];
    const known = command([10, 20], { limit: 3 });
    expect(check(known, ...commands)).toEqual([]);
    expect(check(known, ...commands, left(1200, [], on(3, 5), 'capKey'))).toEqual([LAST_COMMAND]);
    expect(check(known, ...commands, left(1200, [], on(3, 6)))).toEqual([LAST_COMMAND]);
    expect(check(known, left(1000, [], on(3, 5)), left(1100, []))).toEqual([LAST_COMMAND]);
  });

  it('a cap on record is kept until it has ended by every clock', () => {
    const refused = entry('acquire', { key: KEY, holder: 'r', requestId: 'r', limit: 5 }, [2000, 2010], 'LeaseHeld');
    const capped = (until?: number) => left(1000, [], { cap: { limit: 0, until } }, 'capKey');
    expect(promises(roomIsHad([capped(), refused], KEY, facts))).toEqual([]);
    expect(promises(roomIsHad([capped(BEGIN + 900), refused], KEY, facts))).toEqual([
      'an expired permit is had by the first caller',
    ]);
    const terms = (limit: number, weight: number) =>
      termsUnder(
        { cap: { limit, until: undefined } },
        { ...refused, input: { limit: 5, weight } },
        { ms: 0, spreadMs: 0 },
      );
    expect([terms(3, 1).limit, terms(9, 1).limit, terms(2, 4).limit]).toEqual([3, 5, 4]);
  });

  it('a pause refuses reservations and slots', () => {
    const reserved = (ms: number) =>
      entry(
        'rateReserve',
        { key: KEY },
        [ms, ms + 10],
        'ok',
        {},
        {
          landed: landedOn(KEY, { what: 'reserved', ms: ms + 1, paidUntil: 0, last: 'l' }),
        },
      );
    const pause = (kind?: string) => command([1000, 1010], { limit: 0, ...(kind && { kind }) });
    const ofRate = (...history: Entry[]) => promises(pauseKept(history, { key: KEY, kind: 'rate' }, facts));
    expect(ofRate(pause(), reserved(1100))).toEqual([PAUSE_KEPT]);
    expect(ofRate(pause(), reserved(900))).toEqual([]);
    expect(ofRate(pause(), command([1050, 1060], { limit: 4 }), reserved(1100))).toEqual([]);
    const begun = (ms: number, repeated = false) =>
      entry('onceBegin', { key: KEY }, [ms, ms + 10], 'ok', { outcome: 'run', repeated });
    const ofOnce = (...history: Entry[]) => promises(pauseKept(history, { key: KEY, kind: 'once' }, facts));
    expect(ofOnce(pause('once'), begun(1100))).toEqual([PAUSE_KEPT]);
    expect(ofOnce(pause('once'), begun(1100, true), begun(1005))).toEqual([]);
    expect(ofOnce(pause(), begun(1100))).toEqual([]);
  });
});

it('a first try keeps cap and `latest` of the record, and `cap_ttl`', () => {
  const write = {
    TableName: 'faults-leases-1',
    ReturnValues: 'ALL_OLD',
    Key: { key: { S: KEY } },
    UpdateExpression:
      'SET lease_version = :ours, used = :used, lease_expiry = if_not_exists(cap_ttl, :expiry) REMOVE execution',
    ExpressionAttributeValues: { ':ours': { S: 'o' }, ':used': { N: '1' }, ':expiry': { N: '7' } },
  };
  const Attributes = { cap: { N: '3' }, cap_at: { N: '5' }, cap_ttl: { N: '9' }, latest: { M: { n: { S: 'name' } } } };
  const on = (before: Item) => {
    const [effect] = effectsOf('UpdateItem', write, () => ({ Attributes: before }));
    return effect?.what === 'lock' ? effect.state : undefined;
  };
  const capped = { cap: { limit: 3, until: undefined }, capAt: 5, latest: 'name', heldForOthersUntil: 9000 };
  expect(on(Attributes)).toMatchObject(capped);
  expect(on({})).toMatchObject({ used: 1, heldForOthersUntil: 7000 });
});
