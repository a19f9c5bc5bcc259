import { describe, expect, it } from 'vitest';
import { type Packaged, packageWith, type Template } from '../support/packaging.ts';
import { configured, functions, ofType } from '../support/template.ts';

/** Who may call must be said, and completely. */
const REFUSED: Record<string, string>[] = [
  { AUTH: 'none' },
  { AUTH: 'jwt', JWT_AUDIENCE: 'holdfast' },
  { AUTH: 'jwt', JWT_ISSUER: 'https://issuer.example' },
];
const refusals = new Map<object, Promise<Packaged>>();
for (const settings of REFUSED) refusals.set(settings, packageWith([], settings));

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
    const jwt = await configured();
    expect(jwt.output).toContain('Service packaged');
    expect(ofType('AWS::ApiGatewayV2::Authorizer', jwt.template)).toMatchObject([
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
      routes(jwt.template)
        .map(({ RouteKey }) => RouteKey)
        .sort(),
    ).toEqual(routeKeys);
    for (const { RouteKey, AuthorizationType, AuthorizerId, AuthorizationScopes } of routes(jwt.template)) {
      expect(AuthorizationType, RouteKey).toBe('JWT');
      expect(AuthorizerId, RouteKey).toEqual({ Ref: 'HttpApiAuthorizerCallers' });
      const scopes: Record<string, string[]> = {
        'POST /v1/leases/break': ['holdfast/leases.break'],
        'POST /v1/leases/cancel': ['holdfast/leases.break'],
        'POST /v1/commits/reset-fence': ['holdfast/commits.repair'],
        'POST /v1/expired/clean': ['holdfast/expired.clean'],
        'POST /v1/nameservice/repair': ['holdfast/names.repair'],
      };
      expect(AuthorizationScopes, RouteKey).toEqual(scopes[RouteKey]);
    }
  });

  it.each(REFUSED)('is not packaged with %o', async (settings) => {
    const { exitCode, output } = (await refusals.get(settings)) as Packaged;
    expect(exitCode).toBe(1);
    const missing = { none: 'httpApi.authorizer', jwt: settings.JWT_ISSUER ? 'jwtAudience' : 'jwtIssuer' };
    expect(output).toContain('Cannot resolve variable');
    expect(output).toContain(missing[settings.AUTH as keyof typeof missing]);
  });
});
