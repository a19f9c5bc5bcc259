import { describe, expect, it } from 'vitest';
import { routeScopes } from '../../local/route-scopes.ts';
import type { Template } from '../support/stack/packaging.ts';
import { configured, functions, released, resourcesOfType, roles, withParameters } from '../support/stack/template.ts';

describe('the API', () => {
  const routes = (from?: Template) =>
    resourcesOfType('AWS::ApiGatewayV2::Route', from).map(([, { Properties }]) => {
      const { RouteKey, AuthorizationType, AuthorizerId, AuthorizationScopes } = Properties;
      return { RouteKey, AuthorizationType, AuthorizerId, AuthorizationScopes };
    });
  const routeKeys = functions.flatMap(({ routes }) => routes.map(({ method, path }) => `${method} ${path}`)).sort();

  it('the API lets in the callers whom IAM lets in, on every route', () => {
    expect(
      routes()
        .map(({ RouteKey }) => RouteKey)
        .sort(),
    ).toEqual(routeKeys);
    for (const { RouteKey, AuthorizationType } of routes()) expect(AuthorizationType, RouteKey).toBe('AWS_IAM');
    expect(resourcesOfType('AWS::ApiGatewayV2::Authorizer')).toEqual([]);
  });

  it('the API with AUTH=jwt asks for a JWT, and operators for a scope', async () => {
    const jwt = configured;
    expect(resourcesOfType('AWS::ApiGatewayV2::Authorizer', jwt)).toMatchObject([
      [
        'HttpApiAuthorizerCallers',
        {
          Properties: {
            AuthorizerType: 'JWT',
            IdentitySource: ['$request.header.Authorization'],
            JwtConfiguration: { Issuer: 'https://issuer.example', Audience: ['holdfast', 'operators'] },
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
      const [method, path] = RouteKey.split(' ');
      expect(AuthorizationScopes ?? [], RouteKey).toEqual(routeScopes({ method, path }));
    }
  });

  it('callers need the same scope to withdraw as to acquire', () => {
    const scopesOf = (route: string) =>
      routes(configured).find(({ RouteKey }) => RouteKey === route)?.AuthorizationScopes;
    for (const path of ['/v1/leases', '/v1/ns/{ns}/leases'])
      expect(scopesOf(`POST ${path}/withdraw`), path).toEqual(scopesOf(`POST ${path}/acquire`));
    expect(scopesOf('POST /v1/ns/{ns}/leases/cancel')).not.toEqual(scopesOf('POST /v1/ns/{ns}/leases/acquire'));
  });
});

describe('the aliases', () => {
  const named = (from?: Template) =>
    resourcesOfType('AWS::Lambda::Alias', from).map(([id, { Properties }]) => ({ id, ...Properties }) as Alias);
  interface Alias {
    id: string;
    FunctionName: { Ref: string };
    FunctionVersion: string;
    Name: string;
  }

  it('the aliases of the API are what it invokes, one per function', () => {
    const served = functions.filter(({ routes }) => routes.length > 0);
    const aliases = named().filter(({ Name }) => Name === 'HTTP');
    expect(aliases).toHaveLength(served.length);
    for (const { FunctionVersion } of aliases) expect(FunctionVersion).toBe('$LATEST');
    const invoked = resourcesOfType('AWS::ApiGatewayV2::Integration').map(
      ([, { Properties }]) => Properties.IntegrationUri,
    );
    expect(invoked.map(({ Ref }) => Ref).toSorted()).toEqual(aliases.map(({ id }) => id).toSorted());
    const permitted = resourcesOfType('AWS::Lambda::Permission').filter(
      ([, { Properties }]) => Properties.Principal === 'apigateway.amazonaws.com',
    );
    expect(permitted.map(([, { Properties }]) => Properties.FunctionName.Ref).toSorted()).toEqual(
      aliases.map(({ id }) => id).toSorted(),
    );
  });

  it('the functions that tasks call have aliases for namespaces if parameters name them', () => {
    expect(named().filter(({ Name }) => Name !== 'HTTP')).toEqual([]);
    const aliases = named(configured).filter(({ Name }) => Name !== 'HTTP');
    const tasks =
      'Acquire Heartbeat Release ReadLeases RateReserve Commit StageUpload ReadCommit Publish ReadNames'.split(' ');
    expect(aliases.map(({ Name, FunctionName }) => `${Name} ${FunctionName.Ref}`).toSorted()).toEqual(
      ['team-a', 'team-c'].flatMap((name) => tasks.map((task) => `${name} ${task}LambdaFunction`)).toSorted(),
    );
    const { Properties } = configured.Resources.Namespace3ExclusiveRole ?? {};
    const [{ PolicyDocument }] = Properties?.Policies ?? [{}];
    const stated = JSON.stringify(PolicyDocument.Statement);
    expect(PolicyDocument.Statement[0].Resource).toEqual([
      { Ref: 'AcquireLambdaFunctionNamespace3' },
      { Ref: 'ReleaseLambdaFunctionNamespace3' },
      { Ref: 'RateReserveLambdaFunctionNamespace3' },
    ]);
    expect(stated).toContain('stateMachine:team-c-*');
    expect(stated).toContain('execution:team-c-*:*');
    expect(stated).not.toMatch(/team-a|nightly|"Resource":"\*"/);
    const { StateMachineName, DefinitionSubstitutions, RoleArn } =
      configured.Resources.Namespace3Exclusive?.Properties ?? {};
    expect(JSON.stringify(StateMachineName)).toContain('team-c-exclusive');
    expect(DefinitionSubstitutions.AcquireFunctionArn).toEqual({ Ref: 'AcquireLambdaFunctionNamespace3' });
    expect(DefinitionSubstitutions.RateReserveFunctionArn).toEqual({ Ref: 'RateReserveLambdaFunctionNamespace3' });
    expect(RoleArn).toEqual({ 'Fn::GetAtt': ['Namespace3ExclusiveRole', 'Arn'] });
    expect(configured.Resources).not.toHaveProperty('Namespace2Exclusive');
    expect(configured.Outputs).toHaveProperty('Namespace3ExclusiveStateMachineArn');
  });
});

it.each([
  [{}, 'any'],
  [{ namespaces: 'team-a' }, 'own'],
  [{ namespaces: 'team-a', namespaceExecutions: 'any' }, 'any'],
  [{ namespaceExecutions: 'own' }, 'own'],
  [{ namespaceExecutions: 'auto' }, 'any'],
])('a deployment with %j lets a namespace name executions of %s', (given, expected) => {
  // The change check of the deployment has no environment.
  const functions = Object.values(withParameters(given).Resources).filter(
    ({ Type, Properties }) => Type === 'AWS::Lambda::Function' && Properties?.Environment,
  );
  const set = functions.map(({ Properties }) => Object(Properties?.Environment).Variables.NAMESPACE_EXECUTIONS);
  expect(new Set(set)).toEqual(new Set([expected]));
});

const stageWith = (parameters: Record<string, string> = {}) => {
  const [[, stage] = []] = resourcesOfType('AWS::ApiGatewayV2::Stage', withParameters(parameters));
  return stage ?? expect.fail('no stage');
};

describe('the stage of the API', () => {
  it('the stage of the API logs the namespace, the caller, and the request id', () => {
    const format = JSON.parse(stageWith().Properties.AccessLogSettings.Format);
    expect(format).toMatchObject({
      path: '$context.path',
      integrationRequestId: '$context.integration.requestId',
      caller: '$context.identity.userArn',
      subject: '$context.authorizer.claims.sub',
    });
    // API Gateway knows no other variables, and writes a hyphen for them.
    for (const variable of Object.values(format)) expect(variable).toMatch(/^\$context\.[a-zA-Z.]+$/);
  });

  it('the stage of the API throttles the routes that scan', () => {
    const scans = roles().filter(({ statements }) => statements.some(({ Action }) => Action.includes('dynamodb:Scan')));
    const names = [...scans.map(({ name }) => name), 'readExpired'];
    const throttled = functions
      .filter(({ name }) => names.includes(name))
      .flatMap(({ routes }) => routes.map(({ method, path }) => `${method} ${path}`))
      .filter((route) => route.startsWith('GET '));
    expect(throttled).toContain('GET /v1/ns/{ns}/once');
    const { Properties, DependsOn } = stageWith();
    expect(Object.keys(Properties.RouteSettings).toSorted()).toEqual(throttled.toSorted());
    for (const settings of Object.values(Properties.RouteSettings))
      expect(settings).toEqual({ ThrottlingRateLimit: 200, ThrottlingBurstLimit: 200 }); // numbers: text may be refused
    expect(Properties.DefaultRouteSettings).toMatchObject({ ThrottlingRateLimit: '2000' });
    const [other] = Object.values(stageWith({ throttleLists: 'false' }).Properties.RouteSettings);
    expect(other).toEqual({ ThrottlingRateLimit: 10_000, ThrottlingBurstLimit: 5000 });
    // API Gateway refuses settings of a route that does not exist yet.
    const routesOf = resourcesOfType('AWS::ApiGatewayV2::Route').filter(([id]) => DependsOn?.includes(id));
    expect(routesOf.map(([, { Properties: route }]) => route.RouteKey).toSorted()).toEqual(throttled.toSorted());
  });

  it('the API keeps its default address unless a parameter leaves only the domain', () => {
    const endpointOf = (parameters: Record<string, string>) =>
      resourcesOfType('AWS::ApiGatewayV2::Api', withParameters(parameters)).map(
        ([, { Properties }]) => Properties.DisableExecuteApiEndpoint,
      );
    const domain = {
      domainName: 'holdfast.example',
      certificateArn: 'arn:aws:acm:eu-west-1:123456789012:certificate/1',
    };
    expect(endpointOf(domain)).toEqual([false]);
    expect(endpointOf({ ...domain, disableExecuteApiEndpoint: 'true' })).toEqual([true]);
    expect(released.Rules?.ApiKeepsAnAddress).toMatchObject({
      RuleCondition: { 'Fn::Equals': [{ Ref: 'disableExecuteApiEndpoint' }, 'true'] },
      Assertions: [{ Assert: { 'Fn::Not': [{ 'Fn::Equals': [{ Ref: 'domainName' }, ''] }] } }],
    });
  });
});
