import { describe, expect, it } from 'vitest';
import { whoami } from '../../functions/contract/whoami.ts';
import packageJson from '../../package.json' with { type: 'json' };
import { scopesFromEnvironment } from '../../shared/callers/environment.ts';
import { httpEvent, throughHttp, throughTask } from '../support/adapters.ts';

const scopes = {
  breakScope: 'own/break',
  cleanScope: 'own/clean',
  repairScope: 'own/repair',
  resetFenceScope: 'own/fence',
};
const handler = whoami(scopes);

type Calls = { operation: string; route: string; allowed: boolean | null; permission: string | null }[];

async function asked(authorizer?: object) {
  const { body, status } = await throughHttp(handler, httpEvent('GET', authorizer ? { authorizer } : {}));
  const { calls, ...rest } = body as unknown as { calls: Calls };
  const of = (name: string) => calls.find(({ operation }) => operation === name);
  return { status, rest, calls, of };
}

describe('whoami', () => {
  it('tells a caller that IAM let in its ARN, and the permission of each call, which IAM alone decides on', async () => {
    const userArn = 'arn:aws:sts::123456789012:assumed-role/operator/ann';
    const { status, rest, calls, of } = await asked({ iam: { userArn } });
    expect([status, rest]).toEqual([200, { version: packageJson.version, principal: userArn, authorizedBy: 'iam' }]);
    expect(calls.length).toBeGreaterThan(15);
    expect(of('whoami')?.allowed).toBe(true);
    expect(of('breakLease')).toEqual({
      operation: 'breakLease',
      route: 'POST /v1/leases/break',
      allowed: null,
      permission: 'execute-api:Invoke on <api>/*/POST/v1/leases/break',
    });
  });

  it.each([
    ['of scope', { scope: 'openid own/break' }],
    ['of scp', { scp: 'own/break' }],
    ['of a list, as the gateway hands it on', { scp: '[openid own/break]' }],
  ])('tells a caller with a JWT what its scopes allow: %s', async (_, claims) => {
    const { rest, of } = await asked({ jwt: { claims: { sub: 'ann', ...claims }, scopes: null } });
    expect(rest).toMatchObject({ principal: 'ann', authorizedBy: 'jwt' });
    expect(of('acquire')).toMatchObject({ allowed: true, permission: null });
    for (const name of ['breakLease', 'cancelWaiter'])
      expect(of(name)).toMatchObject({ allowed: true, permission: 'own/break' });
    expect(of('clean')).toMatchObject({ allowed: false, permission: 'own/clean' });
    expect(of('resetFence')).toMatchObject({ allowed: false, permission: 'own/fence' });
    expect(of('repairNames')).toMatchObject({ allowed: false, permission: 'own/repair' });
  });

  it('takes a scope for no other that it is a part of', async () => {
    const { of } = await asked({ jwt: { claims: { sub: 'ann', scope: 'own/breaker' } } });
    expect(of('breakLease')?.allowed).toBe(false);
  });

  it('says where nothing asks who calls, and where the function was invoked', async () => {
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

  it('takes no field, and needs the scopes of its deployment', async () => {
    const { body } = await throughHttp(handler, httpEvent('GET', { query: 'as=ann' }));
    expect(body).toMatchObject({ code: 'InvalidRequest', issues: [{ path: 'as' }] });
    expect(() => scopesFromEnvironment({ BREAK_SCOPE: 'a' })).toThrow('CLEAN_SCOPE');
  });
});
