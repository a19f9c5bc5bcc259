import { describe, expect, it } from 'vitest';
import * as z from 'zod/mini';
import { readHealth } from '../../functions/contract/health.ts';
import { whoami } from '../../functions/contract/whoami.ts';
import packageJson from '../../package.json' with { type: 'json' };
import { HoldfastError } from '../../shared/errors.ts';
import { lambdaFunction } from '../../shared/lambda/function.ts';
import { scopesFromEnvironment } from '../../shared/lambda/scopes.ts';
import { NO_NAME_FIELDS } from '../../shared/lambda/stored-names.ts';
import { httpEvent, throughHttp, throughTask } from '../support/stack/adapters.ts';

const scopes = {
  adminScope: 'own/admin',
  leasesScope: 'own/leases',
  commitsScope: 'own/commits',
  namesScope: 'own/names',
  expiredScope: 'own/expired',
  breakScope: 'own/break',
  cleanScope: 'own/clean',
  repairScope: 'own/repair',
  resetFenceScope: 'own/fence',
};
const handler = whoami(scopes);

type Calls = { operation: string; route: string; allowed: boolean | null; permission: string | null }[];

async function asked(authorizer?: object, namespace?: string) {
  const event = httpEvent('GET', authorizer ? { authorizer } : {});
  const inNamespace = { routeKey: 'GET /v1/ns/{ns}/whoami', rawPath: `/v1/ns/${namespace}/whoami` };
  const { body, status } = await throughHttp(handler, { ...event, ...(namespace && inNamespace) });
  const { calls, ...rest } = body as unknown as { calls: Calls };
  const of = (name: string) => calls.find(({ operation }) => operation === name);
  return { status, rest, calls, of };
}

describe('whoami', () => {
  it("whoami names the ARN of a caller by IAM, and each call's permission", async () => {
    const userArn = 'arn:aws:sts::123456789012:assumed-role/operator/ann';
    const { status, rest, calls, of } = await asked({ iam: { userArn } });
    expect([status, rest]).toEqual([
      200,
      { version: packageJson.version, principal: userArn, authorizedBy: 'iam', namespaces: null },
    ]);
    expect(calls.length).toBeGreaterThan(15);
    expect(of('whoami')?.allowed).toBe(true);
    expect(of('breakLease')).toEqual({
      operation: 'breakLease',
      route: 'POST /v1/leases/break',
      allowed: null,
      permission: 'execute-api:Invoke on <api>/$default/POST/v1/leases/break',
    });
  });

  it.each([
    ['of scope', { scope: 'openid own/admin own/break' }],
    ['of scp', { scope: 'own/admin', scp: 'own/break' }],
    ['of a list, as the gateway hands it on', { scp: '[openid own/admin own/break]' }],
  ])('whoami names what the scopes of a JWT allow: %s', async (_, claims) => {
    const { rest, of } = await asked({ jwt: { claims: { sub: 'ann', ...claims }, scopes: null } });
    expect(rest).toMatchObject({ principal: 'ann', authorizedBy: 'jwt' });
    expect(of('acquire')).toMatchObject({ allowed: true, permission: 'own/admin' });
    expect(of('whoami')).toMatchObject({ allowed: true, permission: null });
    for (const name of ['breakLease', 'cancelWaiter', 'capKey', 'runNext'])
      expect(of(name)).toMatchObject({ allowed: true, permission: 'own/admin own/break' });
    expect(of('clean')).toMatchObject({ allowed: false, permission: 'own/admin own/clean' });
    expect(of('resetFence')).toMatchObject({ allowed: false, permission: 'own/admin own/fence' });
    expect(of('repairNames')).toMatchObject({ allowed: false, permission: 'own/admin own/repair' });
  });

  it.each([
    ['one', 'team-a', ['team-a']],
    ['a list, as the gateway hands it on', '[team-a team-b]', ['team-a', 'team-b']],
  ])('whoami names the namespaces of a JWT, and what its scopes allow: %s', async (_, claim, namespaces) => {
    const claims = { sub: 'ann', scope: 'own/leases own/clean', holdfast_namespace: claim };
    const { rest, of } = await asked({ jwt: { claims } }, 'team-a');
    expect(rest).toMatchObject({ principal: 'ann', namespaces });
    expect(of('acquire')).toMatchObject({
      route: 'POST /v1/ns/team-a/leases/acquire',
      allowed: true,
      permission: 'own/leases',
    });
    expect(of('breakLease')).toMatchObject({ allowed: false, permission: 'own/break' });
    expect(of('clean')).toMatchObject({ allowed: true, permission: 'own/clean' });
    expect(of('commit')).toMatchObject({ allowed: false, permission: 'own/commits' });
  });

  it('whoami does not take a scope for another that contains it', async () => {
    const { of } = await asked({ jwt: { claims: { sub: 'ann', scope: 'own/breaker' } } });
    expect(of('breakLease')?.allowed).toBe(false);
  });

  it('whoami says if no caller is authenticated, and how the function was invoked', async () => {
    const open = await asked();
    expect(open.rest).toMatchObject({ principal: null, authorizedBy: 'nobody' });
    expect(open.calls.every(({ allowed }) => allowed)).toBe(true);
    const { body } = await throughTask(handler, {});
    expect(body).toMatchObject({ principal: null, authorizedBy: 'lambda' });
    expect((body.calls as Calls).find(({ operation }) => operation === 'clean')).toMatchObject({
      allowed: null,
      permission: 'lambda:InvokeFunction on the function clean',
    });
  });

  it('whoami does not take a field, and needs the scopes of its deployment', async () => {
    const { body } = await throughHttp(handler, httpEvent('GET', { query: 'as=ann' }));
    expect(body).toMatchObject({ code: 'InvalidRequest', issues: [{ path: 'as' }] });
    expect(() => scopesFromEnvironment({ ADMIN_SCOPE: 'a' })).toThrow('LEASES_SCOPE');
  });
});

const { version } = packageJson;

it('a deployment reports its health and version over HTTP and to a task', async () => {
  const handler = readHealth();
  expect(await throughHttp(handler, httpEvent('GET', {}))).toMatchObject({
    status: 200,
    body: { status: 'ok', version },
  });
  expect(await throughTask(handler, {})).toMatchObject({ outcome: 'ok', body: { status: 'ok', version } });
});

it.each([
  ['a success', async () => ({}), 200],
  ['a refusal', async () => Promise.reject(new HoldfastError('Forbidden', 'no')), 403],
  ['a fault', async () => Promise.reject(new Error('broken')), 503],
])('the header holdfast-version is on %s', async (_, run, status) => {
  const handler = lambdaFunction({
    name: 'test',
    input: z.strictObject({}),
    nameFields: NO_NAME_FIELDS,
    run,
    logged: [],
  });
  expect(await throughHttp(handler, httpEvent('GET', {}))).toMatchObject({
    status,
    headers: { 'holdfast-version': version },
  });
});

it('the header is on the answer to a request that cannot be read', async () => {
  const answer = await throughHttp(readHealth(), httpEvent('GET', { query: 'a=%' }));
  expect(answer).toMatchObject({ status: 400, headers: { 'holdfast-version': version } });
});
