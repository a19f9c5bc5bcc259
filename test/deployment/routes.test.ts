import { describe, expect, it } from 'vitest';
import type { Template } from '../support/packaging.ts';
import { configured, functions, ofType } from '../support/template.ts';

describe('the API', () => {
  const routes = (from?: Template) =>
    ofType('AWS::ApiGatewayV2::Route', from).map(([, { Properties }]) => {
      const { RouteKey, AuthorizationType, AuthorizerId, AuthorizationScopes } = Properties;
      return { RouteKey, AuthorizationType, AuthorizerId, AuthorizationScopes };
    });
  const routeKeys = functions.flatMap(({ routes }) => routes.map(({ method, path }) => `${method} ${path}`)).sort();

  it('lets in on every route those whom IAM lets in', () => {
    expect(
      routes()
        .map(({ RouteKey }) => RouteKey)
        .sort(),
    ).toEqual(routeKeys);
    for (const { RouteKey, AuthorizationType } of routes()) expect(AuthorizationType, RouteKey).toBe('AWS_IAM');
    expect(ofType('AWS::ApiGatewayV2::Authorizer')).toEqual([]);
  });

  it('asks on every route for a JWT where AUTH=jwt, and for a scope to break, cancel, clean, replace a fence, or repair names', async () => {
    const jwt = configured;
    expect(ofType('AWS::ApiGatewayV2::Authorizer', jwt)).toMatchObject([
      [
        'HttpApiAuthorizerCallers',
        {
          Properties: {
            AuthorizerType: 'JWT',
            IdentitySource: ['$request.header.Authorization'],
            JwtConfiguration: { Issuer: 'https://issuer.example', Audience: ['holdfast'] },
          },
        },
      ],
    ]);
    expect(
      routes(jwt)
        .map(({ RouteKey }) => RouteKey)
        .sort(),
    ).toEqual(routeKeys);
    for (const { RouteKey, AuthorizationType, AuthorizerId, AuthorizationScopes } of routes(jwt)) {
      expect(AuthorizationType, RouteKey).toBe('JWT');
      expect(AuthorizerId, RouteKey).toEqual({ Ref: 'HttpApiAuthorizerCallers' });
      const scopes: Record<string, string[]> = {
        'POST /v1/leases/break': ['holdfast/leases.break'],
        'POST /v1/leases/cancel': ['holdfast/leases.break'],
        'POST /v1/commits/reset-fence': ['holdfast/commits.repair'],
        'POST /v1/expired/clean': ['holdfast/expired.clean'],
        'POST /v1/nameservice/repair': ['holdfast/names.repair'],
      };
      expect(AuthorizationScopes, RouteKey).toEqual(scopes[RouteKey.replace('/ns/{ns}', '')]);
    }
  });
});
