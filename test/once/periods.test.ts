import { describe, expect, it } from 'vitest';
import { isPeriod, slotAt } from '../../shared/once/slots.ts';
import { termsFault } from '../../shared/once/terms.ts';
import { failure } from '../support/worlds/leases.ts';
import { onceWorld } from '../support/worlds/once.ts';

const HOUR_MS = 3_600_000;
const slotIn = (zone: string, per: string) => (now: string) => slotAt(Date.parse(now), { per, zone });

/** Each period from an instant to another, and how many hours it lasts. */
function periodsBetween(
  from: string,
  to: string,
  { step = 1, ...period }: { per: string; zone: string; step?: number },
): [string, number][] {
  const hours = new Map<string, number>();
  for (let at = Date.parse(from); at < Date.parse(to); at += step * HOUR_MS) {
    const slot = slotAt(at, period);
    hours.set(slot, (hours.get(slot) ?? 0) + step);
  }
  return [...hours];
}

describe('days', () => {
  it.each([
    ['Europe/Berlin', '2026-11-28T22:59:57.499Z', '2026-11-28'],
    ['Europe/Berlin', '2026-11-28T22:59:57.500Z', '2026-11-29'],
    ['Europe/Berlin', '2026-11-29T01:00:00Z', '2026-11-29'],
    ['europe/berlin', '2026-07-31T22:00:00Z', '2026-08-01'],
    ['America/New_York', '2027-01-01T04:59:57.499Z', '2026-12-31'],
    ['America/New_York', '2027-01-01T05:00:00Z', '2027-01-01'],
    ['Asia/Kolkata', '2026-11-28T18:30:00Z', '2026-11-29'],
    ['Pacific/Kiritimati', '2026-12-31T10:00:00Z', '2027-01-01'],
    ['UTC', '2028-02-29T12:00:00Z', '2028-02-29'],
  ])('a day of %s at %s is %s', (zone, now, slot) => {
    expect(slotIn(zone, '1d')(now)).toBe(slot);
  });

  it.each([
    ['Europe/Berlin', '2026-03-27T23:00Z', '2026-03-30T22:00Z', ['2026-03-28', 24, '2026-03-29', 23, '2026-03-30', 24]],
    ['Europe/Berlin', '2026-10-23T22:00Z', '2026-10-26T23:00Z', ['2026-10-24', 24, '2026-10-25', 25, '2026-10-26', 24]],
    ['America/New_York', '2026-03-08T05:00Z', '2026-03-09T04:00Z', ['2026-03-08', 23]],
    ['America/New_York', '2026-11-01T04:00Z', '2026-11-02T05:00Z', ['2026-11-01', 25]],
    ['Australia/Lord_Howe', '2026-04-04T13:00Z', '2026-04-05T13:30Z', ['2026-04-05', 24.5]],
    ['Australia/Lord_Howe', '2026-10-03T13:30Z', '2026-10-04T13:00Z', ['2026-10-04', 23.5]],
    ['Africa/Cairo', '2026-04-22T22:00Z', '2026-04-24T21:00Z', ['2026-04-23', 24, '2026-04-24', 23]],
    ['Pacific/Apia', '2011-12-29T10:00Z', '2011-12-31T10:00Z', ['2011-12-29', 24, '2011-12-31', 24]],
  ])('the days of %s from %s to %s are whole over a clock change', (zone, from, to, days) => {
    expect(periodsBetween(from, to, { per: '1d', zone, step: 1 / 2 }).flat()).toEqual(days);
  });

  it('a job at 02:00 in Berlin runs once a day over clock changes', () => {
    const fires = [
      '2026-03-28T01:00Z',
      '2026-03-29T01:00Z',
      '2026-03-30T00:00Z',
      '2026-10-25T00:00Z',
      '2026-10-25T01:00Z',
    ];
    expect(fires.map(slotIn('Europe/Berlin', '1d'))).toEqual([
      ...['2026-03-28', '2026-03-29', '2026-03-30'],
      ...['2026-10-25', '2026-10-25'],
    ]);
  });

  it('several days are counted from 1970-01-01 in the zone', () => {
    expect(periodsBetween('2026-10-21T22:00Z', '2026-10-27T23:00Z', { per: '3d', zone: 'Europe/Berlin' })).toEqual([
      ['2026-10-22', 72],
      ['2026-10-25', 73],
    ]);
  });
});

describe('weeks', () => {
  it.each([
    ['1w', '2026-11-29T23:59:57.499Z', '2026-W48'],
    ['1w', '2026-11-29T23:59:57.500Z', '2026-W49'],
    ['1w', '2026-12-31T12:00:00Z', '2026-W53'],
    ['1w', '2027-01-03T12:00:00Z', '2026-W53'],
    ['1w', '2027-01-04T12:00:00Z', '2027-W01'],
    ['1w', '2024-12-30T12:00:00Z', '2025-W01'],
    ['1w', '2021-01-01T12:00:00Z', '2020-W53'],
    ['1w', '2023-01-01T12:00:00Z', '2022-W52'],
    ['2w', '2026-11-15T12:00:00Z', '2026-W45'],
    ['2w', '2026-11-16T12:00:00Z', '2026-W47'],
    ['2w', '2026-11-29T12:00:00Z', '2026-W47'],
  ])('the period of %s at %s is %s', (per, now, slot) => {
    expect(slotAt(Date.parse(now), { per })).toBe(slot);
  });

  it('a week begins on Monday at midnight of its zone', () => {
    const zone = 'Europe/Berlin';
    expect(periodsBetween('2026-10-18T22:00Z', '2026-11-01T23:00Z', { per: '1w', zone })).toEqual([
      ['2026-W43', 169],
      ['2026-W44', 168],
    ]);
    expect(periodsBetween('2026-03-22T23:00Z', '2026-04-05T22:00Z', { per: '1w', zone })).toEqual([
      ['2026-W13', 167],
      ['2026-W14', 168],
    ]);
  });
});

