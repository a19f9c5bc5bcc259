import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { type GuardRequest, handler } from '../../functions/deployment/change-guard.ts';
import { GUARD } from '../../infrastructure/logical-ids.ts';
import { PARAMETERS } from '../../infrastructure/parameters.ts';
import { listen } from '../../local/listen.ts';
import { released, template, withParameters } from '../support/stack/template.ts';

const STACK = 'arn:aws:cloudformation:eu-west-1:111122223333:stack/holdfast-dev/1';

/** The parameters as CloudFormation hands them to the guard. */
const propertiesOf = (parameters: Record<string, string> = {}) => {
  const place = { 'AWS::AccountId': '111122223333', 'AWS::Region': 'eu-west-1' };
  const { [GUARD]: guard } = withParameters({ ...place, ...parameters }).Resources;
  return guard?.Properties as GuardRequest['ResourceProperties'];
};

describe('the guard', () => {
  /** What the double of CloudFormation says about the stack; undefined: access is denied. */
  let status: string | undefined;
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
      const described = `<Stacks><member><StackStatus>${status}</StackStatus></member></Stacks>`;
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
    status = 'UPDATE_IN_PROGRESS';
    responses = [];
  });

  const request = (of: Partial<GuardRequest> = {}): GuardRequest => ({
    ...{ RequestType: 'Update', RequestId: 'r', StackId: STACK, LogicalResourceId: GUARD, PhysicalResourceId: 'it' },
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

  it('the guard refuses an update that forgets a table, and names the table, both values and what allows the change', async () => {
    const refused = await update({ leasesTable: 'my-leases' }, {});
    expect(refused).toMatchObject({ Status: 'FAILED', PhysicalResourceId: 'it', contentType: undefined });
    expect(refused?.Reason).toContain("leasesTable would change from 'my-leases' to 'holdfast-dev-leases'.");
    expect(refused?.Reason).toContain("set the parameter allowChange to 'leasesTable=holdfast-dev-leases'");
  });

  it('the guard guards each parameter that the command guards', async () => {
    const guarded = Object.keys(PARAMETERS).filter((name) => PARAMETERS[name]?.guarded);
    expect(Object.keys(propertiesOf().values)).toEqual(guarded);
    for (const name of guarded) {
      const refused = await update({}, { [name]: 'other' });
      expect(refused?.Reason, name).toContain(`${name} would change from '${propertiesOf().values[name]}' to 'other'.`);
    }
  });

  it('the guard lets every other parameter change without a question to CloudFormation', async () => {
    status = undefined;
    expect(await update({ memoryMb: '256', drained: 'false' }, { memoryMb: '512', drained: 'true' })).toMatchObject({
      Status: 'SUCCESS',
    });
  });

  it('the guard lets a parameter change to the value that allowChange names, and to no other', async () => {
    const allowChange = 'auth=jwt leasesTable=restored';
    expect(await update({}, { allowChange, leasesTable: 'restored' })).toMatchObject({ Status: 'SUCCESS' });
    const forgotten = await update({ allowChange, leasesTable: 'restored' }, { allowChange });
    expect(forgotten?.Reason).toContain("leasesTable would change from 'restored' to 'holdfast-dev-leases'");
  });

  it('the guard never lets the stage change', async () => {
    const refused = await update({}, { stage: 'other', allowChange: 'stage=other' });
    expect(refused).toMatchObject({ Status: 'FAILED' });
    expect(refused?.Reason).toContain('The stage of a stack can never change');
  });

  it('the guard takes a table for unchanged if its own name is given', async () => {
    expect(await update({}, { leasesTable: 'holdfast-dev-leases' })).toMatchObject({ Status: 'SUCCESS' });
  });

  it.each(['UPDATE_ROLLBACK_IN_PROGRESS', 'UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS'])(
    'the guard lets CloudFormation revert an update (%s)',
    async (state) => {
      status = state;
      // After a refused update, and after an allowed update that failed later.
      expect(await update({}, { leasesTable: 'my-leases' })).toMatchObject({ Status: 'SUCCESS' });
      const allowed = { leasesTable: 'restored', allowChange: 'leasesTable=restored' };
      expect(await update(allowed, { leasesTable: 'my-leases' })).toMatchObject({ Status: 'SUCCESS' });
    },
  );

  it('the guard refuses a change if CloudFormation does not say what the stack does', async () => {
    status = undefined;
    const refused = await update({}, { leasesTable: 'other' });
    expect(refused).toMatchObject({ Status: 'FAILED' });
    expect(refused?.Reason).toContain('The state of the stack is not known: not you');
  });

  it('the guard accepts a version with a further parameter, and a version without it while the parameter has its default', async () => {
    const { values, defaults } = propertiesOf();
    const later = (value: string) => ({
      values: { ...values, poolsTable: value },
      defaults: { ...defaults, poolsTable: 'own' },
    });
    const between = async (before: object, after: object) => {
      const properties = { OldResourceProperties: before, ResourceProperties: after } as Partial<GuardRequest>;
      await handler(request(properties));
      return responses.at(-1)?.Reason;
    };
    expect(await between({ values, defaults }, later('own'))).toBeUndefined();
    expect(await between(later('own'), { values, defaults })).toBeUndefined();
    expect(await between(later('mine'), { values, defaults })).toContain(
      "poolsTable would change from 'mine' to 'own'",
    );
  });

  it('the guard has no values to compare at its creation and its deletion, and keeps one physical id', async () => {
    for (const RequestType of ['Create', 'Delete'] as const) await handler(request({ RequestType }));
    const { PhysicalResourceId: _, ...first } = request({ RequestType: 'Create' });
    await handler(first);
    expect(responses.map(({ Status, PhysicalResourceId }) => [Status, PhysicalResourceId])).toEqual([
      ['SUCCESS', 'it'],
      ['SUCCESS', 'it'],
      ['SUCCESS', STACK],
    ]);
  });

  it('the guard sends a response that CloudFormation reads whole, however long the values are', async () => {
    const long = { jwtIssuer: `https://${'i'.repeat(3000)}`, jwtAudience: 'a'.repeat(256), auth: 'jwt' };
    await update({}, long);
    const { contentType: _, ...sent } = responses[0] ?? expect.fail('no response');
    expect(Buffer.byteLength(JSON.stringify(sent))).toBeLessThanOrEqual(4096);
  });

  it('the guard fails, so that Lambda calls again, if CloudFormation does not take the response', async () => {
    await expect(handler(request({ ResponseURL: `${double.url}/gone` }))).rejects.toThrow(
      'did not take the response: 403',
    );
  });
});

