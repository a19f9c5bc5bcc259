import { describe, expect, it } from 'vitest';
import { requestName } from '../../../shared/permits/identity.ts';
import { kinds } from '../../../verification/histories/capabilities/kinds.ts';
import { BEGIN } from '../../../verification/histories/clocks.ts';
import { at, type Effect, entry, facts, landedOn, promises } from '../../../verification/histories/handmade.ts';
import type { Entry } from '../../../verification/histories/history.ts';

const KEY = 'w-m0';
const UNTRUE = 'WrongKind is told only of a key that the other kind uses';
const RISE = 'fences rise with each grant';
const check = (...history: Entry[]) => promises(kinds.check(history, facts));

const request = (who: string, more: object = {}) => ({ key: KEY, holder: who, requestId: who, ttlSeconds: 5, ...more });
const POOL = { limit: 3 };

/** A grant at a millisecond to a caller that asks for it ten before, and is answered ten later. The write has that fence. */
const grant = (
  who: string,
  ms: number,
  terms: object = {},
  { fence = ms, lasts = 5000, written }: { fence?: number; lasts?: number; written?: number } = {},
): Entry => {
  const isPool = 'limit' in terms;
  const times = { remainingMs: lasts, waitedMs: 0, acquiredAt: at(ms), expiresAt: at(ms + lasts) };
  const body = { leaseId: isPool ? `p.${who}` : who, fence, ...times };
  const name = isPool ? requestName({ holder: who, requestId: who }) : `${who} of ${who}`;
  const landed = landedOn(KEY, { what: 'grant', ms, ticket: undefined, request: name, fence: written ?? fence });
  return entry('acquire', request(who, terms), [ms - 10, ms + 10], 'ok', body, { actor: who, landed });
};
const release = (who: string, leaseId: string, ms: number) =>
  entry('release', { key: KEY, leaseId }, [ms - 10, ms + 10], 'ok', { released: true }, { actor: who });
const refused = (ms: number, terms: object, body: object) =>
  entry('acquire', request('wrong', terms), [ms - 10, ms + 10], 'WrongKind', { ...body }, { actor: 'wrong' });
const lease = (fence: number) => ({ kind: 'lease', fence, expiresAt: at(fence + 5000) });
const pool = (...fences: number[]) => ({
  kind: 'pool',
  holders: fences.map((fence) => ({ fence, expiresAt: at(fence + 5000) })),
});

describe('a key that callers of both kinds use', () => {
  it('a key of both kinds is never held as a lease beside a permit', () => {
    const both = ['never a lease beside a permit'];
    expect(check(grant('a', 100), grant('b', 200, POOL))).toEqual(both);
    expect(check(grant('b', 100, POOL), grant('a', 200))).toEqual(both);
    expect(check(grant('a', 100), release('a', 'a', 150), grant('b', 200, POOL))).toEqual([]);
    expect(check(grant('a', 100, {}, { lasts: 90 }), grant('b', 200, POOL))).toEqual([]);
    expect(check(grant('a', 100, POOL), grant('b', 200, POOL))).toEqual([]);
    expect(check(grant('a', 100), grant('b', 200))).toEqual(['at most one holder at a time']);
  });

  it('a key of both kinds has fences that rise over a change of kind, in its answers and in the order of its writes', () => {
    const [before, given] = [grant('a', 100, {}, { fence: 500 }), release('a', 'a', 150)];
    expect(check(before, given, grant('b', 200, POOL, { fence: 501 }))).toEqual([]);
    expect(check(before, given, grant('b', 200, POOL, { fence: 499 }))).toEqual([RISE]);
    // Its answer tells of a later fence than its write.
    expect(check(before, given, grant('b', 200, POOL, { fence: 501, written: 400 }))).toEqual([RISE]);
  });

  it('a key of both kinds is not stuck in the end', () => {
    const stuck = entry('acquire', request('x'), [9000, 9010], 'WrongKind', lease(100), { actor: 'afterwards' });
    expect(check(grant('a', 8000), stuck)).toContain('no key is stuck');
  });
});

describe('a caller that is refused because of its kind', () => {
  it('a caller that is refused because of its kind met a holder of the other kind', () => {
    expect(check(grant('a', 100), refused(200, POOL, lease(100)))).toEqual([]);
    expect(check(grant('a', 100, POOL), refused(200, {}, pool(100)))).toEqual([]);
    expect(check(refused(200, POOL, lease(100)))).toEqual([UNTRUE]);
    expect(check(grant('a', 100), refused(200, {}, lease(100)))).toEqual([UNTRUE]);
    expect(check(grant('a', 100), refused(200, {}, pool(100)))).toEqual([UNTRUE]);
  });

  it('a caller that is refused because of its kind met a holder whose grant had not ended before the call', () => {
    expect(check(grant('a', 100), release('a', 'a', 150), refused(200, POOL, lease(100)))).toEqual([UNTRUE]);
    expect(check(grant('a', 100), release('a', 'a', 205), refused(200, POOL, lease(100)))).toEqual([]);
    expect(check(grant('a', 100), refused(7000, POOL, lease(100)))).toEqual([UNTRUE]);
    const [one, other] = [grant('a', 100, POOL), grant('b', 3000, POOL)];
    expect(check(one, other, refused(7000, {}, pool(100, 3000)))).toEqual([]);
    expect(check(one, other, refused(9500, {}, pool(100, 3000)))).toEqual([UNTRUE]);
  });

  it('a caller that is refused because of its kind may have met a line', () => {
    const [holder, request] = ['w', 'w of w'];
    const row = { what: 'row', ms: 90, ticket: 't', deadline: BEGIN, request } as const;
    const gone = (ms: number) => ({ what: 'deletion', ms, ticket: 't' }) as const;
    const inLine = (...effects: Effect[]) =>
      entry('repairQueues', { holder }, [80, 300], 'ok', {}, { landed: landedOn(KEY, ...effects) });
    expect(check(inLine(row, gone(250)), refused(200, POOL, lease(100)))).toEqual([]);
    expect(check(inLine(row, gone(150)), refused(200, POOL, lease(100)))).toEqual([UNTRUE]);
  });
});
