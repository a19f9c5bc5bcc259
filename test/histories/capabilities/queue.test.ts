import { describe, expect, it } from 'vitest';
import { entry, facts, promises } from '../handmade.ts';
import type { Entry } from '../history.ts';
import { queue } from './queue.ts';

describe('parked tasks', () => {
  const T0 = 1_767_225_600_123;
  const at = (ms: number) => new Date(T0 + ms).toISOString();
  /** A task that parked at the first moment, and was notified at the second. */
  const task = (
    who: string,
    [parked, told]: [number] | [number, number],
    outcome = 'ok',
    body: object = {},
    more: Record<string, unknown> = {},
  ) =>
    entry(
      'task',
      {
        key: 'w-q0',
        holder: who,
        ttlSeconds: 5,
        token: `token-${who}`,
        ticket: `${String(parked).padStart(9, '0')}-${who}`,
        parked: true,
        parkedMs: parked + 5,
        ...more,
      },
      told === undefined ? [parked] : [parked, told],
      outcome,
      {
        ...(outcome === 'ok' && {
          leaseId: who,
          fence: told,
          acquiredAt: at((told ?? 0) - 5),
          expiresAt: at((told ?? 0) + 5000),
          waitedMs: (told ?? 0) - parked,
          remainingMs: 5000,
          repeated: false,
        }),
        ...body,
      },
      { actor: who },
    );
  const bring = (who: string, ms: number) =>
    entry('acquire', { key: 'w-q0', taskToken: `token-${who}` }, [ms, ms + 5], 'ok', {});
  const plain = (who: string, ms: number) =>
    entry('acquire', { key: 'w-q0', holder: who }, [ms - 10, ms], 'ok', {
      leaseId: who,
      fence: ms,
      acquiredAt: at(ms - 5),
      expiresAt: at(ms + 5000),
      waitedMs: 0,
      remainingMs: 5000,
      repeated: false,
    });
  const release = (who: string, ms: number) =>
    entry('release', { key: 'w-q0', leaseId: who }, [ms, ms + 5], 'ok', { released: true });
  const check = (...entries: Entry[]) => promises(queue.check(entries, facts));
  const order = 'parked tasks are granted in the order of their tickets';

  it('one after the other pass, those who have gone among them', () => {
    const gone = task('b', [2100], undefined, {}, { closedMs: 4000 });
    const calls = [bring('a', 2000), bring('b', 2100), bring('c', 2200)];
    const history = [plain('p', 1000), task('a', [2000, 5000]), gone, task('c', [2200, 8000])];
    expect(check(...history, ...calls, release('p', 4900), release('a', 7000))).toEqual([]);
  });

  it('out of order, or behind a plain caller, are refused', () => {
    const calls = [bring('a', 2000), bring('b', 4000)];
    const overtaken = [task('a', [2000, 20_000]), task('b', [4000, 9000])];
    expect(check(...overtaken, ...calls, release('b', 15_000))).toEqual([order]);
    expect(
      check(
        ...overtaken.map((one) => ({ ...one, input: { ...one.input, parkSeconds: 5 } })),
        ...calls,
        release('b', 15_000),
      ),
    ).toEqual([]);
    expect(check(task('a', [2000, 20_000]), plain('p', 9000), bring('a', 2000), release('p', 15_000))).toEqual([order]);
  });

  it('of which two hold at a time, or have one grant, are refused', () => {
    expect(check(task('a', [2000, 5000]), task('b', [2100, 6000]))).toContain('at most one holder at a time');
    expect(check(task('a', [2000, 5000]), task('b', [2100, 6000], 'ok', { leaseId: 'a' }))).toContain(
      'each grant is told once',
    );
    const ended = entry('executionEnds', { key: 'w-q0' }, [5500, 5500], 'ok', {}, { actor: 'a' });
    expect(check(task('a', [2000, 5000]), ended, task('b', [2100, 6000]))).toEqual([]);
  });

  it('whose fence is below that of an earlier grant are refused', () => {
    const late = task('b', [2100, 60_000], 'ok', { fence: 4000 });
    expect(check(task('a', [2000, 5000]), late)).toContain('fences rise with each grant');
  });

  it('of which one gets less than its ttl are refused', () => {
    const short = task('a', [2000, 5000], 'ok', { remainingMs: 4499 });
    expect(check(short)).toEqual(['a task gets its whole ttl']);
    expect(check(task('a', [2000, 5000], 'ok', { remainingMs: 4500 }))).toEqual([]);
  });

  it('that are refused as released are told of their grant before', () => {
    const never = 'nobody loses what they never had';
    const requestId = { requestId: 'r' };
    const refused = task('a', [9000, 9010], 'LeaseLost', { reason: 'released' }, requestId);
    expect(check(refused)).toEqual([never]);
    const told = task('a', [2000, 5000], 'ok', {}, requestId);
    expect(check(told, release('a', 6000), refused)).toEqual([]);
    const broken = task('a', [9000, 9010], 'LeaseLost', { reason: 'broken' }, requestId);
    expect(check(broken)).toEqual([]);
  });

  it('whose executions end, and are redriven, hold what they are granted anew', () => {
    const ended = entry('executionEnds', { key: 'w-q0' }, [5500, 5500], 'ok', {}, { actor: 'a' });
    const again = task('a', [6000, 7000], 'ok', { leaseId: 'a2' });
    expect(check(task('a', [2000, 5000]), ended, again, task('b', [2100, 9000]))).toContain(
      'at most one holder at a time',
    );
  });

  it('are the holder before, also where their execution has ended', () => {
    const ended = entry('executionEnds', { key: 'w-q0' }, [5500, 5500], 'ok', {}, { actor: 'a' });
    const naming = (fence: number) => task('b', [2100, 9000], 'ok', { previous: { fence } });
    const history = [plain('p', 1000), release('p', 4000), task('a', [2000, 5000]), ended];
    expect(check(...history, naming(5000))).toEqual([]);
    expect(check(...history, naming(1000))).toEqual(['`previous` is the last holder that was told']);
  });

  it('with two targets at once are refused, but not where the first was to be stopped, or its lease was broken', () => {
    const target = (wrapper: string, from: [number, number?], stopsMs: number) =>
      entry('target', { key: 'w-q0', wrapper, stopsMs }, from, 'ok', { status: 'SUCCEEDED' }, { actor: wrapper });
    const two = [target('a', [5100, 12_000], 9000), target('b', [8000, 8500], 12_000)];
    const alone = 'no two targets run at once';
    expect(check(...two)).toEqual([alone]);
    expect(check(target('a', [5100], 9000), target('b', [8000, 8500], 12_000))).toEqual([alone]);
    expect(check(target('a', [5100, 7900], 9000), target('b', [8000, 8500], 12_000))).toEqual([]);
    expect(check(target('a', [5100, 12_000], 7900), target('b', [8000, 8500], 12_000))).toEqual([]);
    expect(promises(queue.check(two, { ...facts, withinBound: false }))).toEqual([]);
    const broken = entry('breakLease', { key: 'w-q0', fence: 5000 }, [7000, 7010], 'NotFound');
    expect(check(task('a', [2000, 5000]), release('a', 5050), broken, ...two)).toEqual([]);
  });

  it('that still wait in the end are refused, and so are those who were refused and hold', () => {
    expect(check(task('a', [2000]))).toEqual(['no parked task is forgotten']);
    const met = entry('readLeases', { key: 'w-q0' }, [60_000, 60_005], 'ok', { state: 'held', holder: 'a' });
    const meets = (...entries: Entry[]) => check(task('a', [2000, 5000], 'LeaseHeld'), bring('a', 2000), ...entries);
    expect(meets(met)).toEqual(['a task that was refused never holds']);
    // by a ticket that was left, for as long as such a grant lasts
    const ofGrant = (ms: number) => ({ ...met, body: { ...met.body, fence: T0 + ms } });
    expect(meets(ofGrant(59_000))).toEqual([]);
    expect(meets(ofGrant(20_000))).toEqual(['a task that was refused never holds']);
    expect(check(task('a', [2000, 5000], 'LeaseHeld'))).toEqual([]);
  });

  it('that were cancelled and granted are refused', () => {
    const granted = task('a', [2000, 5000]);
    const cancelled = entry('cancelWaiter', { key: 'w-q0', ticket: granted.input.ticket }, [4000, 4010], 'ok', {
      cancelled: true,
    });
    expect(check(granted, cancelled)).toEqual(['a cancelled task is told so, and never granted']);
    expect(check(task('a', [2000, 4005], 'LeaseLost', { reason: 'cancelled' }), cancelled)).toEqual([]);
  });
});
