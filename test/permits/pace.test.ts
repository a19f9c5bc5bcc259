import { describe, expect, it } from 'vitest';
import { poolPatienceMs, poolPauseMs } from '../../shared/permits/pace.ts';
import type { PoolEntry } from '../../shared/permits/record.ts';

const NOW = 1_000_000;
const ids = { uuid: () => '', random: () => 0.5 };

/** The permit of a holder that has had it for so long. */
const held = (ms: number) => ({ acquiredAt: NOW - ms }) as PoolEntry;

interface Seen {
  heldMs?: number[];
  /** How many grants until its turn. */
  place?: number | undefined;
  next?: string;
  toRoomMs?: number;
  requestMs?: number | undefined;
  /** Since when it is in line, and how many grants there were since. */
  sinceMs?: number;
  grants?: number;
}

function sightOf({ heldMs = [], place, next = 'another', toRoomMs, requestMs, sinceMs = 100, grants = 0 }: Seen) {
  return {
    record: { key: 'k', fence: 500, entries: heldMs.map(held), nextTicket: next },
    ticket: 'own',
    joined: { turn: place === undefined ? undefined : 500 + place, fence: 500 - grants, at: NOW - sinceMs },
    now: NOW,
    toRoomMs: toRoomMs ?? Number.POSITIVE_INFINITY,
    requestMs,
  };
}

const pause = (seen: Seen) => poolPauseMs(sightOf(seen), ids);

describe('when a call in line for a permit looks again', () => {
  it('the next one: as long as holders have held their permits, between 5 and 35 ms', () => {
    const next = (...heldMs: number[]) => pause({ next: 'own', heldMs });
    expect([next(), next(2), next(20), next(1000)]).toEqual([7, 7, 20, 30]);
    expect([next(1, 20, 1000), next(1000, 1, 20), next(20, 1000, 1)]).toEqual([20, 20, 20]);
  });

  it('the next one: in the moment in which an expiry makes room', () => {
    expect(pause({ next: 'own', heldMs: [1000], toRoomMs: 3 })).toBe(3);
    expect(pause({ next: 'own', heldMs: [1000], toRoomMs: -3 })).toBe(30);
    expect(pause({ next: 'own', heldMs: [1000], toRoomMs: 0 })).toBe(30);
  });

  it('the others: by the grants before them, each as long as those since they came', () => {
    const at = (place: number) => pause({ place, sinceMs: 100, grants: 10 });
    expect([at(2), at(4), at(12)]).toEqual([14, 32, 106]);
  });

  it('the others: as long as there was no grant, by the turns of the holders and by how long requests take', () => {
    const at = (heldMs: number[], requestMs?: number) => pause({ place: 4, heldMs, requestMs });
    expect(at([20])).toBe(166); // (40 + 12) x 3.2
    expect(at([20, 20, 20, 20])).toBe(42);
    expect(at([20, 20, 20, 20], 9)).toBe(48);
  });

  it('no later than those who do not know their place, but for those far behind: they look half way', () => {
    const at = (place: number) => pause({ place, sinceMs: 1000, grants: 5 });
    expect([at(2), at(4), at(5), at(60)]).toEqual([200, 200, 411, 500]);
  });

  it('a call in line for a permit looks again after 150 to 250 ms if its position is unknown, or is that of another line', () => {
    expect(pause({ heldMs: [5] })).toBe(200);
    expect(pause({ heldMs: [5], place: -17 })).toBe(200);
    expect(pause({ heldMs: [5], place: -16 })).toBeLessThan(30);
    const sight = { ...sightOf({ place: 3 }), joined: { turn: 503, fence: undefined, at: NOW } };
    expect(poolPauseMs({ ...sight, record: { ...sight.record, fence: undefined } }, ids)).toBe(200);
  });
});

describe('how long a call leaves room to those before it', () => {
  const patience = (place?: number) => poolPatienceMs(sightOf({ place }), ids);

  it('a call leaves room to those before it by its position, half a second at most', () => {
    expect([patience(1), patience(2), patience(3), patience(64)]).toEqual([75, 75, 125, 500]);
  });

  it('a call leaves room to those before it by chance if its position is unknown, or is that of another line', () => {
    expect([patience(), patience(-17)]).toEqual([275, 275]);
  });
});
