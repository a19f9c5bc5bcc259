import { createHash } from 'node:crypto';
import { addAliases } from './aliases.ts';
import { addChangeCheck } from './change-check.ts';
import {
  allowOnlyIf,
  type CloudFormationTemplate,
  choose,
  equals,
  isGiven,
  type Json,
  NO_VALUE,
  type Properties,
  ref,
  sub,
  type TemplateResource,
} from './cloudformation.ts';
import { functionName } from './dashboard.ts';
import { restrictDurableFunctions } from './durable-functions.ts';
import { allowExclusiveTargets } from './exclusive-targets.ts';
import { lambdaId } from './logical-ids.ts';
import type { ParameterName } from './parameters/kinds.ts';
import { GROUPS, PARAMETERS } from './parameters.ts';
import { applyPlatformParameters } from './platform.ts';
import { RESOURCE_NAMES } from './resource-names.ts';

/** Stands for a parameter while the framework packages. The framework accepts only such characters in names. */
const placeholder = (name: ParameterName): string => `0${name}0`;

/** The framework checks the values of these parameters and would refuse a placeholder, so they are set in the finished template. */
const SET_AFTERWARDS = new Set(
  'auth memoryMb logRetentionDays acquireConcurrency heartbeatConcurrency releaseConcurrency reportSchedule autoClean'.split(
    ' ',
  ),
);

/** The options for the framework, with a placeholder for each parameter. */
export const packagingOptions = (): string[] => [
  `--stage=${placeholder('stage')}`,
  '--param=auth=jwt',
  ...Object.entries(PARAMETERS)
    .filter(([name, { releasedOnly }]) => !releasedOnly && !SET_AFTERWARDS.has(name))
    .map(([name]) => `--param=${name}=${placeholder(name)}`),
];

/**
 * Turns what the framework packaged with `packagingOptions` into one template for every stage and configuration.
 * @param zips the name of each function's zip, by the name of the function
 */
export function parameterized(
  packaged: CloudFormationTemplate,
  zips: Record<string, string>,
  version: string,
): CloudFormationTemplate {
  // A release does not need the framework's bucket, and each function has its own role in place of the framework's common one.
  const isOfFramework = ([id]: [string, unknown]) => /^(ServerlessDeploymentBucket|IamRoleLambdaExecution)/.test(id);
  const without = (parts: object) => Object.fromEntries(Object.entries(parts).filter((one) => !isOfFramework(one)));
  const { Never: _, ...conditions } = packaged.Conditions;
  const template: CloudFormationTemplate = {
    AWSTemplateFormatVersion: packaged.AWSTemplateFormatVersion,
    Description: `Holdfast ${version}: leases, permits, once, rates, conditional commits, a nameservice and a report of expired records.`,
    Metadata: consoleGroups(),
    Parameters: parameters(),
    Rules: RULES,
    Conditions: { ...(filled(conditions, {}) as Record<string, Json>), ...CONDITIONS },
    Resources: filled(without(packaged.Resources) as Json, VALUES) as unknown as Record<string, TemplateResource>,
    Outputs: filled(without(packaged.Outputs) as Json, RESOURCE_NAMES) as unknown as CloudFormationTemplate['Outputs'],
  };
  for (const [id, resource] of Object.entries(template.Resources)) complete(id, resource, zips);
  restrictDurableFunctions(template);
  allowExclusiveTargets(template);
  addAliases(template);
  applyPlatformParameters(template);
  addChangeCheck(template);
  refuseLeftovers(template);
  return template;
}

const CONDITIONS: Record<string, Json> = {
  UseJwt: equals('auth', 'jwt'),
  OwnExecutions: {
    'Fn::Or': [
      equals('namespaceExecutions', 'own'),
      { 'Fn::And': [equals('namespaceExecutions', 'auto'), isGiven('namespaces')] },
    ],
  },
  NarrowExecutions: { 'Fn::Not': [equals('executionStateMachines', '*')] },
  CleanAutomatically: equals('autoClean', 'true'),
  Drained: equals('drained', 'true'),
  ReserveAcquire: isGiven('acquireConcurrency'),
  ReserveHeartbeat: isGiven('heartbeatConcurrency'),
  ReserveRelease: isGiven('releaseConcurrency'),
  PutsEvents: equals('events', 'ENABLED'),
};

