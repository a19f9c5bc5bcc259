import { describe, expect, it } from 'vitest';
import {
  atWork,
  freedByEvent,
  grantNotifiedInTime,
  notifiedInTime,
  quotaKept,
  WHOLE_LEASE,
  wholeForCallers,
  windowKept,
} from '../../../verification/histories/capabilities/bounds.model.ts';
import {
  deadTaskCostsNothing,
  freeLeaseIsHad,
  roomBesideLine,
} from '../../../verification/histories/capabilities/free.model.ts';
import { nameOf } from '../../../verification/histories/capabilities/line.model.ts';
import { BEGIN } from '../../../verification/histories/clocks.ts';
import { at, type Effect, entry, facts, landedOn, promises } from '../../../verification/histories/handmade.ts';
import type { Entry } from '../../../verification/histories/history.ts';
import { NO_LOCK } from '../../../verification/histories/landed.ts';

const KEY = 'w-q0';
const minute = (nth: number) => nth * 60_000;

/** The name of a caller's request in the record. */
const requestOf = (who: string) => nameOf(entry('acquire', { holder: who, requestId: who }, [0]));

const landed = (...effects: Effect[]) => landedOn(KEY, ...effects);

/** A run of the schedule that takes a second. */
const run = (ms: number, more: Partial<Entry> = {}) =>
  entry('repairQueues', {}, [ms, ms + 1000], 'ok', { complete: true }, more);
/** A task that parks at a moment, and waits. */
const task = (who: string, ms: number, more: object = {}, notified?: number): Entry =>
  entry(
    'task',
    { key: KEY, holder: who, requestId: who, ttlSeconds: 600, token: who, parked: true, parkedMs: ms + 5, ...more },
    notified === undefined ? [ms] : [ms, notified],
    'LeaseHeld',
    {},
    { actor: who },
  );
const row = (who: string, ms: number, deadlineMs: number, request = requestOf(who)): Effect => ({
  ...{ what: 'row', ms, ticket: `${String(ms).padStart(9, '0')} ${who}` },
  ...{ request, deadline: BEGIN + deadlineMs },
});
/** The call that brings a task, and its row. */
const bring = (who: string, ms: number, deadlineMs: number, request?: string) =>
  entry(
    'acquire',
    { key: KEY, holder: who, requestId: who, taskToken: who },
    [ms, ms + 5],
    'ok',
    {},
    {
      landed: landed(row(who, ms, deadlineMs, request)),
    },
  );
const grant = (who: string, ms: number, ticket?: string): Effect => ({
  ...{ what: 'grant', ms, ticket, request: requestOf(who), fence: ms, isWindow: ticket !== undefined },
});
const did = (ms: number, ...effects: Effect[]) =>
  entry('release', { key: 'another' }, [ms, ms + 10], 'ok', {}, { landed: landed(...effects) });
const refused = (ms: number, body: object = {}, more: Partial<Entry> = {}, terms: object = { limit: 1 }) =>
  entry(
    'acquire',
    { key: KEY, holder: 'plain', requestId: `at ${ms}`, ...terms },
    [ms, ms + 10],
    'LeaseHeld',
    { holder: 'first', expiresAt: null, ...body },
    { actor: 'plain', ...more },
  );
const verdict = (violations: { promise: string }[]) => promises(violations).length > 0;

