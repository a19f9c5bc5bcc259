import { type CloudFormationTemplate, choose, type Json, NO_VALUE, type Properties, sub } from './cloudformation.ts';

/** The most names in `exclusiveTargets`. The number is fixed, because a template cannot loop without a transform. */
const PLACES = 8;

/** Lets `exclusive` start the state machines of every name in the list. Without this, the list would count as a single name. */
export function allowExclusiveTargets({ Conditions, Resources }: CloudFormationTemplate): void {
  for (let place = 1; place < PLACES; place++)
    Conditions[conditionOf(place)] = { 'Fn::Not': [{ 'Fn::Equals': [nameAt(place), ''] }] };
  const { Policies } = Resources.ExclusiveStateMachineRole?.Properties ?? {};
  const [{ PolicyDocument }] = Policies as [{ PolicyDocument: { Statement: Json[] } }];
  for (const statement of PolicyDocument.Statement) {
    const [, allowed] = (Object(statement)['Fn::If'] ?? []) as [string, Properties, Json];
    if (allowed) allowed.Resource = ofEachName(allowed.Resource as [{ 'Fn::Sub': string }]);
  }
}

const conditionOf = (place: number) => `ExclusiveTarget${place + 1}`;

/** Fn::Select fails beyond the end of a list, so commas are appended. */
const nameAt = (place: number): Json => ({
  'Fn::Select': [place, { 'Fn::Split': [',', sub(`\${exclusiveTargets}${','.repeat(PLACES)}`)] }],
});

function ofEachName([{ 'Fn::Sub': arn }]: [{ 'Fn::Sub': string }]): Json {
  const ofName = (place: number): Json => ({
    'Fn::Sub': [arn.replace(`\${exclusiveTargets}`, `\${name}`), { name: nameAt(place) }],
  });
  const others = Array.from({ length: PLACES - 1 }, (_, at) => choose(conditionOf(at + 1), ofName(at + 1), NO_VALUE));
  return [ofName(0), ...others];
}
