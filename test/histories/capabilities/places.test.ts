import { describe, expect, it } from 'vitest';
import { nameOf } from '../../../verification/histories/capabilities/line.model.ts';
import { placeRules } from '../../../verification/histories/capabilities/places.model.ts';
import { BEGIN } from '../../../verification/histories/clocks.ts';
import { type Effect, entry, facts, landedOn, promises } from '../../../verification/histories/handmade.ts';
import { effectsOf, type LockState, NO_LOCK } from '../../../verification/histories/landed.ts';

const KEY = 'w-q0';
const MARKED: LockState = { ...NO_LOCK, isMarked: true };

/** A call of a holder, and what its requests did, each at its millisecond. */
const did = (who: string, times: [number, number?], ...effects: Effect[]) =>
  entry(
    'acquire',
    { key: KEY, holder: who, requestId: who },
    times,
    'LeaseHeld',
    {},
    {
      actor: who,
      landed: landedOn(KEY, ...effects),
    },
  );
const request = (who: string) => nameOf(did(who, [0]));
const lock = (ms: number, state: LockState) => ({ what: 'lock', ms, state }) as const;
const query = (ms: number) => ({ what: 'query', ms }) as const;
const place = (ms: number, who: string, keptMs = 60_000) =>
  ({ what: 'place', ms, ticket: who, request: request(who), keepUntil: BEGIN + ms + keptMs }) as const;
const sleeps = (who: string, ms: number, keptMs?: number) =>
  did(who, [ms, ms + 20], place(ms, who, keptMs), { what: 'mark', ms: ms + 5, ticket: who }, lock(ms + 5, MARKED));
const check = (...history: Parameters<typeof placeRules>[0]) =>
  promises(placeRules(history, { key: KEY, mayLoseMark: false }, facts));

