import { describe, expect, it } from 'vitest';
import type { WorldFacts } from './caller.ts';
import { report } from './campaign.ts';
import { etagOf } from './capabilities/commits.model.ts';
import { commits, oneWinner, repeatsSaySo, staleFences } from './capabilities/commits.ts';
import { expiry } from './capabilities/expiry.ts';
import { exclusive, fencesRise, leases } from './capabilities/leases.ts';
import { nameservice } from './capabilities/nameservice.ts';
import { queue } from './capabilities/queue.ts';
import { AFTERWARDS } from './capability.ts';
import { type Entry, table } from './history.ts';
import { linearize, type Model, type Timed } from './linearizability.ts';
import { shrink } from './shrink.ts';
import { planWorld } from './world.ts';

const facts: WorldFacts = {
  withinBound: true,
  spreadMs: 490,
  protocol: 'dynamo',
  foreignLeases: false,
  foreignCommits: false,
  foreignQueue: false,
  sweeps: false,
};

/** A call with its answer, at milliseconds; without `answered` nobody was told. */
function entry(
  call: string,
  input: Record<string, unknown>,
  [called, answered]: [number, number?],
  outcome?: string,
  body: Record<string, unknown> = {},
  more: Partial<Entry> = {},
): Entry {
  const instant = (ms: number) => ({ ms, moment: ms });
  return {
    id: called,
    actor: 'caller',
    foreign: false,
    call,
    input,
    calledAt: instant(called),
    ...(answered !== undefined && { answeredAt: instant(answered), outcome: outcome ?? 'ok', body }),
    faults: [],
    strays: 0,
    ...more,
  };
}

const promises = (violations: { promise: string }[]) => [...new Set(violations.map(({ promise }) => promise))];

describe('the search for an order', () => {
  interface Op extends Timed {
    write?: number;
    read?: number;
  }
  const register: Model<number, Op> = {
    initial: 0,
    step: (state, { write, read }) => (write !== undefined ? [write] : read === state ? [state] : []),
  };
  const verdict = (...operations: Op[]) => linearize(register, operations).linearizable;

  it('lets concurrent calls take effect in any order, and no others', () => {
    const write = (value: number, calledAt: number, answeredAt: number) => ({ write: value, calledAt, answeredAt });
    const read = (value: number, calledAt: number, answeredAt: number) => ({ read: value, calledAt, answeredAt });
    expect(verdict(write(1, 0, 10), read(0, 1, 2), read(1, 3, 4))).toBe(true);
    expect(verdict(write(1, 0, 10), read(1, 1, 2), read(0, 3, 4))).toBe(false);
    expect(verdict(write(1, 0, 1), read(0, 2, 3))).toBe(false);
    expect(verdict(write(1, 0, 5), write(2, 0, 5), read(2, 6, 7), read(1, 8, 9))).toBe(false);
  });

  it('lets a call without an answer take effect at any later time, or never, and once', () => {
    const lost = { write: 1, calledAt: 0, answeredAt: Number.POSITIVE_INFINITY };
    expect(verdict(lost, { read: 0, calledAt: 1, answeredAt: 2 })).toBe(true);
    expect(verdict(lost, { read: 0, calledAt: 1, answeredAt: 2 }, { read: 1, calledAt: 100, answeredAt: 101 })).toBe(
      true,
    );
    expect(verdict({ read: 1, calledAt: 1, answeredAt: 2 }, { ...lost, calledAt: 3 })).toBe(false);
    const again = { write: 2, calledAt: 10, answeredAt: 11 };
    const reads = [1, 2, 1].map((read, index) => ({ read, calledAt: 5 + 10 * index, answeredAt: 6 + 10 * index }));
    expect(verdict(lost, again, ...reads)).toBe(false);
  });
});

