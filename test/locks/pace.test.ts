import { expect, it } from 'vitest';
import { hintsAfter, meanOf, paceAfter, patienceInLineMs, pauseInLineMs } from '../../shared/locks/line/pace.ts';
import type { HolderEntry } from '../../shared/locks/record/record.ts';

const NOW = 1_000_000;
const ids = { uuid: () => '', random: () => 0.5 };

/** A permit that its holder has had for `ms` milliseconds. */
const held = (ms: number) => ({ acquiredAt: NOW - ms }) as HolderEntry;

interface Seen {
  heldMs?: number[];
  /** The position of the call in line. */
  place?: number | undefined;
  next?: string;
  names?: string;
  turnMs?: number | undefined;
  paceMs?: number | undefined;
  holders?: number;
  toRoomMs?: number;
  requestMs?: number | undefined;
}

const ticketOf = (ms: number, name: string) => `${String(ms).padStart(15, '0')}-${name}-0000`;
const OWN = ticketOf(1000, 'ownownow');
const ANOTHER = ticketOf(500, 'another1');

function sightOf({ heldMs = [], place, next = ANOTHER, names, turnMs, paceMs, toRoomMs, ...seen }: Seen) {
  return {
    record: { key: 'k', lineOut: 500, entries: heldMs.map(held), nextTicket: next, nextTickets: names, turnMs, paceMs },
    ticket: OWN,
    arrival: place === undefined ? undefined : 500 + place,
    now: NOW,
    toRoomMs: toRoomMs ?? Number.POSITIVE_INFINITY,
    holders: seen.holders,
    requestMs: seen.requestMs,
  };
}

const pause = (seen: Seen) => pauseInLineMs(sightOf(seen), ids);
/** The hint that names `count` waiters before the call. */
const behind = (count: number) =>
  ['anot', ...Array.from({ length: count - 1 }, (_, nth) => `n${nth}`), 'owno'].join(' ');

it('the next waiter polls when the first hold should end', () => {
  const next = (paceMs: number, ...heldMs: number[]) => pause({ next: OWN, paceMs, heldMs });
  expect([next(5, 0), next(20, 2), next(20, 2, 12), next(60_000, 10)]).toEqual([7, 18, 8, 250]);
});

it('the next waiter polls more often behind an exclusive holder', () => {
  const behindOne = (path: string) => {
    const sight = sightOf({ next: OWN, paceMs: 5 });
    return pauseInLineMs({ ...sight, record: { ...sight.record, entries: [{ ...held(4), path }] } }, ids);
  };
  expect([behindOne('h'), behindOne('hname')]).toEqual([2, 7]);
});

it('the next waiter polls later the longer holders have held', () => {
  const next = (...heldMs: number[]) => pause({ next: OWN, heldMs });
  expect([next(), next(2), next(20), next(1000)]).toEqual([7, 7, 20, 30]);
});

it('the next waiter polls at the moment when an expiry makes room', () => {
  expect(pause({ next: OWN, heldMs: [1000], toRoomMs: 3 })).toBe(3);
  expect(pause({ next: OWN, heldMs: [1000], toRoomMs: -3 })).toBe(30);
  expect(pause({ next: OWN, heldMs: [1000], toRoomMs: 0 })).toBe(30);
});

it('a call that the hints name polls when those before it should be served', () => {
  const at = (count: number, heldMs: number[]) => pause({ names: behind(count), paceMs: 20, heldMs });
  expect([at(1, [0]), at(7, [0])]).toEqual([34, 214]); // 20 + 33 x (1 - 0.4 x root of 2)
  expect(at(7, [0, 0, 0, 0])).toBe(68);
  expect(pause({ names: behind(7), paceMs: 20, heldMs: [0], holders: 4 })).toBe(68); // three permits are between holders
  expect(pause({ names: behind(7), paceMs: 20, heldMs: [0, 0, 0, 0], requestMs: 9 })).toBe(92);
});

it('a call ignores names of another version', () => {
  expect(pause({ names: 'else owno', paceMs: 20, heldMs: [0], place: 8 })).toBe(
    pause({ paceMs: 20, heldMs: [0], place: 8 }),
  );
});

