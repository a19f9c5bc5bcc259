import { spawn } from 'node:child_process';
import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { listen } from '../../local/listen.ts';
import { cuttable } from '../support/faults/cuttable.ts';
import { type Runner, runnersOf } from '../support/programs/run.ts';
import { aFew, isFull } from '../support/time/rounds.ts';
import { until } from '../support/time/until.ts';
import { cliWorld } from '../support/worlds/cli-world.ts';

const { api, cli, holdfast } = await cliWorld();

type Program = Pick<Runner, 'words' | 'env' | 'start'>;
const ofNode: Program = { words: [process.execPath, cli.file], env: {}, start: cli.start };

const NOBODY = 'http://127.0.0.1:1';

/** Runs a line of Bash, in which "$@" is the program. */
function shell(line: string, more: Record<string, string> = {}, { words, env }: Program = ofNode) {
  const child = spawn('bash', ['-c', line, 'bash', ...words], {
    cwd: cli.folder,
    env: { PATH: process.env.PATH, HOME: cli.folder, USER: 'tester', HOLDFAST_ENDPOINT: api.url, ...env, ...more },
  });
  const printed = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const)
    child[name].on('data', (chunk) => {
      printed[name] += chunk;
    });
  return new Promise<{ code: number | null; stdout: string; stderr: string }>((resolve) => {
    child.once('close', (code) => resolve({ code, ...printed }));
  });
}

/** Starts the command with a pipe whose reader is gone before the command writes to it. */
function withoutReader(stream: 'stdout' | 'stderr', args: string[], { start }: Program = ofNode, endpoint = api.url) {
  const started = start(args, { env: { HOLDFAST_ENDPOINT: endpoint } });
  started.child[stream]?.destroy();
  return started;
}

const stateOf = async (key: string) => (await holdfast.readLease(key)).state;

describe.concurrent.each(runnersOf(cli))('$name', (runner) => {
  const ENDS: [what: string, code: number, endpoint: string, args: string[]][] = [
    ['misuse', 64, api.url, ['run', 'k']],
    ['no such command', 127, api.url, ['run', 'k', '--', 'no-such-command']],
    ['no answer', 69, NOBODY, ['run', 'k', '--timeout', '1', '--', 'true']],
  ];
  it.each(aFew(1, ENDS))(
    'the command %s still exits with %d if stderr cannot be written',
    async (_, code, endpoint, args) => {
      const words = args.map((word) => `'${word}'`).join(' ');
      const full = await shell(`"$@" ${words} 2>/dev/full`, { HOLDFAST_ENDPOINT: endpoint }, runner);
      const unread = await withoutReader('stderr', args, runner, endpoint).exited;
      expect([full.code, unread.code]).toEqual([code, code]);
    },
  );

  it('a refused caller exits with 75, and a waiting one runs its command', async () => {
    const key = `streams/held/${runner.name}`;
    await using lease = await holdfast.acquire(key);
    expect((await shell(`"$@" run '${key}' -- true 2>/dev/full`, {}, runner)).code).toBe(75);
    const full = shell(`"$@" run '${key}' --wait forever -- echo ran 2>/dev/full`, {}, runner);
    const unread = withoutReader('stderr', ['run', key, '--wait', 'forever', '--', 'echo', 'ran'], runner);
    await until(async () => (await holdfast.readLease(key)).waiting).toBe(2);
    await lease.release();
    for (const { code, stdout } of [await full, await unread.exited]) expect([code, stdout]).toEqual([0, 'ran\n']);
  });

  it('a command still has its grace after a loss if stderr cannot be written', async () => {
    // The shell must not write to that stderr itself, or it would end.
    const script = 'exec 2>/dev/null; trap "sleep 0.5; echo TERM; exit 3" TERM; echo on; while :; do sleep 0.1; done';
    const key = `streams/lost/${runner.name}`;
    const started = withoutReader('stderr', ['run', key, '--ttl', '6', '--', 'sh', '-c', script], runner);
    await until(started.stdout).toContain('on');
    const { fence } = await holdfast.readLease(key);
    await holdfast.breakLease({ key, fence: fence ?? 0 });
    expect(await started.exited).toMatchObject({ code: 76, stdout: 'on\nTERM\n' });
  });

  it('a program without standard streams runs its command, and does not print elsewhere', async () => {
    const key = `streams/closed/${runner.name}`;
    const script = `echo "$HOLDFAST_KEY" >"$0"; exit 6`;
    const file = join(cli.folder, `closed-${runner.isPython}`);
    const { code } = await shell(`"$@" run '${key}' -- sh -c '${script}' ${file} <&- >&- 2>&-`, {}, runner);
    expect([code, await readFile(file, 'utf8')]).toEqual([6, `${key}\n`]);
  });

  it('a program reports its retries only once if no server listens', async () => {
    let tries = 0;
    const { url, stop } = await listen((request) => {
      tries++;
      request.socket.destroy();
    });
    const args = ['run', 'k', '--timeout', '600', '--', 'true'];
    const { child, exited, stderr } = runner.start(args, { env: { HOLDFAST_ENDPOINT: url } });
    await until(() => tries).toBeGreaterThan(2);
    expect(stderr().match(/trying again\n/g)).toHaveLength(1);
    child.kill('SIGTERM');
    expect((await exited).stderr.match(/trying again\n/g)).toHaveLength(1);
    await stop();
  });
});

