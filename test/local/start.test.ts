import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, utimes } from 'node:fs/promises';
import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { freePort, whyNotFree } from '../../local/ports.ts';
import { readPorts } from '../../local/settings.ts';
import { living } from '../support/programs/cli.ts';
import { aFew, isFull } from '../support/time/rounds.ts';

const running = new Set<ChildProcess>();
/** Ends the processes of tests that failed, and waits until they have ended their emulators. */
afterAll(async () => {
  const ends = [...running].map((child) => once(child, 'exit'));
  for (const { pid } of running) if (pid) process.kill(-pid, 'SIGTERM');
  await Promise.all(ends);
});

/** `npm start` as a user types it. */
const npmStart = (env: Record<string, string>, ...args: string[]) =>
  run(env, 'npm', ['start', '--silent', '--', '--memory', ...args]);

/** The program of `npm start`. npm itself would take as long again to start. */
const start = (env: Record<string, string>, ...args: string[]) =>
  run(env, process.execPath, ['local/start.ts', ...(env.DATA_DIR ? [] : ['--memory']), ...args]);

/** Starts a program in an environment without AWS variables. */
function run(env: Record<string, string>, command: string, args: string[], cwd = process.cwd()) {
  const clean = Object.fromEntries(
    Object.entries(process.env).filter(
      ([name]) => !/^(AWS_|LOG_LEVEL|LEASES_TABLE|COMMITS_TABLE|BUCKET|VITEST|NODE_ENV)/.test(name),
    ),
  );
  const child = spawn(command, args, { cwd, env: { ...clean, ...env }, detached: true });
  running.add(child);
  child.once('exit', () => running.delete(child));
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk) => {
      output += chunk;
    });
  const exited = new Promise<number | null>((resolve) => child.once('exit', resolve));
  /** Signals npm and all that it started, as a terminal does at Ctrl-C. */
  const interrupt = (signal: NodeJS.Signals = 'SIGINT') => process.kill(-(child.pid ?? 0), signal);
  /** Signals only the process of npm, as `kill` does. */
  const killAlone = () => child.kill('SIGTERM');
  return { pid: child.pid ?? 0, interrupt, killAlone, exited, output: () => output };
}

/** The processes that a process has started and that still run. */
const childrenOf = async (pid: number): Promise<number[]> =>
  (await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8')).trim().split(' ').map(Number);

const answers = (url: string): Promise<boolean> =>
  fetch(url).then(
    () => true,
    () => false,
  );

const isReady = (url: string): Promise<boolean> =>
  fetch(`${url}/v1/health`).then(
    (response) => response.ok,
    () => false,
  );

const untilReady = (url: string) => expect.poll(() => isReady(url), { interval: 20 }).toBe(true);

const post = async (url: string, payload: object): Promise<{ code?: string; fence: number }> =>
  (
    await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(payload),
    })
  ).json() as Promise<{ code?: string; fence: number }>;

/** The first of `count` ports in a row that were free a moment ago. */
async function freeRange(count: number): Promise<number> {
  for (;;) {
    const base = await freePort();
    const faults = await Promise.all(Array.from({ length: count }, (_, at) => whyNotFree(base + at)));
    if (base + count < 65_000 && faults.every((why) => why === undefined)) return base;
  }
}

async function ports() {
  const free = async () => String(await freePort());
  const [PORT, DYNAMODB_PORT, S3_PORT] = [await free(), await free(), await free()];
  return { PORT, DYNAMODB_PORT, S3_PORT, SFN_PORT: await free(), LAMBDA_PORT: await free() };
}

/** Each of these tests starts everything, so a short run plays only one of them. */
const [played = ''] = isFull ? [] : aFew(1, ['killed', 'moved', 'kept', 'named']);
const plays = (name: string) => isFull || played === name;

