import { execFile } from 'node:child_process';
import { mkdtemp, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, describe, expect, it } from 'vitest';
import { jwtAuthorizer } from '../../local/authorizer.ts';
import { startGateway } from '../../local/gateway.ts';
import { Issuer } from '../../local/issuer.ts';

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
  it('the gateway with an authorizer passes on the claims of a token, as API Gateway does', async () => {
    const token = await issuer.token({ sub: 'ann', scope: 'other more', teams: ['a', 'b'], n: 7 });
    const told = await ask(`Bearer ${token}`);
    expect(told).toMatchObject({
      status: 200,
      claims: [{ claims: { sub: 'ann', scope: 'other more', teams: '[a b]', n: '7' }, scopes: ['one', 'other'] }],
    });
  });

  it('the gateway with an authorizer refuses tokens of others, of another audience, without a scope or past their time, and calls no function', async () => {
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

it('the command prints a token of the key that the next npm start takes, and that no other user can read', async () => {
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