/** The expressions that replace parameters in resources, where a plain reference is not enough. */
const VALUES: Record<ParameterName, Json> = {
  ...RESOURCE_NAMES,
  namespaceExecutions: choose('OwnExecutions', 'own', 'any'),
};

const needs = (name: ParameterName, other: ParameterName): Json => ({
  RuleCondition: isGiven(name),
  Assertions: [{ Assert: isGiven(other), AssertDescription: `${name} needs ${other}` }],
});

/** CloudFormation checks these before it changes anything, whichever tool sends the template. */
const RULES: Record<string, Json> = {
  JwtNeedsIssuerAndAudience: {
    RuleCondition: equals('auth', 'jwt'),
    Assertions: ['jwtIssuer', 'jwtAudience'].map((name) => ({
      Assert: isGiven(name),
      AssertDescription: `auth=jwt needs ${name}`,
    })),
  },
  VpcNeedsSecurityGroups: needs('vpcSubnetIds', 'vpcSecurityGroupIds'),
  DomainNeedsCertificate: needs('domainName', 'certificateArn'),
  ApiKeepsAnAddress: {
    RuleCondition: equals('disableExecuteApiEndpoint', 'true'),
    Assertions: [{ Assert: isGiven('domainName'), AssertDescription: 'disableExecuteApiEndpoint needs domainName' }],
  },
};

/** The filter for the state machines whose executions send an event when they end. */
const STATE_MACHINES_WITH_EVENTS: Json = choose(
  'NarrowExecutions',
  [
    // The wrappers always hold leases.
    ...[`\${executionStateMachines}`, `holdfast-\${stage}-*exclusive`].map((name) => ({
      wildcard: sub(`arn:\${AWS::Partition}:states:\${AWS::Region}:\${AWS::AccountId}:stateMachine:${name}`),
    })),
  ],
  NO_VALUE,
);

const ACQUIRE = lambdaId('acquire');

/** The functions that begin new work. */
const STOPPED_BY_DRAIN = [ACQUIRE, lambdaId('onceBegin'), lambdaId('rateReserve')];

/** Functions with reserved concurrency. */
const RESERVED: Record<string, [condition: string, parameter: ParameterName]> = {
  [ACQUIRE]: ['ReserveAcquire', 'acquireConcurrency'],
  HeartbeatLambdaFunction: ['ReserveHeartbeat', 'heartbeatConcurrency'],
  ReleaseLambdaFunction: ['ReserveRelease', 'releaseConcurrency'],
};

function complete(id: string, resource: TemplateResource, zips: Record<string, string>): void {
  const { Type, Properties: properties = {} } = resource;
  switch (Type) {
    case 'AWS::Lambda::Function': {
      const zip = zips[functionName(properties.FunctionName)];
      if (!zip) throw new Error(`the function ${id} has no zip`);
      properties.Code = { S3Bucket: ref('codeBucket'), S3Key: sub(`\${codePrefix}${zip}`) };
      properties.MemorySize = ref('memoryMb');
      const [condition, parameter] = RESERVED[id] ?? [];
      if (condition && parameter) properties.ReservedConcurrentExecutions = choose(condition, ref(parameter), NO_VALUE);
      if (STOPPED_BY_DRAIN.includes(id))
        properties.ReservedConcurrentExecutions = choose(
          'Drained',
          0,
          properties.ReservedConcurrentExecutions ?? NO_VALUE,
        );
      return;
    }
    case 'AWS::IAM::Role':
      // The report also puts events, but always, so its role keeps the permission.
      if (id.startsWith('RepairQueues')) allowOnlyIf('PutsEvents', resource, /^events:/);
      return;
    case 'AWS::Logs::LogGroup':
      properties.RetentionInDays = ref('logRetentionDays');
      return;
    case 'AWS::ApiGatewayV2::Authorizer':
      resource.Condition = 'UseJwt';
      Object.assign(Object(properties.JwtConfiguration), { Audience: { 'Fn::Split': [',', ref('jwtAudience')] } });
      return;
    case 'AWS::ApiGatewayV2::Route':
      properties.AuthorizationType = choose('UseJwt', 'JWT', 'AWS_IAM');
      properties.AuthorizerId = choose('UseJwt', properties.AuthorizerId ?? null, NO_VALUE);
      if (properties.AuthorizationScopes)
        properties.AuthorizationScopes = choose('UseJwt', properties.AuthorizationScopes, NO_VALUE);
      return;
    case 'AWS::Events::Rule':
      if (id === 'ReportEventsRuleSchedule1') properties.ScheduleExpression = ref('reportSchedule');
      if (id === 'ExecutionEndedRule')
        Object.assign(Object(properties.EventPattern).detail, { stateMachineArn: STATE_MACHINES_WITH_EVENTS });
      if (id === 'ExpiredReportedRule') properties.State = choose('CleanAutomatically', 'ENABLED', 'DISABLED');
      return;
  }
}

