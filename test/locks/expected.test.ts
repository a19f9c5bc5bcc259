import { expect, it } from 'vitest';
import {
  expectedTurn,
  holdReasonOf,
  isFarAgain,
  patienceOf,
  sleepMsOf,
  type WaitState,
} from '../../shared/locks/line/expected.ts';
import { estimatedPosition } from '../../shared/locks/line/place.ts';
import { EXCLUSIVE_WEIGHT } from '../../shared/locks/record/identity.ts';
import type { HolderEntry } from '../../shared/locks/record/record.ts';

const NOW = 1_000_000;
const ids = { uuid: () => 'no', random: () => 0.5 };
const holder = (ageMs: number, weight = EXCLUSIVE_WEIGHT) => ({ acquiredAt: NOW - ageMs, weight }) as HolderEntry;

/** A caller whose holder has had the key for `age` milliseconds. */
const turn = ({
  position = 1,
  ageMs = 0,
  usualMs = 1000,
  meanMs = usualMs,
  ...more
}: Record<string, number> = {}): WaitState => ({
  ...{ position, asleep: position - 1, now: NOW, freeSince: undefined },
  ...more,
  record: { entries: [holder(ageMs)], usualMs, meanMs },
});
const reasonOf = (seen: WaitState) => holdReasonOf(seen, expectedTurn(seen));
const sleepOf = (seen: WaitState, maxMs = 300_000) => sleepMsOf(seen, expectedTurn(seen), { maxMs, ids });

it('a turn is expected when the present turn and all turns ahead are over', () => {
  expect(expectedTurn(turn()).inMs).toBe(500);
  expect(expectedTurn(turn({ position: 3 })).inMs).toBe(500 + 2 * 512);
  // Three turns ahead count as usual turns, and the others as mean turns.
  expect(expectedTurn(turn({ position: 10, meanMs: 4000 })).inMs).toBe(500 + 3 * 512 + 6 * 4012);
});

it('an overdue turn is expected to last longer by a quarter of its age', () => {
  expect(expectedTurn(turn({ ageMs: 40_000 })).inMs).toBe(10_000);
});

it('the holders of permits divide the turns ahead', () => {
  const record = { entries: Array.from({ length: 8 }, () => holder(0, 1)), usualMs: 1000, meanMs: 1000 };
  expect(expectedTurn({ ...turn({ position: 3 }), record }).inMs).toBe(500 + (2 * 512) / 8);
});

it('a call is held near the front, and otherwise its caller sleeps', () => {
  const [front, late] = [turn({ usualMs: 100, position: 4 }), turn({ usualMs: 100, position: 5, ageMs: 60_000 })];
  expect([front, late].map(reasonOf)).toEqual(['front', 'soon']);
  expect(reasonOf(turn({ usualMs: 20, position: 30 }))).toBe('soon');
  expect(reasonOf(turn({ usualMs: 60_000 }))).toBe('next');
  expect(reasonOf(turn({ usualMs: 60_000, position: 2 }))).toBeUndefined();
  expect(reasonOf(turn({ position: 400 }))).toBeUndefined();
});

it('the front has as many held calls as holders, up to sixteen', () => {
  const at = (position: number, holders: number) => {
    const record = { entries: Array.from({ length: holders }, () => holder(60_000, 1)), usualMs: 100, meanMs: 100 };
    return reasonOf({ ...turn({ position }), record });
  };
  expect([at(8, 1), at(9, 1), at(12, 12), at(13, 12)]).toEqual(['soon', undefined, 'soon', undefined]);
  expect([at(16, 40), at(17, 40)]).toEqual(['soon', undefined]);
});

it('a held call ends early only if it is far from the front', () => {
  const isAway = (seen: WaitState) => isFarAgain(seen, expectedTurn(seen));
  expect(isAway(turn({ position: 9, usualMs: 2000 }))).toBe(true);
  expect(isAway(turn({ position: 8, usualMs: 60_000 }))).toBe(false);
  expect(isAway(turn({ position: 9, usualMs: 100 }))).toBe(false);
});

it('a caller sleeps half of the expected time, the first two a quarter', () => {
  expect(sleepOf(turn({ position: 21 }))).toBe(Math.round((500 + 3 * 512 + 17 * 1012) / 2));
  expect(sleepOf(turn({ position: 2, usualMs: 60_000 }))).toBe(Math.round((30_000 + 30_012) / 4));
});

it('a sleep is bounded by the caller, by mean turns, and by five minutes', () => {
  const far = { position: 100_000 };
  expect(sleepOf(turn(far), 700)).toBe(700);
  expect(sleepOf(turn(far))).toBe(60_000);
  expect(sleepOf(turn({ ...far, usualMs: 50_000 }))).toBe(100_000);
  expect(sleepOf(turn({ ...far, usualMs: 1_000_000 }))).toBe(300_000);
  expect(sleepOf(turn({ ageMs: 3_600_000 }))).toBe(10_000);
  expect(sleepOf(turn({ usualMs: 1 }))).toBe(100);
});

it('a free key is left to each sleeper for part of a turn', () => {
  const { record } = turn();
  expect([patienceOf(record, 0), patienceOf(record, 3)]).toEqual([0, 375]);
  expect(patienceOf({ entries: [], usualMs: undefined }, 3)).toBe(30);
  expect(patienceOf({ entries: [holder(0, 1), holder(0, 1)], usualMs: 1000 }, 3)).toBe(187.5);
  expect(expectedTurn(turn({ position: 3, freeSince: NOW - 200 })).inMs).toBe(50);
});

it('the first caller comes back each second while a third-party client holds the key', () => {
  const seen = { ...turn(), record: { entries: [], usualMs: undefined, meanMs: undefined } };
  expect(sleepOf(seen)).toBe(1000);
});

it('a position is estimated by the number, until the counter begins again', () => {
  const hints = { arrivals: 500, lineOut: 60 };
  expect([100, 501, 60, 502, undefined].map((number) => estimatedPosition(hints, number))).toEqual([40, 441, 1, 1, 1]);
});