describe('npm start', () => {
  it('npm start prints its addresses, and stops cleanly on Ctrl-C', async () => {
    const env = await ports();
    const url = `http://127.0.0.1:${env.PORT}`;
    const { interrupt, exited, output } = npmStart(env);
    await untilReady(url);
    await expect.poll(output).toContain('Ctrl-C stops it.');
    expect(output()).toContain(url);
    expect(output()).toContain(`http://127.0.0.1:${env.DYNAMODB_PORT}`);
    expect(output()).toContain(`http://127.0.0.1:${env.S3_PORT}`);
    expect(output()).toContain(`http://127.0.0.1:${env.SFN_PORT}`);
    expect(output()).toContain('in memory');

    // The first curl that it prints, done here with fetch.
    const [, printed] = /-d '(.*)'/.exec(output()) ?? [];
    const grant = await post(`${url}/v1/leases/acquire`, JSON.parse(printed ?? ''));
    expect(grant).toMatchObject({ key: 'hello', holder: 'me' });

    const printedBefore = output();
    interrupt();
    await exited;
    for (const port of Object.values(env)) await expect.poll(() => answers(`http://127.0.0.1:${port}`)).toBe(false);
    expect(output()).toBe(printedBefore);
  });

  it.runIf(isFull)('npm start ends at SIGINT while it starts, without leaving a process behind', async () => {
    const env = await ports();
    // A profile of the user's must not get in the way of the emulator.
    const { interrupt, exited } = start({ ...env, AWS_PROFILE: 'work' });
    await expect.poll(() => answers(`http://127.0.0.1:${env.DYNAMODB_PORT}`), { interval: 5 }).toBe(true);
    interrupt('SIGINT');
    expect(await exited).toBe(0);
    for (const port of Object.values(env)) expect(await answers(`http://127.0.0.1:${port}`)).toBe(false);
  });

  it.runIf(isFull)('npm start ends when npm alone is killed', async () => {
    const env = await ports();
    const url = `http://127.0.0.1:${env.PORT}`;
    const { killAlone, exited } = npmStart(env);
    await untilReady(url);
    killAlone();
    await exited;
    const left = () => Promise.all(Object.values(env).map((port) => answers(`http://127.0.0.1:${port}`)));
    await expect.poll(left).toEqual(Object.values(env).map(() => false));
  });

  it.runIf(plays('killed') && process.platform === 'linux')(
    'npm start leaves no emulator behind if it is killed',
    async () => {
      const env = await ports();
      const { pid, interrupt, exited } = start(env);
      await untilReady(`http://127.0.0.1:${env.PORT}`);
      const [emulator] = await childrenOf(pid);
      if (emulator === undefined) throw new Error('there is no emulator');
      expect(await living(emulator)).toBe(true);
      interrupt('SIGKILL'); // the emulator has a group of its own
      await exited;
      await expect.poll(() => living(emulator)).toBe(false);
    },
  );

  it('npm start names all taken ports at once, and how to move them', async () => {
    const env = await ports();
    const servers = [env.PORT, env.S3_PORT].map((port) => createServer().listen(Number(port), '127.0.0.1'));
    await Promise.all(servers.map((server) => once(server, 'listening')));
    const { exited, output } = start(env);
    expect(await exited).toBe(1);
    expect(output()).toBe(`npm start: port ${env.PORT} is taken; set PORT to another one
port ${env.S3_PORT} is taken; set S3_PORT to another one
or move all of them: npm start -- --port 4700
`);
    for (const server of servers) server.close();
  });

  it.runIf(plays('moved'))('npm start moves all ports by --port, and keeps its state in .holdfast', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'holdfast-state-'));
    const base = await freeRange(4);
    const url = `http://127.0.0.1:${base}`;
    const codes: (string | undefined)[] = [];
    for (const memory of isFull ? [[], [], ['--memory']] : [[]]) {
      const args = [resolve('local/start.ts'), '--port', String(base), ...memory];
      const { interrupt, exited, output } = run({}, process.execPath, args, folder);
      await untilReady(url);
      for (const at of [1, 2, 3]) expect(await answers(`http://127.0.0.1:${base + at}`)).toBe(true);
      const lease = await post(`${url}/v1/leases/acquire`, { key: 'kept', holder: 'me', ttlSeconds: 600 });
      codes.push(lease.code);
      await expect.poll(output).toContain('Ctrl-C stops it.');
      expect(output()).toContain(memory.length > 0 ? 'in memory' : join(folder, '.holdfast', String(base)));
      interrupt('SIGTERM');
      expect(await exited).toBe(0);
      for (const at of [0, 1, 2, 3]) expect(await answers(`http://127.0.0.1:${base + at}`)).toBe(false);
    }
    expect(codes).toEqual([undefined, 'LeaseHeld', undefined].slice(0, codes.length));
    await rm(folder, { recursive: true });
  });

  it.runIf(isFull)('npm start --watch starts again when the code changes, and ends as usual', async () => {
    const env = await ports();
    const url = `http://127.0.0.1:${env.PORT}`;
    const { interrupt, exited, output } = start(env, '--watch');
    const greetings = () => output().split('Ctrl-C stops it.').length - 1;
    await expect.poll(greetings).toBe(1);
    const now = new Date();
    await utimes('local/settings.ts', now, now);
    await expect.poll(greetings).toBe(2);
    await untilReady(url);
    interrupt();
    await exited;
    for (const port of Object.values(env)) await expect.poll(() => answers(`http://127.0.0.1:${port}`)).toBe(false);
  });

  it.runIf(isFull)('npm start names the refused call if an endpoint is not DynamoDB or S3', async () => {
    const nothing = createHttpServer((_, response) => response.writeHead(404).end('nothing here'));
    nothing.listen(0, '127.0.0.1');
    await once(nothing, 'listening');
    const { port } = nothing.address() as AddressInfo;
    const endpoint = `http://127.0.0.1:${port}`;
    for (const [variable, call] of [
      ['AWS_ENDPOINT_URL_DYNAMODB', 'CreateTable of holdfast-local-leases'],
      ['AWS_ENDPOINT_URL_S3', 'CreateBucket of holdfast-local-000000000000-us-east-1'],
    ] as const) {
      const { exited, output } = start({ ...(await ports()), [variable]: endpoint });
      expect(await exited).toBe(1);
      expect(output()).toContain(`npm start: ${call} failed at ${endpoint} (`);
      expect(output()).toContain('HTTP 404');
      expect(output()).not.toContain('UnknownError');
    }
    nothing.close();
  });

  it.runIf(plays('kept'))('npm start commits presigned uploads, and keeps leases and objects in DATA_DIR', async () => {
    const dataDir = await mkdtemp(join(tmpdir(), 'holdfast-data-'));
    const fences: number[] = [];
    for (const isFirst of [true, false]) {
      const env = await ports();
      const url = `http://127.0.0.1:${env.PORT}`;
      const { interrupt, exited } = start({ ...env, DATA_DIR: dataDir });
      await untilReady(url);
      const lease = await post(`${url}/v1/leases/acquire`, { key: 'kept', holder: 'me', ttlSeconds: 600 });
      fences.push(lease.fence);
      expect(lease.code).toBe(isFirst ? undefined : 'LeaseHeld');
      const upload = (await post(`${url}/v1/uploads`, {})) as unknown as { url: string; uploadId: string };
      // More than the S3 emulator takes by itself.
      const body = Buffer.alloc(12 * 1024 ** 2, 'x');
      expect((await fetch(upload.url, { method: 'PUT', body })).status).toBe(200);
      const commit = { path: 'kept', ifNoneMatch: '*', source: upload.uploadId, commitId: upload.uploadId };
      const answer = await post(`${url}/v1/commits`, commit);
      expect(answer.code).toBe(isFirst ? undefined : 'PreconditionFailed');
      const read = await fetch(`${url}/v1/commits?path=kept`);
      expect(await read.json()).toMatchObject({ path: 'kept', size: body.length });
      interrupt();
      expect(await exited).toBe(0);
      for (const port of Object.values(env)) expect(await answers(`http://127.0.0.1:${port}`)).toBe(false);
    }
    expect(fences[1]).toBe(fences[0]);
    await rm(dataDir, { recursive: true });
  });

  it.runIf(plays('named'))('npm start uses the DynamoDB and the S3 that the environment names', async () => {
    const endpoint = process.env.AWS_ENDPOINT_URL_DYNAMODB ?? '';
    const s3Endpoint = process.env.AWS_ENDPOINT_URL_S3 ?? '';
    const { PORT, SFN_PORT } = await ports();
    const { interrupt, exited } = start({
      PORT,
      SFN_PORT,
      AWS_ENDPOINT_URL_DYNAMODB: endpoint,
      AWS_ENDPOINT_URL_S3: s3Endpoint,
    });
    const url = `http://127.0.0.1:${PORT}`;
    await untilReady(url);
    const page = await fetch(url);
    expect([page.status, page.headers.get('content-security-policy')]).toEqual([
      200,
      expect.stringContaining("script-src 'self'"),
    ]);
    for (const path of ['/console/page.js', '/console/page.css', '/console/settings', '/v1/whoami'])
      expect((await fetch(url + path)).status, path).toBe(200);
    for (const headers of [{ origin: 'https://evil.example' }, { 'sec-fetch-site': 'cross-site' }])
      for (const path of ['/', '/console/page.js', '/console/settings'])
        expect((await fetch(url + path, { headers })).status, path).toBe(403);
    interrupt('SIGHUP'); // the terminal was closed
    expect(await exited).toBe(0);
    await expect.poll(() => answers(url)).toBe(false);
    expect(await answers(endpoint)).toBe(true);
    expect(await answers(s3Endpoint)).toBe(true);
  });

  it('npm start --help prints its options', async () => {
    const { exited, output } = start({}, '--help');
    expect(await exited).toBe(0);
    for (const option of [
      'PORT',
      'DYNAMODB_PORT',
      'S3_PORT',
      'SFN_PORT',
      'LAMBDA_PORT',
      '--durable',
      '--function',
      'SCHEDULES',
      'DATA_DIR',
      'DYNAMODB_EMULATOR',
      '--port',
      '--memory',
      '--watch',
      'AWS_ENDPOINT_URL_DYNAMODB',
      'AWS_ENDPOINT_URL_S3',
    ])
      expect(output()).toContain(option);
  });
});

