import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, expect, it } from 'vitest';
import { earlierRelease, halfOf, toldOf } from '../../verification/histories/release.ts';

const root = await mkdtemp(join(tmpdir(), 'holdfast-tags-'));
afterAll(() => rm(root, { recursive: true }));

const git = (...args: string[]) =>
  promisify(execFile)('git', ['-c', 'user.name=a', '-c', 'user.email=a@example.com', ...args], { cwd: root });
const commit = async (text: string) => {
  await mkdir(join(root, 'functions'), { recursive: true });
  await writeFile(join(root, 'functions', 'a.ts'), text);
  await git('add', '.');
  await git('commit', '-qm', text);
};

it('the release before is the newest tag before HEAD, and none is older than 0.3.0', async () => {
  expect(await earlierRelease(root)).toBeUndefined(); // no clone
  await git('init', '-q');
  await commit('0.2.0');
  await git('tag', 'v0.2.0');
  await commit('0.3.0');
  expect(await earlierRelease(root)).toBeUndefined();
  await git('tag', 'v0.3.0');
  expect(await earlierRelease(root)).toBeUndefined(); // a release has none beside itself
  await commit('after 0.3.0');
  const first = await earlierRelease(root);
  expect(first?.version).toBe('0.3.0');
  expect(await readFile(join(first?.folder ?? '', 'functions', 'a.ts'), 'utf8')).toBe('0.3.0');
  await commit('0.10.0');
  await git('tag', 'v0.10.0');
  expect(await earlierRelease(root)).toEqual(first);
  await commit('after 0.10.0');
  expect((await earlierRelease(root))?.version).toBe('0.10.0');
});

it('a history takes half of its functions from the release before, as its seed decides', () => {
  const names = Array.from({ length: 21 }, (_, nth) => `function ${nth}`);
  expect(halfOf(names, 1)).toEqual(halfOf(names, 1));
  const halves = Array.from({ length: 50 }, (_, seed) => halfOf(names, seed));
  for (const half of halves) expect(half.size).toBe(10);
  for (const name of names) expect(halves.some((half) => half.has(name))).toBe(true);
});

it('a run says which release its histories use', () => {
  expect(toldOf({ version: '0.3.0', folder: '' })).toBe(
    'Each history takes half of its functions from the release 0.3.0',
  );
  expect(toldOf(undefined)).toBe('All functions are those of this version: there is no earlier release since 0.3.0');
});
