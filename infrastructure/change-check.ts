import { build } from 'rolldown';
import { ACCEPTED_OUTPUT } from '../shared/fixed-parameters.ts';
import {
  type CloudFormationTemplate,
  choose,
  type Json,
  NO_VALUE,
  ref,
  sub,
  type TemplateResource,
} from './cloudformation.ts';
import { CHANGE_CHECK } from './logical-ids.ts';
import { PARAMETERS } from './parameters.ts';
import { RESOURCE_NAMES } from './resource-names.ts';

/** The most characters of code that CloudFormation accepts inside a template. */
const MAX_CODE = 4096;

/** How long CloudFormation waits for the function to answer, in seconds. The default is an hour. */
const PATIENCE_SECONDS = 300;

const NAME = sub(`holdfast-\${stage}-checkChanges`);
const LOG_GROUP = sub(`/aws/lambda/holdfast-\${stage}-checkChanges`);

/**
 * Adds a custom resource that refuses an update which would change a fixed parameter or drop a limit, whichever tool sends the update.
 * Every other resource depends on it, so CloudFormation changes none of them before the check has agreed.
 * @throws Error if the code of the change check is too long for a template
 */
export function addChangeCheck({ Resources, Outputs }: CloudFormationTemplate): void {
  Outputs[ACCEPTED_OUTPUT] = { Description: 'The fixed parameters and the limits', Value: ACCEPTED };
  for (const resource of Object.values(Resources))
    resource.DependsOn = [...([resource.DependsOn ?? []].flat() as string[]), CHANGE_CHECK];
  Object.assign(Resources, {
    [CHANGE_CHECK]: {
      Type: 'Custom::HoldfastChangeCheck',
      Properties: {
        ServiceToken: { 'Fn::GetAtt': [`${CHANGE_CHECK}Function`, 'Arn'] },
        ServiceTimeout: PATIENCE_SECONDS,
        allowChange: ref('allowChange'),
        ...CHECKED,
      },
    },
    [`${CHANGE_CHECK}Function`]: checkFunction(),
    [`${CHANGE_CHECK}Role`]: ROLE,
    [`${CHANGE_CHECK}LogGroup`]: {
      Type: 'AWS::Logs::LogGroup',
      Properties: {
        LogGroupName: LOG_GROUP,
        RetentionInDays: ref('logRetentionDays'),
        KmsKeyId: choose('HasKmsKey', ref('kmsKeyArn'), NO_VALUE),
      },
    },
  } satisfies Record<string, TemplateResource>);
}

const namesOf = (kind: 'fixed' | 'limit') => Object.keys(PARAMETERS).filter((name) => PARAMETERS[name]?.[kind]);

function defaultOf(name: string): [string, Json][] {
  const [, made] = (Object(RESOURCE_NAMES[name])['Fn::If'] ?? []) as Json[];
  const value = made ?? PARAMETERS[name]?.default;
  return value === undefined ? [] : [[name, value]];
}

const CHECKED = {
  values: Object.fromEntries(namesOf('fixed').map((name) => [name, RESOURCE_NAMES[name] ?? ref(name)])),
  limits: Object.fromEntries(namesOf('limit').map((name) => [name, ref(name)])),
  defaults: Object.fromEntries([...namesOf('fixed'), ...namesOf('limit')].flatMap(defaultOf)),
};

/** An output changes only with an update that succeeds, so it tells the change check which values were accepted last. */
const ACCEPTED: Json = {
  'Fn::Join': [
    ' ',
    Object.entries({ ...CHECKED.values, ...CHECKED.limits }).map(([name, value]) => ({
      'Fn::Join': ['=', [name, value]],
    })),
  ],
};

/** The function stays outside the VPC: its response goes to a CloudFormation bucket, which VPC endpoints may block. */
const checkFunction = (): TemplateResource => ({
  Type: 'AWS::Lambda::Function',
  DependsOn: [`${CHANGE_CHECK}LogGroup`],
  Properties: {
    FunctionName: NAME,
    Description: 'Refuses an update of the stack that changes a fixed parameter',
    Runtime: 'nodejs24.x',
    Architectures: ['arm64'],
    Handler: 'index.handler',
    Code: { ZipFile: CODE },
    MemorySize: 256,
    Timeout: 30,
    Role: { 'Fn::GetAtt': [`${CHANGE_CHECK}Role`, 'Arn'] },
    LoggingConfig: { LogFormat: ref('logFormat') },
  },
});

const ROLE: TemplateResource = {
  Type: 'AWS::IAM::Role',
  Properties: {
    RoleName: sub(`holdfast-\${stage}-checkChanges-\${AWS::Region}-lambdaRole`),
    PermissionsBoundary: choose('HasBoundary', ref('permissionsBoundaryArn'), NO_VALUE),
    AssumeRolePolicyDocument: {
      Version: '2012-10-17',
      Statement: [{ Effect: 'Allow', Principal: { Service: ['lambda.amazonaws.com'] }, Action: ['sts:AssumeRole'] }],
    },
    Policies: [
      {
        PolicyName: 'changeCheck',
        PolicyDocument: {
          Version: '2012-10-17',
          Statement: [
            {
              Effect: 'Allow',
              Action: ['logs:CreateLogStream', 'logs:PutLogEvents'],
              Resource: sub(
                `arn:\${AWS::Partition}:logs:\${AWS::Region}:\${AWS::AccountId}:log-group:/aws/lambda/holdfast-\${stage}-checkChanges:*`,
              ),
            },
            // The check must know whether CloudFormation rolls an update back, and which values were accepted last.
            { Effect: 'Allow', Action: ['cloudformation:DescribeStacks'], Resource: ref('AWS::StackId') },
          ],
        },
      },
    ],
  },
};

/** The code stands inside the template, so that no tool can deploy one without the other. */
const CODE = await code();

async function code(): Promise<string> {
  const { output } = await build({
    input: 'functions/deployment/change-check.ts',
    cwd: `${import.meta.dirname}/..`,
    platform: 'node',
    transform: { target: 'node24' },
    external: /^@aws-sdk\//,
    logLevel: 'warn',
    write: false,
    // Only `require` finds the SDK that Lambda's Node brings: `import()` does not.
    output: { format: 'cjs', dynamicImportInCjs: false, minify: true },
  });
  const text = output[0].code.trim();
  if (text.length > MAX_CODE)
    throw new Error(`the code of the change check is ${text.length} characters, over ${MAX_CODE}`);
  return text;
}
