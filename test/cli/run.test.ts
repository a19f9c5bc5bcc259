import { spawn } from 'node:child_process';
import { chmod, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { acquireForCommand, type CommandHold } from '../../cli/src/run/claim.ts';
import { Command } from '../../cli/src/run/command.ts';
import { supervise } from '../../cli/src/run/supervise.ts';
import { cuttable } from '../support/faults/cuttable.ts';
import { living } from '../support/programs/cli.ts';
import { runnersOf } from '../support/programs/run.ts';
import { aFew, isFull } from '../support/time/rounds.ts';
import { until } from '../support/time/until.ts';
import { cliWorld } from '../support/worlds/cli-world.ts';

const { api, cli, holdfast, waitedInVain } = await cliWorld();

let keys = 0;
const freshKey = () => `cli/${++keys}`;
const stateOf = async (key: string) => (await holdfast.readLease(key)).state;
const waitersOf = async (key: string) => (await holdfast.readLease(key)).waiting;

describe.concurrent.each(runnersOf(cli))('$name', (runner) => {
  const start = (args: string[], env: Record<string, string> = {}) =>
    runner.start(['run', ...args], { env: { HOLDFAST_ENDPOINT: api.url, ...env } });
  const run = (...args: string[]) => start(args).exited;

  describe.concurrent('exit codes', () => {
    it('holdfast run exits with the code of the command, and releases the lease', async () => {
      const key = freshKey();
      const script = 'echo "$HOLDFAST_KEY $HOLDFAST_HOLDER $HOLDFAST_FENCE $TOKEN"; echo "to stderr" >&2; exit 7';
      const { code, stdout, stderr } = await run(
        key,
        '--holder',
        'me',
        '--fence-env',
        'TOKEN',
        '--',
        'sh',
        '-c',
        script,
      );
      const { fence, state } = await holdfast.readLease(key);
      expect([code, stdout, stderr]).toEqual([7, `${key} me ${fence} ${fence}\n`, 'to stderr\n']);
      expect(state).toBe('released');
    });

    it.each(aFew(2, ['SIGTERM', 'SIGKILL', 'SIGUSR1'] as const))(
      'holdfast run exits with 128 and the number of %s that ends the command',
      async (signal) => {
        const numbers = { SIGTERM: 143, SIGKILL: 137, SIGUSR1: 138 };
        expect((await run(freshKey(), '--', 'sh', '-c', `kill -s ${signal.slice(3)} $$`)).code).toBe(numbers[signal]);
      },
    );

    it('holdfast run exits with 127 or 126 if the command cannot be started', async () => {
      const key = freshKey();
      const name = runner.isPython ? 'plain-python' : 'plain';
      const plain = join(cli.folder, name);
      await writeFile(plain, 'echo hello');
      const none = await run(key, '--', 'no-such-command');
      expect([none.code, none.stderr]).toEqual([127, 'holdfast: no-such-command: there is no such command\n']);
      expect((await run(key, '--', `./${name}`)).code).toBe(126);
      expect((await run(key, '--', cli.folder)).code).toBe(126);
      expect(await stateOf(key)).toBe('free');
      await chmod(plain, 0o755); // no #! line: a shell runs it, as every shell would
      expect((await run(key, '--', `./${name}`)).stdout).toBe('hello\n');
    });

    it('holdfast run exits with 75, and names the holder and its times', async () => {
      const key = freshKey();
      await using lease = await holdfast.acquire(key);
      const { acquiredAt } = await holdfast.readLease(key);
      const { code, stdout, stderr } = await run(key, '--', 'echo', 'never');
      expect([code, stdout]).toEqual([75, '']);
      const until = lease.expiresAt.slice(0, 10);
      expect(stderr).toMatch(
        new RegExp(`^holdfast: ${key} is held by the other since ${acquiredAt} until ${until}\\S+ \\(in \\w+\\)\n$`),
      );
      expect(await run(key, '--held-exit-code', '0', '--quiet', '--', 'echo')).toMatchObject({ code: 0, stderr: '' });
    });

    it('holdfast run ends a command whose lease was broken, and exits with 76', async () => {
      const key = freshKey();
      const { exited, stdout } = start([
        key,
        '--ttl',
        '6',
        '--',
        'sh',
        '-c',
        'trap "echo TERM; exit 3" TERM; echo on; sleep 60 & wait',
      ]);
      await until(stdout).toContain('on');
      const { fence } = await holdfast.readLease(key);
      await holdfast.breakLease({ key, fence: fence ?? 0 });
      const ended = await exited;
      expect(ended).toMatchObject({ code: 76, stdout: 'on\nTERM\n' });
      expect(ended.stderr).toBe(`holdfast: the lease of ${key} is lost (broken): the command is ended\n`);
    });

    it('holdfast run kills a command that ignores SIGTERM, and exits with 76', async () => {
      const key = freshKey();
      const proxy = await cuttable(api.url);
      const args = [key, '--ttl', '3', '--', 'sh', '-c', 'trap "" TERM; echo on; while :; do sleep 1; done'];
      const { exited, stdout } = start(args, { HOLDFAST_ENDPOINT: proxy.url });
      await until(stdout).toBe('on\n');
      proxy.cut('hangs');
      const { code, stderr } = await exited;
      expect([code, stderr]).toEqual([76, `holdfast: the lease of ${key} is lost (deadline): the command is ended\n`]);
      await proxy.stop();
    });

    it('holdfast run exits with 69 if the service does not answer', async () => {
      const { code, stderr } = await start([freshKey(), '--timeout', '0', '--', 'true'], {
        HOLDFAST_ENDPOINT: 'http://127.0.0.1:1',
      }).exited;
      expect(code).toBe(69);
      expect(stderr).toMatch(
        /^holdfast: the connection to http:\/\/127.0.0.1:1 failed: (connect ECONNREFUSED \S+|Connection refused) \[Unreachable\]\n$/,
      );
    });

    it.each(
      aFew<[string[], string]>(2, [
        [['--', 'true'], 'KEY -- COMMAND ... is missing'],
        [['k', 'true'], 'put -- before the command: -- true'],
        [['k', '--'], 'there is no command after --'],
        [
          ['k', '--ttl', '1', '--', 'true'],
          "--ttl must be a duration from 2 to 86400 seconds, such as 90, 60s, 15m or 1h, not '1'",
        ],
        [['k', '--ttl', '2d', '--', 'true'], '--ttl must be a duration from 2 to 86400 seconds, such as'],
        [
          ['k', '--ttl', '6s', '--grace', '3s', '--', 'true'],
          '--grace must be a duration from 0 to 2 seconds, such as',
        ],
        [['k', '--wait', '-1', '--', 'true'], '--wait needs a value: --wait=VALUE'],
        [['k', '--wait=-1', '--', 'true'], '--wait must be a duration of at least 0 seconds, such as'],
        [['k', '--quiet=1', '--', 'true'], '--quiet takes no value'],
        [
          ['k', '--wait', 'long', '--', 'true'],
          "--wait must be a duration of at least 0 seconds, such as 90, 60s, 15m or 1h, or forever, not 'long'",
        ],
        [['k', '--data', '{', '--', 'true'], "--data must be JSON, not '{'"],
        [['k', '--fence-env', '1x', '--', 'true'], "--fence-env must be the name of a variable, not '1x'"],
        [
          ['k', '--held-exit-code', '256', '--', 'true'],
          "--held-exit-code must be a whole number from 0 to 255, not '256'",
        ],
        [['k', '--colour', '--', 'true'], 'there is no option --colour\n'],
        [['k', '--tll', '60', '--', 'true'], 'there is no option --tll: did you mean --ttl?\n'],
        [['k'.repeat(1025), '--', 'true'], 'key: '],
      ]),
    )('holdfast run exits with 64 for %j', async (args, message) => {
      const { code, stderr } = await runner.call(['run', ...args], { env: { HOLDFAST_ENDPOINT: api.url } });
      expect(code).toBe(64);
      expect(stderr).toContain(`holdfast: ${message}`);
      expect(stderr).toContain(`holdfast: see ${runner.name} run --help`);
    });
  });

  describe.concurrent('what the command receives', () => {
    it.each(aFew(2, ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2', 'SIGALRM'] as const))(
      'holdfast run passes %s to the whole group, which ends in its own time',
      async (signal) => {
        const child = `process.on('${signal}', () => setTimeout(() => { console.log('child'); process.exit() }, 100)); console.log('on'); setInterval(() => {}, 1000)`;
        const script = `trap 'echo leader; exit 5' ${signal.slice(3)}; "$0" -e "$1" & while :; do wait; done`;
        const {
          child: supervisor,
          exited,
          stdout,
        } = start([freshKey(), '--', 'sh', '-c', script, process.execPath, child]);
        await until(stdout).toBe('on\n');
        supervisor.kill(signal);
        expect(await exited).toMatchObject({ code: 5, stdout: 'on\nleader\nchild\n', stderr: '' });
      },
    );

    it('holdfast run passes on stdin and every variable, but no descriptor of its own', async () => {
      const script = `const fs = require('fs');
const open = fs.readdirSync('/proc/self/fd').map((fd) => [fd, fs.fstatSync(Number(fd), { throwIfNoEntry: false })?.ino]);
console.log(fs.readFileSync(0, 'utf8'), process.env['odd.name'], open.length);`;
      const env = { HOLDFAST_ENDPOINT: api.url, 'odd.name': '1 2' };
      const bare = spawn(process.execPath, ['-e', script], { env: { ...process.env, ...env }, stdio: 'pipe' });
      bare.stdin.end('from stdin');
      const expected = await text(bare.stdout);
      const args = ['run', freshKey(), '--', process.execPath, '-e', script];
      const { exited } = runner.start(args, { env, stdin: 'from stdin' });
      expect((await exited).stdout).toBe(expected);
    });

    it('holdfast run does not pass on the proof of the holder', async () => {
      const key = freshKey();
      const { exited, stdout } = start([key, '--', 'sh', '-c', 'env; cat /proc/$PPID/cmdline; sleep 0.1']);
      await until(stdout).toContain('HOLDFAST_KEY');
      const { code, stdout: printed, stderr } = await exited;
      expect(code).toBe(0);
      // The lease id is the only UUID that could appear here.
      expect(printed + stderr).not.toMatch(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/);
    });
  });

  describe.concurrent('waiting', () => {
    it('holdfast run waits until the lease is free, and names the holder', async () => {
      const key = freshKey();
      const lease = await holdfast.acquire(key);
      const { exited, stderr } = start([key, '--wait', 'forever', '--', 'echo', 'mine']);
      await until(stderr).toMatch(/^holdfast: waiting since \S+: \S+ is held by the other until \S+\n$/);
      await lease.release();
      expect(await exited).toMatchObject({ code: 0, stdout: 'mine\n' });
    });

    it('holdfast run does not wait for longer than its option says', async () => {
      const key = freshKey();
      await using _ = await holdfast.acquire(key);
      const { code, stderr } = await run(key, '--wait', '0.3', '--', 'echo');
      expect(code).toBe(75);
      expect(stderr).toContain('is held by the other since');
    });

    it.each(
      aFew(1, [
        ['SIGINT', 130],
        ['SIGTERM', 143],
      ] as const),
    )('a wait that %s ends leaves neither a position in line nor a grant', async (signal, expected) => {
      const key = freshKey();
      const lease = await holdfast.acquire(key);
      const { child, exited, stderr } = start([key, '--wait', 'forever', '--', 'echo', 'never']);
      await until(stderr).toContain('waiting since');
      await until(() => waitersOf(key)).toBe(1);
      child.kill(signal);
      expect(await exited).toMatchObject({ code: expected, stdout: '' });
      expect(waitedInVain).not.toContain(key);
      expect([await stateOf(key), await waitersOf(key)]).toEqual(['held', 0]);
      await lease.release();
      expect(await stateOf(key)).toBe('released');
    });
  });

  describe.concurrent('a supervisor that is stopped', () => {
    it('the command ends even if the supervisor is stopped, which says why later', async () => {
      const script = 'trap "" TERM INT; sleep 60 & echo $$ $!; wait';
      const { child, exited, stdout } = start([freshKey(), '--ttl', '3', '--', 'sh', '-c', script]);
      await until(stdout).toMatch(/^\d+ \d+\n/);
      child.kill('SIGSTOP');
      for (const pid of stdout().trim().split(' ').map(Number)) await until(() => living(pid)).toBe(false);
      child.kill('SIGCONT');
      const { code, stderr } = await exited;
      expect([code, stderr]).toEqual([76, expect.stringContaining('is lost (deadline): the command is ended\n')]);
    });

    it('SIGTSTP to the wrapper stops the command too, until the wrapper continues', async () => {
      const script = 'echo $$; while sleep 0.02; do echo .; done';
      const { child, exited, stdout } = start([freshKey(), '--', 'sh', '-c', script]);
      await until(stdout).toContain('.');
      child.kill('SIGTSTP');
      const [pid] = stdout().split('\n');
      await until(() => readFile(`/proc/${pid}/stat`, 'utf8')).toMatch(/\) [TD] /); // D: its child was stopped between vfork and exec
      let before: string;
      do {
        before = stdout();
        await delay(200);
      } while (stdout() !== before); // what was printed before the stop may arrive late
      child.kill('SIGCONT');
      await until(() => stdout().length).toBeGreaterThan(before.length);
      child.kill('SIGTERM');
      expect((await exited).code).toBe(143);
    });
  });

  it('processes that a command leaves behind in its group end with it', async () => {
    const { exited } = start([freshKey(), '--', 'sh', '-c', 'sleep 60 >/dev/null 2>&1 & echo $!']);
    const { code, stdout } = await exited;
    expect(code).toBe(0);
    await until(() => living(Number(stdout))).toBe(false);
  });

  it('a command that waits for all its children does not wait for the guard', async () => {
    expect(await run(freshKey(), '--', 'perl', '-e', '1 while wait() > 0; print "none\\n"')).toMatchObject({
      code: 0,
      stdout: 'none\n',
    });
  });
});

it.runIf(isFull)('a wrapper that receives a later deadline passes it to the guard', async () => {
  const { env } = process;
  let wasInTime = false;
  // If the machine stalled until the first deadline, the test tries again with more time.
  for (let firstMs = 3000; !wasInTime; firstMs *= 2) {
    const startedAt = performance.now();
    const script = `sleep ${firstMs / 1000 + 0.5}; exit 5`;
    const command = new Command(['sh', '-c', script], { env, remainingMs: firstMs, mayContinue: () => true });
    await delay(500); // the guard has begun to wait for the first one
    command.extend(60_000 + firstMs);
    wasInTime = performance.now() - startedAt < firstMs / 2;
    const code = await command.exited;
    await command.kill();
    if (wasInTime) expect(code).toBe(5);
  }
});

it('the supervisor checks the clocks at once when it continues', async () => {
  const lease = { signal: new AbortController().signal, remainingMs: 60_000, held: true, expiresAt: new Date() };
  const ended = Promise.withResolvers<number>();
  const command = {
    ...{ exited: ended.promise, isAlive: false, hasEnded: false, wasSignalled: false },
    ...{ extend: () => {}, signal: () => {}, kill: async () => {} },
  };
  const reasons: string[] = [];
  const onLost = (why: string) => reasons.push(why);
  const supervised = supervise(lease as never, command as never, { graceMs: 1000, isOnce: false, onLost });
  lease.remainingMs = 0; // while this process was stopped
  process.emit('SIGCONT');
  expect(reasons).toEqual(['deadline']);
  ended.resolve(143);
  expect(await supervised).toBe(76);
});

it('a command releases its leases even if one of them has expired', async () => {
  const released: string[] = [];
  const lease = (remainingMs: number) => ({ remainingMs, expiresAt: new Date() });
  const leases = { leases: [lease(0), lease(9000)], release: async () => released.push('all') };
  const service = { acquireAll: async () => leases };
  const asked = { options: { key: 'a', limit: 2 }, also: [{ key: 'b', limit: 5 }], slot: undefined, rates: [] };
  const held = (await acquireForCommand(service as never, asked, {} as never)) as CommandHold;
  expect(await held.end(76)).toBe(76);
  expect(released).toEqual(['all']);
});

const OPENED = 'Debugger listening';

it('a verb ends at a signal that would open the debugger of Node', async () => {
  const { child, exited, stdout } = cli.start(['watch', 'debug/watched'], { env: { HOLDFAST_ENDPOINT: api.url } });
  await expect.poll(stdout).toContain('debug/watched: no record');
  child.kill('SIGUSR1');
  const { code, stderr } = await exited;
  expect([code, stderr]).toEqual([138, '']);
});

it('if Node opened its debugger first, the debugger is closed and the signal counts', async () => {
  // The earliest possible signal: Node handles it before the command has run a line.
  const early = join(cli.folder, 'early.cjs');
  await writeFile(
    early,
    `process.kill(process.pid, 'SIGUSR1');
const inspector = require('node:inspector');
while (inspector.url() === undefined) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5);`,
  );
  const lease = await holdfast.acquire('debug/early');
  const args = ['run', 'debug/early', '--wait', 'forever', '--', 'echo', 'never'];
  const { code, stdout, stderr } = await cli.start(args, {
    env: { HOLDFAST_ENDPOINT: api.url, NODE_OPTIONS: `--require=${early}` },
  }).exited;
  expect([code, stdout]).toEqual([138, '']);
  expect(stderr).toContain(OPENED); // by Node, which is what this test is about
  expect(await holdfast.readLease('debug/early')).toMatchObject({ state: 'held', waiting: 0 });
  await lease.release();
});

it('a debugger that the user asks for stays', async () => {
  const { child, exited, stderr } = cli.start(['watch', 'debug/wanted'], {
    env: { HOLDFAST_ENDPOINT: api.url, NODE_OPTIONS: '--inspect=127.0.0.1:0' },
  });
  await expect.poll(stderr).toContain(OPENED);
  const [, address = ''] = /ws:\/\/([^/]+)/.exec(stderr()) ?? [];
  await new Promise((resolve) => setTimeout(resolve, 300)); // it would have been closed by then
  expect((await fetch(`http://${address}/json/version`)).ok).toBe(true);
  child.kill('SIGTERM');
  await exited;
});