describe('a stdout that cannot be written', () => {
  it('acquire releases the lease and leaves no file if stdout cannot be written', async () => {
    const full = await shell('"$@" acquire streams/full >/dev/full');
    expect([full.code, full.stderr]).toEqual([1, 'holdfast: the result cannot be written: no space left on device\n']);
    const json = await shell('"$@" acquire streams/full --json --lease-file kept >/dev/full');
    expect([json.code, json.stderr]).toEqual([full.code, full.stderr]);
    await expect(stat(join(cli.folder, 'kept'))).rejects.toThrow('ENOENT');
    const unread = await withoutReader('stdout', ['acquire', 'streams/full']).exited;
    expect([unread.code, unread.stderr]).toEqual([1, 'holdfast: the result cannot be written: write EPIPE\n']);
    expect(await stateOf('streams/full')).toBe('released');
    expect(await readdir(join(cli.folder, '.local/state/holdfast/leases'))).toEqual([]);
  });

  it.runIf(isFull)('a list reports a failed stdout, but not a reader that has seen enough', async () => {
    const full = await shell('"$@" status >/dev/full');
    expect([full.code, full.stderr]).toEqual([1, 'holdfast: the result cannot be written: no space left on device\n']);
    const unread = await withoutReader('stdout', ['status']).exited;
    expect([unread.code, unread.stderr]).toEqual([0, '']);
  });
});

describe('an error line', () => {
  /** A server that always answers with this text. */
  const other = (status: number, text: string) =>
    listen((_, response) => {
      response.writeHead(status).end(text);
    });

  it.each([
    [404, '<UnknownOperationException/>\n', 1, 'HTTP 404: <UnknownOperationException/>', 'Refused'],
    [403, '', 77, 'HTTP 403: nothing', 'Refused'],
    [502, '<html>\n<body>Bad</body>', 69, 'HTTP 502: <html> <body>Bad</body>', 'Unreachable'],
    [200, 'hello', 69, 'hello', 'Unreachable'],
  ])('an error line names what answered with %d %j, and at which address', async (status, text, code, said, error) => {
    const { url, stop } = await other(status, text);
    const args = ['status', '--timeout', '0'];
    const ended = await cli.call(args, { env: { HOLDFAST_ENDPOINT: url } });
    expect([ended.code, ended.stderr]).toEqual([code, `holdfast: ${said} (${url}/v1/leases) [${error}]\n`]);
    await stop();
  });

  it('an error line names the endpoint without TLS, not the lines of OpenSSL', async () => {
    const { url, stop } = await other(200, '');
    const endpoint = url.replace('http:', 'https:');
    const ended = await cli.call(['status', '--timeout', '0', '--endpoint', endpoint]);
    const said = `holdfast: the connection to ${endpoint} failed: TLS: wrong version number [Unreachable]\n`;
    expect([ended.code, ended.stderr]).toEqual([69, said]);
    await stop();
  });

  it.each(['constructor', '__proto__', 'toString'])(
    'an error line of the unknown verb %s does not point to its help',
    async (name) => {
      const { code, stderr } = await cli.call([name]);
      expect([code, stderr]).toEqual([64, `holdfast: there is no verb '${name}'\nholdfast: see holdfast --help\n`]);
    },
  );

  it('if a later page of a clean-up fails, the error replaces the progress line', async () => {
    let pages = 0;
    const none = { count: 0, records: [] };
    const first = { reportId: 'r', nextCursor: 'c', stoppedBy: null, deleted: none, spared: none };
    const { url, stop } = await listen((_, response) => {
      response.writeHead(pages++ === 0 ? 200 : 404).end(JSON.stringify(pages === 1 ? first : { message: 'none' }));
    });
    const line = `script -qfec "'$1' '$2' clean --endpoint ${url}" /dev/null`;
    const { code, stdout } = await shell(line, { TERM: 'xterm' });
    expect(code).toBe(1);
    expect(stdout).toContain('holdfast: checked 0 records (0 s)\r\u001b[Kholdfast: HTTP 404: none');
    await stop();
  });
});

