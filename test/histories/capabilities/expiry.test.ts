import { expect, it } from 'vitest';
import { expiry } from '../../../verification/histories/capabilities/expiry.ts';
import { AFTERWARDS } from '../../../verification/histories/capability.ts';
import { entry, facts, promises } from '../../../verification/histories/handmade.ts';
import type { Entry } from '../../../verification/histories/history.ts';

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

it('a clean-up may delete what expired long ago, but nothing recent or held', () => {
  const live = 'the clean-up removes no live record';
  expect(check(held(0, 5000), cleaned(80_000, 5000))).toEqual([]);
  expect(check(held(0, 5000), cleaned(60_000, 5000))).toEqual([live]);
  expect(check(held(70_000, 90_000), cleaned(80_000, 5000))).toEqual([live]);
  const back = entry('release', { key: 'w-k0', leaseId: 'a' }, [75_000, 75_010], 'ok', { released: true });
  expect(check(held(70_000, 90_000), back, cleaned(80_000, 5000))).toEqual([]);
});

it('the checker of the clean-up finds one that does not work afterwards', () => {
  expect(check({ ...entry('report', {}, [0, 10], 'Unavailable'), actor: AFTERWARDS })).toEqual([
    'reports and clean-ups work again',
  ]);
});
