import { describe, expect, it } from 'vitest';
import { leasePatienceMs, pauseMs } from '../../shared/leases/pace.ts';
import type { LeaseRecord } from '../../shared/leases/record.ts';
import { meanOf, paceAfter, shortName } from '../../shared/line/patience.ts';

const NOW = 1_000_000;
const ids = { uuid: () => '', random: () => 0.5 };
/** A ticket of so long ago. */
const ticketOf = (ageMs: number, name = 'aaaaaaaa') => `${String(NOW - ageMs).padStart(15, '0')}-${name}-0000`;
const own = ticketOf(1000, 'ownownow');
const names = (...before: string[]) => [...before, shortName(own)].join(' ');
const EIGHT = ['b', 'c', 'd', 'e', 'f', 'g', 'h', 'i'].map((letter) => letter.repeat(8)).join(' ');

const pause = (record: Partial<LeaseRecord>, arrival?: number, requestMs?: number) =>
  pauseMs(
    {
      record: {
        key: 'k',
        version: 'v',
        ticket: ticketOf(3000),
        nextTicket: ticketOf(2000),
        acquiredAt: NOW,
        ...record,
      },
      ...{ ticket: own, arrival, now: NOW, toTakeoverMs: Number.POSITIVE_INFINITY, requestMs },
    },
    ids,
  );

describe('how long a call leaves a lease to those before it', () => {
  const patience = (record: Partial<LeaseRecord>, arrival?: number, random = 0.5) =>
    leasePatienceMs(
      { record: { key: 'k', nextTicket: ticketOf(2000), ...record }, ticket: own, arrival },
      { uuid: () => '', random: () => random },
    );

  it('a call leaves a lease to those before it by its position: the first behind the next waits 50 to 100 ms, and each behind it 50 ms more', () => {
    expect([patience({}, 2, 0), patience({}, 2, 1), patience({}, 3, 0), patience({}, 4, 1)]).toEqual([
      50, 100, 100, 200,
    ]);
    expect(patience({ nextTickets: names('bbbbbbbb') }, undefined, 0)).toBe(50);
  });

  it('a call leaves a lease to those before it by the position that the hints name, if its arrival is unknown or the hints differ', () => {
    const front = { nextTickets: [shortName(own), 'bbbbbbbb'].join(' ') };
    const third = { nextTickets: names('bbbbbbbb', 'cccccccc') };
    expect([patience(third, undefined, 0), patience(third, 9, 0)]).toEqual([100, 100]);
    expect([patience(front, undefined, 0), patience(front, 9, 0)]).toEqual([50, 50]);
  });

  it('a call leaves a lease to those before it by how many have left since it came', () => {
    expect([patience({ lineOut: 2 }, 5, 0), patience({ lineOut: 1 }, 5, 0)]).toEqual([100, 150]);
  });

  it('half a second at most', () => expect(patience({}, 64)).toBe(500));

  it('a call leaves a lease to those before it by chance if its position is unknown', () =>
    expect([patience({}, undefined, 0), patience({}, undefined, 1)]).toEqual([50, 500]));
});

