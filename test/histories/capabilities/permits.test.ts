import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import { describe, expect, it } from 'vitest';
import { EXCLUSIVE_PATH, nameOfRequest } from '../../../shared/locks/record/identity.ts';
import type { HolderEntry } from '../../../shared/locks/record/record.ts';
import { permits } from '../../../verification/histories/capabilities/permits.ts';
import { BEGIN } from '../../../verification/histories/clocks.ts';
import { at, type Effect, entry, facts, landedOn, promises } from '../../../verification/histories/handmade.ts';
import type { Entry } from '../../../verification/histories/history.ts';
import { effectsOf, NO_LOCK } from '../../../verification/histories/landed.ts';

const KEY = 'w-p0';
const HEAVY = 'never more weight than a holder allowed when it came in';
const BESIDE = 'an exclusive holder never has another holder beside it';
const check = (...history: Entry[]) => promises(permits.check(history, facts));

const request = (who: string, more: object = {}) => ({ key: KEY, holder: who, requestId: who, ttlSeconds: 5, ...more });
const nameOf = (who: string) => nameOfRequest({ holder: who, requestId: who });
const leaseOf = (who: string, fence: number) => `p.${nameOf(who)}.${who}-${fence}`;

/** A permit that is granted at `ms`, which is also its fence. The call lasts from 10 ms before that to 10 ms after it. */
const grant = (who: string, ms: number, more: object = {}, { fence = ms, lasts = 5000 } = {}): Entry => {
  const times = { remainingMs: lasts, waitedMs: 0, acquiredAt: at(ms), expiresAt: at(ms + lasts) };
  const body = { leaseId: leaseOf(who, fence), fence, ...times };
  return entry('acquire', request(who, { limit: 2, ...more }), [ms - 10, ms + 10], 'ok', body, { actor: who });
};
const release = (who: string, fence: number, ms: number) =>
  entry('release', { key: KEY, leaseId: leaseOf(who, fence) }, [ms - 10, ms + 10], 'ok', { released: true });
const refused = (who: string, ms: number, outcome: string, more: object = {}, body: Record<string, unknown> = {}) =>
  entry('acquire', request(who, { limit: 2, ...more }), [ms - 10, ms + 10], outcome, body, { actor: who });

describe('grants', () => {
  it('the holders never weigh more than the limit of the last newcomer', () => {
    expect(check(grant('a', 100), grant('b', 200))).toEqual([]);
    expect(check(grant('a', 100), grant('b', 200), grant('c', 300))).toEqual([HEAVY]);
    expect(check(grant('a', 100), grant('b', 200), release('a', 100, 250), grant('c', 300))).toEqual([]);
    expect(check(grant('a', 100), grant('b', 200, { weight: 2 }))).toEqual([HEAVY]);
    expect(check(grant('a', 100, {}, { lasts: 90 }), grant('b', 200, { weight: 2 }))).toEqual([]);
  });

  it('a lowered limit binds its own caller, a higher one later callers', () => {
    const [one, two] = [grant('a', 100), grant('b', 200)];
    expect(check(one, two, grant('c', 300, { limit: 3 }))).toEqual([]);
    expect(check(one, grant('c', 300, { limit: 1 }))).toEqual([HEAVY]);
    expect(check(grant('c', 50, { limit: 1 }), one)).toEqual([]);
  });

  it('a heartbeat makes a permit last, if its answer says so', () => {
    const beat = entry('heartbeat', { key: KEY, leaseId: leaseOf('a', 100) }, [4000, 4010], 'ok', {
      leaseId: leaseOf('a', 100),
      fence: 100,
      remainingMs: 5000,
    });
    const late = grant('b', 6000, { limit: 1 });
    expect(check(grant('a', 100), late)).toEqual([]);
    expect(check(grant('a', 100), beat, late)).toEqual([HEAVY]);
  });

  it('a writer holds alone, whichever holder came first', () => {
    const writer = (ms: number) => grant('w', ms, { mode: 'exclusive', limit: undefined });
    const reader = (ms: number) => grant('r', ms, { mode: 'shared', limit: undefined });
    const promise = BESIDE;
    expect(check(reader(100), grant('s', 200, { mode: 'shared', limit: undefined }))).toEqual([]);
    expect(check(reader(100), writer(200))).toEqual([promise]);
    expect(check(writer(100), reader(200))).toEqual([promise]);
    expect(check(writer(100), release('w', 100, 150), reader(200))).toEqual([]);
  });

  it('a caller without terms holds alone, and so does a third-party client', () => {
    const plain = (ms: number) => grant('x', ms, { limit: undefined });
    const rust = (ms: number) =>
      entry('rustAcquire', { key: KEY, lease: 'rust', ttlSeconds: 3 }, [ms - 10, ms + 10], 'ok', { version: 'v' });
    expect(check(grant('a', 100), plain(200))).toEqual([BESIDE]);
    expect(check(plain(100), grant('a', 200))).toEqual([BESIDE]);
    for (const other of [plain, grant.bind(null, 'a')]) {
      expect(check(other(100), rust(200))).toEqual([BESIDE]);
      expect(check(rust(100), other(200))).toEqual([BESIDE]);
      expect(check(rust(100), other(4000))).toEqual([]);
    }
  });

  it('fences rise, by the first call of each request', () => {
    const promise = 'fences rise with each grant';
    expect(check(grant('a', 100), grant('b', 200, {}, { fence: 99 }))).toEqual([promise]);
    expect(check(grant('a', 100), grant('b', 105, {}, { fence: 100 }))).toEqual([promise]);
    const before = refused('b', 50, 'LeaseHeld', { waitSeconds: 1 });
    expect(check(before, grant('a', 100), grant('b', 200, { waitSeconds: 1 }, { fence: 99 }))).toEqual([]);
  });
});

