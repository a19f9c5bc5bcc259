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
 * How many namespaces of tasks a deployment can have by its parameter `namespaces`. A number, because a template has no loop
 * without a transform, and neither CDK's include nor StackSets take templates with one.
 */
const SLOTS = 8;

/** The functions that tasks call. For other functions and more namespaces, an operator makes aliases: docs/authorization.md. */
const TASK_FUNCTIONS = [
  ...['acquire', 'heartbeat', 'release', 'readLeases', 'rateReserve'],
  ...['commit', 'stageUpload', 'readCommit', 'publish', 'readNames'],
];

/** The alias that the API invokes. No namespace has capitals, so none can collide with it. */
const API_ALIAS = 'HTTP';

/**
 * Adds an alias of each function for the API, which then invokes nothing else. For each namespace of tasks it adds
 * aliases, and an `exclusive` that may invoke only those.
 */
export function namespaces(template: CloudFormationTemplate): void {
  for (const [id, resource] of Object.entries(template.Resources)) throughAlias(template, id, resource);
  for (let slot = 0; slot < SLOTS; slot++) addNamespace(template, slot);
}

const alias = (functionId: string, name: Json): TemplateResource => ({
  Type: 'AWS::Lambda::Alias',
  Properties: { FunctionName: ref(functionId), FunctionVersion: '$LATEST', Name: name },
});

/** The integration of a function, and the permission of the API to invoke it. */
function throughAlias(
  { Resources }: CloudFormationTemplate,
  id: string,
  { Type, Properties = {} }: TemplateResource,
): void {
  const field = { 'AWS::ApiGatewayV2::Integration': 'IntegrationUri', 'AWS::Lambda::Permission': 'FunctionName' }[Type];
  if (!field || (field === 'FunctionName' && Properties.Principal !== 'apigateway.amazonaws.com')) return;
  const [functionId = ''] = [Object(Properties[field])['Fn::GetAtt']].flat() as string[];
  if (Resources[functionId]?.Type !== 'AWS::Lambda::Function') throw new Error(`${id} is of no function`);
  const aliasId = `${functionId}HttpAlias`;
  Resources[aliasId] ??= alias(functionId, API_ALIAS);
  Properties[field] = ref(aliasId);
}

/** The name at a place of the list. Commas appended to the list make every place exist. */
const nameAt = (slot: number): Json => ({
  'Fn::Select': [slot, { 'Fn::Split': [',', sub(`\${namespaces}${','.repeat(SLOTS)}`)] }],
});

function addNamespace(template: CloudFormationTemplate, slot: number): void {
  const condition = `Namespace${slot + 1}`;
  const name = nameAt(slot);
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

interface OfNamespace {
  name: Json;
  /** The aliases of acquire, release and rateReserve. */
  invoked: Json[];
}

function exclusive(
  template: CloudFormationTemplate,
  { name, role, invoked }: OfNamespace & { role: string },
): TemplateResource {
  const { Type, Properties } = whole(template, 'ExclusiveStateMachine');
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

/** It may start the state machines of the namespace: those whose names begin with it and a hyphen. */
function exclusiveRole(template: CloudFormationTemplate, { name, invoked }: OfNamespace): TemplateResource {
  const { Type, Properties } = whole(template, 'ExclusiveStateMachineRole');
  const [{ PolicyName, PolicyDocument }] = Properties.Policies as [{ PolicyName: Json; PolicyDocument: Properties }];
  const own = (kind: string): Json => ({
    'Fn::Sub': [`arn:\${AWS::Partition}:states:\${AWS::Region}:\${AWS::AccountId}:${kind}`, { namespace: name }],
  });
  const learnsOfEnds = (PolicyDocument.Statement as Json[]).at(-1) ?? null;
  const allow = (actions: string[], resource: Json): Json => ({ Effect: 'Allow', Action: actions, Resource: resource });
  const statements = [
    allow(['lambda:InvokeFunction'], invoked),
    allow(['states:StartExecution'], own(`stateMachine:\${namespace}-*`)),
    allow(['states:DescribeExecution', 'states:StopExecution'], own(`execution:\${namespace}-*:*`)),
    learnsOfEnds,
  ];
  return {
    Type,
    Properties: {
      ...Properties,
      Policies: [{ PolicyName, PolicyDocument: { ...PolicyDocument, Statement: statements } }],
    },
  };
}

/** A copy of the resource that serves the whole deployment. */
function whole({ Resources }: CloudFormationTemplate, id: string): { Type: string; Properties: Properties } {
  const { Type, Properties } = structuredClone(Resources[id]) ?? {};
  if (!Type || !Properties) throw new Error(`the template has no ${id}`);
  return { Type, Properties };
}