describe('when a call in line looks again', () => {
  it("callers at the front look again when the holder's lease expires, one after another", () => {
    const at = (arrival: number, more: Partial<LeaseRecord> = {}) => {
      const record = { key: 'k', version: 'v', nextTicket: ticketOf(2000), acquiredAt: NOW - 5000, ...more };
      return pauseMs({ record, ticket: own, arrival, now: NOW, toTakeoverMs: 60 }, ids);
    };
    expect([at(2), at(3), at(4), at(5)]).toEqual([100, 120, 140, 200]);
    expect([at(2, { paceMs: 4000 }), at(4, { paceMs: 4000 }), at(5, { paceMs: 4000 })]).toEqual([100, 140, 1500]);
  });

  it('the next caller looks again soon, and not before the hold of the holder is over', () => {
    expect(pause({ nextTicket: own })).toBe(30);
    expect(pause({ nextTicket: own, paceMs: 5 })).toBe(7);
    expect(pause({ nextTicket: own, paceMs: 40 })).toBe(40);
    expect(pause({ nextTicket: own, paceMs: 5000 })).toBe(250);
    expect(pause({ nextTicket: own, paceMs: 5000, acquiredAt: NOW - 5000 })).toBe(30);
  });

  it("the next caller looks again in the moment in which the holder's lease expires", () => {
    const sight = { record: { key: 'k', acquiredAt: NOW, paceMs: 5000 }, ticket: own, arrival: 1, now: NOW };
    expect(pauseMs({ ...sight, toTakeoverMs: 7 }, ids)).toBe(7);
  });

  it('the next caller looks again no sooner than usual if the moment of the expiry has passed', () => {
    for (const toTakeoverMs of [0, -7]) {
      const sight = { record: { key: 'k', acquiredAt: NOW }, ticket: own, arrival: 1, now: NOW, toTakeoverMs };
      expect(pauseMs(sight, ids)).toBe(30);
      const second = { key: 'k', version: 'v', nextTicket: ticketOf(2000), acquiredAt: NOW, paceMs: 4000 };
      expect(pauseMs({ ...sight, record: second, arrival: 2 }, ids)).toBe(1500);
    }
  });

  it('the first that the hints name, behind one that is about to leave: as the next one', () => {
    expect(pause({ nextTickets: [shortName(own), 'bbbbbbbb'].join(' '), paceMs: 20 })).toBe(20);
  });

  it('the next caller looks again within eight milliseconds if holds are shorter than fifty', () => {
    const at = (paceMs: number) => pause({ nextTicket: own, paceMs, acquiredAt: NOW - 60_000 });
    expect([at(49), at(50)]).toEqual([7, 30]);
  });

  it('the next caller looks again a little later if the holder has not claimed its grant yet', () => {
    expect(pause({ nextTicket: own, paceMs: 40, claimTtlMs: 10_000 })).toBe(52);
  });

  it('the others: by the turns before them, a second and a half at most', () => {
    const second = pause({ nextTickets: names('bbbbbbbb'), paceMs: 20 });
    const third = pause({ nextTickets: names('bbbbbbbb', 'cccccccc'), paceMs: 20 });
    expect(second).toBeGreaterThanOrEqual(20);
    expect(third).toBeGreaterThan(second + 20);
    expect(third).toBeLessThan(20 + 2 * 32);
    expect(pause({ nextTickets: EIGHT, lineOut: 10, paceMs: 20 }, 500)).toBe(1500);
    expect(pause({ nextTickets: EIGHT, paceMs: 60_000 })).toBe(1500);
  });

  it('the later, the longer requests take, but one slow answer does not make them oversleep', () => {
    const behind = names('bbbbbbbb', 'cccccccc', 'dddddddd');
    const at = (requestMs?: number) => pause({ nextTickets: behind, paceMs: 20 }, undefined, requestMs);
    expect(at(0.3)).toBe(at());
    expect(at(1)).toBe(at());
    expect([at(), at(5)]).toEqual([90, 99]);
    expect(at(2000)).toBe(at(15));
    expect(pause({ nextTicket: own, paceMs: 40, claimTtlMs: 10_000 }, undefined, 5)).toBe(56);
    expect([meanOf(undefined, 8), meanOf(8, 4), meanOf(6, 6)]).toEqual([8, 6, 6]);
  });

  it('a caller that no hint names looks again by its arrival and by how many have left since', () => {
    const at = (lineOut: number) => pause({ nextTickets: EIGHT, lineOut, paceMs: 20 }, 40);
    expect(at(10)).toBeGreaterThan(at(20));
    expect(at(31)).toBe(at(39)); // at least the one behind the last name
    expect(at(39)).toBeGreaterThan(100);
  });

  it('a crowd that came at once: by the names alone, because its marks have another order', () => {
    const crowd = { nextTickets: EIGHT, lineOut: 1, paceMs: 20, ticket: ticketOf(1050) };
    expect(pause(crowd, 60)).toBe(pause(crowd, 2));
    expect(pause({ ...crowd, ticket: ticketOf(1200) }, 60)).toBeGreaterThan(pause(crowd, 60));
  });

  it('a caller that came a hundred milliseconds after the holder looks again as one of a crowd', () => {
    const at = (ms: number) => pause({ nextTickets: EIGHT, paceMs: 20, ticket: ticketOf(1000 + ms) }, 60);
    expect(at(100)).toBeLessThan(at(101));
  });

  it('a caller looks again after 150 to 250 ms if it is unknown how long holders hold', () => {
    expect(pause({ nextTickets: EIGHT })).toBe(200);
    expect(pause({ nextTickets: EIGHT, acquiredAt: undefined }, 2)).toBe(200); // the holder is another client
    expect(pause({ nextTickets: EIGHT, acquiredAt: NOW - 60_000 }, 2)).toBe(200);
  });

  it('a caller looks again as if each hold took as long as the first hold has lasted, if that has just begun', () => {
    const second = (heldMs: number) => pause({ nextTickets: '', acquiredAt: NOW - heldMs }, 2);
    expect([second(5), second(60), second(150)]).toEqual([30, 60, 150]);
    expect(pause({ nextTickets: '', acquiredAt: NOW - 60 }, 4)).toBe(180);
    expect(pause({ nextTickets: '', acquiredAt: NOW - 60 }, 40)).toBe(200);
    expect(pause({ nextTickets: '', acquiredAt: NOW - 60, lineOut: 4 }, 7)).toBe(120);
  });

  it('a caller looks again by the arrivals before it, each as a hand-off takes, if the lease is free and about to be handed off', () => {
    const free = (arrival: number) => pause({ version: undefined, acquiredAt: NOW - 60_000 }, arrival);
    expect([free(2), free(8), free(15), free(40)]).toEqual([30, 84, 168, 200]);
  });

  it('a caller looks again at least a millisecond from now, whatever the record says', () => {
    expect(pause({ nextTickets: names('bbbbbbbb'), paceMs: 0, acquiredAt: 0 })).toBeGreaterThan(0);
  });
});

describe('the average turn', () => {
  const paceOf = (paceMs: number | undefined, turnMs: number | undefined) =>
    paceAfter({ waiters: { N: '1' }, paceMs, turnMs });

  it('the average hold falls at once, and rises slowly', () => {
    expect(paceOf(100, 20)).toBe(60);
    expect(paceOf(100, 140)).toBe(105);
    expect(paceOf(100, 60_000)).toBe(113); // no more than twice itself counts
    expect(paceOf(0, 40)).toBe(40);
  });

  it('the average hold begins with the first hold, of which a hundred milliseconds count', () => {
    expect(paceOf(undefined, 30)).toBe(30);
    expect(paceOf(undefined, 60_000)).toBe(100);
    expect(paceOf(undefined, undefined)).toBeUndefined();
    expect(paceOf(20, undefined)).toBeUndefined();
    expect(paceAfter({ turnMs: 30 })).toBeUndefined(); // the line is empty
  });

  it('the average hold is that of the holders, however late the next caller finds its grant', () => {
    const late: LeaseRecord = { key: 'k', waiters: { N: '1' }, paceMs: 20, turnMs: 20, acquiredAt: 0 };
    expect(paceAfter(late)).toBe(20);
  });
});