describe('repeats', () => {
  const repeat = (outcome: string, body: Record<string, unknown>) => refused('a', 1000, outcome, {}, body);

  it('a repeat of a request finds the permit of the request', () => {
    const again = { leaseId: leaseOf('a', 100), fence: 100, remainingMs: 4000, repeated: true };
    expect(check(grant('a', 100), repeat('ok', again))).toEqual([]);
    const other = { leaseId: leaseOf('a', 300), fence: 300, remainingMs: 5000 };
    expect(check(grant('a', 100), repeat('ok', other))).toEqual(['a request has one permit']);
    expect(check(grant('a', 100), release('a', 100, 500), repeat('LeaseLost', { reason: 'released' }))).toEqual([]);
  });

  it('a repeat of a request is not refused, and its permit is not lost', () => {
    const promise = 'no holder loses a permit before its time';
    expect(check(grant('a', 100), repeat('LeaseHeld', {}))).toContain(promise);
    expect(check(grant('a', 100), repeat('LeaseLost', { reason: 'broken' }))).toEqual([promise]);
    expect(check(grant('a', 100), repeat('LeaseLost', { reason: 'cancelled' }))).toEqual([]);
    const beat = (ms: number) =>
      entry('heartbeat', { key: KEY, leaseId: leaseOf('a', 100) }, [ms, ms + 10], 'LeaseLost', { reason: 'unknown' });
    expect(check(grant('a', 100), beat(1000))).toEqual([promise]);
    expect(check(grant('a', 100), beat(5100))).toEqual([]);
    const broken = entry('breakLease', { key: KEY, fence: 100 }, [900, 910], 'ok', { broken: true });
    expect(check(grant('a', 100), broken, beat(1000))).toEqual([]);
  });

  it('a repeat is answered as released only if its permit could be released', () => {
    expect(check(refused('a', 100, 'LeaseLost', {}, { reason: 'released' }))).toEqual([
      'no caller loses what it never had',
    ]);
  });
});

/** The entry of a holder that was granted a permit at a millisecond, which is also its fence. */
const standing = (who: string, fence: number, more: Partial<HolderEntry> = {}): HolderEntry => ({
  ...{
    name: nameOf(who),
    path: `h${nameOf(who)}`,
    id: `${who}-${fence}`,
    version: 'v',
    holder: who,
    ttlMs: 5000,
    weight: 1,
    fence,
  },
  ...{ expiresAt: BEGIN + fence + 5000, acquiredAt: BEGIN + fence, heartbeatAt: BEGIN + fence },
  ...more,
});

/** A call, and what its requests did, each at its millisecond. */
const did = (who: string, call: Entry, ...effects: Effect[]): Entry => ({
  ...call,
  actor: who,
  landed: landedOn(KEY, ...effects),
});

interface Left {
  used?: number;
  /** The names of the requests that the record remembers, by their slots in the ring. */
  ring?: Record<number, string>;
  isMarked?: boolean;
  /** Null if third-party clients may take the key. */
  heldForOthersUntil?: number | null;
}