describe('bounds in time', () => {
  it('the checker finds a task that waits after its deadline and an undisturbed run', () => {
    const check = (...history: Entry[]) => verdict(notifiedInTime(history, KEY, facts));
    const waiting = task('a', 1000, { parkSeconds: 60 });
    expect(check(waiting, run(minute(2)))).toBe(true);
    expect(check(task('a', 1000, { parkSeconds: 60 }, minute(2) + 500), run(minute(2)))).toBe(false);
    expect(check(waiting, run(minute(1) + 5000))).toBe(false); // a grant of a moment ago is left to the next run
    expect(check(waiting, run(minute(2), { faults: ['SendTaskFailure reset'] }))).toBe(false);
    expect(check(waiting, { ...run(minute(2)), body: { complete: false } })).toBe(false);
    expect(check({ ...waiting, input: { ...waiting.input, closedMs: 5000 } }, run(minute(2)))).toBe(false);
    expect(check({ ...waiting, input: { ...waiting.input, unreachable: 'denied' } }, run(minute(2)))).toBe(false);
    const late = did(minute(2) - 2000, grant('a', minute(2) - 2000, '1 a'));
    expect(check(waiting, late, run(minute(2)))).toBe(false);
    expect(check(waiting, late, run(minute(2)), run(minute(3)))).toBe(false);
  });

  it('the checker finds a task that the next undisturbed run does not notify', () => {
    const check = (...history: Entry[]) => verdict(grantNotifiedInTime(history, KEY, facts));
    const granted = did(2000, grant('a', 2000, '1 a'));
    expect(check(task('a', 1000), granted, run(minute(1)))).toBe(true);
    expect(check(task('a', 3000), granted, run(minute(1)))).toBe(true);
    expect(check(task('a', 1000, {}, minute(1) + 500), granted, run(minute(1)))).toBe(false);
    expect(check(task('b', 1000), granted, run(minute(1)))).toBe(false);
    expect(check(task('a', 1000), granted, run(9000))).toBe(false);
    expect(check(task('a', 1000, { ttlSeconds: 30 }), granted, run(minute(1)))).toBe(false);
    const released = entry('release', { key: KEY, leaseId: 'a' }, [9000, 9010], 'ok', {});
    expect(check(task('a', 1000), granted, released, run(minute(1)))).toBe(false);
    expect(check(task('a', 1000), granted, did(9000, grant('b', 9000)), run(minute(1)))).toBe(false);
  });

  it('the checker finds a caller that waits for longer than an unclaimed grant lasts', () => {
    const check = (...history: Entry[]) => verdict(windowKept(history, KEY, facts));
    const waits = (who: string, ms: number, answered: number, more: Partial<Entry> = {}) =>
      entry(
        'acquire',
        { key: KEY, holder: who, waitSeconds: 20 },
        [ms, answered],
        'ok',
        {},
        {
          ...{ actor: who, landed: landed(row(who, ms, 30_000)) },
          ...more,
        },
      );
    const dead = waits('a', 1000, 20_000, { faults: ['GetItem death'] });
    const granted = did(3000, grant('a', 3000, '000001000 a'));
    expect(check(dead, waits('b', 2000, 9000), granted)).toBe(true);
    expect(check(dead, waits('b', 2000, 9000), granted, did(5700, grant('b', 5700, '000002000 b')))).toBe(false);
    expect(check(dead, waits('b', 2000, 9000), granted, did(3500, { what: 'claim', ms: 3500 }))).toBe(false);
    expect(check(dead, waits('b', 2000, 5000), granted)).toBe(false);
    expect(check(dead, waits('b', 2000, 9000, { faults: ['GetItem freeze'] }), granted)).toBe(false);
  });

  it("the checker finds a grant that outlives the event of its execution's end", () => {
    const check = (...history: Entry[]) => verdict(freedByEvent(history, { withinBound: true, spreadMs: 400 }));
    const held = (more: object = {}) =>
      entry('acquire', { key: KEY, holder: 'x', execution: 'arn', ...more }, [1000, 1010], 'ok', { fence: 5 });
    const ended = (faults: string[] = [], ms = 2000, event: object = {}) =>
      entry('executionEnded', { execution: 'arn', ...event }, [ms, 2100], 'ok', {}, { faults });
    const met = refused(3000, { holder: 'x', fence: 5, expiresAt: at(9000) });
    expect(check(held(), ended(), met)).toBe(true);
    expect(check(held(), ended(['DescribeExecution throttled']), met)).toBe(true);
    expect(check(held(), ended(['UpdateItem throttled']), met)).toBe(false);
    expect(check(held(), ended([], 1410), met)).toBe(true);
    expect(check(held(), ended([], 1409), met)).toBe(false); // a clock that is behind takes the grant for one from after the start of the pass
    expect(check(held(), ended([], 1409, { stopDate: 1100 }), met)).toBe(false); // by a clock that is ahead, the answer came after the end
    expect(check(held({ target: 'other' }), ended(), met)).toBe(false);
    expect(check(held({ graceSeconds: 30 }), ended(), met)).toBe(false);
    expect(check(held(), ended(), refused(3000, { holder: 'y', fence: 6 }))).toBe(false);
    expect(check(held(), ended(), refused(2050, { holder: 'x', fence: 5, expiresAt: at(9000) }))).toBe(false);
    expect(check(held(), ended(), refused(3000, { holder: 'x', fence: 5 }))).toBe(false); // the last holder of a free lease
    expect(check(held(), ended(), entry('executionRedriven', { holder: 'x' }, [1500, 1500]), met)).toBe(false);
  });

  it('the checker finds a caller that receives half of its lease from the line', () => {
    const notified = (remainingMs: number, more: Partial<Entry> = {}) => [
      entry(
        'acquire',
        { key: KEY, waitSeconds: 9, ttlSeconds: 4 },
        [1000, 7000],
        'ok',
        { remainingMs, fence: 2000 },
        {
          landed: landed(grant('a', 2000, '1 a')),
          ...more,
        },
      ),
    ];
    const check = (history: Entry[]) => verdict(wholeForCallers(history, KEY, WHOLE_LEASE));
    expect(check(notified(1800))).toBe(true);
    expect(check(notified(0, { faults: ['UpdateItem freeze'] }))).toBe(true);
    expect(check(notified(1950))).toBe(false);
    expect(check(notified(0, { faults: ['DeleteItem freeze'] }))).toBe(false);
    expect(check(notified(0, { landed: landed(grant('a', 2000)) }))).toBe(false);
  });

  it('the checker finds a line with more waiters than its quota', () => {
    const line = (count: number, leave: number) => [
      ...Array.from({ length: count }, (_, nth) => bring(`t${nth}`, 1000 + 10 * nth, 90_000)),
      did(900, ...Array.from({ length: leave }, () => ({ what: 'query', ms: 900 }) as Effect)),
    ];
    const check = (history: Entry[]) => verdict(quotaKept(history, KEY, 10));
    expect(check(line(11, 0))).toBe(false); // a line may have a thirtieth more than its quota
    expect(check(line(13, 0))).toBe(true);
    const left = did(1101, { what: 'deletion', ms: 1101, ticket: '000001000 t0' });
    expect(check([...line(11, 0), left, bring('new', 1200, 90_000)])).toBe(false);
  });

  it('the checker finds a new holder within the grace of working functions', () => {
    const check = (...history: Entry[]) => verdict(atWork(history, facts));
    const work = (to: number, graceSeconds?: number) =>
      entry('work', { key: KEY, holder: 'x', leaseId: 'x', untilMs: 60_000, graceSeconds }, [2000, to], 'ok', {});
    const ends = (status: string) => entry('executionEnds', { key: KEY, holder: 'x', status }, [5000, 5000]);
    const next = entry('acquire', { key: KEY, holder: 'y' }, [8000, 8010], 'ok', { leaseId: 'y', remainingMs: 5000 });
    expect(check(work(9000, 30), ends('ABORTED'), next)).toBe(true);
    expect(check(work(7000, 30), ends('ABORTED'), next)).toBe(false);
    expect(check(work(9000, 2), ends('ABORTED'), next)).toBe(false);
    expect(check(work(9000), ends('ABORTED'), next)).toBe(false);
    expect(check(work(9000, 30), ends('SUCCEEDED'), next)).toBe(false);
    const beaten = entry('release', { key: KEY, leaseId: 'x' }, [6000, 6010], 'ok', { released: true });
    expect(check(work(9000, 30), ends('ABORTED'), beaten, next)).toBe(false);
    expect(verdict(atWork([work(9000, 30), ends('ABORTED'), next], { ...facts, withinBound: false }))).toBe(false);
  });
});

