import { inject } from 'vitest';
import { evaluate } from '../../../infrastructure/evaluate.ts';
import { CHANGE_CHECK } from '../../../infrastructure/logical-ids.ts';
import { type Resource, type Template, templateWithoutCode } from './packaging.ts';

/** The template of a release, with its parameters. */
export const released = await templateWithoutCode();
/** The template of a deployment that sets only what has no default. */
export const template = withParameters({});

/** The template of a deployment that changes every default. */
export const configured = withParameters({
  auth: 'jwt',
  jwtIssuer: 'https://issuer.example',
  jwtAudience: 'holdfast,operators',
  namespaces: 'team-a,,team-c',
  executionStateMachines: 'jobs-*',
  durableFunctions: 'billing-*',
  exclusiveTargets: 'nightly-*,etl-?',
  leasesTable: 'shared-leases',
  waitersTable: 'shared-waiters',
  commitsTable: 'shared-commits',
  nameserviceTable: 'shared-names',
  bucket: 'shared-bucket',
  reportSchedule: 'rate(1 hour)',
  autoClean: 'true',
  acquireConcurrency: '500',
  heartbeatConcurrency: '20',
  releaseConcurrency: '10',
  maxWaitSeconds: '5',
  alarms: 'all',
});

export function withParameters(parameters: Record<string, string>): Template {
  return evaluate(released, { stage: 'dev', codeBucket: 'code', ...parameters }) as Template;
}

export const { functions } = inject('service');

export const STAGE = 'dev';
export const TABLES = {
  leases: `holdfast-${STAGE}-leases`,
  waiters: `holdfast-${STAGE}-waiters`,
  commits: `holdfast-${STAGE}-commits`,
  nameservice: `holdfast-${STAGE}-nameservice`,
};
export const BUCKET = `holdfast-${STAGE}-\${AWS::AccountId}-\${AWS::Region}`;
export const bucketArn = (name: string, objects = '') => ({
  'Fn::Sub': `arn:\${AWS::Partition}:s3:::${name}${objects}`,
});
/** The capabilities, named like the folders of their functions. */
export const CAPABILITIES = ['leases', 'once', 'rates', 'commits', 'nameservice', 'expiry', 'contract'] as const;
export type Capability = (typeof CAPABILITIES)[number];
export const functionsOf = (capability: Capability) =>
  functions.filter(({ bundle }) => bundle.startsWith(`dist/${capability}/`));
export const capabilityOf = (name: string): Capability =>
  CAPABILITIES.find((capability) => functionsOf(capability).some((one) => one.name === name)) ?? 'leases';
const tableArn = (name: string) => ({
  'Fn::Sub': `arn:\${AWS::Partition}:dynamodb:\${AWS::Region}:\${AWS::AccountId}:table/${name}`,
});

/**
 * The resources that the functions of a capability may use.
 * @param machines pattern of the state machines whose executions may be described
 * @param durable pattern of the durable functions whose callbacks may be completed
 */
export const resources = (
  capability: Capability,
  { tables = TABLES, bucket = BUCKET, machines = '*', durable = '' } = {},
) =>
  ({
    leases: [
      ...[tables.leases, tables.waiters].flatMap((table) => [tableArn(table), tableArn(`${table}/index/by-execution`)]),
      '*',
      { 'Fn::Sub': `arn:\${AWS::Partition}:states:\${AWS::Region}:\${AWS::AccountId}:execution:${machines}:*` },
      { 'Fn::Sub': `arn:\${AWS::Partition}:lambda:\${AWS::Region}:\${AWS::AccountId}:function:${durable}:*` },
      { 'Fn::GetAtt': ['ExecutionEndedQueue', 'Arn'] },
      { 'Fn::GetAtt': ['RepairQueue', 'Arn'] },
    ],
    once: [tableArn(tables.leases)],
    rates: [tableArn(tables.leases)],
    commits: [
      tableArn(tables.commits),
      ...['', '/*', '/.holdfast/staging/*'].map((objects) => bucketArn(bucket, objects)),
    ],
    nameservice: [tableArn(tables.nameservice), tableArn(`${tables.nameservice}/index/gsi1-kind`)],
    expiry: [
      ...[tables.leases, tables.commits, tables.nameservice, tables.waiters].map(tableArn),
      { 'Fn::Sub': `arn:\${AWS::Partition}:states:\${AWS::Region}:\${AWS::AccountId}:execution:${machines}:*` },
      { 'Fn::Sub': `arn:\${AWS::Partition}:lambda:\${AWS::Region}:\${AWS::AccountId}:function:${durable}:*` },
      ...['', '/.holdfast/reports/*', '/.holdfast/staging/*'].map((objects) => bucketArn(bucket, objects)),
    ],
    contract: [],
  })[capability];

export const resourcesOfType = (type: string, from: Template = template): [string, Resource][] =>
  Object.entries(from.Resources).filter(([, { Type }]) => Type === type);

/** The functions of the service, without the change check of the deployment. */
export const lambdas = (from?: Template) =>
  resourcesOfType('AWS::Lambda::Function', from)
    .filter(([id]) => !id.startsWith(CHANGE_CHECK))
    .map(([logicalId, { Properties }]) => ({
      logicalId,
      name: String(Properties.FunctionName).replace(`holdfast-${STAGE}-`, ''),
      ...Properties,
    }));

export const roles = (from?: Template) => {
  const byId = new Map(resourcesOfType('AWS::IAM::Role', from));
  return lambdas(from).map(({ name, FunctionName, Role }) => {
    const [id] = Role['Fn::GetAtt'];
    return { name, FunctionName, id, role: byId.get(id)?.Properties, statements: statements(byId.get(id)) };
  });
};

export interface Statement {
  Effect: string;
  Action: string[];
  Resource: unknown;
}

export const statements = (role: Resource | undefined): Statement[] =>
  role?.Properties.Policies.flatMap((policy: { PolicyDocument: { Statement: Statement[] } }) =>
    policy.PolicyDocument.Statement.map((statement) => ({ ...statement, Action: [statement.Action].flat() })),
  );

export const isPermission = ({ Effect }: Statement) => Effect === 'Allow';

/** Whether a statement allows sending to the event bus, or to the queue of failed events. */
export const isOfEvents = ({ Action }: Statement) =>
  Action.every((action) => action === 'events:PutEvents' || action === 'sqs:SendMessage');

export const isLogs = ({ Action }: Statement) => Action.every((action) => action.startsWith('logs:'));
