import {
  type CloudFormationTemplate,
  type Json,
  type Properties,
  ref,
  sub,
  type TemplateResource,
} from './cloudformation.ts';
import { lambdaId } from './logical-ids.ts';

/**
 * The most namespaces that the parameter `namespaces` can name. The number is fixed, because a template cannot loop without a transform,
 * and neither CDK's include nor StackSets accept templates with one.
 */
const MAX_NAMESPACES = 8;

/** The functions that tasks call. For other functions or more namespaces, an operator makes aliases (docs/authorization.md). */
const TASK_FUNCTIONS = [
  ...['acquire', 'heartbeat', 'release', 'readLeases', 'rateReserve'],
  ...['commit', 'stageUpload', 'readCommit', 'publish', 'readNames'],
];

/** The alias that the API invokes. Namespaces have no capitals, so none of them has this name. */
const API_ALIAS = 'HTTP';

/**
 * Adds an alias of each function for the API, and lets the API invoke only these. For each namespace of tasks, adds further aliases and
 * a state machine `exclusive` that may invoke only the aliases of its namespace.
 */
export function addAliases(template: CloudFormationTemplate): void {
  for (const [id, resource] of Object.entries(template.Resources)) invokeAlias(template, id, resource);
  for (let index = 0; index < MAX_NAMESPACES; index++) addNamespace(template, index);
}

const alias = (functionId: string, name: Json): TemplateResource => ({
  Type: 'AWS::Lambda::Alias',
  Properties: { FunctionName: ref(functionId), FunctionVersion: '$LATEST', Name: name },
});

/** Points the integration of a function, and the permission of the API to invoke it, at the alias. */
function invokeAlias(
  { Resources }: CloudFormationTemplate,
  id: string,
  { Type, Properties = {} }: TemplateResource,
): void {
  const field = { 'AWS::ApiGatewayV2::Integration': 'IntegrationUri', 'AWS::Lambda::Permission': 'FunctionName' }[Type];
  if (!field || (field === 'FunctionName' && Properties.Principal !== 'apigateway.amazonaws.com')) return;
  const [functionId = ''] = [Object(Properties[field])['Fn::GetAtt']].flat() as string[];
  if (Resources[functionId]?.Type !== 'AWS::Lambda::Function') throw new Error(`${id} does not belong to a function`);
  const aliasId = `${functionId}HttpAlias`;
  Resources[aliasId] ??= alias(functionId, API_ALIAS);
  Properties[field] = ref(aliasId);
}

/** A namespace of the list. Fn::Select fails beyond the end of a list, so commas are appended. */
const nameAt = (index: number): Json => ({
  'Fn::Select': [index, { 'Fn::Split': [',', sub(`\${namespaces}${','.repeat(MAX_NAMESPACES)}`)] }],
});

function addNamespace(template: CloudFormationTemplate, index: number): void {
  const condition = `Namespace${index + 1}`;
  const name = nameAt(index);
  const add = (id: string, resource: TemplateResource) => {
    template.Resources[id] = { ...resource, Condition: condition };
  };
  template.Conditions[condition] = { 'Fn::Not': [{ 'Fn::Equals': [name, ''] }] };
  const aliasId = (functionName: string) => `${lambdaId(functionName)}${condition}`;
  for (const one of TASK_FUNCTIONS) add(aliasId(one), alias(lambdaId(one), name));
  const role = `${condition}ExclusiveRole`;
  const invoked = ['acquire', 'release', 'rateReserve'].map((one) => ref(aliasId(one)));
  add(role, exclusiveRole(template, { name, invoked }));
  add(`${condition}Exclusive`, exclusive(template, { name, role, invoked }));
  template.Outputs[`${condition}ExclusiveStateMachineArn`] = {
    ...{ Condition: condition, Description: 'The state machine exclusive of the namespace' },
    Value: ref(`${condition}Exclusive`),
  } as CloudFormationTemplate['Outputs'][string];
}

interface Namespace {
  name: Json;
  /** The aliases of acquire, release and rateReserve. */
  invoked: Json[];
}

function exclusive(
  template: CloudFormationTemplate,
  { name, role, invoked }: Namespace & { role: string },
): TemplateResource {
  const { Type, Properties } = copyOf(template, 'ExclusiveStateMachine');
  const [acquire = null, release = null, reserve = null] = invoked;
  const given = Properties.DefinitionSubstitutions as Properties;
  return {
    Type,
    Properties: {
      ...Properties,
      StateMachineName: { 'Fn::Sub': [`holdfast-\${stage}-\${namespace}-exclusive`, { namespace: name }] },
      RoleArn: { 'Fn::GetAtt': [role, 'Arn'] },
      DefinitionSubstitutions: {
        ...given,
        ...{ AcquireFunctionArn: acquire, ReleaseFunctionArn: release, RateReserveFunctionArn: reserve },
      },
    },
  };
}

/** Lets `exclusive` start the state machines of the namespace: those whose names begin with the namespace and a hyphen. */
function exclusiveRole(template: CloudFormationTemplate, { name, invoked }: Namespace): TemplateResource {
  const { Type, Properties } = copyOf(template, 'ExclusiveStateMachineRole');
  const [{ PolicyName, PolicyDocument }] = Properties.Policies as [{ PolicyName: Json; PolicyDocument: Properties }];
  const own = (kind: string): Json => ({
    'Fn::Sub': [`arn:\${AWS::Partition}:states:\${AWS::Region}:\${AWS::AccountId}:${kind}`, { namespace: name }],
  });
  const mayWatchExecutions = (PolicyDocument.Statement as Json[]).at(-1) ?? null;
  const allow = (actions: string[], resource: Json): Json => ({ Effect: 'Allow', Action: actions, Resource: resource });
  const statements = [
    allow(['lambda:InvokeFunction'], invoked),
    allow(['states:StartExecution'], own(`stateMachine:\${namespace}-*`)),
    allow(['states:DescribeExecution', 'states:StopExecution'], own(`execution:\${namespace}-*:*`)),
    mayWatchExecutions,
  ];
  return {
    Type,
    Properties: {
      ...Properties,
      Policies: [{ PolicyName, PolicyDocument: { ...PolicyDocument, Statement: statements } }],
    },
  };
}

/** Copies the resource that serves the whole deployment. */
function copyOf({ Resources }: CloudFormationTemplate, id: string): { Type: string; Properties: Properties } {
  const { Type, Properties } = structuredClone(Resources[id]) ?? {};
  if (!Type || !Properties) throw new Error(`the template has no ${id}`);
  return { Type, Properties };
}
