import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { freePort } from '../../local/ports.ts';

/** In an environment that names no AWS, and no settings of this test run. */
const clean = Object.fromEntries(
  Object.entries(process.env).filter(
    ([name]) => !/^(AWS_|LOG_LEVEL|.*_TABLE$|BUCKET|.*_SCOPE$|VITEST|NODE_ENV)/.test(name),
  ),
);
const [port, dynamodb, s3, states] = [await freePort(), await freePort(), await freePort(), await freePort()];
const ports = { PORT: `${port}`, DYNAMODB_PORT: `${dynamodb}`, S3_PORT: `${s3}`, SFN_PORT: `${states}` };
const url = `http://127.0.0.1:${port}`;

/** As docs/authorization.md types it. */
const stack = spawn('npm', ['start', '--silent', '--', '--memory'], {
  env: { ...clean, ...ports, AUTH: 'jwt' },
  stdio: ['ignore', 'pipe', 'pipe'],
  detached: true,
});
let output = '';
for (const stream of [stack.stdout, stack.stderr])
  stream.on('data', (chunk) => {
    output += chunk;
  });
afterAll(async () => {
  if (stack.exitCode !== null || stack.pid === undefined) return;
  const ended = once(stack, 'exit');
  process.kill(-stack.pid, 'SIGINT');
  await ended;
});
beforeAll(async () => {
  await vi.waitUntil(() => output.includes('Ctrl-C stops it.'), { timeout: 300_000, interval: 100 });
});

const run = promisify(execFile);

/** What `npm run token` runs. npm itself takes as long again to start. */
const token = async (...args: string[]) =>
  (await run(process.execPath, ['local/token.ts', ...args], { env: clean })).stdout.trim();

interface Answered {
  status: number;
  body: Record<string, unknown>;
}

async function call(path: string, bearer?: string, request?: object): Promise<Answered> {
  const response = await fetch(`${url}${path}`, {
    headers: {
      ...(bearer !== undefined && { authorization: `Bearer ${bearer}` }),
      ...(request && { 'content-type': 'application/json' }),
    },
    ...(request && { method: 'POST', body: JSON.stringify(request) }),
  });
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
}

const asked = { key: 'nightly', holder: 'ann' };

describe('AUTH=jwt npm start', () => {
  it('a stack with AUTH=jwt takes a printed token on the routes of its namespace, and on no others', async () => {
    const args = ['--sub', 'ann', '--namespace', 'team-a', '--scope', 'holdfast/leases'];
    const worker = (await run('npm', ['run', '-s', 'token', '--', ...args], { env: clean })).stdout.trim();
    const granted = await call('/v1/ns/team-a/leases/acquire', worker, asked);
    expect(granted).toMatchObject({ status: 201, body: { key: 'nightly', holder: 'ann' } });
    const refused = { status: 403, body: { code: 'Forbidden' } };
    const missing = 'the namespace team-b in the claim holdfast_namespace';
    expect(await call('/v1/ns/team-b/leases/acquire', worker, asked)).toMatchObject({ ...refused, body: { missing } });
    // What the gateway refuses, by the scope of the route, has no code.
    for (const path of ['/v1/leases/acquire', '/v1/ns/team-a/leases/break', '/v1/ns/team-a/commits'])
      expect((await call(path, worker, asked)).status, path).toBe(403);
    const { body } = await call('/v1/ns/team-a/whoami', worker);
    expect(body).toMatchObject({ principal: 'ann', authorizedBy: 'jwt', namespaces: ['team-a'] });
    const key = 'nightly';
    expect(await call('/v1/ns/team-a/leases/release', worker, { key, leaseId: granted.body.leaseId })).toMatchObject({
      status: 200,
      body: { key, released: true },
    });
  });

  it('a stack with AUTH=jwt takes the token of an administrator on the routes of the whole deployment, and shows stored names there', async () => {
    const worker = await token(
      '--sub',
      'ann',
      '--namespace',
      'team-a',
      '--namespace',
      'team-b',
      '--scope',
      'holdfast/leases',
    );
    const administrator = await token('--sub', 'root', '--scope', 'holdfast/admin', '--scope', 'holdfast/leases');
    expect(await call('/v1/ns/team-b/leases/acquire', worker, asked)).toMatchObject({ status: 201 });
    const { body } = await call('/v1/leases?state=held', administrator);
    expect(body.leases).toMatchObject([{ key: 'team-b/nightly', holder: 'ann' }]);
    expect(await call('/v1/ns/team-b/leases', administrator)).toMatchObject({
      status: 403,
      body: { code: 'Forbidden' },
    });
    expect(await call('/v1/leases', worker)).toMatchObject({ status: 403 });
  });

  it('a stack with AUTH=jwt refuses calls without a token, with one of another issuer, and with one without a subject', async () => {
    for (const path of ['/v1/leases', '/v1/ns/team-a/leases', '/v1/whoami', '/openapi.json']) {
      expect((await call(path)).status, path).toBe(401);
      expect((await call(path, 'eyJhbGciOiJub25lIn0.eyJzdWIiOiJhbm4ifQ.')).status, path).toBe(401);
    }
    const nobody = await token('--namespace', 'team-a', '--scope', 'holdfast/leases');
    expect(await call('/v1/ns/team-a/leases', nobody)).toMatchObject({
      status: 403,
      body: { code: 'Forbidden', missing: 'the claim sub' },
    });
  });
});
