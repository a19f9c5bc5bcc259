import { expect, it } from 'vitest';
import type { HolderEntry } from '../../../shared/locks/record/record.ts';
import { inOrder } from '../../../verification/histories/capabilities/queue.model.ts';
import { queue } from '../../../verification/histories/capabilities/queue.ts';
import { entry, facts, landedOn, promises } from '../../../verification/histories/handmade.ts';
import type { Entry } from '../../../verification/histories/history.ts';
import { NO_LOCK } from '../../../verification/histories/landed.ts';

const T0 = 1_767_225_600_123;
const at = (ms: number) => new Date(T0 + ms).toISOString();
/** A task that parked at the first moment, and was notified at the second. */
const task = (
  who: string,
  [parked, answered]: [number] | [number, number],
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
    answered === undefined ? [parked] : [parked, answered],
    outcome,
    {
      ...(outcome === 'ok' && {
        leaseId: who,
        fence: answered,
        acquiredAt: at((answered ?? 0) - 5),
        expiresAt: at((answered ?? 0) + 5000),
        waitedMs: (answered ?? 0) - parked,
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
const ends = (who: string, ms: number) =>
  entry('executionEnds', { key: 'w-q0', holder: who }, [ms, ms], 'ok', {}, { actor: who });
const redrives = (who: string, ms: number) =>
  entry('executionRedriven', { key: 'w-q0', holder: who }, [ms, ms], 'ok', {}, { actor: who });
/** A call in the name of a task. */
const asks = (who: string, from: [number, number], outcome = 'ok', body: object = {}) =>
  entry('acquire', { key: 'w-q0', holder: who, requestId: who, waitSeconds: 5 }, from, outcome, {
    ...{
      leaseId: who,
      fence: 5000,
      acquiredAt: at(4995),
      remainingMs: 5000 + 5000 - from[1],
      waitedMs: 0,
      repeated: true,
    },
    ...body,
  });
const check = (...entries: Entry[]) => promises(queue.check(entries, facts));
const order = 'parked tasks are granted in the order of their tickets';

it('the checker accepts parked tasks in turn, even with dead tasks among them', () => {
  const gone = task('b', [2100], undefined, {}, { closedMs: 4000 });
  const calls = [bring('a', 2000), bring('b', 2100), bring('c', 2200)];
  const history = [plain('p', 1000), task('a', [2000, 5000]), gone, task('c', [2200, 8000])];
  expect(check(...history, ...calls, release('p', 4900), release('a', 7000))).toEqual([]);
});

it('the checker finds parked tasks out of order, or behind a plain caller', () => {
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

it('a task with a bound grant of its execution may pass parked tasks', () => {
  const ticket = '000004000-b';
  const overtaken = [task('a', [2000, 20_000]), task('b', [4000, 9000], 'ok', {}, { bound: true, execution: 'arn' })];
  const calls = [bring('a', 2000), bring('b', 4000)];
  const grants = (execution: string, bound = true) => {
    const standing = { bound, execution } as HolderEntry;
    const landed = landedOn(
      'w-q0',
      { what: 'lock', ms: 8000, state: { ...NO_LOCK, entries: [standing] } },
      { what: 'grant', ms: 8990, ticket, request: 'b', fence: 9000 },
    );
    return entry('repairQueues', { key: 'w-q0' }, [7990, 9000], 'ok', {}, { landed });
  };
  const judged = (run: Entry) => promises(inOrder([...overtaken, ...calls, run], facts));
  expect(judged(grants('arn'))).toEqual([]);
  expect(judged(grants('other'))).toEqual([order]);
  expect(judged(grants('arn', false))).toEqual([order]);
});

it('a parked task was served if another call of its request had the grant', () => {
  const unnotified = task('a', [2000, 20_000], 'LeaseLost', { reason: 'released' }, { requestId: 'a' });
  const calls = [bring('a', 2000), bring('b', 4000), release('a', 6000), release('b', 15_000)];
  expect(check(unnotified, ...calls, asks('a', [5100, 5200]), task('b', [4000, 9000]))).toEqual([]);
  const later = asks('a', [16_000, 16_010], 'ok', { acquiredAt: at(16_000), fence: 16_000 });
  expect(check(unnotified, ...calls, later, task('b', [4000, 9000]))).toContain(order);
});

it('a parked task comes earlier if its request had an earlier position', () => {
  const first = task('a', [2000, 20_000]);
  const second = task('b', [4000, 9000], 'ok', {}, { requestId: 'b' });
  const calls = [bring('a', 2000), bring('b', 4000), release('b', 15_000)];
  const answered = { acquiredAt: at(8995), fence: 9000 };
  expect(check(first, second, ...calls, asks('b', [1900, 9010], 'ok', answered))).toEqual([]);
  expect(check(first, second, ...calls, asks('b', [3000, 9010], 'ok', answered))).toEqual([order]);
  const another = asks('b', [1900, 9010], 'LeaseHeld');
  expect(check(first, second, ...calls, { ...another, input: { ...another.input, requestId: 'c' } })).toEqual([order]);
});

it('the checker finds two parked tasks that hold at once, or share a grant', () => {
  expect(check(task('a', [2000, 5000]), task('b', [2100, 6000]))).toContain('at most one holder at a time');
  expect(check(task('a', [2000, 5000]), task('b', [2100, 6000], 'ok', { leaseId: 'a' }))).toContain(
    'each grant is sent to one task',
  );
  const ended = ends('a', 5500);
  expect(check(task('a', [2000, 5000]), ended, task('b', [2100, 6000]))).toEqual([]);
});

it('the checker finds a parked task whose fence is below an earlier one', () => {
  const late = task('b', [2100, 60_000], 'ok', { fence: 4000 });
  expect(check(task('a', [2000, 5000]), late)).toContain('fences rise with each grant');
});

it('the checker finds a parked task that receives less than its ttl', () => {
  const short = task('a', [2000, 5000], 'ok', { remainingMs: 4499 });
  expect(check(short)).toEqual(['a task gets its whole ttl']);
  expect(check(task('a', [2000, 5000], 'ok', { remainingMs: 4500 }))).toEqual([]);
});

it('a parked task may be refused as released only after it was notified', () => {
  const never = 'no caller loses what it never had';
  const requestId = { requestId: 'r' };
  const refused = task('a', [9000, 9010], 'LeaseLost', { reason: 'released' }, requestId);
  expect(check(refused)).toEqual([never]);
  const answered = task('a', [2000, 5000], 'ok', {}, requestId);
  expect(check(answered, release('a', 6000), refused)).toEqual([]);
  const broken = task('a', [9000, 9010], 'LeaseLost', { reason: 'broken' }, requestId);
  expect(check(broken)).toEqual([]);
});

it('a parked task shares its grant with a client that asks in its name', () => {
  const refused = task('a', [2000, 9000], 'LeaseLost', { reason: 'released' }, { requestId: 'a' });
  expect(check(refused, asks('a', [5100, 5200]), release('a', 6000), task('b', [2100, 8000]))).toEqual([]);
  expect(check(refused, ends('a', 6000))).toEqual([]);
  expect(check(refused, ends('b', 6000))).toEqual(['no caller loses what it never had']);
  const again = task('a', [7000, 9000], 'LeaseLost', { reason: 'released' }, { requestId: 'a' });
  expect(check(again, ends('a', 6000), redrives('a', 6500))).toContain('no caller loses what it never had');
  expect(check(task('a', [2000, 5000]), asks('a', [5100, 5200]))).toEqual([]);
  expect(check(asks('a', [1900, 5200]), task('a', [2000, 5000]))).toEqual([]);
  const twice = check(task('a', [2000, 5000]), asks('a', [5100, 5200], 'ok', { repeated: false }));
  expect(twice).toContain('each grant is sent to one task');
  const asNew = [task('a', [2000, 5000]), asks('a', [5100, 5200]), asks('a', [5300, 5400], 'ok', { repeated: false })];
  expect(check(...asNew)).toContain('each grant is sent to one task');
});

it("a parked task's client may be granted the lease that it meets", () => {
  const met = entry('readLeases', { key: 'w-q0' }, [60_000, 60_005], 'ok', {
    state: 'held',
    holder: 'a',
    fence: 5000,
  });
  const left = [task('a', [2000, 4000], 'LeaseHeld'), bring('a', 2000)];
  expect(check(...left, met, asks('a', [59_000, 59_010]))).toEqual([]);
  expect(check(...left, met, asks('a', [59_000, 59_010], 'ok', { fence: 4000 }))).toContain(
    'a task that was refused never holds',
  );
});

it('a parked task is not granted by its client after its execution has ended', () => {
  const late = asks('a', [6000, 6010], 'ok', { leaseId: 'a2', fence: 6005, acquiredAt: at(6005), remainingMs: 5000 });
  const history = [task('a', [2000, 5000]), ends('a', 5500), late, task('b', [2100, 9000])];
  expect(check(...history)).toEqual([]);
  expect(check(...history, redrives('a', 5900))).toContain('at most one holder at a time');
  const own = { ...late, body: { ...late.body, repeated: false } };
  expect(check(...history.map((one) => (one === late ? own : one)))).toContain('at most one holder at a time');
});

it('parked tasks whose executions end, and are redriven, hold what they are granted again', () => {
  const ended = ends('a', 5500);
  const again = task('a', [6000, 7000], 'ok', { leaseId: 'a2' });
  expect(check(task('a', [2000, 5000]), ended, again, task('b', [2100, 9000]))).toContain(
    'at most one holder at a time',
  );
});

it('a parked task is the holder before, even if its execution has ended', () => {
  const ended = ends('a', 5500);
  const naming = (fence: number) => task('b', [2100, 9000], 'ok', { previous: { fence } });
  const history = [plain('p', 1000), release('p', 4000), task('a', [2000, 5000]), ended];
  expect(check(...history, naming(5000))).toEqual([]);
  expect(check(...history, naming(1000))).toEqual(['`previous` is the last holder that received its grant']);
});

it('the checker finds two targets at once, unless the first lost its lease', () => {
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
  const released = (actor: string) => ({ ...release('a', 5050), actor });
  expect(check(task('a', [2000, 5000]), released('a'), broken, ...two)).toEqual([]);
  expect(check(task('a', [2000, 5000]), released('a'), ...two)).toEqual([alone]);
  expect(check(task('a', [2000, 5000]), released('second client'), ...two)).toEqual([]);
  const long = entry('release', { key: 'w-q0', leaseId: 'a' }, [3000, 3010], 'ok', { released: true }, { actor: 'c' });
  expect(check(task('a', [2000, 5000]), long, ...two)).toContain(alone);
});

it('the checker finds a task that still waits, or holds after its refusal', () => {
  expect(check(task('a', [2000]))).toEqual(['no parked task is forgotten']);
  const met = entry('readLeases', { key: 'w-q0' }, [60_000, 60_005], 'ok', { state: 'held', holder: 'a' });
  const meets = (...entries: Entry[]) => check(task('a', [2000, 5000], 'LeaseHeld'), bring('a', 2000), ...entries);
  expect(meets(met)).toEqual(['a task that was refused never holds']);
  // by a ticket that was left, for as long as such a grant lasts
  const ofGrant = (ms: number) => ({ ...met, body: { ...met.body, fence: T0 + ms } });
  expect(meets(ofGrant(59_000))).toEqual([]);
  expect(meets(ofGrant(20_000))).toEqual(['a task that was refused never holds']);
  // for a later task of the request, which waits, or has waited until a ttl ago
  const later = (from: [number, number]) => task('a', from, 'LeaseHeld', {});
  expect(meets(met, later([40_000, 61_000]))).toEqual([]);
  expect(meets(met, later([40_000, 50_000]))).not.toEqual([]);
  expect(meets(met, later([61_000, 62_000]))).not.toEqual([]);
  expect(check(task('a', [2000, 5000], 'LeaseHeld'))).toEqual([]);
});

it('a parked task that is refused a bound grant must not hold it afterwards', () => {
  const refused = task('a', [2000, 5000], 'LeaseHeld', {}, { ttlSeconds: undefined, bound: true });
  const { ticket } = refused.input;
  const granting = (more: Partial<Entry> = {}) => ({
    ...release('p', 4990),
    answeredAt: { moment: 5010, ms: 5010 },
    landed: [
      {
        what: 'grant',
        ticket: String(ticket),
        request: 'a',
        fence: 4995,
        sent: 4992,
        moment: 4995,
        ms: 4995,
        key: 'w-q0',
      },
    ] as const satisfies Entry['landed'],
    ...more,
  });
  const met = (ms: number, more: object = {}) =>
    entry('readLeases', { key: 'w-q0' }, [ms, ms + 5], 'ok', { state: 'held', holder: 'a', fence: 4995, ...more });
  const meets = (...entries: Entry[]) => check(refused, bring('a', 2000), ...entries);
  expect(meets(granting(), met(6000))).toEqual(['a task that was refused never holds']);
  expect(meets(granting(), met(5000))).toEqual([]);
  expect(meets(granting(), met(6000, { state: 'free' }), met(7000, { fence: 5500 }))).toEqual([]);
  expect(meets(granting({ faults: ['PutItem death'] }), met(6000))).toEqual([]);
  expect(meets(granting(), met(6000), entry('repairQueues', {}, [4000, 6000], 'ok', {}))).toEqual([]);
  const answered = task('a', [2000, 5000], 'ok', {}, { ttlSeconds: undefined, bound: true });
  expect(check(answered, bring('a', 2000), granting(), met(6000, { fence: 4995 }))).not.toContain(
    'a task that was refused never holds',
  );
});

it('the checker finds a parked task that was cancelled and granted', () => {
  const granted = task('a', [2000, 5000]);
  const cancelled = entry('cancelWaiter', { key: 'w-q0', ticket: granted.input.ticket }, [4000, 4010], 'ok', {
    cancelled: true,
  });
  expect(check(granted, cancelled)).toEqual(['a cancelled task is notified, and never granted']);
  expect(check(task('a', [2000, 4005], 'LeaseLost', { reason: 'cancelled' }), cancelled)).toEqual([]);
});
