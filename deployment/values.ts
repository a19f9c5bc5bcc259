import type { CloudFormationTemplate, Properties } from '../infrastructure/cloudformation.ts';
import { evaluate } from '../infrastructure/evaluate.ts';
import { commitsFromEnvironment, uploadsFromEnvironment } from '../shared/commits/environment.ts';
import { reportsFromEnvironment } from '../shared/expiry/environment.ts';
import { leasesFromEnvironment } from '../shared/locks/dependencies.ts';
import { nameserviceFromEnvironment } from '../shared/nameservice/environment.ts';
import { Refusal } from './failure.ts';

export type Values = Record<string, string>;

/** @param given each as name=value @throws Refusal that names a parameter which the template does not have */
export function parseParameters(
  given: string[],
  { Parameters = {} }: Pick<CloudFormationTemplate, 'Parameters'>,
): Values {
  const values: Values = {};
  for (const text of given) {
    const [, name, value] = /^([^=]+)=(.*)$/s.exec(text) ?? [];
    if (name === undefined || value === undefined)
      throw new Refusal(`a parameter is written name=value, and not '${text}'`);
    checkName(name, Parameters);
    if (name in values && values[name] !== value) throw new Refusal(`the parameter ${name} is given twice`);
    values[name] = value;
  }
  return values;
}

/** @throws Refusal that proposes the parameter which was probably meant */
export function checkName(name: string, known: object): void {
  if (Object.hasOwn(known, name)) return;
  const close = Object.keys(known).find((other) => distance(other.toLowerCase(), name.toLowerCase()) <= 2);
  throw new Refusal(`there is no parameter ${name}${close ? `: do you mean ${close}?` : ''}`);
}

/**
 * @param values all parameters that the deployment would have
 * @throws Refusal that names each parameter which does not fit, in the words of the template and of the functions
 */
export function checkValues(template: CloudFormationTemplate, values: Values): void {
  const problems = [
    ...Object.entries(template.Parameters ?? {}).flatMap(([name, rules]) => problemOf(name, values[name], rules)),
  ];
  if (problems.length === 0) problems.push(...overlapping(values), ...brokenRules(template, values));
  if (problems.length === 0) problems.push(...refusedByFunctions(template, values));
  if (problems.length > 0) throw new Refusal([...new Set(problems)].join('\n'));
}

/** Keys, topics and the certificate must be in the region of the deployment. */
const IN_REGION = ['kmsKeyArn', 'bucketKmsKeyArn', 'alarmTopicArn', 'alarmOkTopicArn', 'certificateArn'];

/** @throws Refusal that names each ARN of another region or partition */
export function checkLocation(values: Values, { region, partition }: { region: string; partition: string }): void {
  const problems = Object.entries(values).flatMap(([name, value]) => {
    const [arn, itsPartition, , itsRegion] = value.split(':');
    if (arn !== 'arn' || !name.endsWith('Arn')) return [];
    if (itsPartition !== partition) return [`${name} must be of the partition ${partition}, not '${value}'`];
    if (!IN_REGION.includes(name) || itsRegion === region) return [];
    return [`${name} must be of the region ${region}, not '${value}'`];
  });
  if (problems.length > 0) throw new Refusal(problems.join('\n'));
}

/** A namespace owns the state machines whose names begin with `<namespace>-`. The names of the deployment's own begin with `holdfast-`. */
function overlapping({ namespaces = '' }: Values): string[] {
  const names = namespaces.split(',');
  return [...names, 'holdfast'].flatMap((name) => {
    const other = names.find((one) => one.startsWith(`${name}-`) || (name === 'holdfast' && one === name));
    return other === undefined
      ? []
      : [`namespaces must not contain ${other}: the names of its state machines could also belong to ${name}`];
  });
}

/** The largest value of a parameter that CloudFormation accepts. */
const MAX_BYTES = 4096;