describe('names', () => {
  it.each(
    ['1d', '1w', '2w', '3d'].flatMap((per) =>
      ['UTC', 'Europe/Berlin', 'Australia/Lord_Howe', 'Pacific/Apia', 'Pacific/Kiritimati'].map((zone) => ({
        per,
        zone,
        step: 6,
      })),
    ),
  )('the names of $per in $zone sort, and each is a period', (period) => {
    const names = [
      ...periodsBetween('2011-12-20T00:00Z', '2012-01-10T00:00Z', period),
      ...periodsBetween('2026-03-01T00:00Z', '2026-04-15T00:00Z', period),
      ...periodsBetween('2026-10-01T00:00Z', '2027-01-15T00:00Z', period),
    ].map(([name]) => name);
    expect(names).toEqual([...names].sort());
    expect(names.filter((name) => !isPeriod(name, period))).toEqual([]);
  });

  it.each([
    ['1w', '2026-W00'],
    ['1w', '2026-W54'],
    ['1w', '2025-W53'],
    ['1w', '2026-W1'],
    ['1w', '2026-11-23'],
    ['2w', '2026-W48'],
    ['1d', '2026-W48'],
    ['1d', '2026-02-30'],
    ['1d', '-271821-04-20T00:00:00Z'],
    ['2d', '-271821-04-20'],
  ])('a slot of %s is never %s', (per, slot) => {
    expect(isPeriod(slot, { per })).toBe(false);
  });
});

describe('terms', () => {
  it.each([
    [{ per: '7d' }, ['per', 'must be 1w: a week begins on Monday']],
    [{ per: '336h' }, ['per', 'must be 2w: a week begins on Monday']],
    [{ per: '53w' }, ['per', 'must be a period such as 15m, 1h, 1d or 1w, of at most 366 days']],
    [{ per: '1h', zone: 'Europe/Berlin' }, ['zone', 'needs a per of whole days or weeks']],
    [{ zone: 'Europe/Berlin' }, ['zone', 'needs a per of whole days or weeks']],
    [{ per: '1d', zone: 'Europe/Berln' }, ['zone', 'must be the IANA name of a time zone, such as Europe/Berlin']],
    [
      { per: '1w', keepSeconds: 86_400 },
      ['keepSeconds', 'must be at least 1209600: the ttlSeconds, and two periods of per'],
    ],
    [{ per: '36h' }, undefined],
    [{ per: '52w', zone: 'Australia/Lord_Howe' }, undefined],
  ])('the terms %j have the fault %j', (terms, fault) => {
    expect(termsFault({ ttlSeconds: 60, ...terms })).toEqual(fault);
  });
});

describe('calls', async () => {
  const { begin, run, complete, clock } = await onceWorld();
  const zone = 'Pacific/Kiritimati';

  it('a day that UTC does not have yet is done once', async () => {
    clock.set(Date.parse('2026-12-31T09:30:00Z'));
    const asked = { key: 'ahead', per: '1d', zone, holder: 'late' };
    const first = await run({ key: 'ahead', per: '1d', zone });
    const { context } = await failure(begin(asked));
    clock.set(Date.parse('2026-12-31T10:30:00Z'));
    await complete({ key: 'ahead', leaseId: first.leaseId });
    const second = await run({ key: 'ahead', per: '1d', zone });
    await complete({ key: 'ahead', leaseId: second.leaseId });
    expect([first.slot, second.slot]).toEqual(['2026-12-31', '2027-01-01']);
    expect(await begin(asked)).toMatchObject({ outcome: 'done', slot: '2027-01-01' });
    expect(await begin({ ...asked, ...(context.retryWith as object) })).toMatchObject({
      ...{ outcome: 'superseded', slot: '2026-12-31', doneSlot: '2027-01-01' },
    });
  });

  it('a call of another zone fails with Conflict while its day is behind', async () => {
    clock.set(Date.parse('2027-02-01T12:00:00Z'));
    const { leaseId, slot } = await run({ key: 'two zones', per: '1d', zone });
    await complete({ key: 'two zones', leaseId });
    expect(slot).toBe('2027-02-02');
    const { code, context } = await failure(begin({ key: 'two zones', per: '1d' }));
    expect([code, context.field]).toEqual(['Conflict', 'per']);
  });

  it('a week is done once, and refused before it has begun', async () => {
    clock.set(Date.parse('2027-03-01T12:00:00Z'));
    const { leaseId, slot } = await run({ key: 'weekly', per: '1w' });
    await complete({ key: 'weekly', leaseId });
    expect(slot).toBe('2027-W09');
    clock.advance(5 * 24 * HOUR_MS);
    expect(await begin({ key: 'weekly', per: '1w' })).toMatchObject({ outcome: 'done', slot });
    expect((await failure(begin({ key: 'weekly', per: '1w', slot: '2027-W10' }))).code).toBe('InvalidRequest');
    clock.advance(2 * 24 * HOUR_MS);
    expect(await begin({ key: 'weekly', per: '1w' })).toMatchObject({ outcome: 'run', slot: '2027-W10' });
  });
});