const left = (
  ms: number,
  entries: HolderEntry[],
  { used, ring = {}, isMarked = false, heldForOthersUntil = BEGIN + 1_000_000 }: Left = {},
): Effect => ({
  what: 'lock',
  ms,
  state: {
    ...{ isForeign: false, heldForOthersUntil: heldForOthersUntil ?? undefined },
    used: used ?? entries.reduce((sum, { weight }) => sum + weight, 0),
    entries,
    ring: Array.from({ length: 8 }, (_, slot) => ({ name: ring[slot], broken: undefined })),
    isMarked,
  },
});
/** A call without an answer, because other tests check what answers say. */
const unanswered = (who: string, ms: number, more: object = {}): Entry =>
  entry('acquire', request(who, { limit: 2, ...more }), [ms]);
const comesIn = (who: string, ms: number, others: HolderEntry[] = [], more: object = {}) =>
  did(who, unanswered(who, ms, more), left(ms, [...others, standing(who, ms)]));

describe('the record', () => {
  const [a, b] = [standing('a', 100), standing('b', 200)];

  it('the record of a key counts the weight of all holders', () => {
    expect(check(comesIn('a', 100), comesIn('b', 200, [a]))).toEqual([]);
    const miscounted = did('b', unanswered('b', 200), left(200, [a, b], { used: 1 }));
    expect(check(comesIn('a', 100), miscounted)).toEqual(['the record counts the weight of all who are in it']);
  });

  it('the record of a key does not let a caller exceed its own limit', () => {
    const promise = 'no caller is granted a permit past its limit';
    expect(check(comesIn('a', 100), comesIn('b', 200, [a], { limit: 1 }))).toEqual([promise]);
    expect(check(comesIn('a', 100, [], { limit: 1 }), comesIn('b', 200, [a]))).toEqual([]);
    const stranger = did('b', unanswered('b', 200), left(200, [standing('z', 200)]));
    expect(check(comesIn('a', 100), stranger)).toEqual([promise]);
  });

  it('the record of a key has fences that rise', () => {
    const low = did('b', unanswered('b', 200), left(200, [a, standing('b', 90)]));
    expect(check(comesIn('a', 100), low)).toEqual(['fences rise with each grant']);
  });

  it('the record of a key has one permit for each request, ever', () => {
    const promise = 'a request has one permit';
    const back = did('a', unanswered('a', 150), left(150, [], { ring: { 4: nameOf('a') } }));
    const again = did('a', unanswered('a', 300), left(300, [standing('a', 300)]));
    expect(check(comesIn('a', 100), back, again)).toEqual([promise]);
    const expired = did('b', unanswered('b', 9000), left(9000, [standing('b', 9000)]));
    expect(
      check(
        comesIn('a', 100),
        expired,
        did('a', unanswered('a', 9500), left(9500, [standing('b', 9000), standing('a', 9500)])),
      ),
    ).toEqual([]);
    const others = Array.from({ length: 8 }, (_, nth) => [
      comesIn(`o${nth}`, 160 + 10 * nth),
      did(
        'o',
        unanswered('o', 165 + 10 * nth),
        left(165 + 10 * nth, [], { ring: { [(160 + 10 * nth) % 8]: nameOf(`o${nth}`) } }),
      ),
    ]).flat();
    expect(check(comesIn('a', 100), back, ...others, again)).toEqual([]);
    expect(check(comesIn('a', 100), back, ...others.slice(2), again)).toEqual([promise]);
  });

  it('the record of a key shows each holder to third-party clients', () => {
    const promise = 'third-party clients take a held key for held';
    const shown = (heldForOthersUntil: number | null, path = `h${nameOf('a')}`) =>
      check(did('a', unanswered('a', 100), left(100, [{ ...a, path }], { heldForOthersUntil })));
    expect(shown(a.expiresAt)).toEqual([]);
    expect(shown(null)).toEqual([promise]);
    expect(shown(a.expiresAt - facts.spreadMs)).toEqual([]);
    expect(shown(a.expiresAt - 1, EXCLUSIVE_PATH)).toContain(promise);
  });

  it('the record of a key has exclusive fences that are not behind the clock', () => {
    const alone = { path: EXCLUSIVE_PATH, weight: 1_000_000 };
    const has = (fence: number) =>
      check(did('a', unanswered('a', 100, { limit: undefined }), left(100, [standing('a', 100, { ...alone, fence })])));
    expect(has(BEGIN + 100)).toEqual([]);
    expect(has(BEGIN + 99)).toEqual(['the fence of an exclusive grant is not behind the clock']);
  });

  it('the record of a key knows the last exclusive holder until the next grant', () => {
    const alone = (who: string, ms: number) =>
      standing(who, BEGIN + ms, {
        ...{ path: EXCLUSIVE_PATH, weight: 1_000_000 },
        acquiredAt: BEGIN + ms,
        expiresAt: BEGIN + ms + 5000,
      });
    const has = (who: string, ms: number) =>
      did(who, unanswered(who, ms, { limit: undefined }), left(ms, [alone(who, ms)]));
    const ends = (who: string, ms: number): Entry =>
      did(who, unanswered('x', ms), { what: 'end', ms }, released(ms + 1));
    const released = (ms: number): Effect => ({ what: 'lock', ms, state: 'released' });
    expect(check(has('a', 100), ends('a', 200), has('a', 300))).toEqual(['a request has one permit']);
    expect(check(has('a', 100), ends('a', 200), has('b', 300), ends('b', 400), has('a', 500))).toEqual([]);
  });

  it('the record of a key keeps and never shortens permits in use', () => {
    const took = (ms: number) => did('b', unanswered('b', ms), left(ms, [standing('b', ms)]));
    const answered = { ...comesIn('a', 100), ...grant('a', 100), landed: comesIn('a', 100).landed ?? [] };
    expect(check(answered, took(5200))).toEqual([]);
    expect(check(answered, took(5000))).toEqual(['no holder loses a permit before its time']);
    const back = did('a', release('a', 100, 1000), left(1000, [], { ring: { 4: nameOf('a') } }));
    expect(check(answered, back)).toEqual([]);
    const beat = (ms: number, more: object) => did('a', unanswered('a', ms), left(ms, [{ ...a, ...more }]));
    expect(check(answered, beat(2000, { expiresAt: a.expiresAt - 1 }))).toEqual(['no permit is shortened']);
    expect(check(answered, beat(2000, { expiresAt: a.expiresAt + 1 }))).toEqual([]);
    const window = did('a', unanswered('a', 100), left(100, [{ ...a, claimTtlMs: 3000 }]));
    expect(check(window, beat(150, { expiresAt: a.expiresAt - 1 }))).toEqual([]);
  });

  it('the record of a key keeps a permit that a withdrawal did not find', () => {
    const withdraws = (who: string, cancelled: boolean) =>
      did(
        who,
        entry('withdraw', { key: KEY, holder: who, requestId: who }, [900, 1100], 'ok', { cancelled }),
        left(1000, [], { ring: { 4: nameOf('a') } }),
      );
    const promise = 'a withdrawal that ended a permit does not say that it found none';
    expect(check(comesIn('a', 100), withdraws('a', false))).toEqual([promise]);
    expect(check(comesIn('a', 100), withdraws('a', true))).toEqual([]);
    expect(check(comesIn('a', 100), withdraws('b', false))).not.toContain(promise);
  });

  it('the record of a key has room for the first caller after expired holders', () => {
    const promise = 'an expired permit is had by the first caller';
    const full = [comesIn('a', 100), comesIn('b', 200, [a])];
    expect(check(...full, refused('c', 5500, 'LeaseHeld'))).toEqual([]);
    expect(check(...full, refused('c', 6400, 'LeaseHeld'))).toEqual([promise]);
    const marked = did('d', unanswered('d', 300), left(300, [a, b], { isMarked: true }));
    const waits = did('d', unanswered('d', 300), {
      ...{ what: 'row', ms: 300, ticket: '300 d', request: nameOf('d'), deadline: BEGIN + 60_000 },
    } as const);
    expect(check(...full, waits, marked, refused('c', 6400, 'LeaseHeld'))).toEqual(['no ticket remains']);
    expect(check(...full, marked, refused('c', 6400, 'LeaseHeld'))).toEqual([
      'a plain caller is refused only if a caller or task waits',
    ]);
    expect(check(...full, refused('c', 6400, 'LeaseHeld', { limit: 1 }))).toEqual([promise]);
    expect(check(comesIn('a', 100), refused('c', 200, 'LeaseHeld'))).toEqual([promise]);
    expect(check(comesIn('a', 100), refused('a', 5200, 'LeaseHeld'))).toEqual([]);
  });
});

