import { describe, expect, it } from 'vitest';
import { leases } from '../../../verification/histories/capabilities/leases.ts';
import { overtaken } from '../../../verification/histories/capabilities/line.model.ts';
import { queue } from '../../../verification/histories/capabilities/queue.ts';
import { BEGIN } from '../../../verification/histories/clocks.ts';
import { type Effect, entry, facts, landedOn, promises } from '../../../verification/histories/handmade.ts';
import type { Entry } from '../../../verification/histories/history.ts';
import { effectsOf, NO_LOCK } from '../../../verification/histories/landed.ts';

const KEY = 'w-q0';
const promise = 'no waiter is overtaken';

/** A call, and what its requests did, each at its millisecond. */
const did = (who: string, ...effects: Effect[]): Entry =>
  entry(
    'acquire',
    { key: KEY, holder: who },
    [effects[0]?.ms ?? 0],
    undefined,
    {},
    {
      actor: who,
      landed: landedOn(KEY, ...effects),
    },
  );
const row = (ms: number, who: string, leavesMs = 20_000) =>
  ({ what: 'row', ms, ticket: `${ms} ${who}`, request: who, deadline: BEGIN + leavesMs }) as const;
const mark = (ms: number, ticket: string) => ({ what: 'mark', ms, ticket }) as const;
const query = (ms: number) => ({ what: 'query', ms }) as const;
const grant = (ms: number, request: string, ticket?: string) =>
  ({ what: 'grant', ms, ticket, request, fence: ms }) as const;
const check = (...history: Entry[]) => promises(overtaken(history, { key: KEY, mayLoseMark: false }, facts));

const joins = (who: string, ms: number, leavesMs?: number) =>
  did(who, row(ms, who, leavesMs), mark(ms + 5, `${ms} ${who}`));

