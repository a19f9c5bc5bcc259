import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import {
  CloudFormationClient,
  CreateChangeSetCommand,
  CreateStackCommand,
  DescribeStacksCommand,
  ExecuteChangeSetCommand,
  waitUntilStackCreateComplete,
} from '@aws-sdk/client-cloudformation';
import {
  AttachRolePolicyCommand,
  AttachUserPolicyCommand,
  CreateRoleCommand,
  DeleteRolePermissionsBoundaryCommand,
  GetPolicyVersionCommand,
  GetRoleCommand,
  IAMClient,
  ListAttachedRolePoliciesCommand,
  PutRolePermissionsBoundaryCommand,
  PutRolePolicyCommand,
  SimulateCustomPolicyCommand,
  UpdateAssumeRolePolicyCommand,
} from '@aws-sdk/client-iam';
import {
  DeleteObjectCommand,
  GetObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  S3Client,
} from '@aws-sdk/client-s3';
import { AssumeRoleCommand, STSClient } from '@aws-sdk/client-sts';
import { beforeAll, describe, expect, it } from 'vitest';
import type { Credentials } from '../../clients/typescript/src/sigv4.ts';
import type { CloudFormationTemplate } from '../../infrastructure/cloudformation.ts';
import manifest from '../../package.json' with { type: 'json' };
import {
  ACCOUNT,
  allow,
  cloudFormation,
  deploy,
  describeAll,
  iam,
  makeBucket,
  REGION,
  s3,
  serviceRole,
  settings,
  user,
} from './support/aws.ts';

const template: CloudFormationTemplate = JSON.parse(
  await readFile(`release/holdfast-${manifest.version}/template.json`, 'utf8'),
);

const policy = JSON.parse(await readFile('deployment/deployer-policy.json', 'utf8'));

interface Statement {
  Sid: string;
  Effect: string;
  Action: string | string[];
  Resource: string | string[];
}

const text = readFile('deployment/bounded-deployer.json', 'utf8');
let outputs: Record<string, string>;
beforeAll(async () => {
  const StackName = 'deployer-holdfast';
  const Capabilities = ['CAPABILITY_NAMED_IAM' as const];
  const Parameters = ['ExecutionStateMachines', 'DurableFunctions'].map((ParameterKey) => ({
    ...{ ParameterKey, ParameterValue: 'jobs-*' },
  }));
  await cloudFormation.send(new CreateStackCommand({ StackName, TemplateBody: await text, Capabilities, Parameters }));
  const waited = { client: cloudFormation, maxWaitTime: 60, minDelay: 1, maxDelay: 1 };
  await waitUntilStackCreateComplete(waited, { StackName });
  const { Stacks: [stack] = [] } = await cloudFormation.send(new DescribeStacksCommand({ StackName }));
  outputs = Object.fromEntries((stack?.Outputs ?? []).map((one) => [one.OutputKey, String(one.OutputValue)]));
});

const documentOf = async (PolicyArn = '') => {
  const { PolicyVersion } = await iam.send(new GetPolicyVersionCommand({ PolicyArn, VersionId: 'v1' }));
  return JSON.parse(decodeURIComponent(String(PolicyVersion?.Document))) as { Statement: Statement[] };
};
/** A user whose only rights are managed policies of the template. */
const holder = async (name: string, ...policies: (string | undefined)[]) => {
  const credentials = await user(name, []);
  for (const PolicyArn of policies) await iam.send(new AttachUserPolicyCommand({ UserName: name, PolicyArn }));
  return credentials;
};

/** The settings of a client for these credentials. */
const as = ({ sessionToken, ...keys }: Credentials) => ({
  ...settings,
  credentials: { ...keys, ...(sessionToken && { sessionToken }) },
});

/** Makes a stack by the service role, as a deployer may. */
async function makeStack(StackName: string, Resources: object, credentials: Credentials): Promise<void> {
  const theirs = new CloudFormationClient(as(credentials));
  const RoleARN = String(outputs.ServiceRoleArn);
  const TemplateBody = JSON.stringify({ Resources });
  const ChangeSetName = 'first';
  const Capabilities = ['CAPABILITY_NAMED_IAM' as const];
  await theirs.send(
    new CreateChangeSetCommand({
      StackName,
      ChangeSetName,
      ChangeSetType: 'CREATE',
      TemplateBody,
      RoleARN,
      Capabilities,
    }),
  );
  await theirs.send(new ExecuteChangeSetCommand({ StackName, ChangeSetName }));
  await waitUntilStackCreateComplete(
    { client: cloudFormation, maxWaitTime: 60, minDelay: 1, maxDelay: 1 },
    { StackName },
  );
}