describe('the ports of npm start', () => {
  const read = (env: Record<string, string>) => {
    for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value);
    return readPorts(undefined);
  };

  it('the ports of npm start are those that the environment names', async () => {
    const env = await ports();
    expect(await read(env)).toEqual(
      Object.fromEntries(Object.entries(env).map(([name, port]) => [name, Number(port)])),
    );
  });

  it.each(['PORT', 'DYNAMODB_PORT', 'S3_PORT', 'SFN_PORT'] as const)(
    'the ports of npm start must be free (%s)',
    async (variable) => {
      const env = await ports();
      const server = createServer().listen(Number(env[variable]), '127.0.0.1');
      await once(server, 'listening');
      await expect(read(env)).rejects.toThrow(`port ${env[variable]} is taken; set ${variable} to another one`);
      server.close();
    },
  );

  it.each(['DYNAMODB_PORT', 'S3_PORT', 'SFN_PORT'] as const)(
    'the ports of npm start must differ (PORT and %s)',
    async (variable) => {
      const { PORT, ...env } = await ports();
      await expect(read({ ...env, PORT, [variable]: PORT })).rejects.toThrow(`PORT and ${variable} are both ${PORT}`);
    },
  );

  it('the ports of npm start must be valid ports', async () => {
    const wrong = read({ ...(await ports()), PORT: 'http' });
    await expect(wrong).rejects.toThrow("PORT must be a port from 1 to 65535, not 'http'");
  });
});
