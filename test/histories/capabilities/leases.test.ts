import { expect, it } from 'vitest';
import { exclusive, fencesRise, leases } from '../../../verification/histories/capabilities/leases.ts';
import { AFTERWARDS, stuck } from '../../../verification/histories/capability.ts';
import { entry, facts, promises } from '../../../verification/histories/handmade.ts';
import type { Entry } from '../../../verification/histories/history.ts';

const T0 = 1_767_225_600_000;
const at = (ms: number) => new Date(T0 + ms).toISOString();
const granted = (lease: string, from: [number, number], fence: number, ttl = 5000, more: object = {}) =>
  entry('acquire', { key: 'w-k0', holder: lease, requestId: lease }, from, 'ok', {
    key: 'w-k0',
    holder: lease,
    leaseId: lease,
    fence,
    acquiredAt: at(from[0]),
    expiresAt: at(from[0] + ttl),
    remainingMs: ttl - 10,
    waitedMs: 0,
    repeated: false,
    ...more,
  });
const release = (lease: string, from: [number, number?], released = true) =>
  entry('release', { key: 'w-k0', leaseId: lease }, from, 'ok', { key: 'w-k0', released });
const beat = (lease: string, from: [number, number], fence: number, expires: number) =>
  entry('heartbeat', { key: 'w-k0', leaseId: lease }, from, 'ok', {
    holder: lease,
    leaseId: lease,
    fence,
    expiresAt: at(expires),
    remainingMs: expires - from[1],
  });
const held = (from: [number, number], by: string, fence: number, expires: number) =>
  entry('acquire', { key: 'w-k0', holder: `x${from[0]}` }, from, 'LeaseHeld', {
    holder: by,
    fence,
    expiresAt: at(expires),
    retryAfterMs: 4000,
  });
const check = (...entries: Entry[]) => promises(leases.check(entries, facts));

it('a failed call may still receive the grant window if it was in line', () => {
  const waiting = (more: object) =>
    entry('acquire', { key: 'w-k0', holder: 'b', requestId: 'b', waitSeconds: 4, ...more }, [20, 1500], 'Throttled');
  const after = [granted('a', [0, 10], 1), release('a', [1000, 1010]), held([1600, 1610], 'b', 2, 3010)];
  expect(check(waiting({}), ...after)).toEqual([]);
  expect(check(waiting({ fair: false }), ...after)).toEqual(['a lease answers as one lock with fences would']);
});

it('a waiting call may be refused a free lease, a plain call may not', () => {
  const nobody = (more: object) =>
    entry('acquire', { key: 'w-k0', holder: 'b', requestId: 'b', ...more }, [20, 1500], 'LeaseHeld', {
      ...{ holder: null, fence: 3, expiresAt: null, retryAfterMs: 1000 },
    });
  const before = [granted('a', [0, 10], 1), release('a', [1000, 1010])];
  expect(check(...before, nobody({ waitSeconds: 1 }))).toEqual([]);
  expect(check(...before, nobody({}))).toEqual(['any caller takes a free lease with its first call']);
  expect(check(granted('a', [0, 10], 1), nobody({ waitSeconds: 1 }), beat('a', [1600, 1610], 1, 6600))).toContain(
    'a lease answers as one lock with fences would',
  );
  expect(check(...before, nobody({ waitSeconds: 1 }), granted('c', [1600, 1610], 2))).toContain(
    'a lease answers as one lock with fences would',
  );
});

it('the checker of leases accepts one holder after the other', () => {
  const history = [
    granted('a', [0, 10], 1),
    held([20, 30], 'a', 1, 5000),
    beat('a', [1000, 1010], 1, 6000),
    release('a', [2000, 2010]),
    granted('b', [2020, 2030], 2),
    entry('heartbeat', { key: 'w-k0', leaseId: 'a' }, [2040, 2050], 'LeaseLost', { reason: 'taken' }),
    granted('c', [9000, 9010], 3),
  ];
  expect(check(...history)).toEqual([]);
});

it('the checker of leases finds two holders at once, unless the first was ended', () => {
  const two = [granted('a', [0, 10], 1), granted('b', [20, 30], 2)];
  expect(promises(exclusive(two))).toEqual(['at most one holder at a time']);
  expect(check(...two)).toContain('at most one holder at a time');
  expect(exclusive([two[0] as Entry, release('a', [15]), two[1] as Entry])).toEqual([]);
  const broken = entry('breakLease', { key: 'w-k0', fence: 1 }, [12, 14], 'ok', { fence: 1 });
  expect(exclusive([two[0] as Entry, broken, two[1] as Entry])).toEqual([]);
  expect(promises(leases.check(two, { ...facts, withinBound: false }))).not.toContain('at most one holder at a time');
});

