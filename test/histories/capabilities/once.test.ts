import { expect, it } from 'vitest';
import {
  DONE_ONCE,
  NO_ZOMBIE,
  NOT_SKIPPED,
  ONE_RESULT,
  ONE_WORKER,
  SLOT_KEPT,
  STORED,
} from '../../../verification/histories/capabilities/once.model.ts';
import { once } from '../../../verification/histories/capabilities/once.ts';
import { AFTERWARDS } from '../../../verification/histories/capability.ts';
import { entry, facts, promises } from '../../../verification/histories/handmade.ts';
import type { Entry } from '../../../verification/histories/history.ts';

const key = 'w-o0';

/** A run whose lease id is its fence. */
const run = (fence: number, at: [number, number], slot = '1') =>
  entry('onceBegin', { key, holder: `h${fence}`, requestId: `r${fence}`, slot }, at, 'ok', {
    ...{ outcome: 'run', key, slot, leaseId: `o.${fence}`, fence, waitedMs: 0, remainingMs: 1000, repeated: false },
  });

const completed = (fence: number, at: [number, number], slot = '1') =>
  entry('onceComplete', { key, leaseId: `o.${fence}`, result: `of ${fence}` }, at, 'ok', {
    ...{ key, completed: true, repeated: false, slot, fence },
  });

const answered = (fence: number, at: [number, number], slot = '1') =>
  entry('onceBegin', { key, holder: 'x', requestId: `x${at[0]}`, slot }, at, 'ok', {
    ...{ outcome: 'done', key, slot, result: `of ${fence}`, fence },
  });

const check = (...entries: Entry[]) => promises(once.check(entries, facts));

it('the checker of once accepts that a worker is replaced after its time', () => {
  const repeat = completed(2, [1700, 1710]);
  const entries = [
    run(1, [0, 10]),
    run(2, [1550, 1560]),
    completed(2, [1600, 1610]),
    repeat,
    answered(2, [1800, 1810]),
  ];
  expect(check(...entries)).toEqual([]);
});

it('the checker of once finds two workers at once', () => {
  expect(check(run(1, [0, 10]), run(2, [500, 510]))).toContain(ONE_WORKER);
});

it('the checker of once finds two results of a slot, or an unstored one', () => {
  const first = [run(1, [0, 10]), completed(1, [20, 30]), answered(1, [40, 50])];
  expect(
    check(
      ...first,
      entry('onceComplete', { key, leaseId: 'o.2', result: 'of 2' }, [60, 70], 'ok', {
        completed: false,
        reason: 'taken',
      }),
      answered(2, [80, 90]),
    ),
  ).toContain(ONE_RESULT);
  expect(check(run(1, [0, 10]), answered(1, [40, 50]))).toEqual([ONE_RESULT]);
});

it('the checker of once finds a run of a done or earlier slot', () => {
  const done = [run(1, [0, 10], '2'), completed(1, [20, 30], '2')];
  expect(check(...done, run(2, [40, 50], '2'))).toEqual([DONE_ONCE]);
  expect(check(...done, run(2, [40, 50], '1'))).toEqual([DONE_ONCE]);
  expect(check(...done, run(2, [40, 50], '3'))).toEqual([]);
  const forget = entry('onceForget', { key, fence: 1 }, [32, 38], 'ok', { key, forgotten: true });
  expect(check(...done, forget, run(2, [40, 50], '2'))).toEqual([]);
});

it('the checker of once finds a worker that stores after losing its run', () => {
  expect(check(run(1, [0, 10]), run(2, [1550, 1560]), completed(1, [1600, 1610]))).toContain(NO_ZOMBIE);
  const release = entry('release', { key, leaseId: 'o.1' }, [20, 30], 'ok', { key, released: true });
  expect(check(run(1, [0, 10]), release, completed(1, [40, 50]))).toEqual([NO_ZOMBIE]);
});

it('the checker of once finds a key that is stuck', () => {
  const last = {
    ...entry('onceBegin', { key, holder: AFTERWARDS }, [9000, 9010], 'LeaseHeld', {}),
    actor: AFTERWARDS,
  };
  expect(check(run(1, [0, 10]), last)).toEqual(['no key is stuck']);
});

it('the checker of once finds a waiting caller answered for the next period', () => {
  const [first, next] = ['2026-01-01T00:00:00Z', '2026-01-01T00:00:10Z'];
  const waits = (at: [number, number], outcome: string, slot?: string) =>
    entry('onceBegin', { key, requestId: 'p', holder: 'p', per: '10s', isPatient: true }, at, outcome, {
      ...(slot && { outcome: 'superseded', slot, doneSlot: slot }),
    });
  expect(check(waits([7000, 9000], 'LeaseHeld'), waits([11_000, 11_010], 'ok', next))).toContain(SLOT_KEPT);
  expect(check(waits([7000, 9000], 'LeaseHeld'), waits([11_000, 11_010], 'ok', first))).not.toContain(SLOT_KEPT);
  expect(check(waits([9500, 9600], 'LeaseHeld'), waits([11_000, 11_010], 'ok', next))).not.toContain(SLOT_KEPT);
});

it('the checker of once finds an early caller answered for the ending period', () => {
  const early = (slot: string) =>
    entry('onceBegin', { key, requestId: 'e', holder: 'e', firedFor: '2026-01-01T00:00:10.000Z' }, [9800, 9810], 'ok', {
      ...{ outcome: 'superseded', slot, doneSlot: slot },
    });
  expect(check(early('2026-01-01T00:00:00Z'))).toEqual([NOT_SKIPPED]);
  expect(check(early('2026-01-01T00:00:10Z'))).toEqual([]);
});

it('the checker of once finds work that is thrown away without another worker', () => {
  const refused = entry('onceComplete', { key, leaseId: 'o.1', result: 'of 1' }, [3000, 3010], 'ok', {
    ...{ completed: false, reason: 'taken' },
  });
  expect(check(run(1, [0, 10]), refused)).toEqual([STORED]);
  expect(check(run(1, [0, 10]), run(2, [1550, 1560]), refused)).toEqual([]);
  expect(check(run(1, [0, 10]), entry('release', { key, leaseId: 'o.1' }, [20]), refused)).toEqual([]);
});
