export type Json = string | number | boolean | null | Json[] | { [name: string]: Json };
export type Properties = { [name: string]: Json };

export interface TemplateResource {
  Type: string;
  Condition?: string;
  Properties?: Properties;
  [attribute: string]: Json | undefined;
}

export interface CloudFormationTemplate {
  AWSTemplateFormatVersion: string;
  Description: string;
  Metadata?: Properties;
  Parameters?: Record<string, Properties>;
  Rules?: Record<string, Json>;
  Conditions: Record<string, Json>;
  Resources: Record<string, TemplateResource>;
  Outputs: Record<string, { Description?: string; Value: Json; Export?: Json }>;
}

export const ref = (name: string): Json => ({ Ref: name });
export const sub = (text: string): Json => ({ 'Fn::Sub': text });
export const choose = (condition: string, then: Json, otherwise: Json): Json => ({
  'Fn::If': [condition, then, otherwise],
});
export const NO_VALUE: Json = { Ref: 'AWS::NoValue' };

export const equals = (name: string, value: string): Json => ({ 'Fn::Equals': [ref(name), value] });
export const isGiven = (name: string): Json => ({ 'Fn::Not': [equals(name, '')] });

/** Puts a condition around statements of a role, which the framework cannot. @param pattern matches an action of each statement that is meant */
export function allowOnlyIf(condition: string, { Properties }: TemplateResource, pattern: RegExp): void {
  const isMeant = (one: Json) => [Object(one).Action].flat().some((action) => pattern.test(String(action)));
  for (const { PolicyDocument } of (Properties?.Policies ?? []) as { PolicyDocument: { Statement: Json[] } }[])
    PolicyDocument.Statement = PolicyDocument.Statement.map((one) =>
      isMeant(one) ? choose(condition, one, NO_VALUE) : one,
    );
}
