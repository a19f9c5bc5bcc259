import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { type CheckRequest, handler } from '../../functions/deployment/change-check.ts';
import { CHANGE_CHECK } from '../../infrastructure/logical-ids.ts';
import { PARAMETERS } from '../../infrastructure/parameters.ts';
import { listen } from '../../local/listen.ts';
import { released, template, withParameters } from '../support/stack/template.ts';
import { aFew } from '../support/time/rounds.ts';

const STACK = 'arn:aws:cloudformation:eu-west-1:111122223333:stack/holdfast-dev/1';

/** The parameters as CloudFormation hands them to the change check. */
const propertiesOf = (parameters: Record<string, string> = {}) => {
  const place = { 'AWS::AccountId': '111122223333', 'AWS::Region': 'eu-west-1' };
  const { [CHANGE_CHECK]: check } = withParameters({ ...place, ...parameters }).Resources;
  return check?.Properties as CheckRequest['ResourceProperties'];
};

describe('the change check', () => {
  /** What the double of CloudFormation says about the stack; undefined: access is denied. */
  let status: string | undefined;
  /** The output with the fixed parameters. */
  let accepted: string | undefined;
  /** What CloudFormation received. */
  let responses: { Status: string; Reason?: string; PhysicalResourceId: string; contentType: string | undefined }[];
  let double: Awaited<ReturnType<typeof listen>>;

  beforeAll(async () => {
    double = await listen(async (request, response) => {
      const body = await text(request);
      if (request.method === 'PUT') {
        responses.push({ ...JSON.parse(body), contentType: request.headers['content-type'] });
        response.writeHead(request.url === '/gone' ? 403 : 200).end();
        return;
      }
      expect(new URLSearchParams(body).get('StackName')).toBe(STACK);
      const output = `<OutputKey>FixedParameters</OutputKey><OutputValue>${accepted}</OutputValue>`;
      const outputs = accepted === undefined ? '' : `<Outputs><member>${output}</member></Outputs>`;
      const described = `<Stacks><member><StackStatus>${status}</StackStatus>${outputs}</member></Stacks>`;
      const denied =
        '<ErrorResponse><Error><Code>AccessDenied</Code><Message>not you</Message></Error></ErrorResponse>';
      response.writeHead(status ? 200 : 403, { 'content-type': 'text/xml' });
      response.end(
        status
          ? `<DescribeStacksResponse><DescribeStacksResult>${described}</DescribeStacksResult></DescribeStacksResponse>`
          : denied,
      );
    });
    Object.assign(process.env, {
      ...{ AWS_ENDPOINT_URL: double.url, AWS_REGION: 'eu-west-1' },
      ...{ AWS_ACCESS_KEY_ID: 'test', AWS_SECRET_ACCESS_KEY: 'test' },
    });
  });
  const logged = vi.spyOn(console, 'log').mockReturnValue();
  afterAll(async () => {
    logged.mockRestore();
    await double.stop();
    delete process.env.AWS_ENDPOINT_URL;
  });
  beforeEach(() => {
    logged.mockClear();
    status = 'UPDATE_IN_PROGRESS';
    accepted = undefined;
    responses = [];
  });

  const request = (of: Partial<CheckRequest> = {}): CheckRequest => ({
    ...{
      RequestType: 'Update',
      RequestId: 'r',
      StackId: STACK,
      LogicalResourceId: CHANGE_CHECK,
      PhysicalResourceId: 'it',
    },
    ...{ ResponseURL: `${double.url}/response`, ResourceProperties: propertiesOf() },
    ...of,
  });

  const update = async (
    before: Record<string, string>,
    after: Record<string, string>,
  ): Promise<(typeof responses)[number] | undefined> => {
    const properties = { OldResourceProperties: propertiesOf(before), ResourceProperties: propertiesOf(after) };
    await handler(request(properties));
    return responses.at(-1);
  };

  it('the change check refuses an update that forgets a table, and names both values', async () => {
    const refused = await update({ leasesTable: 'my-leases' }, {});
    expect(refused).toMatchObject({ Status: 'FAILED', PhysicalResourceId: 'it', contentType: undefined });
    expect(refused?.Reason).toContain("leasesTable would change from 'my-leases' to 'holdfast-dev-leases'.");
    expect(refused?.Reason).toContain("set the parameter allowChange to 'leasesTable=holdfast-dev-leases'");
  });

  it('the change check compares each fixed parameter', async () => {
    const fixed = Object.keys(PARAMETERS).filter((name) => PARAMETERS[name]?.fixed);
    expect(Object.keys(propertiesOf().values)).toEqual(fixed);
    for (const name of fixed) {
      const refused = await update({}, { [name]: 'other' });
      expect(refused?.Reason, name).toContain(`${name} would change from '${propertiesOf().values[name]}' to 'other'.`);
    }
  });

  /** The limits, each with a value of an operator and the value of an update without the parameter. */
  const LIMITS = Object.keys(PARAMETERS).filter((name) => PARAMETERS[name]?.limit);
  const setTo = (name: string) => (name === 'namespaces' ? 'team-a,team-b' : 'jobs-x');

  it.each(aFew(4, LIMITS))(
    'the change check refuses an update that loses %s, unless allowChange says so',
    async (name) => {
      const former = String(PARAMETERS[name]?.default);
      expect(await update({}, { [name]: setTo(name) })).toMatchObject({ Status: 'SUCCESS' });
      const lost = await update({ [name]: setTo(name) }, {});
      expect(lost?.Reason).toContain(`${name} would change from '${setTo(name)}' to '${former}'.`);
      expect(lost?.Reason).toContain(`set the parameter allowChange to '${name}=${former}'`);
      const allowed = await update({ [name]: setTo(name) }, { allowChange: `${name}=${former}` });
      expect(allowed).toMatchObject({ Status: 'SUCCESS' });
    },
  );

  it('only parameters of authority count as limits, and none of them is fixed', () => {
    expect(LIMITS.filter((name) => !name.endsWith('Scope'))).toEqual([
      'namespaces',
      'exclusiveTargets',
      'namespaceExecutions',
      'executionStateMachines',
      'durableFunctions',
      'permissionsBoundaryArn',
    ]);
    expect(Object.keys(propertiesOf().limits)).toEqual(LIMITS);
    for (const name of LIMITS) expect(propertiesOf().values, name).not.toHaveProperty(name);
  });

  it.each([
    ['namespaces', 'team-a,team-b', 'team-a,team-b,team-c', true],
    ['namespaces', 'team-a,team-b', ',team-b', false],
    ['exclusiveTargets', 'nightly-*', 'nightly-*,etl-?', true],
    ['exclusiveTargets', 'nightly-*', '*', false],
    ['namespaceExecutions', 'own', 'any', false],
    ['executionStateMachines', '*', 'jobs-*', true],
    ['breakScope', 'holdfast/leases.break', 'mine', true],
    ['breakScope', 'mine', 'holdfast/leases', false],
  ])('the change check accepts limits and longer lists: %s from %s to %s', async (name, from, to, isFree) => {
    const answer = await update({ [name]: from }, { [name]: to });
    expect(answer?.Status).toBe(isFree ? 'SUCCESS' : 'FAILED');
  });

  it('the change check accepts every other change, even without a description of the stack', async () => {
    status = undefined;
    expect(await update({ memoryMb: '256', drained: 'false' }, { memoryMb: '512', drained: 'true' })).toMatchObject({
      Status: 'SUCCESS',
    });
  });

  it('the change check accepts a change only to the value that allowChange names', async () => {
    const allowChange = 'leasesTable=restored';
    expect(await update({}, { allowChange, leasesTable: 'restored' })).toMatchObject({ Status: 'SUCCESS' });
    const forgotten = await update({ allowChange, leasesTable: 'restored' }, { allowChange });
    expect(forgotten?.Reason).toContain("leasesTable would change from 'restored' to 'holdfast-dev-leases'");
  });

  it('the change check refuses an allowChange that allows another change too', async () => {
    const both = { allowChange: 'leasesTable=a leasesTable=b' };
    for (const [from, to] of [
      ['a', 'b'],
      ['b', 'a'],
    ]) {
      const refused = await update({ ...both, leasesTable: String(from) }, { ...both, leasesTable: String(to) });
      expect(refused?.Reason).toBe(
        `allowChange names leasesTable=${from}, but this update does not make that change. Remove it from allowChange. Nothing was changed.`,
      );
    }
    // An earlier allowChange may stay in a configuration as long as its values still hold.
    const before = { allowChange: 'leasesTable=a', leasesTable: 'a' };
    const after = { allowChange: 'leasesTable=a pointerAttributes=id', leasesTable: 'a', pointerAttributes: 'id' };
    expect(await update(before, after)).toMatchObject({ Status: 'SUCCESS' });
  });

  it('the change check refuses a refused update again when it is repeated', async () => {
    const { values, limits } = propertiesOf({ leasesTable: 'my-leases' });
    accepted = Object.entries({ ...values, ...limits })
      .map((pair) => pair.join('='))
      .join(' ');
    const repeated = await update({}, {});
    expect(repeated?.Reason).toContain("leasesTable would change from 'my-leases' to 'holdfast-dev-leases'.");
    expect(await update({}, { leasesTable: 'my-leases', allowChange: 'leasesTable=my-leases' })).toMatchObject({
      Status: 'SUCCESS',
    });
  });

  it('the output lists the fixed parameters as allowChange writes them', () => {
    const given = { leasesTable: 'my-leases', executionStateMachines: 'jobs-*' };
    const { Value } = withParameters(given).Outputs.FixedParameters ?? {};
    const { values, limits } = propertiesOf(given);
    const texts = Object(Value)['Fn::Join'][1].map((one: object) => Object(one)['Fn::Join']?.[1].join('=') ?? one);
    expect(texts).toContain('leasesTable=my-leases');
    expect(texts).toContain('executionStateMachines=jobs-*');
    expect(texts).toHaveLength(Object.keys({ ...values, ...limits }).length);
  });

  it('the change check answers at once if it does not know the former values', async () => {
    for (const OldResourceProperties of [{}, undefined] as never[]) {
      await handler(request({ OldResourceProperties }));
      expect(responses.at(-1)?.Reason).toBe('The former or the new values are not known. Nothing was changed.');
    }
  });

  it.each([
    'https://evil.example/x',
    'http://cloudformation-custom-resource-response-euwest1.s3-eu-west-1.amazonaws.com/x',
    'https://cloudformation-custom-resource-response-euwest1.s3-eu-west-1.amazonaws.com.evil.example/x',
    'http://127.0.0.1:9001/2018-06-01/runtime/init/error',
  ])('the change check does not write to an address outside of CloudFormation: %s', async (ResponseURL) => {
    await expect(handler(request({ ResponseURL }))).rejects.toThrow('the response would not go to CloudFormation');
    expect(logged).not.toHaveBeenCalled();
  });

  it.each([
    'https://cloudformation-custom-resource-response-useast1.s3.amazonaws.com/arn%3Aaws?X-Amz-Signature=1',
    'https://cloudformation-custom-resource-response-euwest1.s3-eu-west-1.amazonaws.com/x',
    'https://cloudformation-custom-resource-response-eucentral2.s3.eu-central-2.amazonaws.com/x',
    'https://cloudformation-custom-resource-response-cnnorth1.s3.cn-north-1.amazonaws.com.cn/x',
  ])('the change check writes to the buckets of CloudFormation: %s', async (ResponseURL) => {
    const sent: unknown[] = [];
    const double = vi.spyOn(globalThis, 'fetch').mockImplementation(async (url) => {
      sent.push(url);
      return new Response();
    });
    await handler(request({ ResponseURL, RequestType: 'Create' })).finally(() => double.mockRestore());
    expect(sent).toEqual([ResponseURL]);
  });

  it('the change check never lets the stage change', async () => {
    const refused = await update({}, { stage: 'other', allowChange: 'stage=other' });
    expect(refused).toMatchObject({ Status: 'FAILED' });
    expect(refused?.Reason).toContain('The stage of a stack can never change');
  });

  it('the change check accepts the name of a table that is already used', async () => {
    expect(await update({}, { leasesTable: 'holdfast-dev-leases' })).toMatchObject({ Status: 'SUCCESS' });
  });

  it('the change check lets CloudFormation revert an update, but nothing else', async () => {
    status = 'UPDATE_ROLLBACK_IN_PROGRESS';
    // The first update was refused, and the second was allowed but failed later.
    expect(await update({}, { leasesTable: 'my-leases' })).toMatchObject({ Status: 'SUCCESS' });
    const allowed = { leasesTable: 'restored', allowChange: 'leasesTable=restored' };
    expect(await update(allowed, { leasesTable: 'my-leases' })).toMatchObject({ Status: 'SUCCESS' });
    status = 'UPDATE_ROLLBACK_COMPLETE'; // as a stale answer about the update before
    expect(await update({}, { leasesTable: 'my-leases' })).toMatchObject({ Status: 'FAILED' });
  });

  it('the change check refuses if CloudFormation does not say what the stack does', async () => {
    status = undefined;
    const refused = await update({}, { leasesTable: 'other' });
    expect(refused).toMatchObject({ Status: 'FAILED' });
    expect(refused?.Reason).toContain('The state of the stack is not known: not you');
  });

  it('the change check accepts a version with another parameter, and the way back', async () => {
    const { values, limits, defaults } = propertiesOf();
    const later = (value: string) => ({
      limits,
      values: { ...values, graphTable: value },
      defaults: { ...defaults, graphTable: 'own' },
    });
    const between = async (before: object, after: object) => {
      const properties = { OldResourceProperties: before, ResourceProperties: after } as Partial<CheckRequest>;
      await handler(request(properties));
      return responses.at(-1)?.Reason;
    };
    expect(await between({ values, limits, defaults }, later('own'))).toBeUndefined();
    expect(await between(later('own'), { values, limits, defaults })).toBeUndefined();
    expect(await between(later('mine'), { values, limits, defaults })).toContain(
      "graphTable would change from 'mine' to 'own'",
    );
  });

  it('the change check does not compare at its creation or deletion', async () => {
    for (const RequestType of ['Create', 'Delete'] as const) await handler(request({ RequestType }));
    const { PhysicalResourceId: _, ...first } = request({ RequestType: 'Create' });
    await handler(first);
    expect(responses.map(({ Status, PhysicalResourceId }) => [Status, PhysicalResourceId])).toEqual([
      ['SUCCESS', 'it'],
      ['SUCCESS', 'it'],
      ['SUCCESS', STACK],
    ]);
  });

  it('the change check sends a response that CloudFormation can read whole', async () => {
    const long = { jwtIssuer: `https://${'i'.repeat(3000)}`, jwtAudience: 'a'.repeat(256), auth: 'jwt' };
    await update({}, long);
    const { contentType: _, ...sent } = responses[0] ?? expect.fail('no response');
    expect(Buffer.byteLength(JSON.stringify(sent))).toBeLessThanOrEqual(4096);
  });

  it('the change check fails and is retried if CloudFormation refuses its response', async () => {
    await expect(handler(request({ ResponseURL: `${double.url}/gone` }))).rejects.toThrow(
      'did not take the response: 403',
    );
  });
});