it('a call that the hints do not name counts as behind the named ones', () => {
  const at = (next: string) => pause({ next, names: 'anot n1 n2', paceMs: 20, heldMs: [0], place: 30 });
  expect(at(ticketOf(990, 'another1'))).toBe(93);
  expect(at(ticketOf(500, 'another1'))).toBe(905);
});

it('a call far behind polls within a second and a half', () => {
  const far = { names: 'anot n1 n2', heldMs: [0], place: 300 };
  expect(pause({ ...far, paceMs: 20 })).toBe(1500);
  expect(pause({ ...far, turnMs: 20 })).toBe(200);
});

it('a call behind a heavy holder polls within a quarter second', () => {
  const sight = sightOf({ names: behind(3), paceMs: 1000 });
  const at = (weight: number) => {
    const entries = [{ ...held(10), weight }];
    return pauseInLineMs({ ...sight, record: { ...sight.record, entries } }, ids);
  };
  expect([at(1), at(2)]).toEqual([1500, 200]);
});

it('a turn ahead counts as long as the present holds so far', () => {
  const at = (heldMs: number[]) => pause({ place: 4, heldMs });
  expect([at([20]), at([20, 20, 20, 20]), at([])]).toEqual([60, 20, 39]);
  expect(at([1000])).toBe(200);
});

it('slow requests delay the polls, but one slow answer does not', () => {
  const at = (requestMs?: number) => pause({ names: behind(4), paceMs: 20, heldMs: [0], requestMs });
  expect([at(1) === at(), at(5) > at(), at(2000) === at(15)]).toEqual([true, true, true]);
  expect([meanOf(undefined, 8), meanOf(8, 4), meanOf(6, 6)]).toEqual([8, 6, 6]);
});

it('a call of unknown position polls again after 150 to 250 ms', () => {
  expect(pause({ heldMs: [5] })).toBe(200);
});

const patience = (place?: number) => patienceInLineMs(sightOf({ place }), ids);

it('a call leaves room by its position, half a second at most', () => {
  expect([patience(1), patience(2), patience(3), patience(64)]).toEqual([75, 75, 125, 500]);
});

it('the next waiter leaves a release the time of two hand-offs', () => {
  const next = (requestMs?: number) => patienceInLineMs(sightOf({ next: OWN, requestMs }), ids);
  expect([next(), next(9), next(100)]).toEqual([26, 58, 82]);
});

it('a call of unknown position leaves room for a random time', () => {
  expect(patience()).toBe(275);
});

const paceOf = (paceMs: number | undefined, turnMs: number | undefined) => paceAfter({ mark: 'm', paceMs, turnMs });

it('the average hold falls at once, and rises slowly', () => {
  expect(paceOf(100, 20)).toBe(60);
  expect(paceOf(100, 140)).toBe(105);
  expect(paceOf(100, 60_000)).toBe(113); // a hold counts as twice the average at most
  expect(paceOf(0, 40)).toBe(40);
});

it('the average hold begins with the first hold, counted as 100 ms at most', () => {
  expect(paceOf(undefined, 30)).toBe(30);
  expect(paceOf(undefined, 60_000)).toBe(100);
  expect(paceOf(undefined, undefined)).toBeUndefined();
  expect(paceOf(20, undefined)).toBeUndefined();
  expect(paceAfter({ turnMs: 30 })).toBeUndefined(); // the line is empty
});

it('the usual turn is a mean of logarithms, and the mean turn follows slowly', () => {
  const after = (turnMs: number, usualMs?: number, meanMs?: number) =>
    hintsAfter({ mark: 'm', turnMs, paceMs: 20, usualMs, meanMs });
  expect(after(16)).toMatchObject({ usual_ms: 16, mean_ms: 16 });
  expect(after(1600, 100, 100)).toMatchObject({ usual_ms: 200, mean_ms: 194 });
  expect(after(0, 16, 16)).toMatchObject({ usual_ms: 8, mean_ms: 15 });
  expect(hintsAfter({ turnMs: 16, paceMs: 20 })).toEqual({});
  expect(hintsAfter({ mark: 'm', paceMs: 20 })).toEqual({});
});
