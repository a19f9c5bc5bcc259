import { type CloudFormationTemplate, choose, type Json, NO_VALUE, type Properties, sub } from './cloudformation.ts';

/** The most names in `exclusiveTargets`. The number is fixed, because a template cannot loop without a transform. */
const MAX_TARGETS = 8;

/** Lets `exclusive` start the state machines of every name in the list. Without this, the list would count as a single name. */
export function allowExclusiveTargets({ Conditions, Resources }: CloudFormationTemplate): void {
  for (let index = 1; index < MAX_TARGETS; index++)
    Conditions[conditionOf(index)] = { 'Fn::Not': [{ 'Fn::Equals': [nameAt(index), ''] }] };
  const { Policies } = Resources.ExclusiveStateMachineRole?.Properties ?? {};
  const [{ PolicyDocument }] = Policies as [{ PolicyDocument: { Statement: Json[] } }];
  for (const statement of PolicyDocument.Statement) {
    const [, allowed] = (Object(statement)['Fn::If'] ?? []) as [string, Properties, Json];
    if (allowed) allowed.Resource = forEachTarget(allowed.Resource as [{ 'Fn::Sub': string }]);
  }
}

const conditionOf = (index: number) => `ExclusiveTarget${index + 1}`;

/** Fn::Select fails beyond the end of a list, so commas are appended. */
const nameAt = (index: number): Json => ({
  'Fn::Select': [index, { 'Fn::Split': [',', sub(`\${exclusiveTargets}${','.repeat(MAX_TARGETS)}`)] }],
});

function forEachTarget([{ 'Fn::Sub': arn }]: [{ 'Fn::Sub': string }]): Json {
  const withName = (index: number): Json => ({
    'Fn::Sub': [arn.replace(`\${exclusiveTargets}`, `\${name}`), { name: nameAt(index) }],
  });
  const others = Array.from({ length: MAX_TARGETS - 1 }, (_, at) =>
    choose(conditionOf(at + 1), withName(at + 1), NO_VALUE),
  );
  return [withName(0), ...others];
}
