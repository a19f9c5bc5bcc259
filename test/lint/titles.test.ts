import { expect, it } from 'vitest';
import { fragmentsIn, HAS_TITLES } from '../../lint/prose/titles.ts';

it.each([
  ["it('is refused', async () => {", ['is refused']],
  ["it.each([1])(\n  'of %i callers, none waits', () => {", ['of %i callers, none waits']],
  ["it.each(WAYS)('%s', () => {", ['%s']],
  ["it('keeps the lease', () => {", ['keeps the lease']],
  ["it('a call keeps the lease', () => {", []],
  ["it('leases of two holders are refused', () => {\n  text.split('is', 2);", []],
])('The lint finds each title of a test that lacks its subject: %s', (code, titles) => {
  expect(fragmentsIn(code).map(({ title }) => title)).toEqual(titles);
});

it('The lint reads the titles of tests, and of the modules that tests share', () => {
  const files = ['test/leases/acquire.test.ts', 'test/line/hand-offs.ts', 'verification/packages/packages.test.ts'];
  expect([...files, 'shared/line/wait.ts', 'docs/pools.md'].filter((file) => HAS_TITLES.test(file))).toEqual(files);
});