describe('places in histories:', () => {
  it('the mark goes only after a query that did not meet a live place', () => {
    const goes = did('p', [2000], query(2001), lock(2010, NO_LOCK));
    const promise = 'the mark stays while a place is live';
    expect(check(sleeps('a', 1000), goes)).toEqual([promise]);
    expect(check(sleeps('a', 1000, 1000), goes)).toEqual([]);
    const extension = { what: 'extension', ms: 1900, ticket: 'a', keepUntil: BEGIN + 70_000 } as const;
    expect(check(sleeps('a', 1000, 1000), did('a', [1890], extension), goes)).toEqual([promise]);
    expect(check(sleeps('a', 1000), did('w', [1500], { what: 'placeFlag', ms: 1510, ticket: 'a' }), goes)).toEqual([]);
    expect(check(sleeps('a', 1000), did('p', [900], query(990), lock(2010, NO_LOCK)))).toEqual([]);
  });

  it('a plain grant does not pass a live place', () => {
    const plain = did('p', [2000], { what: 'grant', ms: 2010, ticket: undefined, request: 'p', fence: 1 });
    expect(check(sleeps('a', 1000), plain)).toEqual(['a caller that sleeps is not passed by one that does not wait']);
    expect(check(sleeps('a', 1000, 500), plain)).toEqual([]);
  });

  it('a plain grant may pass a sleeper whose unclaimed grant let the mark go', () => {
    const held = { ...MARKED, entries: [{ name: request('a') }] } as unknown as LockState;
    const granted = did('p', [1100], lock(1200, held));
    const unmarked = did('q', [1300], query(1310), lock(1400, { ...held, isMarked: false }));
    const plain = (ms: number) =>
      did('r', [ms], { what: 'grant', ms: ms + 10, ticket: undefined, request: 'r', fence: 2 });
    const over = did('r', [2000], lock(2015, NO_LOCK));
    expect(check(sleeps('a', 1000), granted, unmarked, over, plain(3000))).toEqual([]);
    const marked = did('r', [2000], lock(2015, MARKED));
    expect(check(sleeps('a', 1000), granted, marked, plain(3000))).toEqual([
      'a caller that sleeps is not passed by one that does not wait',
    ]);
  });

  it('the line waits for a moved sleeper until ten seconds after it was due', () => {
    const asleep = { ...place(1000, 'a'), awakeAt: BEGIN + 5000 };
    const sleeper = did('a', [1000, 1020], asleep);
    const moved = did('operator', [1400], lock(1500, { ...MARKED, first: 'a' }));
    const grant = (ms: number, to: string) =>
      ({ what: 'grant', ms, ticket: to, request: request(to), fence: 1, isWindow: true }) as const;
    const gets = (ms: number) => did('p', [ms - 50], grant(ms, 'b'));
    const promise = 'a waiter that an operator has moved is served before all others';
    expect(check(sleeper, moved, gets(14_000))).toEqual([promise]);
    expect(check(sleeper, moved, gets(15_500))).toEqual([]);
    expect(check(sleeper, gets(14_000))).toEqual([]);
    const both = did('p', [13_950], grant(14_000, 'a'), grant(14_000, 'b'));
    expect(check(sleeper, moved, both)).toEqual([]);
  });

  it('a return in time keeps its ticket, unless its request has had a grant', () => {
    const returns = (ms: number) => {
      const one = did('a', [ms], { what: 'row', ms: ms + 5, ticket: 'b', deadline: BEGIN + ms, request: request('a') });
      return { ...one, input: { ...one.input, ticket: 'a' } };
    };
    expect(check(sleeps('a', 1000), returns(2000))).toEqual(['a caller that comes back in time keeps its position']);
    expect(check(sleeps('a', 1000), returns(61_000))).toEqual([]);
    expect(check(sleeps('a', 1000), did('a', [1500], { what: 'claim', ms: 1510 }), returns(2000))).toEqual([]);
  });

  it('a cancelled sleeper does not claim a grant afterwards', () => {
    const cancel = entry('cancelWaiter', { key: KEY, ticket: 'a' }, [1500, 1520], 'ok', { cancelled: true });
    const got = (ms: number) => {
      const grant = { what: 'grant', ms: 1400, ticket: 'a', request: request('a'), fence: 1, leaseId: 'a' } as const;
      const one = did('a', [1300, ms + 10], grant, { what: 'claim', ms });
      return { ...one, outcome: 'ok', body: { leaseId: 'a' } };
    };
    expect(check(sleeps('a', 1000), cancel, got(1600))).toEqual(['a withdrawn request holds no lease']);
    expect(check(sleeps('a', 1000), cancel, got(1410))).toEqual([]);
  });

  it('a withdrawal ends only the calls that were in line', () => {
    const withdraw = entry('withdraw', { key: KEY, holder: 'a', requestId: 'a' }, [1500, 1520], 'ok', {
      cancelled: true,
    });
    const got = (called: number) => ({
      ...did('a', [called, 1700], place(called + 10, 'a'), { what: 'claim', ms: 1600 }),
      ...{ outcome: 'ok', body: { leaseId: 'a' } },
    });
    expect(check(got(1400), withdraw)).toEqual(['a withdrawn request holds no lease']);
    expect(check(withdraw, got(1550))).toEqual([]);
    const named = (ticket: string) => ({ ...withdraw, input: { ...withdraw.input, ticket } });
    expect(check(got(1400), named('a'))).toEqual(['a withdrawn request holds no lease']);
    expect(check(got(1400), named('of a copy'))).toEqual([]);
  });
});

it('what was written of a place is recorded beside the rows', () => {
  const Key = { key: { S: KEY }, ticket: { S: 'p1-a' } };
  const TableName = 'faults-waiters-1';
  const on = (command: string, input: object) => effectsOf(command, { TableName, ...input }, () => ({}));
  const Item = { ...Key, holder: { S: 'a' }, request_id: { S: 'a' }, keep_until: { N: '5' }, deadline: { N: '0' } };
  expect(on('PutItem', { Item })).toEqual([
    { key: KEY, what: 'place', ticket: '1-a', request: request('a'), keepUntil: 5 },
  ]);
  const flagged = { ...Item, cancelled_at: { N: '1' } };
  expect(on('PutItem', { Item: flagged })).toEqual([{ key: KEY, what: 'placeFlag', ticket: '1-a' }]);
  const ExpressionAttributeValues = { ':keep': { N: '9' } };
  const extended = on('UpdateItem', { Key, ExpressionAttributeValues });
  expect(extended).toEqual([{ key: KEY, what: 'extension', ticket: '1-a', keepUntil: 9 }]);
  expect(on('UpdateItem', { Key })).toEqual([{ key: KEY, what: 'placeFlag', ticket: '1-a' }]);
  expect(on('DeleteItem', { Key })).toEqual([{ key: KEY, what: 'placeDeletion', ticket: '1-a' }]);
});
