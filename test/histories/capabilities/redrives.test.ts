import { describe, expect, it } from 'vitest';
import { nameOfRequest } from '../../../shared/locks/record/identity.ts';
import { deadHolderGone } from '../../../verification/histories/capabilities/dead-holders.model.ts';
import { asGrants } from '../../../verification/histories/capabilities/queue.model.ts';
import {
  boundIsRefused,
  claimedInTime,
  leaseIsKept,
  waitsBehindDead,
} from '../../../verification/histories/capabilities/redrives.model.ts';
import { BEGIN } from '../../../verification/histories/clocks.ts';
import { at, type Effect, entry, facts, landedOn, promises } from '../../../verification/histories/handmade.ts';
import type { Entry } from '../../../verification/histories/history.ts';
import { QUESTION_LATE } from '../../../verification/histories/wire.ts';

const KEY = 'w-x0';

const landed = (...effects: Effect[]) => landedOn(KEY, ...effects);

/** A task of an execution that is answered with a lease, and the write of that lease. */
const task = (who: string, times: [number, number?], more: { requestId?: string; bound?: boolean } = {}) => {
  const { requestId = 'r', bound = true } = more;
  const [from] = times;
  return entry(
    'task',
    { key: KEY, holder: who, requestId, bound, parkedMs: from, ...(!bound && { ttlSeconds: 100 }) },
    times,
    'ok',
    { leaseId: `${who}-${requestId}`, fence: BEGIN + from, acquiredAt: at(from), waitedMs: 0, remainingMs: 9e9 },
    { actor: who },
  );
};

const write = (who: string, ms: number, requestId = 'r') =>
  entry(
    'acquire',
    { key: KEY },
    [ms, ms + 1],
    'ok',
    {},
    {
      landed: landed({
        ...{
          what: 'grant',
          ms,
          request: nameOfRequest({ holder: who, requestId }),
          fence: BEGIN + ms,
          leaseId: `${who}-${requestId}`,
        },
        ticket: undefined,
      }),
    },
  );

const ends = (who: string, ms: number) =>
  entry('executionEnds', { key: KEY, holder: who }, [ms, ms], 'ok', {}, { actor: who });
const redrives = (who: string, ms: number) =>
  entry('executionRedriven', { key: KEY, holder: who }, [ms, ms], 'ok', {}, { actor: who });
const run = (ms: number, faults: string[] = []) =>
  entry('repairQueues', {}, [ms, ms + 100], 'ok', { complete: true }, { faults });

