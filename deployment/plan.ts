import type { Stack, Tag } from '@aws-sdk/client-cloudformation';
import type { CloudFormationTemplate } from '../infrastructure/cloudformation.ts';
import { lambdaId } from '../infrastructure/logical-ids.ts';
import { PARAMETERS } from '../infrastructure/parameters.ts';
import type { Artifact } from './artifact.ts';
import type { Aws } from './aws.ts';
import { checkFixedParameters } from './check-fixed-parameters.ts';
import { defaultCodeBucket } from './code.ts';
import { changedParameters, changedTags } from './differences.ts';
import { Refusal } from './failure.ts';
import { heldCallWarnings } from './held-calls.ts';
import { mergedTags, type ParsedRequest } from './request.ts';
import * as stacks from './stack.ts';
import { checkNamesakes, checkStageLength } from './stage.ts';
import { refuseState } from './states.ts';
import { checkStorage, ownNames, pseudoParameters } from './storage.ts';
import { refuseThirdPartyCommits } from './third-party-commits.ts';
import { checkLocation, checkValues, type Values } from './values.ts';

/** What a deployment finds, and what it will change. */
export interface Plan {
  /** The name of the stack. */
  name: string;
  /** Undefined if the stack does not exist yet. */
  stack: Stack | undefined;
  /** The template of the stack. */
  deployed: CloudFormationTemplate | undefined;
  /** The id of an empty stack that a failed creation has left. */
  emptyStack: string | undefined;
  previous: Values;
  next: Values;
  tags: Tag[];
}

/**
 * The value of `deletionProtection` while a new stack is created: the deployment turns the protection on as its last step. If it is interrupted
 * before that, the next run finds this value and finishes. `false` would look like the choice of the operator.
 */
export const PENDING = 'pending';

const CHOOSE_PROTOCOL =
  'commitProtocol=dynamo is for buckets with Rust writers of object_store up to 0.12. Without such writers, native is better: see docs/commits.md';

const STOPPED = 'acquireConcurrency=0 stops acquire. To start acquire again, add --reset acquireConcurrency';

const DRAINED = 'The deployment stays drained: acquire, once and rates are stopped. holdfast resume starts them again';

const NO_TOPIC =
  'The alarms do not reach any address, because alarmTopicArn is empty. Name an SNS topic with --param alarmTopicArn=ARN';

/**
 * Finds the stack, and checks the whole deployment without changing anything.
 * @throws Refusal that says what is wrong
 */
export async function makePlan(
  aws: Aws,
  { artifact: { template }, order }: { artifact: Artifact; order: ParsedRequest },
  say: (line: string) => void,
): Promise<Plan> {
  const { stage, given, reset } = order;
  const name = `holdfast-${stage}`;
  const found = await stacks.findStack(aws, name);
  const stack = found.stack && (await stacks.waitForStackCleanup(aws, found.stack));
  say(`${stack ? 'Stack' : 'New stack'} ${name} in account ${aws.account}, region ${aws.region}`);
  if (stack) refuseState(stack, aws.region);
  else if (!order.mayCreate)
    throw new Refusal(
      `there is no stack ${name} in account ${aws.account}, region ${aws.region}. To create the stack, add --create`,
    );
  const deployed = stack && (await stacks.deployedTemplate(aws, name));
  const previous = stack && deployed ? previousValues(stack, deployed) : {};
  const kept = Object.fromEntries(
    Object.entries(previous).filter(([one]) => template.Parameters?.[one] && !reset.includes(one)),
  );
  const next: Values = { codeBucket: defaultCodeBucket(aws, order.roleArn !== undefined), ...kept, ...given, stage };
  if (next.deletionProtection === PENDING) next.deletionProtection = 'true';
  checkValues(template, next);
  checkLocation(next, aws);
  const tags = mergedTags(stack?.Tags ?? [], order);
  const plan = { name, stack, deployed, emptyStack: found.emptyStack, previous, next, tags };
  await checkRecords(aws, template, { plan, order });
  for (const line of [...linesOf(template, plan), ...(await heldCallWarnings(aws, next))]) say(line);
  return plan;
}

/** Checks that the tables and the bucket fit, and that callers will still find the records that they have written. */
async function checkRecords(
  aws: Aws,
  template: CloudFormationTemplate,
  { plan: { stack, deployed, previous, next }, order }: { plan: Plan; order: ParsedRequest },
): Promise<void> {
  const stackNames = ownNames(aws, template, order.stage);
  const pseudoValues = pseudoParameters(aws);
  if (deployed) {
    // An operator who names a limit wants its new value. The check of limits is for tools that drop a limit if it is not named.
    const named = [...Object.keys(order.given), ...order.reset].filter((name) => PARAMETERS[name]?.limit);
    const allowed = [...order.allowedChanges, ...named];
    const allowChange = checkFixedParameters(template, { deployed, previous, next, allowed, stackNames, pseudoValues });
    if (allowChange) next.allowChange = allowChange;
  } else checkStageLength(template, { ...next, ...pseudoValues });
  await checkStorage(aws, template, { values: next, isNew: !stack });
  await checkNamesakes(aws, { previous, next });
  const commits = next.commitsTable || (stack && stackNames.commitsTable);
  await refuseThirdPartyCommits(aws, { previous, next, table: commits });
}

/** The lines that tell the operator about the plan. */
function linesOf(template: CloudFormationTemplate, { stack, deployed, previous, next, tags }: Plan): string[] {
  const from = deployed && { template: deployed, values: previous };
  return [
    ...(stack || next.commitProtocol ? [] : [CHOOSE_PROTOCOL]),
    ...(next.acquireConcurrency === '0' ? [STOPPED] : []),
    ...(next.drained === 'true' ? [DRAINED] : []),
    ...(next.alarmTopicArn ? [] : [NO_TOPIC]),
    ...(previous.deletionProtection === PENDING
      ? ['The first deployment was interrupted before it protected the tables from deletion']
      : []),
    ...changedParameters(from, { template, values: next }),
    ...changedTags(stack?.Tags ?? [], tags),
  ];
}

/**
 * The parameters of the stack.
 * @throws Refusal if it is not a stack of Holdfast, or if another tool such as CDK has deployed it, because the values to keep are then not known
 */
function previousValues(stack: Stack, deployed: CloudFormationTemplate): Values {
  const acquire = deployed.Resources[lambdaId('acquire')]?.Properties?.FunctionName;
  if (!JSON.stringify(acquire ?? '').includes('holdfast-'))
    throw new Refusal(
      `the stack ${stack.StackName} is not a stack of Holdfast: a deployment would delete its resources. Choose another stage`,
    );
  const values = stacks.valuesOf(stack);
  if (!('stage' in values))
    throw new Refusal(`${stack.StackName} was deployed by another tool, such as CDK: deploy the stack with that tool`);
  return values;
}
