import { expect, it } from 'vitest';
import { nameservice } from '../../../verification/histories/capabilities/nameservice.ts';
import { AFTERWARDS } from '../../../verification/histories/capability.ts';
import { entry, facts, promises } from '../../../verification/histories/handmade.ts';
import type { Entry } from '../../../verification/histories/history.ts';

const publish = (input: object, from: [number, number?], outcome?: string, body: Record<string, unknown> = {}) =>
  entry(
    'publish',
    { alias: 'a', ...input },
    from,
    outcome,
    outcome === 'ok' ? { outcome: 'updated', created: false, repeated: false, ...body } : body,
  );
const created = publish({ op: 'initLedger' }, [0, 10], 'ok', { created: true });
const reading = (t: number, from: [number, number], more: object = {}) =>
  entry('readNames', { alias: 'a' }, from, 'ok', {
    commit: t === 0 ? { address: null, t } : { address: `c${t}`, t },
    index: { address: null, t: 0 },
    status: { state: 'ready', v: 1 },
    config: { v: 0, payload: null },
    retracted: false,
    ...more,
  });
const commitTo = (t: number, from: [number, number?], outcome?: string, body: Record<string, unknown> = {}) =>
  publish({ op: 'publishCommit', address: `c${t}`, t }, from, outcome, body);
const check = (...entries: Entry[]) => promises(nameservice.check(entries, facts));
const linear = 'refs, status and config are linearizable, and stale publishes change nothing';

it('the checker of the nameservice accepts one publish after the other', () => {
  const history = [
    created,
    commitTo(2, [20, 30], 'ok'),
    commitTo(1, [40, 50], 'ok', { outcome: 'stale', current: { address: 'c2', t: 2 } }),
    publish(
      { op: 'compareAndSetRef', ref: 'commit', expected: { address: 'c1', t: 1 }, next: { address: 'c3', t: 3 } },
      [60, 70],
      'Conflict',
      { actual: { address: 'c2', t: 2 } },
    ),
    reading(2, [80, 90]),
  ];
  expect(check(...history)).toEqual([]);
});

it('the checker of the nameservice finds a t that goes down', () => {
  expect(check(created, commitTo(2, [20, 30], 'ok'), reading(2, [40, 50]), reading(0, [60, 70]))).toEqual([
    'commit_t and index_t never go down',
    linear,
  ]);
});

it('the checker of the nameservice finds lost updates, and two winners of one compare-and-set', () => {
  expect(check(created, commitTo(2, [20, 30], 'ok'), reading(0, [40, 50]))).toEqual([linear]);
  expect(check(created, commitTo(2, [20, 30], 'ok'), commitTo(1, [40, 50], 'ok'))).toEqual([linear]);
  const status = (v: number, from: [number, number], outcome: string, body = {}) =>
    publish(
      { op: 'pushStatus', expected: { state: 'ready', v: 1 }, next: { state: `s${from[0]}`, v } },
      from,
      outcome,
      body,
    );
  expect(check(created, status(2, [20, 30], 'ok'), status(2, [40, 50], 'ok'))).toEqual([linear]);
  expect(
    check(created, status(2, [20, 30], 'ok'), status(2, [40, 50], 'Conflict', { actual: { state: 's20', v: 2 } })),
  ).toEqual([]);
  const config = (from: [number, number], outcome: string, body = {}) =>
    publish({ op: 'pushConfig', expected: { v: 0 }, next: { v: 1, payload: { from } } }, from, outcome, body);
  expect(check(created, config([20, 30], 'ok'), config([40, 50], 'ok'))).toEqual([linear]);
  expect(
    check(
      created,
      config([20, 30], 'ok'),
      config([40, 50], 'Conflict', { actual: { v: 1, payload: { from: [20, 30] } } }),
    ),
  ).toEqual([]);
  expect(check(created, publish({ op: 'initLedger' }, [20, 30], 'ok', { created: true }))).toEqual([linear]);
});

it('a publish without an answer may land at any later time, and once', () => {
  const lost = commitTo(5, [20]);
  expect(check(created, lost, reading(0, [30, 40]), reading(5, [50, 60]))).toEqual([]);
  expect(check(created, lost, commitTo(7, [30, 40], 'ok'), reading(5, [50, 60]))).toEqual([linear]);
});

it('the checker of the nameservice finds a late first try that sets an index', () => {
  const index = (address: string, from: [number, number], more: Partial<Entry> = {}) => ({
    ...publish({ op: 'publishIndex', address, t: 5, allowEqual: true }, from, 'ok'),
    ...more,
  });
  const stray = { faults: ['UpdateItem delayed'], strays: 1 };
  const seen = (address: string) => reading(0, [70, 80], { index: { address, t: 5 } });
  const other = index('y', [50, 60]);
  expect(check(created, index('x', [20, 40], stray), other, seen('y'))).toEqual([]);
  expect(check(created, index('x', [20, 40], stray), other, seen('x'))).toEqual([linear]);
  const unknown = { ...index('x', [20, 40], stray), outcome: 'OutcomeUnknown', body: {} };
  expect(check(created, unknown, other, seen('x'))).toEqual([]);
});

