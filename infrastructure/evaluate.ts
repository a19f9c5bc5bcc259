import type { CloudFormationTemplate, Json, TemplateResource } from './cloudformation.ts';

/** A template as CloudFormation evaluates it for one deployment. */
export interface Evaluated {
  Resources: Record<string, TemplateResource>;
  Outputs: CloudFormationTemplate['Outputs'];
}

const NOTHING = Symbol('AWS::NoValue');
type Value = Json | typeof NOTHING;

/**
 * Evaluates a template as CloudFormation would: it decides conditions and fills in parameters. References to things that only AWS knows
 * stay as they are.
 * @param given the values of parameters. All others have their defaults
 * @throws Error that names a parameter with neither a value nor a default
 */
export function evaluate(template: CloudFormationTemplate, given: Record<string, string>): Evaluated {
  const values = parameterValues(template, given);
  const holds = (name: string): boolean =>
    decide(template.Conditions[name] ?? missing(`the condition ${name}`), values, holds);
  const fill = (value: Json): Value => filled(value, values, holds);
  const kept = Object.entries(template.Resources).filter(([, { Condition }]) => !Condition || holds(Condition));
  return {
    Resources: Object.fromEntries(
      kept.map(([id, { Condition: _, ...resource }]) => [id, fill(resource as Json) as unknown as TemplateResource]),
    ),
    Outputs: fill(
      Object.fromEntries(
        Object.entries(template.Outputs as Record<string, Json & { Condition?: string }>).filter(
          ([, { Condition }]) => !Condition || holds(Condition),
        ),
      ) as Json,
    ) as unknown as CloudFormationTemplate['Outputs'],
  };
}

/** Every parameter with its value, and the given pseudo parameters. @throws Error that names a parameter with neither a value nor a default */
function parameterValues(
  { Parameters = {} }: Pick<CloudFormationTemplate, 'Parameters'>,
  given: Record<string, string>,
): Record<string, string> {
  const pseudo = Object.entries(given).filter(([name]) => name.startsWith('AWS::'));
  const declared = Object.entries(Parameters).map(([name, { Default }]): [string, string] => [
    name,
    given[name] ?? (Default === undefined ? missing(`the parameter ${name}`) : String(Default)),
  ]);
  return Object.fromEntries([...pseudo, ...declared]);
}

function missing(what: string): never {
  throw new Error(`${what} is missing`);
}

function decide(condition: Json, values: Record<string, string>, holds: (name: string) => boolean): boolean {
  const [[name, operands] = ['', []]] = Object.entries(Object(condition)) as [string, Json[]][];
  switch (name) {
    case 'Fn::Equals': {
      const [left, right] = operands.map((operand) => filled(operand, values, holds));
      return left === right;
    }
    case 'Fn::Not':
      return !decide(operands[0] ?? null, values, holds);
    case 'Fn::And':
      return operands.every((operand) => decide(operand, values, holds));
    case 'Fn::Or':
      return operands.some((operand) => decide(operand, values, holds));
    case 'Condition':
      return holds(String(operands));
    default:
      throw new Error(`no such condition: ${JSON.stringify(condition)}`);
  }
}

function filled(value: Json, values: Record<string, string>, holds: (name: string) => boolean): Value {
  const fill = (part: Json): Value => filled(part, values, holds);
  if (Array.isArray(value)) return value.map(fill).filter((part) => part !== NOTHING) as Json[];
  if (typeof value !== 'object' || value === null) return value;
  const { Ref: name, 'Fn::If': choice, 'Fn::Sub': text, 'Fn::Split': parts, 'Fn::Select': selected } = value;
  const { 'Fn::Join': joined } = value;
  if (name === 'AWS::NoValue') return NOTHING;
  if (typeof name === 'string') return values[name] ?? value;
  if (Array.isArray(choice)) return fill((holds(String(choice[0])) ? choice[1] : choice[2]) ?? null);
  if (text !== undefined) return substituted(text, values, fill);
  if (Array.isArray(joined)) return concatenated(joined, fill);
  if (Array.isArray(parts)) return String(fill(parts[1] ?? '')).split(String(parts[0]));
  if (Array.isArray(selected)) return (fill(selected[1] ?? []) as Json[])[Number(selected[0])] ?? null;
  return Object.fromEntries(
    Object.entries(value)
      .map(([key, part]) => [key, fill(part)] as const)
      .filter(([, part]) => part !== NOTHING),
  ) as Json;
}

/** A Fn::Join becomes a text if all its parts are known. */
function concatenated([separator = '', parts = []]: Json[], fill: (part: Json) => Value): Json {
  const known = fill(parts) as Json[];
  const isText = Array.isArray(known) && known.every((part) => typeof part === 'string');
  return isText ? known.join(String(separator)) : { 'Fn::Join': [separator, known] };
}

/** Fills known values into a Fn::Sub. It becomes a text if nothing unknown is left. */
function substituted(argument: Json, values: Record<string, string>, fill: (part: Json) => Value): Json {
  const [text, variables] = (Array.isArray(argument) ? argument : [argument, {}]) as [string, Record<string, Json>];
  const own = Object.fromEntries(Object.entries(variables).map(([key, part]) => [key, fill(part)]));
  const inner = (value: unknown): string => (typeof value === 'string' ? value : String(Object(value)['Fn::Sub']));
  const result = text.replaceAll(/\$\{([^!}]+)\}/g, (found, name) => {
    const known = own[name] ?? values[name];
    return known === undefined ? found : inner(known);
  });
  return /\$\{/.test(result) ? { 'Fn::Sub': result } : result;
}
