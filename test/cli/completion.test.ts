import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it } from 'vitest';
import { isFull } from '../support/time/rounds.ts';
import { cliWorld } from '../support/worlds/cli-world.ts';

const { api, cli, holdfast } = await cliWorld();
const env = { HOLDFAST_ENDPOINT: api.url };

/** A shell that evaluated this key would make the file. */
const EVIL = `$(touch ${join(cli.folder, 'pwned')})`;
const KEYS = ['orders', 'other key', 'team:jobs', EVIL, 'line\nbreak'];
beforeAll(async () => {
  await symlink(cli.file, join(cli.folder, 'holdfast'));
  for (const key of KEYS) await holdfast.acquire(key, { ttlSeconds: 600 });
  await holdfast.acquire('provider', { ttlSeconds: 600, limit: 20 });
  await holdfast.acquire('quota:all', { ttlSeconds: 600, limit: 3 });
  await holdfast.acquire('alone', { ttlSeconds: 600, mode: 'exclusive' });
});

const isThere = (program: string) =>
  (process.env.PATH ?? '').split(':').some((folder) => existsSync(join(folder, program)));

/** The completion scripts call the command on the path. */
const out = async (shell: string, ...args: string[]) => {
  const path = `${cli.folder}:${dirname(process.execPath)}:${process.env.PATH}`;
  const { stdout } = await promisify(execFile)(shell, args, { env: { ...process.env, ...env, PATH: path } });
  expect(existsSync(join(cli.folder, 'pwned'))).toBe(false);
  return stdout.trim();
};
const scriptOf = async (shell: string) => {
  const file = join(cli.folder, `completion.${shell}`);
  await writeFile(file, (await cli.call(['completion', shell])).stdout);
  return file;
};

describe('completion of keys', () => {
  const words = async (typed: string[], environment: Record<string, string> = env) => {
    const { code, stdout, stderr } = await cli.call(['completion', 'words', '--', ...typed], { env: environment });
    expect([code, stderr]).toEqual([0, '']);
    return stdout.split('\n').filter(Boolean);
  };

  it.each([['break'], ['cancel'], ['queue'], ['watch'], ['status'], ['run'], ['acquire']])(
    'completion offers the keys that begin with the word after %s, with their holders',
    async (verb) => {
      expect((await words([verb, 'o'])).sort()).toEqual(['orders\theld by the other', 'other key\theld by the other']);
    },
  );

  it('completion offers all keys without a line break if no word is typed', async () => {
    const keys = (await words(['queue', ''])).map((line) => line.split('\t')[0]);
    expect(keys.sort()).toEqual([EVIL, 'alone', 'orders', 'other key', 'provider', 'quota:all', 'team:jobs']);
  });

  it('completion offers keys of the service and the namespace that the line names', async () => {
    expect(await words(['break', '--endpoint', api.url, '--fence', '7', 'ord'], {})).toEqual([
      'orders\theld by the other',
    ]);
    expect(await words(['break', '--namespace', 'team', 'ord'])).toEqual([]);
  });

  it('completion offers keys only where a verb expects a key', async () => {
    for (const typed of [
      ['break', 'orders', 'o'],
      ['break', '--fence', 'o'],
      ['cancel', 'orders', 'o'],
      ['names', 'o'],
    ])
      expect(await words(typed)).toEqual([]);
  });

  it('completion of --also offers keys that begin with the value and have a limit', async () => {
    for (const typed of [
      ['run', '--also', 'p'],
      ['run', 'orders', '--limit', '5', '--also', 'total=20', '--also', 'p'],
      ['run', 'orders', '--also', 'quota:all=3', '--also', ''],
    ])
      expect(await words(typed)).toEqual(['provider=20\theld by the other']);
    const limited = (await words(['run', 'orders', '--also', ''])).map((line) => line.split('\t')[0]);
    expect(limited.sort()).toEqual(['provider=20', 'quota:all=3']);
  });

  it('completion offers nothing, and does not fail, if no service answers or is known', async () => {
    expect(await words(['break', 'o'], { HOLDFAST_ENDPOINT: 'http://127.0.0.1:1' })).toEqual([]);
    expect(await words(['break', 'o'], {})).toEqual([]);
  });
});