describe('the guard in the template', () => {
  const own = [GUARD, `${GUARD}Function`, `${GUARD}Role`, `${GUARD}LogGroup`];

  it('the guard in the template is created and changed before every other resource', () => {
    for (const [id, { DependsOn }] of Object.entries(released.Resources))
      if (!own.includes(id)) expect(DependsOn, id).toContain(GUARD);
    const needs = own.flatMap((id) => [released.Resources[id]?.DependsOn ?? []].flat() as string[]);
    expect(own).toEqual(expect.arrayContaining(needs));
  });

  it('the guard in the template may read the state of its own stack and write its log, has no environment, and stays outside the VPC', () => {
    const { Policies } = template.Resources[`${GUARD}Role`]?.Properties ?? {};
    const statements = Policies[0].PolicyDocument.Statement as { Action: string[]; Resource: unknown }[];
    expect(statements.flatMap(({ Action }) => Action)).toEqual([
      'logs:CreateLogStream',
      'logs:PutLogEvents',
      'cloudformation:DescribeStacks',
    ]);
    expect(statements.at(-1)?.Resource).toEqual({ Ref: 'AWS::StackId' });
    const inVpc = withParameters({ vpcSubnetIds: 'subnet-0a', vpcSecurityGroupIds: 'sg-0a' });
    const { [`${GUARD}Function`]: made } = inVpc.Resources;
    for (const name of ['VpcConfig', 'Environment']) expect(made?.Properties).not.toHaveProperty(name);
  });
});