describe('what is free', () => {
  it('the checker finds a plain caller that is refused beside expired rows', () => {
    const check = (...history: Entry[]) => verdict(freeLeaseIsHad(history, KEY, facts));
    expect(check(refused(5000))).toBe(true);
    expect(check(bring('a', 1000, 3000), refused(5000))).toBe(true);
    expect(check(bring('a', 1000, 8000), refused(5000))).toBe(false);
    expect(check(refused(5000, { expiresAt: at(9000) }))).toBe(false);
    expect(check(refused(5000, {}, { faults: ['Query throttled'] }))).toBe(false);
    expect(check(refused(5000), did(5005, grant('b', 5005)))).toBe(false);
  });

  const entryOf = (who: string, expiresMs: number) => ({
    ...{
      name: requestOf(who),
      path: 'h',
      id: who,
      version: 'v',
      holder: who,
    },
    ...{ ttlMs: 9000, weight: 1, fence: 1, expiresAt: BEGIN + expiresMs, acquiredAt: BEGIN, heartbeatAt: BEGIN },
  });
  const record = (ms: number, ...entries: ReturnType<typeof entryOf>[]): Effect => ({
    ...{ what: 'lock', ms, state: { ...NO_LOCK, used: entries.length, entries, isMarked: true } },
  });

  it('the checker finds a plain caller that is refused beside room without waiting callers', () => {
    const check = (...history: Entry[]) => verdict(roomBesideLine(history, KEY, facts));
    const two = { limit: 2 };
    const plain = refused(5000, {}, {}, two);
    const held = did(500, record(500, entryOf('a', 60_000)));
    const second = bring('a', 1000, 90_000, entryOf('a', 0).name);
    expect(check(held, second, plain)).toBe(true);
    expect(check(held, bring('b', 1000, 3000), plain)).toBe(true);
    expect(check(held, bring('b', 1000, 90_000), plain)).toBe(false);
    expect(check(held, second, refused(5000))).toBe(false);
    expect(check(did(500, record(500, entryOf('a', 4000))), refused(5000))).toBe(true);
  });

  it('the checker finds a caller that is refused room behind a long-dead task', () => {
    const check = (...history: Entry[]) => verdict(deadTaskCostsNothing(history, KEY, facts));
    const [held, reader] = [did(500, record(500, entryOf('a', 900_000))), { mode: 'shared' }];
    const dead = (closedMs: number) => [task('w', 1000, { closedMs }), bring('w', 1000, 900_000)];
    expect(check(held, ...dead(2000), refused(minute(4), {}, {}, reader))).toBe(true);
    expect(check(held, ...dead(minute(3)), refused(minute(4), {}, {}, reader))).toBe(false);
    expect(check(held, ...dead(2000), bring('r', 3000, 900_000), refused(minute(4), {}, {}, reader))).toBe(false);
    expect(check(held, ...dead(2000), refused(minute(4), {}, {}, { mode: 'exclusive' }))).toBe(false);
  });
});
