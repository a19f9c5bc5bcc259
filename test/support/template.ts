import { readService } from '../../infrastructure/read.ts';
import { onceInRun } from './once.ts';
import { npmRunPackage, packageWith, type Resource, type Template } from './packaging.ts';

export const packaged = await npmRunPackage();
/** What it wrote, with every parameter as by default, and the names in each function's zip. */
export const { template, zipped } = packaged;

/** Packaged once in a run, with everything otherwise than by default. */
export const configured = () => {
  const settings = { AUTH: 'jwt', JWT_ISSUER: 'https://issuer.example', JWT_AUDIENCE: 'holdfast' };
  const parameters = [
    '--param=exclusiveTargets=nightly-*',
    '--param=leasesTable=shared-leases',
    '--param=waitersTable=shared-waiters',
    '--param=commitsTable=shared-commits',
    '--param=nameserviceTable=shared-names',
    '--param=bucket=shared-bucket',
    '--param=reportSchedule=rate(1 hour)',
    '--param=autoClean=true',
    '--param=acquireConcurrency=500',
    '--param=heartbeatConcurrency=20',
    '--param=releaseConcurrency=10',
    '--param=maxWaitSeconds=5',
  ];
  return onceInRun('configured', () => packageWith(parameters, settings));
};

export const { functions } = await readService();

export const STAGE = 'dev'; // the default of `npm run package`
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
/** By the folder of their functions. */
export const CAPABILITIES = ['leases', 'commits', 'nameservice', 'expiry', 'contract'] as const;
export type Capability = (typeof CAPABILITIES)[number];
export const functionsOf = (capability: Capability) =>
  functions.filter(({ bundle }) => bundle.startsWith(`dist/${capability}/`));
export const capabilityOf = (name: string): Capability =>
  CAPABILITIES.find((capability) => functionsOf(capability).some((one) => one.name === name)) ?? 'leases';
const tableArn = (name: string) => ({
  'Fn::Sub': `arn:\${AWS::Partition}:dynamodb:\${AWS::Region}:\${AWS::AccountId}:table/${name}`,
});

/** The table and the index of the nameservice's, or the table and what commits need of the bucket. */
export const resources = (capability: Capability, tables = TABLES, bucket = BUCKET) =>
  ({
    leases: [
      ...[tables.leases, tables.waiters].flatMap((table) => [tableArn(table), tableArn(`${table}/index/by-execution`)]),
      '*',
      { 'Fn::Sub': `arn:\${AWS::Partition}:states:\${AWS::Region}:\${AWS::AccountId}:execution:*` },
      { 'Fn::GetAtt': ['ExecutionEndedQueue', 'Arn'] },
    ],
    commits: [
      tableArn(tables.commits),
      ...['', '/*', '/.holdfast/staging/*'].map((objects) => bucketArn(bucket, objects)),
    ],
    nameservice: [tableArn(tables.nameservice), tableArn(`${tables.nameservice}/index/gsi1-kind`)],
    expiry: [
      ...[tables.leases, tables.commits, tables.nameservice, tables.waiters].map(tableArn),
      ...['', '/.holdfast/reports/*', '/.holdfast/staging/*'].map((objects) => bucketArn(bucket, objects)),
    ],
    contract: [],
  })[capability];

/** The resources that a deployment creates: those whose condition holds. */
export function created({ Resources, Conditions }: Template): Record<string, Resource> {
  const holds = ({ Condition }: Resource) => Condition === undefined || evaluate(Conditions[Condition]);
  return Object.fromEntries(Object.entries(Resources).filter(([, resource]) => holds(resource)));
}

function evaluate(condition: unknown): boolean {
  const [[name, operands] = ['', []]] = Object.entries(condition as Record<string, unknown[]>);
  switch (name) {
    case 'Fn::Equals':
      return operands[0] === operands[1];
    case 'Fn::Not':
      return !evaluate(operands[0]);
    default:
      throw new Error(`the test cannot evaluate the condition ${JSON.stringify(condition)}`);
  }
}

export const ofType = (type: string, from: Template = template): [string, Resource][] =>
  Object.entries(created(from)).filter(([, { Type }]) => Type === type);

export const lambdas = (from?: Template) =>
  ofType('AWS::Lambda::Function', from).map(([logicalId, { Properties }]) => ({
    logicalId,
    name: String(Properties.FunctionName).replace(`holdfast-${STAGE}-`, ''),
    ...Properties,
  }));

export const roles = (from?: Template) => {
  const byId = new Map(ofType('AWS::IAM::Role', from));
  return lambdas(from).map(({ name, FunctionName, Role }) => {
    const [id] = Role['Fn::GetAtt'];
    return { name, FunctionName, id, role: byId.get(id)?.Properties, statements: statements(byId.get(id)) };
  });
};

interface Statement {
  Effect: string;
  Action: string[];
  Resource: unknown;
}

export const statements = (role: Resource | undefined): Statement[] =>
  role?.Properties.Policies.flatMap((policy: { PolicyDocument: { Statement: Statement[] } }) =>
    policy.PolicyDocument.Statement.map((statement) => ({ ...statement, Action: [statement.Action].flat() })),
  );

export const isPermission = ({ Effect }: Statement) => Effect === 'Allow';

/** Sending to the event bus, and to the queue of events that a function failed at. */
export const isOfEvents = ({ Action }: Statement) =>
  Action.every((action) => action === 'events:PutEvents' || action === 'sqs:SendMessage');

export const isLogs = ({ Action }: Statement) => Action.every((action) => action.startsWith('logs:'));