describe('the order of a line', () => {
  it('the checker finds a second waiter that is served first', () => {
    const line = [joins('a', 1000), joins('b', 1100)];
    const first = did('p', query(2000), grant(2010, 'a', '1000 a'), { what: 'deletion', ms: 2100, ticket: '1000 a' });
    expect(check(...line, first, did('a', query(2200), grant(2210, 'b', '1100 b')))).toEqual([]);
    expect(check(...line, did('p', query(2000), grant(2010, 'b', '1100 b')))).toEqual([promise]);
  });

  it('the checkers of leases and of parked tasks both find an overtaken waiter', () => {
    const history = [joins('a', 1000), joins('b', 1100), did('p', query(2000), grant(2010, 'b', '1100 b'))];
    expect(promises(queue.check(history, facts))).toContain(promise);
    const ofLeases = history.map((one) => ({
      ...one,
      input: { ...one.input, key: 'w-k0' },
      landed: one.landed?.map((effect) => ({ ...effect, key: 'w-k0' })),
    }));
    expect(promises(leases.check(ofLeases as Entry[], facts))).toContain(promise);
  });

  it('a waiter that has left or could not be seen may be passed over', () => {
    const b = did('b', row(1100, 'b'));
    const toB = did('p', query(2000), grant(2010, 'b', '1100 b'));
    expect(check(joins('a', 1000, 1900), b, toB)).toEqual([]);
    expect(check(joins('a', 1000, 2800), b, toB)).toEqual([]);
    expect(check(joins('a', 1000, 3100), b, toB)).toEqual([promise]);
    expect(check(joins('a', 1000), did('w', { what: 'flag', ms: 1500, ticket: '1000 a' }), b, toB)).toEqual([]);
    const late = did('a', { ...row(1000, 'a'), ms: 2005 });
    expect(check(late, b, toB)).toEqual([]);
    expect(check(did('a', grant(900, 'a')), joins('a', 1000), b, toB)).toEqual([]);
  });

  it('a row written again after its call served the ticket may be passed', () => {
    const serves = did('p', query(2000), grant(2010, 'a', '1000 a'), { what: 'deletion', ms: 2020, ticket: '1000 a' });
    const again = did('a', { ...row(1000, 'a'), ms: 2030 });
    const lines = [joins('a', 1000), joins('b', 1100), joins('c', 1200), again];
    const more = (one: Entry) => {
      one.landed?.push(...landedOn(KEY, grant(2040, 'b', '1100 b'), query(2100), grant(2110, 'c', '1200 c')));
      return one;
    };
    expect(check(...lines, more(serves))).toEqual([]);
    const other = did('q', query(2100), grant(2110, 'c', '1200 c'));
    expect(check(joins('a', 1000), joins('c', 1200), did('p', query(2000), grant(2010, 'b', '1100 b')), other)).toEqual(
      [promise],
    );
  });

  it('a try that arrives late counts by the read before it was sent', () => {
    const late = did('a', { ...row(1000, 'a'), ms: 2005 });
    const slow = did('p', query(2000), query(2300), { ...grant(2400, 'b', '1100 b'), sent: 2001 });
    expect(check(did('b', row(1100, 'b')), late, slow)).toEqual([]);
  });

  it('a plain caller must not overtake a waiter that the mark shows', () => {
    const plain = did('p', grant(2000, 'p'));
    expect(check(joins('a', 1000), plain)).toEqual([promise]);
    expect(check(did('a', row(1000, 'a')), plain)).toEqual([]);
    const again = did('a', { what: 'deadline', ms: 1500, ticket: '1000 a', deadline: BEGIN + 20_000 });
    expect(check(joins('a', 1000), again, plain)).toEqual([]);
    expect(overtaken([joins('a', 1000), plain], { key: KEY, mayLoseMark: true }, facts)).toEqual([]);
    const unclaimed = [did('s', query(1200), grant(1210, 'a', '1000 a')), did('q', grant(1900, 'q'))];
    expect(check(joins('a', 1000), ...unclaimed, plain)).toEqual([]);
    const second = did('a', row(1100, 'a'), mark(1105, '1100 a'));
    expect(check(joins('a', 1000), second, ...unclaimed, plain)).toEqual([]);
    expect(check(joins('a', 1000), ...unclaimed, joins('a', 1950), plain)).toEqual([promise]);
  });

  it('a call that can know serves the moved waiter first, and once', () => {
    const first = (ms: number, ticket: string) =>
      did('operator', { what: 'lock', ms, state: { ...NO_LOCK, isMarked: true, first: ticket } });
    const lines = [joins('a', 1000), joins('b', 1100), joins('c', 1200)];
    const serves = (ms: number, who: string, ticket: string, next?: string) => {
      const one = did('p', query(ms), grant(ms + 10, who, ticket));
      one.landed?.push(
        ...landedOn(KEY, { what: 'lock', ms: ms + 11, state: { ...NO_LOCK, isMarked: true, first: next } }),
      );
      return one;
    };
    const inTurn = [serves(3000, 'c', '1200 c'), serves(3100, 'a', '1000 a')];
    expect(check(...lines, first(2000, '1200 c'), ...inTurn)).toEqual([]);
    const moved = 'a waiter that an operator has moved is served before all others';
    expect(check(...lines, first(2000, '1200 c'), serves(3000, 'a', '1000 a', '1200 c'))).toEqual([moved]);
    expect(check(...lines, first(2900, '1200 c'), serves(3000, 'a', '1000 a', '1200 c'))).toEqual([]);
    const struck = { ...serves(3000, 'a', '1000 a', '1200 c'), faults: ['GetItem slow'] };
    expect(check(...lines, first(2000, '1200 c'), struck)).toEqual([]);
    expect(check(...lines, first(2000, '1200 c'), serves(3000, 'b', '1100 b', '1200 c'))).toContain(moved);
    const once = 'a moved waiter comes first once';
    expect(check(...lines, first(2000, '1200 c'), serves(3000, 'c', '1200 c', '1200 c'))).toEqual([once]);
    const before = { ...serves(3000, 'c', '1200 c', '1200 c'), calledAt: { moment: 0, ms: 1900 } };
    expect(check(...lines, first(2000, '1200 c'), before)).toEqual([]);
  });

  it('the row of a request whose end the record remembers may be passed over', () => {
    const remembers = (name: string) =>
      did('q', { what: 'lock', ms: 1500, state: { ...NO_LOCK, ring: [{ name, broken: undefined }] } });
    const toB = did('p', query(2000), grant(2010, 'b', '1100 b'));
    expect(check(joins('a', 1000), joins('b', 1100), remembers('a'), toB)).toEqual([]);
    expect(check(joins('a', 1000), joins('b', 1100), remembers('c'), toB)).toEqual([promise]);
  });
});

describe('requests', () => {
  const waiters = { TableName: 'faults-waiters-1', Key: { key: { S: 'k' }, ticket: { S: 't' } } };

  it.each([
    ['DeleteItem', waiters, { what: 'deletion', ticket: 't' }],
    ['UpdateItem', { ...waiters, ExpressionAttributeValues: { ':now': { N: '1' } } }, { what: 'flag', ticket: 't' }],
    [
      'UpdateItem',
      { ...waiters, ExpressionAttributeValues: { ':deadline': { N: '7' } } },
      { what: 'deadline', ticket: 't', deadline: 7 },
    ],
    ['Query', { TableName: 'faults-waiters-1', ExpressionAttributeValues: { ':key': { S: 'k' } } }, { what: 'query' }],
  ])('a request changes a line as its input says: %s %#', (command, input, effect) => {
    expect(effectsOf(command, input, () => ({}))).toEqual([{ key: 'k', ...effect }]);
  });

  it('other requests do not change a line', () => {
    const query = { TableName: 'faults-waiters-1', ExpressionAttributeValues: { ':key': { S: 'k' } } };
    for (const part of [{ Select: 'COUNT' }, { FilterExpression: 'f' }, { ScanIndexForward: false }])
      expect(effectsOf('Query', { ...query, ...part }, () => ({}))).toEqual([]);
    expect(effectsOf('PutItem', { TableName: 'faults-commits-1', Item: { key: { S: 'k' } } }, () => ({}))).toEqual([]);
  });
});