describe('the line', () => {
  const ticketOf = (who: string, ms: number) => `${String(ms).padStart(4, '0')} ${who}`;
  const row = (who: string, ms: number) =>
    ({ what: 'row', ms, ticket: ticketOf(who, ms), request: nameOf(who), deadline: BEGIN + 60_000 }) as const;
  const gone = (ms: number, ticket: string) => ({ what: 'deletion', ms, ticket }) as const;
  const granted = (who: string, ms: number, ticket?: string) =>
    ({ what: 'grant', ms, request: nameOf(who), ticket, fence: ms }) as const;
  const joins = (who: string, ms: number) =>
    did(who, unanswered(who, ms), row(who, ms), { what: 'mark', ms: ms + 5, ticket: ticketOf(who, ms) });
  const leaves = (ms: number, ...tickets: string[]) =>
    did('z', unanswered('z', ms), ...tickets.map((ticket) => gone(ms, ticket)));
  const [a, b] = [standing('a', 100), standing('b', 200)];

  it('waiters and plain callers do not overtake the line of a key', () => {
    const promise = 'no waiter is overtaken';
    const line = [joins('a', 100), joins('b', 200)];
    const over = leaves(9000, '0100 a', '0200 b');
    const first = did('p', unanswered('p', 290), { what: 'query', ms: 290 }, granted('a', 300, '0100 a'));
    const second = did('p', unanswered('p', 310), { what: 'query', ms: 310 }, granted('b', 320, '0200 b'));
    expect(check(...line, first, second, over)).toEqual([]);
    expect(check(...line, second, over)).toEqual([promise]);
    expect(check(...line, did('c', unanswered('c', 300), granted('c', 300)), over)).toEqual([promise]);
    const both = did('p', unanswered('p', 290), { what: 'query', ms: 290 }, granted('a', 300, '0100 a'), {
      ...granted('b', 301, '0200 b'),
    });
    expect(check(...line, both, did('c', unanswered('c', 400), granted('c', 400)), over)).toEqual([]);
  });

  it('the first waiter of a key never waits beside free room', () => {
    const promise = 'no caller waits beside free room';
    const waits = (more: Partial<Entry> = {}) =>
      did(
        'c',
        {
          ...entry('acquire', request('c', { limit: 2, waitSeconds: 5 }), [1000, 6000], 'LeaseHeld', {
            retryWith: { ticket: '1000 c' },
          }),
          ...more,
        },
        row('c', 1000),
      );
    const over = leaves(20_000, '1000 c', '0900 b');
    const full = did('b', unanswered('b', 200), left(200, [a, b]));
    const half = (ms: number) => did('a', release('a', 100, ms), left(ms, [b], { ring: { 4: nameOf('a') } }));
    expect(check(comesIn('a', 100), full, waits(), over)).toEqual([]);
    expect(check(comesIn('a', 100), full, waits(), half(4000), over)).toEqual([promise]);
    expect(check(comesIn('a', 100), full, waits(), half(5000), over)).toEqual([]);
    expect(check(comesIn('a', 100), full, waits({ faults: ['Query lostReply'] }), half(4000), over)).toEqual([]);
    expect(check(comesIn('a', 100), full, joins('b', 900), waits(), half(4000), over)).toEqual([]);
  });

  it('the line of a key is empty in the end', () => {
    expect(check(joins('a', 100), leaves(500, '0100 a'))).toEqual([]);
    expect(check(joins('a', 100))).toEqual(['no ticket remains']);
  });

  const task = (answered: Record<string, unknown>, ms: number | undefined, outcome?: string) =>
    entry(
      'task',
      request('t', { limit: 2, token: 'T', ticket: 'x' }),
      ms === undefined ? [100] : [100, ms],
      outcome,
      answered,
      {
        actor: 't',
      },
    );

  it('the line notifies each task of its own permit or its cancellation', () => {
    const body = { leaseId: leaseOf('t', 150), fence: 150, remainingMs: 4600, waitedMs: 60, acquiredAt: at(150) };
    expect(check(task(body, 200))).toEqual([]);
    expect(check(task({}, undefined))).toEqual(['no parked task is forgotten']);
    expect(check(task({ ...body, remainingMs: 4400 }, 200))).toEqual(['a task gets its whole ttl']);
    expect(check(task(body, 200), { ...task(body, 210), actor: 'u', input: request('u', { limit: 2 }) })).toContain(
      'each grant is sent to one task',
    );
    const cancelled = entry('cancelWaiter', { key: KEY, ticket: 'x' }, [120, 130], 'ok', {
      cancelled: true,
    });
    expect(check(task(body, 200), cancelled)).toEqual(['a cancelled task is notified, and never granted']);
    expect(check(task({ reason: 'cancelled' }, 125, 'LeaseLost'), cancelled)).toEqual([]);
  });

  it('the line of a key is not in the way of a last caller', () => {
    const last = (outcome: string) => ({ ...refused('z', 99_000, outcome), actor: 'afterwards' });
    expect(check(last('LeaseHeld'))).toContain('no key is stuck');
  });
});

