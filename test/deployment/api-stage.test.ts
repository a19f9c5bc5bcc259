import { describe, expect, it } from 'vitest';
import { functions, ofType, released, roles, withParameters } from '../support/stack/template.ts';

const stageWith = (parameters: Record<string, string> = {}) => {
  const [[, stage] = []] = ofType('AWS::ApiGatewayV2::Stage', withParameters(parameters));
  return stage ?? expect.fail('no stage');
};

describe('the stage of the API', () => {
  it('the stage of the API logs the namespace in the path, the caller, and the request id that the function logs too', () => {
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

  it('the stage of the API throttles each route whose function scans, and the rows of a report', () => {
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
    const routesOf = ofType('AWS::ApiGatewayV2::Route').filter(([id]) => DependsOn?.includes(id));
    expect(routesOf.map(([, { Properties: route }]) => route.RouteKey).toSorted()).toEqual(throttled.toSorted());
  });

  it('the stage of the API answers under the name that AWS gives it, unless a parameter leaves the domain alone, which must exist', () => {
    const endpointOf = (parameters: Record<string, string>) =>
      ofType('AWS::ApiGatewayV2::Api', withParameters(parameters)).map(
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