describe('shells', () => {
  it.runIf(isFull)('Bash completes verbs, options, their values, keys, and the command behind --', async () => {
    const complete = `. ${await scriptOf('bash')}; COMP_LINE=$1; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _holdfast; printf '%s\\n' "\${COMPREPLY[@]}"`;
    /** Bash also splits words at colons. */
    const split = (line: string) => line.split(/ |(?=:)|(?<=:)(?=.)/);
    const completed = (line: string, words = split(line)) => out('bash', '-c', complete, 'bash', line, ...words);
    expect(await completed('holdfast stat')).toBe('status');
    expect(await completed('holdfast status --st')).toBe('--state');
    expect(await completed('holdfast status --state h')).toBe('held');
    expect((await completed('holdfast run k -- ech')).split('\n')).toContain('echo');
    expect(await completed('holdfast run k --also prov')).toBe('provider=20');
    expect(
      await completed('holdfast run k --also provider=2', ['holdfast', 'run', 'k', '--also', 'provider', '=', '2']),
    ).toBe('20');
    expect(await completed('holdfast run k --also quota:a')).toBe('all=3');
    expect(await completed('holdfast break or')).toBe('orders');
    expect(await completed('holdfast break other\\ k', ['holdfast', 'break', 'other\\ k'])).toBe('other key');
    expect(await completed('holdfast break "oth', ['holdfast', 'break', '"oth'])).toBe('other key');
    for (const typed of ['team:', 'team:jo']) expect(await completed(`holdfast break ${typed}`)).toBe('jobs');
    expect(await completed('holdfast break \\$', ['holdfast', 'break', '\\$'])).toBe(EVIL);
  });

  it.runIf(isFull && isThere('fish'))('Fish completes verbs, options, their values, and keys', async () => {
    const file = await scriptOf('fish');
    const completed = (line: string) => out('fish', '-c', `source ${file}; complete -C "${line}"`);
    expect(await completed('holdfast stat')).toMatch(/^status\t/);
    expect(await completed('holdfast status --st')).toMatch(/^--state\t/m);
    expect(await completed('holdfast status --state h')).toMatch(/^held$/m);
    expect(await completed('holdfast break or')).toBe('orders\theld by the other');
    expect(await completed('holdfast run k --also prov')).toBe('provider=20\theld by the other');
    expect(await completed('holdfast break team:j')).toBe('team:jobs\theld by the other');
    expect(await completed('holdfast break other\\\\ k')).toMatch(/^other\\? key\theld by the other$/);
  });

  it.runIf(isFull && isThere('zsh'))(
    'Zsh completes verbs, options, their values, keys, and the command behind --',
    async () => {
      const cache = join(cli.folder, 'zcompdump');
      const script = `autoload -U compinit; compinit -u -d ${cache}; . ${await scriptOf('zsh')}`;
      expect(await out('zsh', '-fc', `${script}; echo $_comps[holdfast]`)).toBe('_holdfast');
      // The candidates that the script hands to the shell, which shows them only while a user types.
      const shell =
        '_describe() { print -rl -- $found }; _files() { print files }; _normal() { print "$CURRENT: $words" }';
      const completed = (...words: string[]) =>
        out('zsh', '-fc', `${script}; ${shell}; words=("$@"); CURRENT=$#; _holdfast`, 'zsh', ...words);
      expect(await completed('holdfast', 'stat')).toMatch(/^status:list the keys in use/m);
      expect(await completed('holdfast', 'status', '-')).toMatch(/^--state:only keys in this state/m);
      expect((await completed('holdfast', 'status', '--state', '')).split(/:?\n/)).toContain('held');
      expect(await completed('holdfast', 'commit', 'a', '')).toBe('files');
      expect(await completed('holdfast', 'run', 'k', '--', 'ls', 'a')).toBe('2: ls a');
      expect(await completed('holdfast', 'break', 'or')).toBe('orders:held by the other');
      expect(await completed('holdfast', 'run', 'k', '--also', 'prov')).toBe('provider=20:held by the other');
      expect(await completed('holdfast', 'break', 'team\\:')).toBe('team\\:jobs:held by the other');
      expect(await completed('holdfast', 'break', 'other\\ k')).toBe('other key:held by the other');
      expect(await completed('holdfast', 'break', "'$(")).toContain(`${EVIL}:held by the other`);
    },
  );
});