it('a ref may go down only if an administrator sets it back as expected', () => {
  const reset = (from: [number, number], outcome: string, body: Record<string, unknown> = {}) =>
    entry(
      'repairNames',
      { op: 'resetRef', alias: 'a', ref: 'commit', expected: { address: 'c5', t: 5 }, next: { address: 'c2', t: 2 } },
      from,
      outcome,
      outcome === 'ok' ? { repeated: false, ...body } : body,
    );
  const before = [created, commitTo(5, [20, 30], 'ok'), reading(5, [40, 50])];
  expect(check(...before, reset([60, 70], 'ok'), reading(2, [80, 90]), commitTo(3, [100, 110], 'ok'))).toEqual([]);
  expect(check(...before, reset([60, 70], 'ok'), reading(5, [80, 90]))).toEqual([linear]);
  const seven = [...before, commitTo(7, [60, 70], 'ok')];
  expect(check(...seven, reset([80, 90], 'ok'), reading(2, [100, 110]))).toEqual([linear]);
  const refused = reset([80, 90], 'Conflict', { actual: { address: 'c7', t: 7 } });
  expect(check(...seven, refused)).toEqual([]);
  expect(check(...seven, reset([80, 90], 'NotFound'))).toEqual([linear]);
  expect(check(reset([0, 10], 'NotFound'))).toEqual([]);
  const index = (t: number, from: [number, number]) => reading(7, from, { index: { address: 'i', t } });
  expect(check(...seven, index(3, [72, 74]), refused, index(2, [95, 99]))).toContain(
    'commit_t and index_t never go down',
  );
});

it('the nameservice shows the status, config or retraction that an administrator reverts', () => {
  const repair = (input: object, from: [number, number], outcome = 'ok', body: object = { repeated: false }) =>
    entry('repairNames', { alias: 'a', ...input }, from, outcome, body as Record<string, unknown>);
  const status = { op: 'resetStatus', expected: { state: 'ready', v: 1 }, next: { state: 'back', v: 1 } };
  expect(check(created, repair(status, [20, 30]), reading(0, [40, 50], { status: { state: 'back', v: 1 } }))).toEqual(
    [],
  );
  expect(check(created, repair(status, [20, 30]), reading(0, [40, 50]))).toEqual([linear]);
  const raised = { ...status, next: { state: 'up', v: 2 } };
  expect(check(created, repair(raised, [20, 30]))).toEqual([linear]);
  const config = { op: 'resetConfig', expected: { v: 0 }, next: { v: 0, payload: { extra: { a: 1 } } } };
  const seen = reading(0, [40, 50], { config: { v: 0, payload: { extra: { a: 1 } } } });
  expect(check(created, repair(config, [20, 30]), seen)).toEqual([]);
  expect(check(created, repair({ ...config, expected: { v: 1 } }, [20, 30]))).toEqual([linear]);
  const unretract = { op: 'unretract', expected: { kind: 'ledger' } };
  const retracted = publish({ op: 'retract' }, [20, 30], 'ok');
  expect(check(created, retracted, repair(unretract, [40, 50]), reading(0, [60, 70]))).toEqual([]);
  expect(check(created, repair(unretract, [40, 50]))).toEqual([linear]);
  expect(check(created, repair(unretract, [40, 50], 'ok', { repeated: true }))).toEqual([]);
  expect(check(created, repair(unretract, [40, 50], 'NotFound'))).toEqual([linear]);
  expect(check(repair(unretract, [40, 50], 'NotFound'))).toEqual([]);
});

it('a purged alias leaves no item, and is purged only as expected', () => {
  const unborn = { address: null, t: 0 };
  const expected = {
    ...{ kind: 'ledger', commit: { address: 'c2', t: 2 }, index: unborn },
    ...{ status: { state: 'ready', v: 1 }, config: { v: 0 } },
  };
  const purge = (from: [number, number], outcome = 'ok') =>
    entry('repairNames', { op: 'purge', alias: 'a', expected }, from, outcome, {});
  const gone = (from: [number, number]) => entry('readNames', { alias: 'a' }, from, 'NotFound');
  const retracted = publish({ op: 'retract' }, [40, 50], 'ok');
  const before = [created, commitTo(2, [20, 30], 'ok'), retracted];
  expect(check(...before, purge([60, 70]), gone([80, 90]))).toEqual([]);
  expect(check(...before, purge([60, 70]), reading(2, [80, 90], { retracted: true }))).toContain(linear);
  expect(check(created, commitTo(2, [20, 30], 'ok'), purge([60, 70]))).toContain(linear);
  expect(check(...before, commitTo(3, [52, 54], 'ok'), purge([60, 70]))).toContain(linear);
  expect(check(purge([60, 70], 'NotFound'))).toEqual([]);
  expect(check(...before, purge([60, 70], 'NotFound'))).toContain(linear);
  // A write from before it may land a second time on an alias that was made again.
  const again = publish({ op: 'initLedger' }, [80, 90], 'ok', { created: true });
  const late = { ...commitTo(2, [20, 30], 'ok'), faults: ['UpdateItem delayed'], strays: 1 };
  expect(check(created, late, retracted, purge([60, 70]), again, reading(2, [100, 110]))).toEqual([]);
  expect(check(...before, purge([60, 70]), again, reading(2, [100, 110]))).toContain(linear);
});

it('the checker of the nameservice finds an alias that is stuck afterwards', () => {
  expect(check({ ...commitTo(1, [0, 10], 'Throttled'), actor: AFTERWARDS })).toEqual(['no alias is stuck']);
});