describe('effects', () => {
  const name = nameOf('a');
  const map = (more: object) => ({
    M: Object.fromEntries([
      ...['i', 'v', 'h'].map((part) => [part, { S: part }]),
      ...['e', 'b', 't', 'a', 'w'].map((part) => [part, { N: '7' }]),
      ...Object.entries(more),
    ]),
  });
  const item = {
    key: { S: KEY },
    lease_version: { S: 'holdfast' },
    used: { N: '7' },
    [`h${name}`]: map({ k: { S: 'ticket' } }),
    [`f${name}`]: { N: '9' },
    mark: { S: 'm' },
  };
  const TableName = 'faults-leases-1';
  const Key = { key: { S: KEY } };
  const input = { TableName, Key, ReturnValues: 'ALL_NEW' };
  const effects = (more: object, Attributes: Record<string, AttributeValue> = item) =>
    effectsOf('UpdateItem', { ...input, ...more }, () => ({ Attributes }));

  it('the effects of an answer show the grant and the record', () => {
    const found = effects({ ExpressionAttributeValues: { ':g0': map({}), ':next': { S: 'ticket 2' } } });
    expect(found).toMatchObject([
      { key: KEY, what: 'grant', ticket: 'ticket', request: name, fence: 9 },
      { key: KEY, what: 'mark', ticket: 'ticket 2' },
      { key: KEY, what: 'lock', state: { used: 7, isMarked: true, entries: [{ name, weight: 7 }] } },
    ]);
  });

  it('effects of other writes show the record, and those of other tables nothing', () => {
    expect(effects({ ExpressionAttributeValues: {} }).map(({ what }) => what)).toEqual(['lock']);
    expect(effects({ TableName: 'faults-commits-1' })).toEqual([]);
  });

  it('effects of an exclusive holder are read even if the answer lacks the record', () => {
    const [found] = effects(
      {
        ReturnValues: 'ALL_OLD',
        UpdateExpression: 'SET #g0 = :g0, fence = :fence, used = :used, lease_version = :ours REMOVE mark',
        ExpressionAttributeNames: { '#g0': EXCLUSIVE_PATH },
        ExpressionAttributeValues: {
          ':g0': map({ m: { S: name } }),
          ...{ ':fence': { N: '12' }, ':used': { N: '7' }, ':ours': { S: 'holdfast' } },
        },
      },
      { key: item.key, mark: item.mark },
    );
    expect(found).toMatchObject({ what: 'grant', request: name, fence: 12, leaseId: `e.${name}.i` });
    const UpdateExpression = 'SET used = used - #h.w REMOVE lease_version, #h.i';
    const ended = effectsOf('UpdateItem', { ...input, ReturnValues: 'NONE', UpdateExpression }, () => ({}));
    expect(ended).toEqual([
      { key: KEY, what: 'end' },
      { key: KEY, what: 'lock', state: 'released' },
    ]);
  });

  it('effects show the write of a third-party client, and its deletion', () => {
    const theirs = { ...Key, lease_version: { S: 'theirs' }, lease_expiry: { N: '7' } };
    const none = { used: 0, entries: [], isMarked: false };
    expect(effectsOf('PutItem', { TableName, Item: theirs }, () => ({}))).toMatchObject([
      { key: KEY, what: 'lock', state: { ...none, isForeign: true, heldForOthersUntil: 7000 } },
    ]);
    expect(effectsOf('DeleteItem', { TableName, Key }, () => ({}))).toEqual([
      { key: KEY, what: 'lock', state: NO_LOCK },
    ]);
  });

  it('a ticket has the name of its request', () => {
    const ticket = {
      key: { S: KEY },
      ticket: { S: 't' },
      weight: { N: '1' },
      holder: { S: 'a' },
      request_id: { S: 'a' },
    };
    const [row] = effectsOf('PutItem', { TableName: 'faults-waiters-1', Item: ticket }, () => ({}));
    expect(row).toMatchObject({ key: KEY, what: 'row', ticket: 't', request: name });
  });
});
