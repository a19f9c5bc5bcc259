import { expect, it } from 'vitest';
import { type Broken, broken, type Left, type Line } from '../../verification/client/check.ts';

const step = (fence: number, at: number, holder = `holder of ${fence}`): Line => ({
  type: 'step',
  key: 'k',
  fence,
  holder,
  at,
});
const failure = (code: string): Line => ({ type: 'failure', holder: 'a', code, detail: `${code}: ...` });
const left = (state: string, holder: string, fence = 1, ttlSeconds = 3): Left => ({
  ...{ key: 'k', state, holder, fence, ttlSeconds },
});
const none = new Set<never>();

it('the judge of the chaos accepts a run that keeps the promises', () => {
  const lines = [step(1, 10), step(1, 20), step(2, 21), failure('LeaseHeld'), failure('Unreachable')];
  const leases = [
    left('released', 'a'),
    left('expired', 'killed'),
    left('expired', 'copied', 9),
    left('expired', 'waits', 10, 2),
  ];
  expect(
    broken(lines, leases, { killed: new Set(['killed']), copies: new Set([9]), copied: new Set(['k waits']) }),
  ).toEqual({
    overlaps: [],
    leasesLeft: [],
    surprises: [],
  });
});

it.each<[string, Line[], Left[], keyof Broken]>([
  ['work after a higher fence has begun', [step(1, 10), step(2, 20), step(1, 21)], [], 'overlaps'],
  [
    'work after a higher fence, with a third fence in between',
    [step(1, 10), step(2, 12), step(3, 20), step(1, 11), step(2, 21)],
    [],
    'overlaps',
  ],
  ['work of an earlier holder after that of two later ones', [step(1, 30), step(2, 10), step(3, 20)], [], 'overlaps'],
  ['one fence for two', [step(1, 10, 'a'), step(1, 11, 'b')], [], 'overlaps'],
  ['an error that no fault explains', [failure('TypeError')], [], 'surprises'],
  ['a lease that is left', [], [left('expired', 'a')], 'leasesLeft'],
  ['a lease that is not claimed, without a copy', [], [left('expired', 'a', 1, 2)], 'leasesLeft'],
  ['a lease that is left after a copy', [], [left('expired', 'copied')], 'leasesLeft'],
  ['a lease that a caller goes on extending', [], [left('held', 'a')], 'leasesLeft'],
])('the judge of the chaos finds %s', (_, lines, leases, kind) => {
  const found = Object.entries(
    broken(lines, leases, { killed: none, copies: none, copied: new Set(['k copied']) }),
  ).filter(([, cases]) => cases.length > 0);
  expect(found.map(([name]) => name)).toEqual([kind]);
});