it('the checker of leases finds a fence that does not rise', () => {
  const ends = release('a', [20, 30]);
  expect(promises(fencesRise([granted('a', [0, 10], 7), ends, granted('b', [40, 50], 7)], facts))).toEqual([
    'fences rise with each grant',
  ]);
  expect(check(granted('a', [0, 10], 7), ends, granted('b', [40, 50], 6))).toContain('fences rise with each grant');
  expect(check(granted('a', [0, 10], 7), ends, granted('b', [40, 50], 8))).toEqual([]);
});

it('the checker of leases finds fences that fall in the order of the record', () => {
  const written = (lease: string, ...moments: number[]): Partial<Entry> => ({
    landed: moments.map((moment) => ({
      ...{ what: 'grant', key: 'w-k0', leaseId: lease, request: lease, fence: 0, ticket: undefined },
      ...{ sent: moment, moment, ms: moment },
    })),
  });
  const early = { ...granted('a', [10, 20], 7), ...written('a', 15) };
  const late = (more: Partial<Entry>) => [early, { ...granted('b', [5, 5000], 6), ...more }];
  const falls = ['fences rise with each grant'];
  expect(promises(fencesRise(late(written('b', 4000)), facts))).toEqual(falls);
  expect(promises(fencesRise(late(written('b', 7)), facts))).toEqual([]);
  expect(promises(fencesRise(late(written('b', 7, 4000)), facts))).toEqual(falls); // its write arrived twice
  expect(promises(fencesRise(late(written('b', 7, 6000)), facts))).toEqual([]); // the write arrived after its answer
  expect(promises(fencesRise(late({}), facts))).toEqual([]); // b was asked for before a was answered
  const release = { ...entry('release', { key: 'w-k0' }, [30, 40]), ...written('b', 4000) };
  expect(promises(fencesRise(late({}), facts, [...late({}), release]))).toEqual(falls); // another call wrote the grant of b
  const repeated = granted('b', [5, 5000], 6, 5000, { repeated: true });
  expect(promises(fencesRise([early, repeated], facts, [early, repeated, release]))).toEqual([]);
  expect(promises(fencesRise([early, { ...repeated, ...written('b', 4000) }], facts))).toEqual(falls);
  const clocks = { ...facts, foreignLeases: true };
  expect(promises(fencesRise(late(written('b', 4000)), clocks))).toEqual([]); // clocks may differ by that much
  expect(promises(fencesRise(late(written('b', 4000)), { ...clocks, spreadMs: 0 }))).toEqual(falls);
});

it('the checker of leases finds an answer with a lower fence than before', () => {
  const late = granted('b', [5, 5000], 6);
  const shown = [granted('a', [0, 10], 7), release('a', [20, 30]), late, held([6000, 6010], 'b', 6, 10_000)];
  expect(check(...shown)).toContain('no fence is lower than one before');
  const fine = [
    granted('a', [0, 10], 7),
    release('a', [20, 30]),
    granted('b', [40, 50], 8),
    held([60, 70], 'b', 8, 5040),
  ];
  expect(check(...fine)).toEqual([]);
});

it('an unanswered acquisition may hold the lease or not', () => {
  const lost = entry('acquire', { key: 'w-k0', holder: 'lost', requestId: 'lost' }, [0]);
  expect(check(lost, granted('b', [20, 30], 2))).toEqual([]);
  expect(check(lost, held([20, 30], 'lost', 1, 5000), granted('b', [9000, 9010], 2))).toEqual([]);
  expect(check(lost, held([20, 30], 'lost', 3, 5000), granted('b', [9000, 9010], 2))).not.toEqual([]);
  expect(check(held([20, 30], 'nobody', 1, 5000))).not.toEqual([]);
});

it('an acquisition may be broken after its first try was granted', () => {
  const struck = { faults: ['PutItem lostReply'] };
  const lost = (more: object) =>
    entry('acquire', { key: 'w-k0', holder: 'a' }, [0, 50], 'LeaseLost', { reason: 'broken' }, more);
  const others = [
    held([10, 20], 'a', 1, 5000),
    entry('breakLease', { key: 'w-k0', fence: 1 }, [25, 30], 'ok', { fence: 1 }),
  ];
  expect(check(lost(struck), ...others)).toEqual([]);
  expect(check(lost({}), ...others)).not.toEqual([]);
});

