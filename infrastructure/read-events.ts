import { ACCOUNT, lambdaId, REGION } from './logical-ids.ts';

/** An EventBridge event pattern. */
export type Pattern = { [field: string]: Pattern | unknown[] };

/** What invokes a function, besides HTTP. */
export type Trigger =
  | { kind: 'schedule'; rates: string[]; input: unknown }
  | { kind: 'pattern'; pattern: Pattern }
  | { kind: 'queue'; queue: string };

/** An event of a function, as serverless.yml writes it. */
export interface RawEvent {
  schedule?: string | { rate: string | string[]; enabled?: boolean; input?: unknown };
  eventBridge?: { pattern?: Pattern; schedule?: string; input?: unknown; enabled?: boolean };
  sqs?: unknown;
}

export interface Queue {
  /** A logical id in serverless.yml's resources. */
  id: string;
  delaySeconds: number;
  visibilitySeconds: number;
  /** How often the queue delivers a message at most. */
  maxDeliveries: number;
}

/** Where a rule sends an event: to a queue, or to a function by its name. */
export interface Target {
  queue?: string;
  functionName?: string;
  /** Makes the payload that is sent instead of the event. */
  transformer?: { InputPathsMap?: Record<string, string>; InputTemplate: string };
}

export interface EventResources {
  queues: Queue[];
  /** The rules in `resources`. A rule in the events of a function is one of that function's triggers. */
  rules: { pattern: Pattern; targets: Target[] }[];
  stateMachines: { name: string; definition: string }[];
}

export function triggers({ schedule, eventBridge, sqs }: RawEvent): Trigger[] {
  const found: Trigger[] = [];
  const { rate, enabled = true, input } = typeof schedule === 'string' ? { rate: schedule } : Object(schedule);
  if (schedule && enabled) found.push({ kind: 'schedule', rates: [rate].flat(), input });
  if (eventBridge && eventBridge.enabled !== false) {
    const { schedule: rate, pattern, input } = eventBridge;
    if (rate) found.push({ kind: 'schedule', rates: [rate], input });
    if (pattern) found.push({ kind: 'pattern', pattern });
  }
  const arn = Object(sqs).arn ?? sqs;
  if (arn) found.push({ kind: 'queue', queue: referred(arn) });
  return found;
}

interface RawResource {
  Type: string;
  // biome-ignore lint/suspicious/noExplicitAny: the properties of any resource
  Properties: Record<string, any>;
}

interface RawTarget {
  Arn: unknown;
  InputTransformer?: NonNullable<Target['transformer']>;
}

/** @param deployed the deployed name of a function or a resource */
export function eventResources(
  resources: Record<string, RawResource>,
  deployed: (name: string) => string,
  functions: object,
): EventResources {
  const resourcesOfType = (type: string) => Object.entries(resources).filter(([, { Type }]) => Type === type);
  const nameOf = Object.fromEntries(Object.keys(functions).map((name) => [lambdaId(name), name]));
  const functionArns = Object.entries(nameOf).map(([id, name]) => [
    id,
    `arn:aws:lambda:${REGION}:${ACCOUNT}:function:${deployed(name)}`,
  ]);
  const values: Record<string, string> = { 'AWS::Partition': 'aws', ...Object.fromEntries(functionArns) };
  return {
    queues: resourcesOfType('AWS::SQS::Queue').map(([id, { Properties = {} }]) => ({
      id,
      delaySeconds: Number(Properties.DelaySeconds ?? 0),
      visibilitySeconds: Number(Properties.VisibilityTimeout ?? 30),
      maxDeliveries: Number(Properties.RedrivePolicy?.maxReceiveCount ?? 3),
    })),
    rules: resourcesOfType('AWS::Events::Rule').flatMap(([, { Properties }]) => {
      if (!Properties.EventPattern || Properties.State === 'DISABLED') return [];
      const targets = (Properties.Targets as RawTarget[]).map(({ Arn, InputTransformer: transformer }): Target => {
        const id = referred(Arn);
        const functionName = nameOf[id];
        return { ...(functionName ? { functionName } : { queue: id }), ...(transformer && { transformer }) };
      });
      return [{ pattern: Properties.EventPattern, targets }];
    }),
    stateMachines: resourcesOfType('AWS::StepFunctions::StateMachine').map(([, { Properties }]) => ({
      name: String(Properties.StateMachineName),
      definition: substituted(Properties.Definition, Properties.DefinitionSubstitutions ?? {}, values),
    })),
  };
}

/** The logical id X in `!GetAtt X.Arn` or `!Ref X`. */
function referred(value: unknown): string {
  const { 'Fn::GetAtt': attribute, Ref } = Object(value);
  return String(Ref ?? [attribute ?? value].flat()[0]).replace(/\.Arn$/, '');
}

/** Puts DefinitionSubstitutions into a definition, as CloudFormation does. */
function substituted(definition: unknown, given: Record<string, unknown>, values: Record<string, string>): string {
  return JSON.stringify(definition).replaceAll(/\$\{(\w+)\}/g, (_, name) => {
    const value = values[referred(given[name])] ?? given[name];
    if (typeof value !== 'string') throw new Error(`the local stack has no value for ${name}`);
    return value;
  });
}