function problemOf(name: string, value: string | undefined, rules: Properties): string[] {
  const { Default, AllowedValues, AllowedPattern, ConstraintDescription, MinValue, MaxValue, Type } = rules;
  const actual = value ?? (Default === undefined ? undefined : String(Default));
  if (actual === undefined) return [`the parameter ${name} must be given`];
  if (Buffer.byteLength(actual) > MAX_BYTES) return [`${name} must be at most ${MAX_BYTES} bytes`];
  if (Array.isArray(AllowedValues) && !AllowedValues.includes(actual))
    return [`${name} must be one of ${AllowedValues.join(', ')}, not '${actual}'`];
  if (AllowedPattern && !new RegExp(String(AllowedPattern)).test(actual))
    return [`${ConstraintDescription}, not '${actual}'`];
  const number = Number(actual);
  if (Type === 'Number' && !(/^\d+$/.test(actual) && number >= Number(MinValue) && number <= Number(MaxValue)))
    return [`${name} must be a whole number from ${MinValue} to ${MaxValue}, not '${actual}'`];
  // CloudWatch accepts only whole minutes as the period of a metric.
  if (name === 'reportOverdueSeconds' && number % 60 !== 0) return [`${name} must be whole minutes, not '${actual}'`];
  return [];
}

/** The rules of the template, such as that a parameter needs another one. */
function brokenRules(template: CloudFormationTemplate, values: Values): string[] {
  const rules = Object.values(template.Rules ?? {}) as unknown as Rule[];
  return rules.flatMap(({ RuleCondition, Assertions }) => {
    const holds = (condition: Properties) => isTrue(template, values, condition);
    if (RuleCondition && !holds(RuleCondition)) return [];
    return Assertions.filter(({ Assert }) => !holds(Assert)).map(({ AssertDescription }) => AssertDescription);
  });
}

interface Rule {
  /** Without a condition, the assertions always count. */
  RuleCondition?: Properties;
  Assertions: { Assert: Properties; AssertDescription: string }[];
}

function isTrue(template: CloudFormationTemplate, values: Values, condition: Properties): boolean {
  const probe = {
    ...template,
    Conditions: { Probe: condition },
    Resources: { It: { Type: 'Probe', Condition: 'Probe' } },
    Outputs: {},
  };
  return 'It' in evaluate(probe, values).Resources;
}

/** The errors with which functions would fail at their start. They name parameters instead of environment variables. */
function refusedByFunctions(template: CloudFormationTemplate, values: Values): string[] {
  const declared = variablesOf(template);
  const environment = variablesOf(evaluate(template, values));
  const env = Object.fromEntries(
    Object.entries(environment).map(([name, value]) => [name, typeof value === 'string' ? value : 'known-to-aws']),
  );
  const starts = [
    leasesFromEnvironment,
    commitsFromEnvironment,
    uploadsFromEnvironment,
    nameserviceFromEnvironment,
    reportsFromEnvironment,
  ];
  return starts.flatMap((start) => {
    try {
      start(env);
      return [];
    } catch (error) {
      return [inParameters((error as Error).message, declared)];
    }
  });
}

function inParameters(message: string, declared: Properties): string {
  return message.replaceAll(/\b[A-Z][A-Z0-9_]+\b/g, (variable) => {
    const { Ref } = Object(declared[variable]);
    return Ref ?? variable;
  });
}

/** The environment that all functions share. */
function variablesOf({ Resources }: Pick<CloudFormationTemplate, 'Resources'>): Properties {
  const { Environment } = Object(Resources.AcquireLambdaFunction?.Properties);
  return Object(Environment).Variables ?? {};
}

/** How many letters must be changed, inserted or deleted to turn one word into the other (the Levenshtein distance). */
function distance(left: string, right: string): number {
  let above = Array.from({ length: right.length + 1 }, (_, at) => at);
  for (const [at, letter] of [...left].entries()) {
    const row = [at + 1];
    for (const [column, other] of [...right].entries()) {
      const replaced = (above[column] ?? 0) + (letter === other ? 0 : 1);
      row.push(Math.min(replaced, (above[column + 1] ?? 0) + 1, (row[column] ?? 0) + 1));
    }
    above = row;
  }
  return above[right.length] ?? 0;
}
