import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
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

function commit(version: string, changelog: string): string {
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ version }));
  writeFileSync(join(folder, 'CHANGELOG.md'), changelog);
  git('add', '.');
  git('commit', '-qm', version);
  return git('rev-parse', 'HEAD');
}

const ONE = '# Changelog\n\n## Unreleased\n\n## 0.1.0\n\n- The first.\n';
const TWO = ONE.replace('## 0.1.0', '## 0.2.0\n\n### Added\n\n- More.\n\n## 0.1.0');

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-tags-'));
  git('init', '-q');
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

it('npm run verify -- tags tags each version of the changelog at its release, with what the changelog says of it', () => {
  const first = commit('0.1.0', ONE);
  const second = commit('0.2.0', TWO);
  expect(tags()).toEqual({ status: 1, output: 'there is no tag v0.2.0\nthere is no tag v0.1.0\n' });
  expect(tags('--create', '0.1.0', '--commit', first)).toMatchObject({ status: 0 });
  expect(tags('--create', '0.2.0')).toMatchObject({ status: 0 });
  expect(tags()).toEqual({ status: 0, output: '' });
  expect([git('rev-list', '-1', 'v0.1.0'), git('rev-list', '-1', 'v0.2.0')]).toEqual([first, second]);
  expect(git('tag', '--list', '--format=%(contents)', 'v0.2.0')).toBe('Holdfast 0.2.0\n\n### Added\n\n- More.');
});

it('npm run verify -- tags tags no commit of another version, and none whose version the changelog lacks', () => {
  const first = commit('0.1.0', ONE);
  commit('0.2.0', ONE);
  expect(tags('--create', '0.2.0', '--commit', first)).toEqual({
    ...{ status: 1, output: `package.json of ${first} has the version 0.1.0\n` },
  });
  expect(tags('--create', '0.2.0')).toEqual({ status: 1, output: 'CHANGELOG.md of HEAD has no 0.2.0\n' });
  expect(git('tag')).toBe('');
});

it('npm run verify -- tags tags a commit only with the contract of the release', () => {
  mkdirSync(join(folder, 'contract/released'), { recursive: true });
  const write = (file: string, text: string) => writeFileSync(join(folder, 'contract', file), text);
  const now = '{"info":{"version":"0.1.0"}}';
  write('openapi.json', '{"info":{"version":"0.0.9"}}');
  commit('0.1.0', ONE);
  const other = 'contract/openapi.json of HEAD has the version 0.0.9\n';
  expect(tags('--create', '0.1.0')).toEqual({ status: 1, output: other });
  write('openapi.json', now);
  commit('0.1.0', ONE);
  const fault = 'contract/released/0.1.0.json of HEAD is not its contract: npm run verify -- contract-release\n';
  expect(tags('--create', '0.1.0')).toEqual({ status: 1, output: fault });
  write('released/0.1.0.json', '{"before":1}');
  commit('0.1.0', ONE);
  expect(tags('--create', '0.1.0')).toEqual({ status: 1, output: fault });
  write('released/0.1.0.json', now);
  commit('0.1.0', ONE);
  expect(tags('--create', '0.1.0')).toMatchObject({ status: 0 });
});

it('npm run verify -- tags checks that the packages of a commit have the version, and prints what a release says of it', () => {
  commit('0.2.0', TWO);
  expect(tags('--check', '0.2.0')).toEqual({ status: 0, output: '### Added\n\n- More.\n' });
  for (const name of ['client', 'cli']) {
    mkdirSync(join(folder, name));
    writeFileSync(join(folder, name, 'package.json'), '{"version":"0.1.0"}');
    commit('0.2.0', TWO);
    const fault = `${name}/package.json of HEAD has the version 0.1.0\n`;
    expect(tags('--check', '0.2.0')).toEqual({ status: 1, output: fault });
    expect(tags('--create', '0.2.0')).toEqual({ status: 1, output: fault });
    writeFileSync(join(folder, name, 'package.json'), '{"version":"0.2.0"}');
    commit('0.2.0', TWO);
  }
  expect(tags('--check', '0.2.0')).toMatchObject({ status: 0 });
  expect(git('tag')).toBe('');
});

it('npm run verify -- tags finds a tag that no version has, and versions that do not descend', () => {
  commit('0.1.0', ONE);
  tags('--create', '0.1.0');
  git('tag', 'v9.9.9');
  expect(tags()).toEqual({ status: 1, output: 'CHANGELOG.md has no version for the tag v9.9.9\n' });
  commit('0.2.0', `${ONE}\n## 0.2.0\n`);
  expect(tags()).toEqual({ status: 1, output: 'CHANGELOG.md has 0.2.0 behind 0.1.0\n' });
});