it('a second try may be granted again after its first grant was forgotten', () => {
  const again = { ...granted('a', [0, 90], 3), faults: ['PutItem slow'] };
  const broken = [
    held([10, 20], 'a', 1, 5000),
    entry('breakLease', { key: 'w-k0', fence: 1 }, [25, 30], 'ok', { fence: 1 }),
  ];
  const forgotten = [granted('b', [40, 45], 2), release('b', [50, 55])];
  const lock = ['a lease answers as one lock with fences would'];
  expect(check(again, ...broken, ...forgotten)).toEqual([]);
  expect(check({ ...again, faults: [] }, ...broken, ...forgotten)).toEqual(lock);
  expect(check(again, ...broken)).toEqual(lock); // the record still remembers the break
  expect(check({ ...granted('a', [0, 90], 1), faults: ['PutItem slow'] }, held([10, 20], 'a', 3, 5000))).not.toEqual(
    [],
  );
});

it('a late grant may be seen before its fence is raised', () => {
  const late = granted('a', [0, 90], 3);
  const seen = held([10, 20], 'a', 1, 5000);
  const lock = ['a lease answers as one lock with fences would'];
  expect(check(late, seen)).toEqual([]);
  expect(check(late, seen, beat('a', [100, 110], 3, 6000), held([120, 130], 'a', 3, 6000))).toEqual([]);
  expect(check(late, seen, held([95, 99], 'a', 2, 5000))).not.toEqual([]);
  const broken = entry('breakLease', { key: 'w-k0', fence: 1 }, [25, 30], 'ok', { fence: 1 });
  expect(check(late, seen, broken)).toEqual(lock);
  const conflict = (fence: number, actual: number) =>
    entry('breakLease', { key: 'w-k0', fence }, [100, 110], 'Conflict', { actual: { fence: actual } });
  expect(check(late, seen, conflict(1, 3))).toEqual([]);
  expect(check(late, seen, conflict(3, 3))).toEqual(lock);
  expect(check(late, seen, conflict(3, 1))).toEqual(lock);
});

it('a heartbeat may find its lease broken after its first try extended it', () => {
  const lost = (more: object) =>
    entry('heartbeat', { key: 'w-k0', leaseId: 'a' }, [20, 90], 'LeaseLost', { reason: 'broken' }, more);
  const others = [
    granted('a', [0, 10], 1),
    held([30, 40], 'a', 1, 5020),
    entry('breakLease', { key: 'w-k0', fence: 1 }, [50, 60], 'ok', { fence: 1 }),
  ];
  expect(check(lost({ faults: ['UpdateItem lostReply'] }), ...others)).toEqual([]);
  expect(check(lost({}), ...others)).not.toEqual([]);
});

it('the checker of leases finds `released` for a request that was never granted', () => {
  const lost = entry('acquire', { key: 'w-k0', holder: 'a', requestId: 'a' }, [50, 60], 'LeaseLost', {
    reason: 'released',
  });
  expect(check(lost)).toContain('no caller loses what it never had');
  expect(check(granted('a', [0, 10], 1), release('a', [20, 30]), lost)).toEqual([]);
});

it('the checker of leases finds a late second grant, unless the record was removed', () => {
  const late = granted('a', [0, 10], 1, 5000, {});
  const history = [
    { ...late, strays: 1, faults: ['PutItem delayed'] },
    release('a', [20, 30]),
    held([40, 50], 'a', 1, 5000),
  ];
  expect(check(...history)).toEqual(['a lease answers as one lock with fences would']);
  const dropped = [
    entry('rustAcquire', { key: 'w-k0', lease: 'r' }, [32, 33], 'ok', { version: 'v' }, { foreign: true }),
    entry(
      'rustRelease',
      { key: 'w-k0', lease: 'r', version: 'v' },
      [34, 35],
      'ok',
      { released: true },
      { foreign: true },
    ),
  ];
  expect(promises(leases.check([...history, ...dropped], { ...facts, foreignLeases: true }))).toEqual([]);
});

it('the checker of leases accepts a third-party client whose SDK tried again', () => {
  const lost = (more: object) =>
    entry('rustAcquire', { key: 'w-k0', lease: 'r' }, [0, 10], 'ok', {}, { foreign: true, ...more });
  const others = [
    held([20, 30], 'a', 1, 5000),
    entry('acquire', { key: 'w-k0', holder: 'a', requestId: 'a' }, [12]),
    entry('readLeases', { key: 'w-k0' }, [11, 12], 'ok', {
      state: 'held',
      holder: null,
      fence: null,
      expiresAt: null,
    }),
  ];
  const rust = { ...facts, foreignLeases: true };
  expect(promises(leases.check([lost({ faults: ['PutItem lostReply'] }), ...others], rust))).toEqual([]);
  expect(promises(leases.check([lost({}), ...others], rust))).toEqual([
    'a lease answers as one lock with fences would',
  ]);
});

