import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { jwtAuthorizer } from '../../local/authorizer.ts';
import { startGateway } from '../../local/gateway.ts';
import { Issuer } from '../../local/issuer.ts';
import { freePort } from '../../local/ports.ts';

const folder = await mkdtemp(join(tmpdir(), 'issuer-'));
const file = join(folder, '.holdfast', 'issuer.pem');
const issuer = await Issuer.of(file);
const claims: unknown[] = [];
const handler = async (event: unknown) => {
  claims.push(Object(event).requestContext.authorizer?.jwt);
  return { statusCode: 200, body: '{}' };
};
const route = { method: 'GET', path: '/v1/leases', name: 'readLeases', timeoutSeconds: 5, handler };
const authorizer = jwtAuthorizer(issuer, () => ['one', 'other']);
const gateway = await startGateway([route], 0, { authorizer });
afterAll(() => gateway.stop());

const ask = async (authorization?: string) => {
  claims.length = 0;
  const response = await fetch(`${gateway.url}/v1/leases`, { headers: authorization ? { authorization } : {} });
  return { status: response.status, claims: [...claims] };
};

describe('the gateway with an authorizer', () => {
  it('the authorizer passes on the claims of a token, as API Gateway does', async () => {
    const token = await issuer.token({ sub: 'ann', scope: 'other more', teams: ['a', 'b'], n: 7 });
    const answer = await ask(`Bearer ${token}`);
    expect(answer).toMatchObject({
      status: 200,
      claims: [{ claims: { sub: 'ann', scope: 'other more', teams: '[a b]', n: '7' }, scopes: ['one', 'other'] }],
    });
  });

  it('the authorizer refuses a wrong token, and does not call a function', async () => {
    const stranger = await Issuer.of(join(folder, 'stranger.pem'));
    const scope = 'one';
    const [header, payload, signature] = (await issuer.token({ scope })).split('.');
    const forged = Buffer.from(JSON.stringify({ alg: 'none' })).toString('base64url');
    const refused: [string | undefined, number][] = [
      [undefined, 401],
      ['Bearer x', 401],
      [`Bearer ${await stranger.token({ scope })}`, 401],
      [`Bearer ${await issuer.token({ scope, aud: 'another' })}`, 401],
      [`Bearer ${await issuer.token({ scope, iss: 'another' })}`, 401],
      [`Bearer ${await issuer.token({ scope }, -10)}`, 401],
      [`Bearer ${forged}.${payload}.`, 401],
      [`Bearer ${header}.${Buffer.from('{}').toString('base64url')}.${signature}`, 401],
      [`Bearer ${await issuer.token({})}`, 403],
      [`Bearer ${await issuer.token({ scope: 'on eone' })}`, 403],
    ];
    for (const [token, status] of refused) expect(await ask(token), token).toEqual({ status, claims: [] });
  });
});

it('the command prints a token of a key that only its user can read', async () => {
  const run = promisify(execFile);
  const command = [resolve('local/token.ts'), '--sub', 'ann', '--scope', 'holdfast/leases', '--scope', 'x'];
  const print = (...more: string[]) => run(process.execPath, [...command, ...more], { cwd: folder });
  const one = await issuer.claimsOf((await print('--namespace', 'team-a')).stdout.trim());
  expect(one).toMatchObject({ sub: 'ann', scope: 'holdfast/leases x', holdfast_namespace: 'team-a' });
  const two = await issuer.claimsOf(
    (await print('--namespace', 'a', '--namespace', 'b', '--seconds', '60')).stdout.trim(),
  );
  expect(two).toMatchObject({ holdfast_namespace: ['a', 'b'] });
  expect(Number(two?.exp) - Number(two?.iat)).toBe(60);
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  await expect(print('--seconds', 'x')).rejects.toMatchObject({ stderr: expect.stringContaining('--seconds must be') });
});

/** An environment without AWS variables and without the settings of this test run. */
const clean = Object.fromEntries(
  Object.entries(process.env).filter(
    ([name]) => !/^(AWS_|LOG_LEVEL|.*_TABLE$|BUCKET|.*_SCOPE$|VITEST|NODE_ENV)/.test(name),
  ),
);
const [port, dynamodb, s3, states] = [await freePort(), await freePort(), await freePort(), await freePort()];
const ports = { PORT: `${port}`, DYNAMODB_PORT: `${dynamodb}`, S3_PORT: `${s3}`, SFN_PORT: `${states}` };
const url = `http://127.0.0.1:${port}`;

/** The command of docs/authorization.md. */
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

/** The program of `npm run token`. npm itself would take as long again to start. */
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
  it("a stack with AUTH=jwt accepts a token only on its namespace's routes", async () => {
    const args = ['--sub', 'ann', '--namespace', 'team-a', '--scope', 'holdfast/leases'];
    const worker = (await run('npm', ['run', '-s', 'token', '--', ...args], { env: clean })).stdout.trim();
    const granted = await call('/v1/ns/team-a/leases/acquire', worker, asked);
    expect(granted).toMatchObject({ status: 201, body: { key: 'nightly', holder: 'ann' } });
    const refused = { status: 403, body: { code: 'Forbidden' } };
    const missing = 'the namespace team-b in the claim holdfast_namespace';
    expect(await call('/v1/ns/team-b/leases/acquire', worker, asked)).toMatchObject({ ...refused, body: { missing } });
    // A refusal by the gateway, which knows the scope of the route, does not have a code.
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

  it('a stack with AUTH=jwt shows stored names to the token of an administrator', async () => {
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

  it('a stack with AUTH=jwt refuses calls without a token or with a wrong one', async () => {
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
