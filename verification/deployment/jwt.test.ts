import { createSign, generateKeyPairSync } from 'node:crypto';
import { createServer } from 'node:http';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { call, deployed, ROOT } from './support/aws.ts';

const ISSUER = 'https://issuer.test';
const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
const jwks = { keys: [{ ...publicKey.export({ format: 'jwk' }), kid: 'one', alg: 'RS256', use: 'sig' }] };
const issuer = createServer((_, response) => response.end(JSON.stringify(jwks)));
const base64 = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');

let api = '';
beforeAll(async () => {
  await new Promise<void>((listening) => issuer.listen(inject('issuerPort'), '127.0.0.1', listening));
  const parameters = ['auth=jwt', `jwtIssuer=${ISSUER}`, 'jwtAudience=holdfast'];
  api = String(
    (
      await deployed(
        'jwt',
        parameters.map((one) => `--param=${one}`),
      )
    ).ApiUrl,
  );
});
afterAll(() => issuer.close());

/** A token of the issuer. The given claims replace the usual ones. */
function token(claims: object = {}): string {
  const seconds = Math.floor(Date.now() / 1000);
  const usual = {
    iss: ISSUER,
    aud: 'holdfast',
    sub: 'worker-1',
    scope: 'holdfast/admin',
    iat: seconds,
    exp: seconds + 600,
  };
  const signed = `${base64({ alg: 'RS256', kid: 'one', typ: 'JWT' })}.${base64({ ...usual, ...claims })}`;
  return `${signed}.${createSign('RSA-SHA256').update(signed).sign(privateKey, 'base64url')}`;
}

const acquire = (authorization: string | undefined, key: string) =>
  call(`${api}/v1/leases/acquire`, { body: { key, holder: 'w' }, headers: authorization ? { authorization } : {} });

it('the API takes only tokens of the issuer for the audience', async () => {
  expect(await acquire(`Bearer ${token()}`, 'let in')).toMatchObject({ status: 201 });
  const seconds = Math.floor(Date.now() / 1000);
  const forged = token().replace(/\.[^.]+$/, `.${Buffer.from('no signature').toString('base64url')}`);
  for (const refused of [
    undefined,
    `Bearer ${forged}`,
    `Bearer ${token({ aud: 'another' })}`,
    `Bearer ${token({ iss: 'https://another.test' })}`,
    `Bearer ${token({ exp: seconds - 600 })}`,
  ])
    expect((await acquire(refused, 'kept out')).status, refused).toBe(401);
  // This deployment ignores a signature of IAM.
  const signed = await call(`${api}/v1/leases/acquire`, { body: { key: 'k', holder: 'w' }, credentials: ROOT });
  expect(signed.status).toBe(401);
});

it('the API lets callers use the calls of operators only with their scopes', async () => {
  const scopes = {
    'leases/break': 'holdfast/leases.break',
    'leases/cancel': 'holdfast/leases.break',
    'leases/cap': 'holdfast/leases.break',
    'leases/next': 'holdfast/leases.break',
    'commits/reset-fence': 'holdfast/commits.repair',
    'expired/clean': 'holdfast/expired.clean',
    'nameservice/repair': 'holdfast/names.repair',
  };
  for (const [path, scope] of Object.entries(scopes)) {
    const status = async (claims: object) =>
      (await call(`${api}/v1/${path}`, { body: {}, headers: { authorization: `Bearer ${token(claims)}` } })).status;
    expect(await status({}), path).toBe(403); // only the administrator has this scope
    expect(await status({ scope: 'holdfast/another' }), path).toBe(403);
    // A call with the right reaches the function, which then finds no fields or no report.
    expect([400, 404], path).toContain(await status({ scope: `${scope} holdfast/admin` }));
  }
});
