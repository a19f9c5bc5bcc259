import { createHash } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { ParsedRequest } from '../../deployment/request.ts';
import { type CloudFormationDouble, deployTo, startCloudFormation } from '../support/stack/cloudformation.ts';
import { released } from '../support/stack/template.ts';
import { aFew, isFull } from '../support/time/rounds.ts';

let double: CloudFormationDouble;
/** What the operator read. */
let said: string[];
beforeEach(async () => {
  double = await startCloudFormation();
  said = [];
});
afterEach(() => double.stop());

const run = (order: Partial<ParsedRequest> = {}) => deployTo(double.aws, { said, order });

const stack = () => double.stacks.get('holdfast-prod');

describe('the bucket for the code', () => {
  it.each(aFew(1, ['BucketAlreadyOwnedByYou', 'OperationAborted']))(
    'the bucket for the code may be made by two deployments at once (%s)',
    async (answer) => {
      double.race.answer = answer;
      await run();
      expect(stack()?.status).toMatch(/_COMPLETE$/);
    },
  );

  it('the code is not uploaded to a bucket that another account owns', async () => {
    double.owner.account = '999988887777';
    await expect(run()).rejects.toThrow('cannot be used for the code: access denied');
    expect(double.writes).toEqual([]);
  });

  it.runIf(isFull)('the bucket for the code keeps former versions, because a rollback needs them', async () => {
    double.codeBucket.exists = false;
    await run();
    const bucket = '/holdfast-code-111122223333-eu-west-1';
    expect(double.writes.slice(0, 4).map((write) => write.replace('/?', '?').replace(/[/=]$/, ''))).toEqual([
      `PUT ${bucket}`,
      ...['publicAccessBlock', 'versioning', 'policy'].map((part) => `PUT ${bucket}?${part}`),
    ]);
  });

  it('a bucket of another account is refused as the bucket for the code', async () => {
    double.race.answer = 'BucketAlreadyExists';
    await expect(run()).rejects.toThrow('another deployment makes it');
    expect(stack()).toBeUndefined();
  });
});

describe('the code and the template', () => {
  const bucket = '/holdfast-code-111122223333-eu-west-1/holdfast/';
  const [zip = ''] = JSON.stringify(released).match(/acquire-\w+\.zip/) ?? [];
  const zips = new Map([[zip, Buffer.from('the code')]]);
  const runWith = (order: Partial<ParsedRequest> = {}) => deployTo(double.aws, { said, order, zips });
  const templateKey = () => [...double.objects.keys()].find((key) => key.endsWith('.json')) ?? '';
  /** Writes other bytes of the same length, as a caller could with the right to write to the bucket. */
  const overwrite = (key: string) => {
    const { body, version } = double.objects.get(key) ?? expect.fail(`there is no ${key}`);
    const other = body.replace(/.$/s, ' ');
    const checksum = createHash('sha256').update(other).digest('base64');
    double.objects.set(key, { body: other, checksum, version: version + 1 });
  };

  it('the code is uploaded once, and again if other bytes are under its key', async () => {
    await runWith();
    double.writes.length = 0;
    await runWith({ given: { memoryMb: '256' } });
    expect(double.writes).toEqual([]);
    overwrite(`${bucket}${zip}`);
    await runWith({ given: { memoryMb: '512' } });
    expect(double.objects.get(`${bucket}${zip}`)).toMatchObject({ body: 'the code', version: 3 });
  });

  it.runIf(isFull)('the template is uploaded again if other bytes are under its key', async () => {
    await runWith();
    const key = templateKey();
    const { body } = double.objects.get(key) ?? expect.fail('no template');
    overwrite(key);
    await runWith({ given: { memoryMb: '256' } });
    expect(double.objects.get(key)).toMatchObject({ body, version: 3 });
    expect(key).toMatch(/template-[0-9a-f]{64}\.json$/);
  });

  it('the template names the version of each zip that the bucket has', async () => {
    await runWith();
    const { body } = double.objects.get(templateKey()) ?? expect.fail('no template');
    const { Resources } = JSON.parse(body);
    expect(Resources.AcquireLambdaFunction.Properties.Code).toEqual({
      S3Bucket: { Ref: 'codeBucket' },
      S3Key: { 'Fn::Sub': `\${codePrefix}${zip}` },
      S3ObjectVersion: 'v1',
    });
    expect(JSON.stringify(Resources).match(/S3ObjectVersion/g)).toHaveLength(1);
    expect(stack()?.template?.Resources.AcquireLambdaFunction).toEqual(Resources.AcquireLambdaFunction);
    await runWith({ isPlan: true });
    expect(said).toContain('No resource changes');
  });

  it.each(aFew(1, [[undefined], ['a stack']]))(
    'a template that CloudFormation read elsewhere is not deployed, without a change set (%s)',
    async (before) => {
      if (before) await runWith();
      const { Resources } = released;
      double.read.template = { ...released, Resources: { ...Resources, Pwn: { Type: 'AWS::IAM::Role' } } };
      await expect(runWith({ given: { memoryMb: '256' } })).rejects.toThrow('a template that is not from this release');
      expect(double.changeSets()).toBe(before ? 2 : 0);
      expect(stack()?.parameters.memoryMb).toBe(before && '512');
    },
  );
});

it.runIf(isFull)('the code has its own bucket if a service role bounds the deployer', async () => {
  await run({ roleArn: 'arn:aws:iam::111122223333:role/deployer' });
  expect(stack()?.parameters.codeBucket).toBe('holdfast-bounded-code-111122223333-eu-west-1');
  await run({ given: { memoryMb: '256' } });
  expect(stack()?.parameters.codeBucket).toBe('holdfast-bounded-code-111122223333-eu-west-1');
});

/** @returns what the operator reads about held calls */
async function warnings(maxHeldCalls?: number): Promise<string[]> {
  said = [];
  const given = maxHeldCalls === undefined ? {} : { maxHeldCalls: String(maxHeldCalls) };
  expect((await run({ given }))?.StackStatus).toBe('UPDATE_COMPLETE');
  return said.filter((line) => line.startsWith('maxHeldCalls is'));
}

it.runIf(isFull)('a deployment warns if more than a fifth of all calls may be held', async () => {
  expect(await warnings()).toEqual([]);
  expect(await warnings(201)).toEqual([
    expect.stringMatching(/^maxHeldCalls is 201, and Lambda runs at most 1000 calls .* add --param maxHeldCalls=200$/),
  ]);
  expect(await warnings(200)).toEqual([]);
});

it('a deployment into an account of ten environments warns about the default', async () => {
  double.concurrency.limit = 10;
  expect(await warnings()).toEqual([expect.stringMatching(/^maxHeldCalls is 100, .* add --param maxHeldCalls=2$/)]);
  expect(await warnings()).toHaveLength(1);
  expect(await warnings(0)).toEqual([]);
});

it('a deployment goes on if AWS does not say how many calls may run', async () => {
  double.concurrency.limit = undefined;
  expect(await warnings(10_000)).toEqual([]);
});
