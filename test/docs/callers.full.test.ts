import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { Holdfast } from '../../client/src/index.ts';
import type { LambdaHandler } from '../../local/lambda.ts';
import { systemClock } from '../../shared/surroundings/clock.ts';
import { startSignatureCheck } from '../support/emulators/signatures.ts';
import { cuttable } from '../support/faults/cuttable.ts';
import { has, languages, PYTHON, pythonExample } from '../support/programs/callers.ts';
import { startApi } from '../support/stack/api.ts';
import { until } from '../support/time/until.ts';
import { leaseWorld } from '../support/worlds/leases.ts';

const CALLER = {
  accessKeyId: 'AKIDEXAMPLE',
  secretAccessKey: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY',
  sessionToken: 'IQoJb3JpZ2luX2VjEXAMPLE==',
  region: 'eu-west-1',
};
const KEY = 'nightly-report';

const REFUSED = `${KEY} is held by the other until \\S+Z \\[LeaseHeld]\n`;

/** The calls of the API, in their order. */
const calls: string[] = [];
// A call waits for a second at most, so that a wait takes several calls.
const { handlers } = await leaseWorld({ clock: systemClock, maxWaitSeconds: 1 });
const noted = Object.entries(handlers).map(([name, handler]): [string, LambdaHandler] => [
  name,
  (event, context) => {
    calls.push(name);
    return handler(event, context);
  },
]);
const api = await startApi(Object.fromEntries(noted));
const gateway = await startSignatureCheck(api.url, CALLER);
const holdfast = new Holdfast({ endpoint: api.url, holder: 'the other' });
const folder = await mkdtemp(join(tmpdir(), 'holdfast-python-'));
const { module, program } = await pythonExample();
await writeFile(join(folder, 'holdfast.py'), module);
await writeFile(join(folder, 'nightly.py'), program);

const isThere = await has(PYTHON, '--version');
const signs = isThere && (await has(PYTHON, '-c', 'import botocore'));
const withPython = it.skipIf(!isThere);
const whySkipped = signs ? '' : ' (skipped: python3 -m venv .venv && .venv/bin/pip install boto3)';

const running = new Set<ChildProcess>();
afterEach(() => {
  for (const child of running) child.kill('SIGKILL');
  running.clear();
  calls.length = 0;
});
afterAll(async () => {
  await gateway.stop();
  await api.stop();
  await rm(folder, { recursive: true });
});

/** Starts Python beside the module, without credentials unless the environment names some. */
function start(args: string[], env: Record<string, string> = {}) {
  const own = { PATH: process.env.PATH ?? '', HOME: folder, AWS_EC2_METADATA_DISABLED: 'true', PYTHONUNBUFFERED: '1' };
  const child = spawn(PYTHON, args, { cwd: folder, env: { ...own, API: api.url, ...env } });
  running.add(child);
  const printed = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const)
    child[name].on('data', (chunk) => {
      printed[name] += chunk;
    });
  const exited = new Promise<{ code: number | null; stdout: string; stderr: string }>((resolve) => {
    child.once('close', (code) => resolve({ code, ...printed }));
  });
  return { child, exited, stdout: () => printed.stdout, stderr: () => printed.stderr };
}

/** The program of the guide with other terms, and a step that takes as long as a file is not there. */
const job = (terms: string, seconds = 600, env: Record<string, string> = {}) =>
  start(
    [
      '-c',
      `import time
${program
  .replace('wait=600', terms)
  .replace('["extract", "transform", "load"]', `range(${seconds * 10})`)
  .replace('print(step,', 'time.sleep(0.1) or print(step,')}`,
    ],
    env,
  );