describe('the change check in the template', () => {
  const own = [CHANGE_CHECK, `${CHANGE_CHECK}Function`, `${CHANGE_CHECK}Role`, `${CHANGE_CHECK}LogGroup`];

  it('the change check in the template is created and changed before every other resource', () => {
    for (const [id, { DependsOn }] of Object.entries(released.Resources))
      if (!own.includes(id)) expect(DependsOn, id).toContain(CHANGE_CHECK);
    const needs = own.flatMap((id) => [released.Resources[id]?.DependsOn ?? []].flat() as string[]);
    expect(own).toEqual(expect.arrayContaining(needs));
  });

  it("the change check may only read its stack's state and write its log", () => {
    const { Policies } = template.Resources[`${CHANGE_CHECK}Role`]?.Properties ?? {};
    const statements = Policies[0].PolicyDocument.Statement as { Action: string[]; Resource: unknown }[];
    expect(statements.flatMap(({ Action }) => Action)).toEqual([
      'logs:CreateLogStream',
      'logs:PutLogEvents',
      'cloudformation:DescribeStacks',
    ]);
    expect(statements.at(-1)?.Resource).toEqual({ Ref: 'AWS::StackId' });
    const inVpc = withParameters({ vpcSubnetIds: 'subnet-0a', vpcSecurityGroupIds: 'sg-0a' });
    const { [`${CHANGE_CHECK}Function`]: made } = inVpc.Resources;
    for (const name of ['VpcConfig', 'Environment']) expect(made?.Properties).not.toHaveProperty(name);
  });
});