describe('leases', () => {
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

  it('of one holder after the other pass', () => {
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

  it('of two holders at a time are refused, but not where the first has given back or was broken', () => {
    const two = [granted('a', [0, 10], 1), granted('b', [20, 30], 2)];
    expect(promises(exclusive(two))).toEqual(['at most one holder at a time']);
    expect(check(...two)).toContain('at most one holder at a time');
    expect(exclusive([two[0] as Entry, release('a', [15]), two[1] as Entry])).toEqual([]);
    const broken = entry('breakLease', { key: 'w-k0', fence: 1 }, [12, 14], 'ok', { fence: 1 });
    expect(exclusive([two[0] as Entry, broken, two[1] as Entry])).toEqual([]);
    expect(promises(leases.check(two, { ...facts, withinBound: false }))).not.toContain('at most one holder at a time');
  });

  it('whose fence does not rise are refused', () => {
    const ends = release('a', [20, 30]);
    expect(promises(fencesRise([granted('a', [0, 10], 7), ends, granted('b', [40, 50], 7)], facts))).toEqual([
      'fences rise with each grant',
    ]);
    expect(check(granted('a', [0, 10], 7), ends, granted('b', [40, 50], 6))).toContain('fences rise with each grant');
    expect(check(granted('a', [0, 10], 7), ends, granted('b', [40, 50], 8))).toEqual([]);
  });

  it('with an acquisition that nobody was told of: it may hold the key, and may not', () => {
    const lost = entry('acquire', { key: 'w-k0', holder: 'lost', requestId: 'lost' }, [0]);
    expect(check(lost, granted('b', [20, 30], 2))).toEqual([]);
    expect(check(lost, held([20, 30], 'lost', 1, 5000), granted('b', [9000, 9010], 2))).toEqual([]);
    expect(check(lost, held([20, 30], 'lost', 3, 5000), granted('b', [9000, 9010], 2))).not.toEqual([]);
    expect(check(held([20, 30], 'nobody', 1, 5000))).not.toEqual([]);
  });

  it('with an acquisition whose first try was granted, and broken before the second', () => {
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

  it('with a heartbeat whose first try extended the lease, which was broken before the second', () => {
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

  it('with answers that no lock gives are refused', () => {
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
    // given back by another
    expect(check(granted('a', [0, 10], 1), release('z', [20, 30]))).toEqual(lock);
    expect(check(granted('a', [0, 10], 1), release('z', [20, 30], false))).toEqual([]);
  });

  it('that are stuck afterwards are refused', () => {
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

  it('whose record is cleaned up, are free, and forget the request that had them', () => {
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
});

describe('parked tasks', () => {
  const T0 = 1_767_225_600_123;
  const at = (ms: number) => new Date(T0 + ms).toISOString();
  /** A task that parked at the first moment, and was told at the second. */
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
        token: who,
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

describe('the clean-up', () => {
  const T0 = 1_767_225_600_123;
  const at = (ms: number) => new Date(T0 + ms).toISOString();
  const cleaned = (ms: number, expired: number) =>
    entry('clean', { dryRun: false }, [ms, ms + 10], 'ok', {
      deleted: { records: [{ kind: 'abandonedLease', key: { key: 'w-k0' }, expiredAt: at(expired) }] },
      stoppedBy: null,
    });
  const held = (ms: number, until: number) =>
    entry('acquire', { key: 'w-k0', holder: 'a' }, [ms, ms + 5], 'ok', {
      leaseId: 'a',
      fence: 1,
      expiresAt: at(until),
    });
  const check = (...entries: Entry[]) => promises(expiry.check(entries, { ...facts, sweeps: true }));

  it('of what is long over passes, of what has just expired or is held does not', () => {
    const live = 'the clean-up removes no live record';
    expect(check(held(0, 5000), cleaned(80_000, 5000))).toEqual([]);
    expect(check(held(0, 5000), cleaned(60_000, 5000))).toEqual([live]);
    expect(check(held(70_000, 90_000), cleaned(80_000, 5000))).toEqual([live]);
    const back = entry('release', { key: 'w-k0', leaseId: 'a' }, [75_000, 75_010], 'ok', { released: true });
    expect(check(held(70_000, 90_000), back, cleaned(80_000, 5000))).toEqual([]);
  });

  it('that does not work afterwards is refused', () => {
    expect(check({ ...entry('report', {}, [0, 10], 'Unavailable'), actor: AFTERWARDS })).toEqual([
      'reports and clean-ups work again',
    ]);
  });
});

describe('commits', () => {
  const put = (
    id: string,
    expected: string | null,
    from: [number, number?],
    outcome?: string,
    body: object = {},
    fence?: number,
  ) =>
    entry(
      'commit',
      {
        path: 'p',
        ...(expected === null ? { ifNoneMatch: '*' } : { ifMatch: expected }),
        body: id,
        commitId: id,
        ...(fence !== undefined && { fence: { key: 'k', token: fence } }),
      },
      from,
      outcome,
      { path: 'p', ...(outcome === 'ok' && { etag: etagOf(id), commitId: id, repeated: false }), ...body },
    );
  const seen = (id: string | null, from: [number, number], fence?: number) =>
    entry('readCommit', { path: 'p' }, from, 'ok', {
      etag: id === null ? null : etagOf(id),
      commitId: id,
      fence: fence === undefined ? null : { key: 'k', token: fence },
    });
  const check = (entries: Entry[], more: Partial<WorldFacts> = {}) =>
    promises(commits.check(entries, { ...facts, ...more }));
  const lossless = 'no acknowledged commit is lost, none lands twice, and every refusal is true';

  it('one after the other pass', () => {
    const history = [
      put('a', null, [0, 10], 'ok'),
      put('b', null, [20, 30], 'PreconditionFailed', { etag: etagOf('a') }),
      put('c', etagOf('a'), [40, 50], 'ok'),
      seen('c', [60, 70]),
      put('a', null, [80, 90], 'ok', { etag: null, currentEtag: etagOf('c'), repeated: true }),
    ];
    expect(check(history)).toEqual([]);
  });

  it('with two winners for one precondition are refused', () => {
    const history = [put('a', null, [0, 10], 'ok'), put('b', null, [5, 15], 'ok')];
    expect(promises(oneWinner(history))).toEqual(['one winner for each precondition']);
    expect(check(history)).toContain('one winner for each precondition');
    expect(oneWinner([put('a', null, [0, 10], 'ok'), put('a', null, [20, 30], 'ok', { repeated: true })])).toEqual([]);
  });

  it('a repeat that is told as new', () => {
    const first = put('a', null, [0, 10], 'ok');
    expect(promises(repeatsSaySo([first, put('a', null, [20, 30], 'ok')]))).toEqual([
      'a repeat of a commit says that it is one',
    ]);
    expect(repeatsSaySo([first, put('a', null, [20, 30], 'ok', { repeated: true })])).toEqual([]);
    // Which of two calls at one time wrote it, nobody knows.
    expect(repeatsSaySo([first, put('a', null, [5, 30], 'ok')])).toEqual([]);
  });

  it('that were acknowledged and are gone are refused', () => {
    expect(check([put('a', null, [0, 10], 'ok'), seen(null, [20, 30])])).toEqual([lossless]);
    expect(check([put('a', null, [0, 10], 'ok'), put('b', etagOf('a'), [20, 30], 'ok'), seen('a', [40, 50])])).toEqual([
      lossless,
    ]);
  });

  it('that were refused and landed all the same are refused', () => {
    const refused = [
      put('a', null, [0, 10], 'PreconditionFailed', { etag: etagOf('b') }),
      put('b', null, [0, 10], 'ok'),
    ];
    expect(check(refused)).toEqual([]);
    expect(check([put('a', null, [0, 10], 'Unavailable'), seen('a', [20, 30])])).toEqual([lossless]);
    const landed = put('a', null, [40, 50], 'PreconditionFailed', { etag: etagOf('b') });
    expect(check([put('a', null, [0, 10], 'ok'), put('b', etagOf('a'), [20, 30], 'ok'), landed])).toEqual([lossless]);
  });

  it('of unknown outcome may land once, at any time, and must be decided afterwards', () => {
    const lost = put('a', null, [0, 10], 'OutcomeUnknown', { retryWith: { commitId: 'a' } });
    expect(check([lost, seen(null, [20, 30]), seen('a', [40, 50])])).toEqual([]);
    expect(check([lost, seen('a', [20, 30]), seen(null, [40, 50])])).toEqual([lossless]);
    const still = { ...put('a', null, [60, 70], 'OutcomeUnknown'), actor: AFTERWARDS };
    expect(check([lost, still])).toEqual(['each unknown outcome resolves by its commit id']);
    const resolved = { ...put('a', null, [60, 70], 'ok', { repeated: true }), actor: AFTERWARDS };
    expect(check([lost, seen('a', [20, 30]), resolved])).toEqual([]);
  });

  it('with a stale fence after a newer one are refused', () => {
    const newer = put('a', null, [0, 10], 'ok', {}, 9);
    const older = put('b', etagOf('a'), [20, 30], 'ok', {}, 8);
    expect(promises(staleFences([newer, older]))).toEqual(['no commit with a stale fence lands after a newer one']);
    expect(check([newer, older])).toContain('no commit with a stale fence lands after a newer one');
    expect(check([newer, put('b', etagOf('a'), [20, 30], 'FenceRejected', { highest: 9 }, 8)])).toEqual([]);
    expect(check([newer, put('b', etagOf('a'), [20, 30], 'FenceRejected', { highest: 9 }, 10)])).toEqual([lossless]);
    expect(check([newer, seen('a', [20, 30])])).toEqual([lossless]);
  });

  it('that wait for nobody, or are stuck afterwards, are refused', () => {
    const blocked = put(AFTERWARDS, null, [0, 10], 'CommitInProgress');
    expect(check([blocked])).toEqual([lossless]);
    expect(check([blocked], { foreignCommits: true })).toEqual([]);
    expect(check([{ ...blocked, actor: AFTERWARDS }], { foreignCommits: true })).toEqual(['no path is stuck']);
  });

  it('share a path with a foreign writer, whose write is one of them', () => {
    const rust = (id: string, expected: string | null, from: [number, number]) =>
      entry(
        'rustPut',
        { path: 'p', ...(expected ? { ifMatch: expected } : { ifNoneMatch: '*' }), body: id },
        from,
        'ok',
        { etag: etagOf(id) },
        { foreign: true },
      );
    expect(check([put('a', null, [0, 10], 'ok'), rust('r', etagOf('a'), [20, 30])], { foreignCommits: true })).toEqual(
      [],
    );
    const overwritten = [
      put('a', null, [0, 10], 'ok'),
      put('b', etagOf('a'), [20, 30], 'ok'),
      rust('r', etagOf('a'), [15, 50]),
    ];
    expect(check(overwritten, { foreignCommits: true })).toContain('one winner for each precondition');
  });
});

describe('the nameservice', () => {
  const publish = (input: object, from: [number, number?], outcome?: string, body: Record<string, unknown> = {}) =>
    entry(
      'publish',
      { alias: 'a', ...input },
      from,
      outcome,
      outcome === 'ok' ? { outcome: 'updated', created: false, repeated: false, ...body } : body,
    );
  const created = publish({ op: 'initLedger' }, [0, 10], 'ok', { created: true });
  const look = (t: number, from: [number, number], more: object = {}) =>
    entry('readNames', { alias: 'a' }, from, 'ok', {
      commit: t === 0 ? { address: null, t } : { address: `c${t}`, t },
      index: { address: null, t: 0 },
      status: { state: 'ready', v: 1 },
      config: { v: 0, payload: null },
      retracted: false,
      ...more,
    });
  const commitTo = (t: number, from: [number, number?], outcome?: string, body: Record<string, unknown> = {}) =>
    publish({ op: 'publishCommit', address: `c${t}`, t }, from, outcome, body);
  const check = (...entries: Entry[]) => promises(nameservice.check(entries, facts));
  const linear = 'refs, status and config are linearizable, and stale publishes change nothing';

  it('that publishes one after the other passes', () => {
    const history = [
      created,
      commitTo(2, [20, 30], 'ok'),
      commitTo(1, [40, 50], 'ok', { outcome: 'stale', current: { address: 'c2', t: 2 } }),
      publish(
        { op: 'compareAndSetRef', ref: 'commit', expected: { address: 'c1', t: 1 }, next: { address: 'c3', t: 3 } },
        [60, 70],
        'Conflict',
        { actual: { address: 'c2', t: 2 } },
      ),
      look(2, [80, 90]),
    ];
    expect(check(...history)).toEqual([]);
  });

  it('whose t goes down is refused', () => {
    expect(check(created, commitTo(2, [20, 30], 'ok'), look(2, [40, 50]), look(0, [60, 70]))).toEqual([
      'commit_t and index_t never go down',
      linear,
    ]);
  });

  it('that loses, or does not refuse, is refused', () => {
    expect(check(created, commitTo(2, [20, 30], 'ok'), look(0, [40, 50]))).toEqual([linear]);
    expect(check(created, commitTo(2, [20, 30], 'ok'), commitTo(1, [40, 50], 'ok'))).toEqual([linear]);
    const status = (v: number, from: [number, number], outcome: string, body = {}) =>
      publish(
        { op: 'pushStatus', expected: { state: 'ready', v: 1 }, next: { state: `s${from[0]}`, v } },
        from,
        outcome,
        body,
      );
    expect(check(created, status(2, [20, 30], 'ok'), status(2, [40, 50], 'ok'))).toEqual([linear]);
    expect(
      check(created, status(2, [20, 30], 'ok'), status(2, [40, 50], 'Conflict', { actual: { state: 's20', v: 2 } })),
    ).toEqual([]);
    const config = (from: [number, number], outcome: string, body = {}) =>
      publish({ op: 'pushConfig', expected: { v: 0 }, next: { v: 1, payload: { from } } }, from, outcome, body);
    expect(check(created, config([20, 30], 'ok'), config([40, 50], 'ok'))).toEqual([linear]);
    expect(
      check(
        created,
        config([20, 30], 'ok'),
        config([40, 50], 'Conflict', { actual: { v: 1, payload: { from: [20, 30] } } }),
      ),
    ).toEqual([]);
    expect(check(created, publish({ op: 'initLedger' }, [20, 30], 'ok', { created: true }))).toEqual([linear]);
  });

  it('with a publish that nobody was told of: it may land at any later time, and once', () => {
    const lost = commitTo(5, [20]);
    expect(check(created, lost, look(0, [30, 40]), look(5, [50, 60]))).toEqual([]);
    expect(check(created, lost, commitTo(7, [30, 40], 'ok'), look(5, [50, 60]))).toEqual([linear]);
  });

  it('that is stuck afterwards is refused', () => {
    expect(check({ ...commitTo(1, [0, 10], 'Throttled'), actor: AFTERWARDS })).toEqual(['no alias is stuck']);
  });
});

describe('a history that breaks a promise', () => {
  it('is shrunk to what breaks it', async () => {
    const steps = Array.from({ length: 40 }, (_, index) => index);
    const fails = async (some: number[]) => some.includes(7) && some.includes(31);
    expect(await shrink(steps, fails)).toEqual([7, 31]);
    expect(await shrink(steps, async () => true)).toEqual([]);
  });

  it('is shown in the order of its calls, with what struck them', () => {
    const late = entry('acquire', { key: 'k' }, [2000, 2010], 'LeaseHeld', { fence: 3 });
    const lost = entry('release', { key: 'k' }, [1000], undefined, {}, { faults: ['UpdateItem lostReply'] });
    const [, first, second] = table([late, lost], new Set([2000])).split('\n');
    expect(first).toMatch(/^ {2}1000 +caller +1\.000 +never +release +key=k +no answer +UpdateItem lostReply$/);
    expect(second).toMatch(/^> 2000 +caller +2\.000 +2\.010 +acquire +key=k +LeaseHeld fence=3$/);
  });

  it('is reported with its clocks, and with the calls of its key and of the schedule', () => {
    const plan = { ...planWorld(1), clocks: [{ offsetMs: 5, rate: 1, step: { atMs: 1500, offsetMs: -7 } }] };
    const wrong = entry('acquire', { key: 'k' }, [2000, 2010]);
    const others = [entry('repairQueues', {}, [2100, 2110]), entry('release', { key: 'other' }, [2200, 2210])];
    const violations = [{ promise: 'of old', detail: 'broken', entries: [wrong] }];
    const text = report({ plan, entries: [wrong, ...others], violations });
    expect(text).toContain('Broken: of old\n  broken');
    expect(text).toContain('5 ms x 1.000000, set to -7 ms at 1.500.');
    expect(text).toMatch(/> 2000 .* acquire .*\n {2}2100 .* repairQueues .*$/);
  });
});