describe('bounded-deployer.json', () => {
  it('the bounded template lets a deployer without IAM rights deploy by its role', async () => {
    const deployer = await holder('bounded', outputs.DeployerPolicyArn);
    const role = `--role-arn=${outputs.ServiceRoleArn}`;
    const unbounded = await deploy('bounded', ['--yes', role], deployer);
    expect(unbounded.output).toContain('is not authorized to perform: iam:CreateRole');
    expect(unbounded.exitCode).toBe(1);
    const boundary = `--param=permissionsBoundaryArn=${outputs.BoundaryArn}`;
    const made = await deploy('bounded', ['--yes', role, boundary], deployer);
    expect(made.exitCode, made.output).toBe(0);
    const changed = await deploy('bounded', ['--yes', '--param=tracing=Active'], deployer);
    expect(changed.exitCode, changed.output).toBe(0);
    const freed = await deploy('bounded', ['--yes', '--reset=permissionsBoundaryArn'], deployer);
    expect(freed.exitCode, freed.output).toBe(1);
  });

  it('the bounded template does not let the deployer pass another role', async () => {
    const deployer = await holder('bounded-passes', outputs.DeployerPolicyArn);
    const others = await serviceRole('others-administrator', 'cloudformation.amazonaws.com');
    const refused = await deploy('bounded-passes', ['--yes', `--role-arn=${others}`], deployer);
    expect(refused.output).toContain('is not authorized to perform: iam:PassRole');
  });

  it('the bounded template does not let a holder of its policies escape the boundary', async () => {
    const policies = [outputs.DeployerPolicyArn, outputs.ResourcesPolicyArn];
    const { accessKeyId, secretAccessKey } = await holder('bounded-rises', ...policies);
    const theirs = new IAMClient({ ...settings, credentials: { accessKeyId, secretAccessKey } });
    const everything = JSON.stringify({
      Version: '2012-10-17',
      Statement: [{ Effect: 'Allow', Action: '*', Resource: '*' }],
    });
    const trust = JSON.stringify({
      Version: '2012-10-17',
      Statement: [{ Effect: 'Allow', Principal: { AWS: `arn:aws:iam::${ACCOUNT}:root` }, Action: 'sts:AssumeRole' }],
    });
    const boundary = outputs.BoundaryArn;
    const create = (RoleName: string, PermissionsBoundary?: string) =>
      new CreateRoleCommand({ RoleName, AssumeRolePolicyDocument: trust, PermissionsBoundary });
    await iam.send(create('holdfast-unbounded'));
    const bounded = { RoleName: 'holdfast-rises' };
    await theirs.send(create(bounded.RoleName, boundary));
    await theirs.send(new PutRolePolicyCommand({ ...bounded, PolicyName: 'all', PolicyDocument: everything }));
    const unbounded = { RoleName: 'holdfast-unbounded' };
    const administrator = 'arn:aws:iam::aws:policy/AdministratorAccess';
    for (const rise of [
      () => theirs.send(create('holdfast-free')),
      () => theirs.send(create('holdfast-free', administrator)),
      () => theirs.send(create('others', boundary)),
      () => theirs.send(new DeleteRolePermissionsBoundaryCommand(bounded)),
      () => theirs.send(new PutRolePermissionsBoundaryCommand({ ...bounded, PermissionsBoundary: administrator })),
      () => theirs.send(new UpdateAssumeRolePolicyCommand({ ...bounded, PolicyDocument: trust })),
      () => theirs.send(new AttachRolePolicyCommand({ ...bounded, PolicyArn: administrator })),
      () => theirs.send(new PutRolePolicyCommand({ ...unbounded, PolicyName: 'all', PolicyDocument: everything })),
      () => theirs.send(new UpdateAssumeRolePolicyCommand({ ...unbounded, PolicyDocument: trust })),
      () =>
        theirs.send(
          new PutRolePolicyCommand({
            ...{ RoleName: 'deployer-holdfast-cloudformation', PolicyName: 'all', PolicyDocument: everything },
          }),
        ),
    ])
      await expect(rise(), String(rise)).rejects.toThrow(/not authorized to perform/);
  });

  it('the bounded template has the statements of deployer-policy.json, except those on roles', async () => {
    const ofRoles = ['Roles', 'RolesOfFunctions'];
    const inBoundedBucket = (one: Statement): Statement =>
      JSON.parse(JSON.stringify(one).replaceAll('holdfast-code-', 'holdfast-bounded-code-'));
    const made = [outputs.DeployerPolicyArn, outputs.ResourcesPolicyArn].map(documentOf);
    const statements = (await Promise.all(made)).flatMap(({ Statement }) => Statement);
    for (const statement of policy.Statement.filter(({ Sid }: Statement) => !ofRoles.includes(Sid)))
      expect(statements).toContainEqual(inBoundedBucket(statement));
    const own = [
      'Zips',
      'LookAtStorage',
      'ServiceRole',
      'BoundedRoles',
      'BoundaryStays',
      'BoundaryIsFixed',
      'CodeOfAdministrators',
    ];
    const known = [...policy.Statement.map(({ Sid }: Statement) => Sid), ...own];
    expect(statements.map(({ Sid }) => Sid).filter((Sid) => !known.includes(Sid))).toEqual([]);
  });

  it('the bounded template has a boundary that allows each action of a role', async () => {
    const { Statement } = await documentOf(outputs.BoundaryArn);
    const bounded = Statement.filter(({ Effect }) => Effect === 'Allow').flatMap(({ Action }) => Action);
    const { Resources } = template;
    const needed = Object.values(Resources)
      .filter(({ Type }) => Type === 'AWS::IAM::Role')
      .flatMap(
        ({ Properties }) =>
          JSON.stringify(Properties).match(/"(?!sts:|aws:|kms:ViaService)[a-z0-9]+:[A-Z][A-Za-z]+"/g) ?? [],
      )
      .map((action) => action.replaceAll('"', ''));
    expect(needed.length).toBeGreaterThan(100);
    expect([...new Set(needed)].filter((action) => !bounded.includes(action))).toEqual([]);
    expect(bounded.filter((action) => /^(iam|sts):|\*/.test(action))).toEqual([]);
  });

  it('the bounded template allows the executions that its parameters name', async () => {
    const decisionOf = async (action: string, resource: string) => {
      const simulated = await iam.send(
        new SimulateCustomPolicyCommand({
          PolicyInputList: [JSON.stringify(await documentOf(outputs.BoundaryArn))],
          ActionNames: [action],
          ResourceArns: [`arn:aws:${resource}`],
        }),
      );
      return simulated.EvaluationResults?.[0]?.EvalDecision;
    };
    const place = `eu-west-1:${ACCOUNT}`;
    for (const [name, decision] of [
      ['jobs-nightly', 'allowed'],
      ['payroll', 'implicitDeny'],
    ]) {
      expect(await decisionOf('states:DescribeExecution', `states:${place}:execution:${name}:1`)).toBe(decision);
      for (const action of ['GetDurableExecution', 'SendDurableExecutionCallbackSuccess'])
        expect(await decisionOf(`lambda:${action}`, `lambda:${place}:function:${name}:1`), action).toBe(decision);
    }
  });

  it('the bounded template keeps within the sizes that IAM allows', async () => {
    const documents = [outputs.BoundaryArn, outputs.DeployerPolicyArn, outputs.ResourcesPolicyArn].map(documentOf);
    for (const document of [policy, ...(await Promise.all(documents))])
      expect(JSON.stringify(document).replaceAll(/\s/g, '').length).toBeLessThan(6144);
  });

  it('the bounded template keeps its own rights out of reach of its roles', async () => {
    const { Role } = await iam.send(new GetRoleCommand({ RoleName: 'deployer-holdfast-cloudformation' }));
    const attached = await iam.send(new ListAttachedRolePoliciesCommand({ RoleName: String(Role?.RoleName) }));
    const names = [...Object.values(outputs), ...(attached.AttachedPolicies ?? []).map(({ PolicyArn }) => PolicyArn)];
    for (const name of names) expect(name).toMatch(/:(policy|role)\/deployer-holdfast-/);
  });
});

