import type { CloudFormationTemplate, Json } from '../infrastructure/cloudformation.ts';
import { type Values, variablesOf } from './values.ts';

/**
 * The parameters of a stack that a version without parameters deployed. They are the values in its template where ours
 * has references. A value that cannot be found is left out.
 */
export function inferred(
  ours: CloudFormationTemplate,
  theirs: Pick<CloudFormationTemplate, 'Resources' | 'Conditions'>,
  stage: string,
): Values {
  const found: Values = { stage, ...authOf(theirs) };
  compare(ours.Conditions as Json, theirs.Conditions as Json, found);
  compare(ours.Resources as unknown as Json, theirs.Resources as unknown as Json, found);
  const rule = Object.entries(theirs.Resources).find(([id]) => /^Holdfast\w+cleanrule\d+EventBridgeRule$/.test(id));
  if (rule) found.autoClean = String(rule[1].Properties?.State === 'ENABLED');
  const { Period } = Object(theirs.Resources.ReportOverdueAlarm?.Properties);
  if (Period) found.reportOverdueSeconds = String(Period);
  const { POWERTOOLS_LOG_LEVEL: logLevel } = variablesOf(theirs);
  if (typeof logLevel === 'string') found.logLevel = logLevel;
  if (theirs.Resources.ServerlessDeploymentBucket) found.keepServerlessBucket = 'true';
  for (const name of Object.keys(found)) if (!ours.Parameters?.[name]) delete found[name];
  return found;
}

function authOf({ Resources }: Pick<CloudFormationTemplate, 'Resources'>): Values {
  const authorizer = Object.values(Resources).find(({ Type }) => Type === 'AWS::ApiGatewayV2::Authorizer');
  const { JwtConfiguration } = Object(authorizer?.Properties);
  if (!JwtConfiguration) return { auth: 'iam' };
  return {
    auth: 'jwt',
    jwtIssuer: String(JwtConfiguration.Issuer),
    jwtAudience: String(JwtConfiguration.Audience?.[0]),
  };
}

/** A value that was fixed at packaging stands where our template refers to a parameter. */
function compare(ours: Json | undefined, theirs: Json | undefined, found: Values): void {
  if (ours === undefined || theirs === undefined || ours === null || typeof ours !== 'object') return;
  const { Ref: name, 'Fn::If': choice, 'Fn::Sub': text } = ours as { [name: string]: Json };
  if (typeof name === 'string') {
    if (['string', 'number', 'boolean'].includes(typeof theirs)) found[name] ??= String(theirs);
    return;
  }
  if (Array.isArray(choice)) {
    // A name that the template made up means an empty parameter, which the conditions show.
    for (const branch of choice.slice(1)) if (!isReferenceToName(branch)) compare(branch, theirs, found);
    return;
  }
  if (text !== undefined) compareTexts(text, theirs, found);
  else for (const [key, part] of Object.entries(ours)) compare(part, Object(theirs)[key], found);
}

const isReferenceToName = (value: Json | undefined): boolean => /Table$|^bucket$/.test(String(Object(value).Ref));

function compareTexts(ours: Json, theirs: Json, found: Values): void {
  const other = typeof theirs === 'string' ? theirs : Object(theirs)['Fn::Sub'];
  if (typeof ours !== 'string' || typeof other !== 'string') return;
  const names = [...ours.matchAll(/\$\{(\w+)\}/g)].map(([, name]) => String(name));
  if (names.length !== 1 || names[0] === 'stage') return;
  const [before = '', after = ''] = ours.split(`\${${names[0]}}`);
  if (other.startsWith(before) && other.endsWith(after) && other.length >= before.length + after.length)
    found[String(names[0])] ??= other.slice(before.length, other.length - after.length);
}