describe('redriven executions', () => {
  const again = (ms: number) => ({
    ...task('x', [ms, ms + 10]),
    body: { ...task('x', [1000, 1010]).body, repeated: true },
  });
  const end = entry('executionEnded', {}, [5000, 5010], 'ok', {}, { landed: landed({ what: 'end', ms: 5005 }) });
  const kept = (...entries: Entry[]) => promises(leaseIsKept(entries, { key: KEY, grants: asGrants(entries) }, facts));

  it('a lease that a redriven execution received again must not end early', () => {
    const before = [task('x', [1000, 1010]), write('x', 1005), ends('x', 2000), redrives('x', 3100)];
    expect(kept(...before, again(3200), end)).toEqual(['no holder loses a lease before its time']);
    expect(kept(...before, end)).toEqual([]);
    expect(kept(...before, again(3200), ends('x', 4000), end)).toEqual([]);
    const releases = entry('release', { key: KEY, leaseId: 'x-r' }, [4000, 4010], 'ok', { released: true });
    expect(kept(...before, again(3200), releases, end)).toEqual([]);
  });

  it('a heartbeat does not keep a lease from before a redrive, unless answered again', () => {
    const beat = entry('heartbeat', { key: KEY, leaseId: 'x-r' }, [3300, 3310], 'ok', task('x', [1000, 1010]).body, {
      actor: 'x',
    });
    const had = task('x', [1000, 1010]);
    const history = (execution: string | undefined, ...more: Entry[]) => [
      ...[{ ...had, input: { ...had.input, execution } }, write('x', 1005), ends('x', 2000), redrives('x', 3100)],
      ...more,
    ];
    const early = ['no holder loses a lease before its time'];
    expect(kept(...history('arn', beat, end))).toEqual([]);
    expect(kept(...history(undefined, beat, end))).toEqual(early);
    const brief = { ...again(3200), body: { ...again(3200).body, remainingMs: 50 } };
    expect(kept(...history('arn', brief, end))).toEqual([]);
    expect(kept(...history('arn', brief, beat, end))).toEqual(early);
  });

  it('a lease from before a redrive must not keep a task waiting two minutes', () => {
    const former = [task('x', [1000, 1010]), write('x', 1005), ends('x', 2000), redrives('x', 3100)];
    const waits = task('x', [4000], { requestId: 'r-1' });
    const noHolder = ['no task waits two minutes behind a grant without a holder'];
    const check = (...entries: Entry[]) => promises(waitsBehindDead(entries, KEY, facts));
    expect(check(...former, waits, run(80_000))).toEqual(noHolder);
    expect(check(...former, task('y', [4000]), run(80_000))).toEqual(noHolder);
    expect(check(...former, waits, run(60_000))).toEqual([]);
    expect(check(...former, waits, run(80_000, ['Query throttled']))).toEqual([]);
    expect(check(...former, waits, write('x', 50_000, 'r-1'), run(80_000))).toEqual([]);
    expect(check(...former, again(3200), task('y', [4000]), run(80_000))).toEqual([]);
  });

  it('an unanswered grant keeps out others, but not its own execution', () => {
    const closed = task('x', [1000]);
    const lost = [{ ...closed, input: { ...closed.input, closedMs: 2000 } }, write('x', 1005)];
    const check = (...entries: Entry[]) => waitsBehindDead(entries, KEY, facts).length;
    expect(check(...lost, task('y', [4000]), run(80_000))).toBe(0);
    expect(check(...lost, { ...task('x', [4000], { requestId: 's' }), actor: 'x' }, run(80_000))).toBe(1);
    expect(check(...lost, ends('x', 5000), task('y', [4000]), run(80_000))).toBe(1);
  });

  describe('bound holders', () => {
    const far = { fence: BEGIN + 1005, holder: 'x', expiresAt: at(400 * 86_400_000) };
    const refused = (ms: number) => entry('acquire', { key: KEY, holder: `z${ms}` }, [ms, ms + 10], 'LeaseHeld', far);
    const before = [task('x', [1000, 1010]), write('x', 1005), ends('x', 2000), redrives('x', 3100)];
    const check = (entries: Entry[], { spreadMs } = facts) =>
      deadHolderGone([...before, ...entries], KEY, { spreadMs }).length;

    it('a bound holder that was redriven is dead if it was not answered again', () => {
      expect(check([refused(100_000), refused(220_000)])).toBe(1);
      expect(check([again(3200), refused(100_000), refused(220_000)])).toBe(0);
      expect(check([refused(90_000), refused(220_000)])).toBe(0);
    });

    it('a bound holder may stay if its answer may be after the redrive', () => {
      const late = [refused(300_000), refused(420_000)];
      expect(check(late, { ...facts, spreadMs: 1500 })).toBe(1);
      expect(check(late, { ...facts, spreadMs: 1600 })).toBe(0);
      expect(check([ends('x', 9000), ...late], { ...facts, spreadMs: 1600 })).toBe(1);
    });
  });
});