/** The name of a function's zip. It has a hash of the code, because CloudFormation updates a function only if the name changes. */
export const zipName = (name: string, content: Buffer): string =>
  `${name}-${createHash('sha256').update(content).digest('hex')}.zip`;

const PLACEHOLDERS = new RegExp(Object.keys(PARAMETERS).map(placeholder).join('|'), 'g');

/** Replaces placeholders by references. @param names the expression for each parameter that needs more than a plain reference */
function filled(value: Json, names: Record<ParameterName, Json>): Json {
  if (typeof value === 'string') return filledText(value.replaceAll('${', '${!'), value, names);
  if (Array.isArray(value)) return value.map((part) => filled(part, names));
  if (typeof value !== 'object' || value === null) return value;
  const { 'Fn::Sub': template } = value;
  if (typeof template === 'string') return filledText(template, value, names);
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, filled(part, names)]));
}

/** @param template a text in the form of Fn::Sub @param unchanged the result if the text has no placeholder */
function filledText(template: string, unchanged: Json, names: Record<ParameterName, Json>): Json {
  const found = [...new Set(template.match(PLACEHOLDERS))].map((one) => one.slice(1, -1));
  if (found.length === 0) return unchanged;
  const [only] = found;
  if (only && template === placeholder(only)) return names[only] ?? ref(only);
  const variables: Properties = {};
  for (const name of found) if (names[name]) variables[`${name}Name`] = names[name];
  const text = template.replaceAll(PLACEHOLDERS, (one) => {
    const name = one.slice(1, -1);
    return names[name] ? `\${${name}Name}` : `\${${name}}`;
  });
  return Object.keys(variables).length === 0 ? sub(text) : { 'Fn::Sub': [text, variables] };
}

function refuseLeftovers(template: CloudFormationTemplate): void {
  const [found] = JSON.stringify(template).match(PLACEHOLDERS) ?? [];
  if (found) throw new Error(`${found} is left in the template`);
}

const parameters = (): Record<string, Properties> =>
  Object.fromEntries(
    Object.entries(PARAMETERS).map(
      ([name, { default: value, description, pattern, constraint, allowed, min, max }]) => [
        name,
        {
          Type: min === undefined ? 'String' : 'Number',
          Description: description,
          ...(value !== undefined && { Default: value }),
          ...(allowed && { AllowedValues: allowed }),
          ...(pattern && { AllowedPattern: pattern }),
          ...(constraint && { ConstraintDescription: `${name} ${constraint}` }),
          ...(min !== undefined && { MinValue: min }),
          ...(max !== undefined && { MaxValue: max }),
        },
      ],
    ),
  );

const consoleGroups = (): Properties => ({
  'AWS::CloudFormation::Interface': {
    ParameterGroups: Object.entries(GROUPS).map(([label, group]) => ({
      Label: { default: label },
      Parameters: Object.keys(group),
    })),
  },
});