describe('invalid credentials', () => {
  it.each(['jwt\r', 'j\nwt', 'jwt\u2026'])(
    'a token with forbidden characters is refused at once: HOLDFAST_TOKEN=%j',
    async (token) => {
      const env = { HOLDFAST_ENDPOINT: NOBODY, HOLDFAST_TOKEN: token };
      const { code, stderr } = await cli.call(['acquire', 'k', '--timeout', '600'], { env });
      expect(code).toBe(64);
      expect(stderr).toContain('holdfast: HOLDFAST_TOKEN: token must have no blanks, and no line breaks\n');
      expect(stderr).not.toContain('jwt');
    },
  );

  it('an AWS_SESSION_TOKEN with forbidden characters is refused at once', async () => {
    const keys = { AWS_ACCESS_KEY_ID: 'ID', AWS_SECRET_ACCESS_KEY: 's', AWS_SESSION_TOKEN: 't\r', AWS_REGION: 'r' };
    const env = { HOLDFAST_ENDPOINT: 'https://holdfast.invalid', ...keys };
    const { code, stderr } = await cli.call(['status', '--timeout', '600'], { env });
    expect(code).toBe(64);
    expect(stderr).toContain(
      'HOLDFAST_TOKEN or the AWS credentials: Invalid character in header content ["x-amz-security',
    );
  });
});

const REFUSED = 'holdfast: the connection to http://127.0.0.1:1 failed: connect ECONNREFUSED 127.0.0.1:1 [Unreachable]';

describe('no server', () => {
  it('the command status reports its retries only once', async () => {
    let tries = 0;
    const { url, stop } = await listen((request) => {
      tries++;
      request.socket.destroy();
    });
    const { child, exited, stderr } = cli.start(['status', '--timeout', '600'], { env: { HOLDFAST_ENDPOINT: url } });
    await expect.poll(() => tries).toBeGreaterThan(2);
    expect(stderr().match(/trying again\n/g)).toHaveLength(1);
    child.kill('SIGTERM');
    expect((await exited).stderr.match(/trying again\n/g)).toHaveLength(1);
    await stop();
  });

  it('the command does not retry beyond --timeout, and reports the failure once', async () => {
    const { code, stderr } = await cli.call(['status', '--timeout', '0'], { env: { HOLDFAST_ENDPOINT: NOBODY } });
    expect([code, stderr]).toEqual([69, `${REFUSED}\n`]);
    const quiet = await cli.call(['status', '--timeout', '1', '--quiet'], { env: { HOLDFAST_ENDPOINT: NOBODY } });
    expect([quiet.code, quiet.stderr]).toEqual([69, `${REFUSED}\n`]);
  });

  it.each([
    ['status', '--timeout', '-1'],
    ['status', '--timeout', 'long'],
    ['doctor', '--timeout', '1'],
  ])('the command refuses %s %s %s', async (...args) => {
    expect((await cli.call(args, { env: { HOLDFAST_ENDPOINT: NOBODY } })).code).toBe(64);
  });
});

it('the command goes on if the service comes back', async () => {
  const proxy = await cuttable(api.url);
  proxy.cut('breaks');
  const { exited, stderr } = cli.start(['status', '--timeout', '600'], { env: { HOLDFAST_ENDPOINT: proxy.url } });
  await expect.poll(stderr).toContain('trying again');
  proxy.restore();
  expect((await exited).code).toBe(0);
  await proxy.stop();
});