describe('the Python example of docs/callers.md', () => {
  withPython('works without a signature, and without boto3', async () => {
    const run = {
      code: 0,
      stderr: '',
      stdout: expect.stringMatching(/^extract under the fence \d+\ntransform .*\nload .*\n$/),
    };
    expect(await start(['nightly.py']).exited).toEqual(run);
    expect(calls).toEqual(['acquire', 'release']);
    const without = `import sys; sys.modules['botocore'] = None; exec(open('nightly.py').read())`;
    expect(await start(['-c', without]).exited).toEqual(run);
    expect(await holdfast.readLease(KEY)).toMatchObject({
      state: 'released',
      holder: expect.stringMatching(/^user@.+\/\d+$/),
    });
  });

  it.skipIf(!signs)(
    `the Python example signs with the credentials that botocore finds, and says that another secret is refused${whySkipped}`,
    async () => {
      const env = {
        API: `${gateway.url}/`,
        AWS_REGION: CALLER.region,
        AWS_ACCESS_KEY_ID: CALLER.accessKeyId,
        AWS_SECRET_ACCESS_KEY: CALLER.secretAccessKey,
        AWS_SESSION_TOKEN: CALLER.sessionToken,
      };
      gateway.passed.length = 0;
      expect(await start(['nightly.py'], env).exited).toMatchObject({ code: 0, stderr: '' });
      expect(gateway.passed).toEqual(['/v1/leases/acquire', '/v1/leases/release']);
      const refused = await start(['nightly.py'], { ...env, AWS_SECRET_ACCESS_KEY: 'another' }).exited;
      expect(refused).toEqual({ code: 1, stdout: '', stderr: 'HTTP 403: Forbidden [Refused]\n' });
      expect(gateway.passed).toHaveLength(2);
    },
  );

  withPython('says who holds the lease, and exits with 75', async () => {
    await using _ = await holdfast.acquire(KEY, { ttlSeconds: 600 });
    const { exited } = start(['-c', program.replace('wait=600', 'wait=0')]);
    expect(await exited).toEqual({ code: 75, stdout: '', stderr: expect.stringMatching(REFUSED) });
    expect(calls).toEqual(['acquire', 'acquire']);
  });

  withPython('waits in line, and leaves the line at Ctrl-C and at SIGTERM', async () => {
    const lease = await holdfast.acquire(KEY, { ttlSeconds: 600 });
    const waiting = start(['nightly.py']);
    const others = [start(['nightly.py']), start(['nightly.py'])];
    const inLine = async () => (await holdfast.readLease(KEY)).waiting;
    await until(inLine).toBe(3);
    expect(waiting.stderr()).toMatch(new RegExp(`^holdfast: waiting for ${KEY}: ${REFUSED}$`));
    others[0]?.child.kill('SIGINT');
    others[1]?.child.kill('SIGTERM');
    await until(inLine).toBe(1);
    expect((await others[1]?.exited)?.code).toBe(143);
    await lease.release();
    expect(await waiting.exited).toMatchObject({ code: 0, stdout: expect.stringMatching(/^extract /) });
    expect(calls.filter((name) => name === 'withdraw')).toHaveLength(2);
  });

  withPython('extends the lease in a thread', async () => {
    const { exited, stdout } = job('ttl=2', 5);
    expect(await exited).toMatchObject({ code: 0, stderr: '' });
    expect(calls.filter((name) => name === 'heartbeat').length).toBeGreaterThan(3);
    expect(new Set(stdout().match(/\d+$/gm)).size).toBe(1);
    expect(stdout()).toContain('49 under the fence');
  });

  withPython('stops its work and releases the lease when an operator has broken it', async () => {
    const broken = job('ttl=3');
    await until(broken.stdout).toContain('0 under');
    const { fence } = await holdfast.readLease(KEY);
    await holdfast.breakLease({ key: KEY, fence: fence ?? 0, wait: true });
    const { code, stderr } = await broken.exited;
    expect([code, stderr.split('\n').at(-2)]).toEqual([76, `the lease of ${KEY} is lost: broken [LeaseLost]`]);
    expect(await holdfast.readLease(KEY)).toMatchObject({ state: 'released', ending: false });
  });

  withPython('stops its work by its own clock if no heartbeat is answered', async () => {
    const proxy = await cuttable(api.url);
    const cut = job('ttl=3', 600, { API: proxy.url });
    await until(cut.stdout).toContain('0 under');
    proxy.cut('breaks');
    const { code, stderr } = await cut.exited;
    expect([code, stderr]).toEqual([
      76,
      expect.stringContaining(`the lease of ${KEY} is lost: deadline [LeaseLost]\n`),
    ]);
    expect(stderr).toContain(`heartbeat of ${KEY}: no answer of ${proxy.url}/v1/leases/heartbeat`);
    await proxy.stop();
    // Its release did not get through, and the next test wants the same key.
    await (await holdfast.acquire(KEY, { waitMs: 20_000 })).release();
  });
});

const all = await languages();
const environment = (secretAccessKey = CALLER.secretAccessKey) => ({
  ...process.env,
  API: gateway.url,
  AWS_REGION: CALLER.region,
  AWS_ACCESS_KEY_ID: CALLER.accessKeyId,
  AWS_SECRET_ACCESS_KEY: secretAccessKey,
  AWS_SESSION_TOKEN: CALLER.sessionToken,
});

describe('docs/callers.md: signed by their secret, acquire, heartbeat and release get through from', () => {
  for (const { name, ready, start } of all)
    it.skipIf(!ready)(
      `the signed calls of docs/callers.md succeed from ${name}${ready ? '' : ' (skipped: npm run verify -- callers builds it)'}`,
      async () => {
        const [command, ...args] = start;
        gateway.passed.length = 0;
        const { stdout } = await promisify(execFile)(command, args, { env: environment() });
        expect(gateway.passed).toEqual(['acquire', 'heartbeat', 'release'].map((call) => `/v1/leases/${call}`));
        expect(stdout).toMatch(/true/);
      },
    );

  it('the signed calls of docs/callers.md fail with another secret', async () => {
    const [command = '', ...args] = all[0]?.start ?? [];
    gateway.passed.length = 0;
    const { stdout } = await promisify(execFile)(command, args, { env: environment('another') });
    expect(stdout).toContain('Forbidden');
    expect(gateway.passed).toEqual([]);
  });
});