describe('callers behind bound holders', () => {
  const waiter = (answered: number, faults: string[], outcome = 'LeaseHeld') =>
    entry(
      'acquire',
      { key: KEY, waitSeconds: 20 },
      [1000, answered],
      outcome,
      {},
      {
        faults,
        landed: landed({
          what: 'row',
          ms: 1100,
          ticket: 't',
          deadline: BEGIN + 21_000,
          request: nameOfRequest({ holder: 'a', requestId: 'r' }),
        }),
      },
    );
  const granted = entry(
    'release',
    { key: KEY },
    [3000, 3010],
    'ok',
    {},
    {
      landed: landed({
        what: 'grant',
        ms: 3005,
        ticket: 't',
        request: nameOfRequest({ holder: 'a', requestId: 'r' }),
        fence: 1,
      }),
    },
  );
  const check = (...entries: Entry[]) => claimedInTime(entries, KEY, facts).length;

  it('an unclaimed grant is excused by a fault, but not by a slow question', () => {
    expect(check(waiter(9000, []), granted)).toBe(1);
    expect(check(waiter(9000, [QUESTION_LATE, QUESTION_LATE]), granted)).toBe(1);
    expect(check(waiter(9000, ['GetItem freeze']), granted)).toBe(0);
    expect(check(waiter(3500, []), granted)).toBe(0);
    expect(check(waiter(9000, [], 'ok'), granted)).toBe(0);
  });

  it('a call without a task token must not have a bound grant', () => {
    const asks = (more: object, outcome = 'ok') =>
      entry('acquire', { key: KEY, bound: true, ...more }, [0, 10], outcome, outcome === 'ok' ? { leaseId: 'l' } : {});
    expect(boundIsRefused([asks({})])).toHaveLength(1);
    expect(boundIsRefused([asks({}, 'InvalidRequest'), asks({ taskToken: 't' })])).toEqual([]);
  });
});

describe('dead bound holders', () => {
  const KEY = 'w-q0';
  const FAR_MS = 400 * 86_400_000;
  const held = (lastsMs: number) => ({ holder: 'dead', fence: BEGIN + 1000, expiresAt: at(1000 + lastsMs) });
  const asks = entry(
    'acquire',
    { key: KEY, holder: 'dead', bound: true, callbackId: 'x', taskToken: 'x' },
    [900, 1010],
    'ok',
  );
  const task = (more: object = {}) =>
    entry('task', { key: KEY, holder: 'dead', bound: true, ...more }, [900, 1010], 'ok', {
      ...held(FAR_MS),
      bound: true,
    });
  const ends = entry('executionEnds', { key: KEY, holder: 'dead', status: 'FAILED' }, [20_000, 20_000]);
  const refused = (ms: number, { lastsMs = FAR_MS, faults = [] as string[] } = {}) =>
    entry('acquire', { key: KEY, holder: `z${ms}` }, [ms, ms + 10], 'LeaseHeld', held(lastsMs), { faults });
  const check = (...entries: Entry[]) => deadHolderGone(entries, KEY, facts).map(({ promise }) => promise);
  const GONE = ['a dead bound holder is gone two minutes after a caller or task wants the key'];

  it('a caller does not meet a dead bound holder two minutes after another', () => {
    expect(check(asks, task(), ends, refused(100_000), refused(220_000))).toEqual(GONE);
    expect(check(asks, task(), ends, refused(100_000), refused(219_000))).toEqual([]);
    expect(check(asks, task(), ends, refused(220_000))).toEqual([]);
    expect(check(asks, task(), refused(100_000), refused(220_000))).toEqual([]);
  });

  it('an early or struck call, a grace or a target excuses a dead holder', () => {
    expect(check(asks, task(), ends, refused(40_000), refused(220_000))).toEqual([]);
    expect(check(asks, task(), ends, refused(100_000, { faults: ['UpdateItem throttled'] }), refused(220_000))).toEqual(
      [],
    );
    expect(check(asks, task(), ends, refused(100_000), refused(220_000, { lastsMs: 230_000 }))).toEqual([]);
    expect(check(asks, task({ target: 'arn' }), ends, refused(100_000), refused(220_000))).toEqual([]);
  });
});