it('a third-party client may come back when its lease has expired', () => {
  const rust = (call: string, at: [number, number], body: object) =>
    entry(call, { key: 'w-k0', lease: 'r', version: 'v' }, at, 'ok', { ...body }, { foreign: true });
  const history = (isOver: boolean) => [
    rust('rustAcquire', [0, 10], { version: 'v' }),
    rust('rustRelease', [20, 30], { released: false, isOver }),
    entry('readLeases', { key: 'w-k0' }, [40, 50], 'ok', {
      state: 'expired',
      holder: null,
      fence: null,
      expiresAt: null,
    }),
  ];
  const foreign = { ...facts, foreignLeases: true };
  expect(promises(leases.check(history(true), foreign))).toEqual([]);
  expect(promises(leases.check(history(false), foreign))).toEqual(['a lease answers as one lock with fences would']);
});

it('the checker of leases finds answers that a correct lock never gives', () => {
  const lock = ['a lease answers as one lock with fences would'];
  // revived
  expect(check(granted('a', [0, 10], 1), release('a', [20, 30]), beat('a', [40, 50], 1, 6000))).toEqual(lock);
  // shortened
  expect(check(granted('a', [0, 10], 1), beat('a', [20, 30], 1, 4000))).toEqual(lock);
  // locked out by its own request
  expect(
    check(
      granted('a', [0, 10], 1),
      entry('acquire', { key: 'w-k0', holder: 'a' }, [20, 30], 'LeaseHeld', {
        holder: 'a',
        fence: 1,
        expiresAt: at(5000),
        retryAfterMs: 5480,
      }),
    ),
  ).toEqual(lock);
  // a repeat of nothing
  expect(check(granted('a', [0, 10], 1, 5000, { repeated: true }))).toEqual(lock);
  // a late duplicate
  expect(
    check(granted('a', [0, 10], 1), release('a', [20, 30]), granted('a', [40, 50], 2, 5000, { leaseId: 'a2' })),
  ).toEqual(lock);
  // released by another
  expect(check(granted('a', [0, 10], 1), release('z', [20, 30]))).toEqual(lock);
  expect(check(granted('a', [0, 10], 1), release('z', [20, 30], false))).toEqual([]);
});

it('the checker of leases finds a key that is stuck afterwards', () => {
  const late = entry(
    'acquire',
    { key: 'w-k0', holder: 'z' },
    [60_000, 60_010],
    'LeaseHeld',
    { holder: 'a', fence: 1, expiresAt: at(5000), retryAfterMs: 1 },
    { actor: AFTERWARDS },
  );
  expect(check(granted('a', [0, 10], 1), late)).toEqual(['no key is stuck']);
});

it('the checker of leases finds a key stuck afterwards, even behind a bound holder', () => {
  const lasting = entry(
    'acquire',
    { key: 'w-k0', holder: 'z' },
    [60_000, 60_010],
    'LeaseHeld',
    { holder: 'a', fence: 1, expiresAt: at(400 * 86_400_000), retryAfterMs: 1 },
    { actor: AFTERWARDS },
  );
  expect(stuck([lasting], 'stuck')).toHaveLength(1);
});

it('a lease whose record is cleaned up is free, and its requests are forgotten', () => {
  const cleaned = (from: [number, number], kind: string) =>
    entry('clean', { dryRun: false }, from, 'ok', {
      deleted: { records: [{ kind, key: { key: 'w-k0' }, expiredAt: at(5000) }] },
      stoppedBy: null,
    });
  const swept = { ...facts, sweeps: true };
  const again = [
    granted('a', [0, 10], 1),
    release('a', [20, 30]),
    granted('a', [90_000, 90_010], 3, 5000, { leaseId: 'a2' }),
  ];
  expect(promises(leases.check([...again, cleaned([80_000, 80_010], 'releasedLease')], swept))).toEqual([]);
  expect(promises(leases.check(again, swept))).toEqual(['a lease answers as one lock with fences would']);
  const lower = [
    granted('a', [0, 10], 7),
    cleaned([80_000, 80_010], 'abandonedLease'),
    granted('b', [90_000, 90_010], 6),
  ];
  expect(promises(leases.check(lower, swept))).toContain('fences rise with each grant');
});
