import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';

let folder: string;
const author = { GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_SYSTEM: '/dev/null' };
const identity = ['-c', 'user.name=a', '-c', 'user.email=a@b.test'];
const env = {
  ...{ PATH: process.env.PATH, ...author },
  ...{ GIT_COMMITTER_NAME: 'a', GIT_COMMITTER_EMAIL: 'a@b.test' },
};
const git = (...args: string[]) =>
  execFileSync('git', [...identity, ...args], { cwd: folder, env, encoding: 'utf8' }).trim();

function tags(...args: string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [resolve('build/tags.ts'), ...args], {
    ...{ cwd: folder, env, encoding: 'utf8' },
  });
  return { status, output: stdout + stderr };
}

const PYTHON = 'clients/python/src/holdfast/contract.py';

/** Commits what a release has. @param other files that are not what the release has, by path; null for none */
function commit(version: string, changelog: string, other: Record<string, string | null> = {}): string {
  const stated = JSON.stringify({ version });
  const contract = JSON.stringify({ info: { version } });
  const files = {
    ...{
      'package.json': stated,
      'clients/typescript/package.json': stated,
      'cli/package.json': stated,
      'local/package.json': stated,
    },
    ...{ 'contract/openapi.json': contract, [`contract/released/${version}.json`]: contract },
    'CHANGELOG.md': changelog,
    [PYTHON]: `VERSION = "${version}"\n`,
    ...other,
  };
  for (const [name, text] of Object.entries(files)) {
    const path = join(folder, name);
    mkdirSync(dirname(path), { recursive: true });
    if (text === null) rmSync(path);
    else writeFileSync(path, text);
  }
  git('add', '.');
  git('commit', '-qm', version);
  return git('rev-parse', 'HEAD');
}

const ONE = '# Changelog\n\n## Unreleased\n\n## 1.0.0\n\n- The first.\n';
const TWO = ONE.replace('## 1.0.0', '## 1.1.0\n\n### Added\n\n- More.\n\n## 1.0.0');

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-tags-'));
  git('init', '-q');
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

it('the tag script creates a tag for each version of the changelog', () => {
  const first = commit('1.0.0', ONE);
  const second = commit('1.1.0', TWO);
  expect(tags()).toEqual({ status: 1, output: 'there is no tag v1.1.0\nthere is no tag v1.0.0\n' });
  expect(tags('--create', '1.0.0', '--commit', first)).toMatchObject({ status: 0 });
  expect(tags('--create', '1.1.0')).toMatchObject({ status: 0 });
  expect(tags()).toEqual({ status: 0, output: '' });
  expect([git('rev-list', '-1', 'v1.0.0'), git('rev-list', '-1', 'v1.1.0')]).toEqual([first, second]);
  expect(git('tag', '--list', '--format=%(contents)', 'v1.1.0')).toBe('Holdfast 1.1.0\n\n### Added\n\n- More.');
});

it('the tag script tags only commits of versions that the changelog has', () => {
  const first = commit('1.0.0', ONE);
  commit('1.1.0', ONE);
  expect(tags('--create', '1.1.0', '--commit', first)).toEqual({
    ...{ status: 1, output: `package.json of ${first} has the version 1.0.0\n` },
  });
  expect(tags('--create', '1.1.0')).toEqual({ status: 1, output: 'CHANGELOG.md of HEAD has no 1.1.0\n' });
  expect(git('tag')).toBe('');
});

it('the tag script keeps the tag of a commit, so releases can repeat', () => {
  const released = commit('1.0.0', ONE);
  const first = tags('--create', '1.0.0');
  const tag = git('rev-parse', 'v1.0.0');
  expect(first).toEqual({ status: 0, output: `v1.0.0 is at ${git('rev-parse', '--short', released)}\n` });
  expect(tags('--check', '1.0.0')).toEqual({ status: 0, output: '- The first.\n' });
  expect(tags('--create', '1.0.0')).toEqual(first);
  expect(git('rev-parse', 'v1.0.0')).toBe(tag);
});

it('the tag script never moves a tag to another commit of its version', () => {
  const released = commit('1.0.0', ONE);
  tags('--create', '1.0.0');
  const later = commit('1.0.0', ONE, { 'later.txt': '' });
  const refused = { status: 1, output: `v1.0.0 is at ${released}, another commit than ${later}\n` };
  for (const option of ['--check', '--create']) expect(tags(option, '1.0.0', '--commit', later)).toEqual(refused);
  git('tag', '--force', 'v1.0.0', released); // without an annotation
  expect(tags('--check', '1.0.0', '--commit', later)).toEqual(refused);
  expect(git('rev-list', '-1', 'v1.0.0')).toBe(released);
});

it("the tag script tags a commit only with the release's contract", () => {
  commit('1.0.0', ONE, { 'contract/openapi.json': '{"info":{"version":"0.9.9"}}' });
  const other = 'contract/openapi.json of HEAD has the version 0.9.9\n';
  expect(tags('--create', '1.0.0')).toEqual({ status: 1, output: other });
  const fault = 'contract/released/1.0.0.json of HEAD is not its contract: npm run verify -- contract-release\n';
  for (const released of ['{"before":1}', null]) {
    commit('1.0.0', ONE, { 'contract/released/1.0.0.json': released });
    expect(tags('--create', '1.0.0')).toEqual({ status: 1, output: fault });
  }
  commit('1.0.0', ONE);
  expect(tags('--create', '1.0.0')).toMatchObject({ status: 0 });
});

it("the tag script prints a release after checking its packages' version", () => {
  for (const name of ['clients/typescript', 'cli', 'local']) {
    commit('1.1.0', TWO, { [`${name}/package.json`]: '{"version":"1.0.0"}' });
    const fault = `${name}/package.json of HEAD has the version 1.0.0\n`;
    expect(tags('--check', '1.1.0')).toEqual({ status: 1, output: fault });
    expect(tags('--create', '1.1.0')).toEqual({ status: 1, output: fault });
  }
  commit('1.1.0', TWO, { [PYTHON]: 'VERSION = "1.0.0"\n' });
  const fault = `${PYTHON} of HEAD has another version\n`;
  expect(tags('--check', '1.1.0')).toEqual({ status: 1, output: fault });
  commit('1.1.0', TWO);
  expect(tags('--check', '1.1.0')).toEqual({ status: 0, output: '### Added\n\n- More.\n' });
  expect(git('tag')).toBe('');
});

it('the tag script finds a stray tag, and versions that do not descend', () => {
  commit('1.0.0', ONE);
  tags('--create', '1.0.0');
  git('tag', 'v9.9.9');
  expect(tags()).toEqual({ status: 1, output: 'CHANGELOG.md has no version for the tag v9.9.9\n' });
  commit('1.1.0', `${ONE}\n## 1.1.0\n`);
  expect(tags()).toEqual({ status: 1, output: 'CHANGELOG.md has 1.1.0 behind 1.0.0\n' });
});
