import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { runnersOf } from '../support/programs/run.ts';
import { isFull } from '../support/time/rounds.ts';
import { until } from '../support/time/until.ts';
import { cliWorld } from '../support/worlds/cli-world.ts';

const { api, cli, holdfast } = await cliWorld();

let keys = 0;
const freshKey = () => `preview/${++keys}`;
const read = (key: string) => holdfast.readLease(key, { waiters: true });
const BUILD = ['sh', '-c', 'trap "echo stopped; exit 3" TERM; echo on; sleep 60 & wait'];

describe.each(runnersOf(cli))('$name', (runner) => {
  const start = (...args: string[]) => runner.start(['run', ...args], { env: { HOLDFAST_ENDPOINT: api.url } });

  describe.concurrent('holdfast run --replace', () => {
    it.runIf(isFull)('holdfast run --replace running runs the last of five builds, and ends the others', async () => {
      const key = freshKey();
      const script = 'trap "echo stopped; exit 3" TERM; echo "build $0"; sleep "$1" & wait $!; echo done';
      const builds = [];
      for (const n of [1, 2, 3, 4, 5]) {
        const options = ['--replace', 'running', '--wait', '1h', '--ttl', '6', '--holder', `build-${n}`];
        const build = start(key, ...options, '--', 'sh', '-c', script, `${n}`, n === 5 ? '1' : '60');
        if (n === 1) await until(build.stdout).toContain('build 1');
        builds.push(build);
        await until(async () => {
          const { holder, waiters = [] } = await read(key);
          return [holder, ...waiters.map((waiter) => waiter.holder)];
        }).toContain(`build-${n}`);
      }
      const ended = await Promise.all(builds.map(({ exited }) => exited));
      const last = ended.pop();
      expect(last).toMatchObject({ code: 0, stdout: 'build 5\ndone\n' });
      for (const { code, stdout } of ended) {
        expect([75, 76]).toContain(code);
        expect(stdout).not.toContain('done');
      }
      expect(ended[0]).toMatchObject({ code: 76, stdout: 'build 1\nstopped\n' });
      expect(ended[0]?.stderr).toContain(`the lease of ${key} is lost (superseded): the command is ended`);
      expect(await read(key)).toMatchObject({ state: 'released', waiting: 0 });
    });

    it('a newer run replaces the run that waits, not the run that works', async () => {
      const key = freshKey();
      const options = [key, '--replace', 'waiting', '--wait', '1h'];
      const file = join(cli.folder, `done-${runner.isPython}`);
      const first = start(...options, '--', 'sh', '-c', `echo on; while [ ! -e '${file}' ]; do sleep 0.05; done`);
      await until(first.stdout).toContain('on');
      const second = start(...options, '--held-exit-code', '0', '--', 'echo', 'never');
      await until(async () => (await read(key)).waiting).toBe(1);
      const third = start(...options, '--holder', 'newest', '--', 'echo', 'third');
      const replaced = await second.exited;
      expect(replaced).toMatchObject({ code: 0, stdout: '' });
      expect(replaced.stderr).toContain(`a newer run of ${key}, by newest, has replaced this one`);
      await writeFile(file, '');
      expect(await first.exited).toMatchObject({ code: 0, stdout: 'on\n' });
      expect(await third.exited).toMatchObject({ code: 0, stdout: 'third\n' });
    });

    it('holdfast run --replace exits with 75 at the end of its wait', async () => {
      const key = freshKey();
      await using lease = await holdfast.acquire(key);
      const { code, stderr } = await start(key, '--replace', 'waiting', '--wait', '1.5s', '--', 'echo', 'never').exited;
      expect([code, lease.held]).toEqual([75, true]);
      expect(stderr).toContain(`${key} is held by the other since`);
    });

    it('holdfast queue shows who has been asked to stop, and whom a waiter replaces', async () => {
      const key = freshKey();
      const options = [key, '--replace', 'running', '--wait', '1h', '--ttl', '30'];
      const first = start(...options, '--holder', 'old', '--', ...BUILD);
      await until(first.stdout).toContain('on');
      const second = start(...options, '--holder', 'new', '--', 'true');
      await until(async () => (await read(key)).ending).toBe(true);
      const { stdout } = await cli.call(['queue', key], { env: { HOLDFAST_ENDPOINT: api.url } });
      expect(stdout).toMatch(/^state +ending$/m);
      expect(stdout).toMatch(/^superseded by +new$/m);
      expect(stdout).toMatch(/^ +1 +caller +new .* replaces running /m);
      expect((await first.exited).code).toBe(76);
      expect((await second.exited).code).toBe(0);
    });

    it.each([
      ['--replace needs --wait', []],
      ['--replace and --limit exclude each other', ['--wait', '1h', '--limit', '2']],
      ['--replace and --shared exclude each other', ['--wait', '1h', '--shared']],
      ['--slot and --replace exclude each other', ['--wait', '1h', '--slot', 'a']],
      ["--replace must be one of waiting, running, not 'all'", ['--wait', '1h', '--replace', 'all']],
    ])('holdfast run exits with 64 and says: %s', async (message, options) => {
      const args = ['run', freshKey(), '--replace', 'waiting', ...options, '--', 'true'];
      const { code, stderr } = await cli.call(args, { env: { HOLDFAST_ENDPOINT: api.url } });
      expect([code, stderr.split('\n')[0]]).toEqual([64, `holdfast: ${message}`]);
    });
  });
});