/** Another content of the same length, as written by a caller with access to the bucket. */
const otherOf = (content: Buffer): Buffer => Buffer.from(content).fill('x', content.length - 9);

describe('the bucket for the code of administrators', () => {
  const Bucket = `holdfast-code-${ACCOUNT}-${REGION}`;
  const keys = async () => {
    const { Contents = [] } = await s3.send(new ListObjectsV2Command({ Bucket }));
    return Contents.map(({ Key }) => String(Key));
  };
  const read = async (Key: string) => {
    const { Body } = await s3.send(new GetObjectCommand({ Bucket, Key }));
    return Buffer.from((await Body?.transformToByteArray()) ?? []);
  };

  it('a bounded deployer cannot write the code of administrators, even by a stack', async () => {
    const administrator = await deploy('tone');
    expect(administrator.exitCode, administrator.output).toBe(0);
    const [Key] = (await keys()).filter((key) => key.endsWith('.json'));
    const put = new PutObjectCommand({ Bucket, Key, Body: 'pwned' });
    const mallory = await holder('mallory', outputs.DeployerPolicyArn);
    await allow('mallory', [{ Effect: 'Allow', Action: 'sts:AssumeRole', Resource: '*' }]);
    await expect(new S3Client({ ...as(mallory), forcePathStyle: true }).send(put)).rejects.toThrow(
      /not authorized|Access ?Denied/i,
    );

    const role = {
      Type: 'AWS::IAM::Role',
      Properties: {
        RoleName: 'holdfast-mallory',
        PermissionsBoundary: outputs.BoundaryArn,
        AssumeRolePolicyDocument: {
          Statement: [
            { Effect: 'Allow', Principal: { AWS: `arn:aws:iam::${ACCOUNT}:user/mallory` }, Action: 'sts:AssumeRole' },
          ],
        },
        Policies: [
          {
            PolicyName: 'all',
            PolicyDocument: { Statement: [{ Effect: 'Allow', Action: 's3:*', Resource: '*' }] },
          },
        ],
      },
    };
    await makeStack('holdfast-mallory', { Role: role }, mallory);
    const sts = new STSClient(as(mallory));
    const RoleArn = `arn:aws:iam::${ACCOUNT}:role/holdfast-mallory`;
    const { Credentials: assumed } = await sts.send(new AssumeRoleCommand({ RoleArn, RoleSessionName: 'mallory' }));
    const credentials = {
      ...{ accessKeyId: String(assumed?.AccessKeyId), secretAccessKey: String(assumed?.SecretAccessKey) },
      sessionToken: String(assumed?.SessionToken),
    };
    const byRole = new S3Client({ ...as(credentials), forcePathStyle: true });
    for (const command of [put, new DeleteObjectCommand({ Bucket, Key })])
      await expect(byRole.send(command as PutObjectCommand)).rejects.toThrow(/not authorized|Access ?Denied/i);
    // The role may do what the boundary allows.
    await makeBucket('holdfast-of-mallory');
    await byRole.send(new PutObjectCommand({ Bucket: 'holdfast-of-mallory', Key: 'k', Body: 'mine' }));
    expect((await read(String(Key))).toString()).not.toBe('pwned');
  });

  it('the service role cannot make or open the bucket for the code of administrators', async () => {
    const { Statement } = await documentOf(outputs.ResourcesPolicyArn);
    const simulated = await iam.send(
      new SimulateCustomPolicyCommand({
        PolicyInputList: [JSON.stringify({ Version: '2012-10-17', Statement })],
        ActionNames: ['s3:CreateBucket', 's3:PutBucketPolicy', 's3:PutBucketVersioning', 's3:DeleteBucket'],
        ResourceArns: [`arn:aws:s3:::${Bucket}`],
      }),
    );
    for (const { EvalActionName, EvalDecision } of simulated.EvaluationResults ?? [])
      expect(EvalDecision, EvalActionName).toBe('explicitDeny');
    expect(simulated.EvaluationResults).toHaveLength(4);
  });

  it('a deployment replaces a template and code that have other bytes than the release', async () => {
    // Under a prefix of its own: other tests deploy the same code at the same time, and would find its new versions.
    const first = await deploy('replaced', ['--param=codePrefix=replaced/']);
    expect(first.exitCode, first.output).toBe(0);
    for (const [index, kind] of [/^replaced\/template-/, /^replaced\/acquire-/].entries()) {
      const [Key = ''] = (await keys()).filter((key) => kind.test(key));
      const content = await read(Key);
      await s3.send(new PutObjectCommand({ Bucket, Key, Body: otherOf(content) }));
      const next = await deploy('replaced', [`--param=memoryMb=${256 + index}`]);
      expect(next.exitCode, next.output).toBe(0);
      expect((await read(Key)).equals(content), Key).toBe(true);
    }
    const [zip = ''] = (await keys()).filter((key) => /^replaced\/acquire-/.test(key));
    const [{ Configuration }] = await describeAll([
      ['lambda', 'get_function', { FunctionName: 'holdfast-replaced-acquire' }],
    ]);
    expect(Configuration.CodeSha256).toBe(
      createHash('sha256')
        .update(await read(zip))
        .digest('base64'),
    );
  });
});
