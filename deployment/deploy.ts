import type { Change, Stack, StackEvent } from '@aws-sdk/client-cloudformation';
import type { CloudFormationTemplate } from '../infrastructure/cloudformation.ts';
import { evaluate } from '../infrastructure/evaluate.ts';
import { PARAMETERS } from '../infrastructure/parameters.ts';
import { type Clock, systemClock } from '../shared/surroundings/clock.ts';
import type { Artifact } from './artifact.ts';
import type { Aws } from './aws.ts';
import { defaultCodeBucket, upload } from './code.ts';
import { Refusal } from './failure.ts';
import { refuseForeignCommits } from './foreign-commits.ts';
import { refuseSplit } from './guards.ts';
import { adviceOf, oldPoolsOf, upgrade } from './old-pools.ts';
import { inferred } from './previous.ts';
import { mergedTags, type Order } from './request.ts';
import * as stacks from './stack.ts';
import { checkStorage, ownNames, pseudoParameters } from './storage.ts';
import { checkPlace, checkValues, type Values } from './values.ts';

/** How a deployment reports its progress, and asks for consent. */
export interface Observer {
  say(line: string): void;
  onChanges(changes: Change[], isNew: boolean): void;
  onEvent(event: StackEvent): void;
  /** Resolves with whether to go on with the changes that were shown. */
  confirm(): Promise<boolean>;
}

/**
 * `deletionProtection` of a stack whose creation turns the protection on when all else is done. A run that is ended before that
 * leaves it, and the next one goes on from it: `false` would look like the operator's choice.
 */
const PENDING = 'pending';

const CHOOSE_PROTOCOL =
  'commitProtocol=dynamo is for buckets with Rust writers of object_store up to 0.12. Without such writers, native is better: see docs/commits.md';

const STOPPED = 'With acquireConcurrency=0 no call of acquire runs. --reset acquireConcurrency starts acquire again';

/**
 * Deploys a release, or changes the parameters of one that is deployed.
 * @returns the stack, or nothing where the caller did not confirm
 * @throws Refusal before anything is changed; Error if CloudFormation failed
 */
export async function deploy(
  aws: Aws,
  { artifact, order, clock = systemClock }: { artifact: Artifact; order: Order; clock?: Clock },
  observer: Observer,
): Promise<Stack | undefined> {
  const { template } = artifact;
  const { stage, given, reset, allowedChanges, forgetPools, roleArn } = order;
  const name = `holdfast-${stage}`;
  const { stack, shell } = await stacks.find(aws, name);
  const isNew = stack === undefined;
  observer.say(`${isNew ? 'New stack' : 'Stack'} ${name} in account ${aws.account}, region ${aws.region}`);
  if (stack && !/^(CREATE|UPDATE|IMPORT|UPDATE_ROLLBACK)_COMPLETE$/.test(String(stack.StackStatus)))
    throw new Refusal(`the stack ${name} is ${stack.StackStatus}: it can be deployed once it is complete`);
  const previous = stack ? await previousValues(aws, artifact, { stack, stage }) : {};
  const kept = Object.fromEntries(
    Object.entries(previous).filter(([one]) => template.Parameters?.[one] && !reset.includes(one)),
  );
  const next: Values = { codeBucket: defaultCodeBucket(aws), ...kept, ...given, stage };
  if (next.deletionProtection === PENDING) next.deletionProtection = 'true';
  checkValues(template, next);
  checkPlace(next, aws);
  const Tags = mergedTags(stack?.Tags ?? [], order);
  const own = ownNames(aws, template, stage);
  if (!isNew) refuseSplit(template, { previous, next, allowed: allowedChanges, own });
  await checkStorage(aws, template, { values: next, isNew });
  const commits = next.commitsTable || (isNew ? undefined : own.commitsTable);
  await refuseForeignCommits(aws, { previous, next, table: commits });
  if (isNew && !next.commitProtocol) observer.say(CHOOSE_PROTOCOL);
  if (next.acquireConcurrency === '0') observer.say(STOPPED);
  const old = oldPoolsOf(previous, own);
  if (old) observer.say(adviceOf(old, forgetPools));

  const prefix = next.codePrefix ?? PARAMETERS.codePrefix?.default ?? '';
  const TemplateURL = await upload(aws, artifact, { bucket: next.codeBucket ?? '', prefix });
  const changeTo = (values: Values, type: 'CREATE' | 'UPDATE', of: stacks.TemplateOf = { TemplateURL }) =>
    stacks.propose(aws, {
      StackName: name,
      ChangeSetType: type,
      ...of,
      Capabilities: ['CAPABILITY_NAMED_IAM'],
      Parameters: Object.entries(values).map(([ParameterKey, ParameterValue]) => ({ ParameterKey, ParameterValue })),
      Tags,
      ...(roleArn && { RoleARN: roleArn }),
    });
  // CloudFormation rolls a failed creation back, and cannot delete a protected table.
  const isProtected = isNew && (next.deletionProtection ?? PARAMETERS.deletionProtection?.default) === 'true';
  const first = isProtected ? { ...next, deletionProtection: PENDING } : next;
  if (shell) {
    observer.say(`A failed creation of ${name} left an empty stack, which is deleted first`);
    observer.onChanges(additions(aws, template, first), isNew);
    if (!(await observer.confirm())) return undefined;
    observer.say(`Deleting what a failed creation of ${name} left`);
    await stacks.removeShell(aws, shell);
  }
  const changeSet = await changeTo(first, isNew ? 'CREATE' : 'UPDATE');
  if (!changeSet) {
    observer.say('Nothing to change');
    return stack;
  }
  if (!shell) {
    if (previous.deletionProtection === PENDING)
      observer.say('The first deployment was interrupted before it protected the tables from deletion');
    observer.onChanges(changeSet.changes, isNew);
    if (!(await observer.confirm())) {
      await stacks.withdraw(aws, changeSet, name);
      return undefined;
    }
  }
  const execute = (changeSet: stacks.ChangeSet) => stacks.execute(aws, { changeSet, name }, observer.onEvent);
  const apply = async (values: Values, of?: stacks.TemplateOf) => {
    const changes = await changeTo(values, 'UPDATE', of);
    return changes && execute(changes);
  };
  if (old) {
    await stacks.withdraw(aws, changeSet, name);
    return upgrade(aws, { old, previous, next, forgetPools, clock }, { apply, say: observer.say });
  }
  const deployed = await execute(changeSet);
  if (!isProtected) return deployed;
  observer.say('Protecting the tables from deletion');
  return (await apply(next)) ?? deployed;
}

/** What a creation adds. CloudFormation makes no change set for a stack that it failed to create. */
function additions(aws: Aws, template: CloudFormationTemplate, values: Values): Change[] {
  const { Resources } = evaluate(template, { ...values, ...pseudoParameters(aws) });
  return Object.entries(Resources).map(([LogicalResourceId, { Type: ResourceType }]) => ({
    ResourceChange: { Action: 'Add', LogicalResourceId, ResourceType },
  }));
}

/** The parameters of the stack. For a stack without parameters, what its template implies. */
async function previousValues(
  aws: Aws,
  { template }: Artifact,
  { stack, stage }: { stack: Stack; stage: string },
): Promise<Values> {
  const parameters = stack.Parameters ?? [];
  if (parameters.length === 0)
    return inferred(template, await stacks.deployedTemplate(aws, String(stack.StackName)), stage);
  return Object.fromEntries(
    parameters.map(({ ParameterKey, ParameterValue }) => [String(ParameterKey), ParameterValue ?? '']),
  );
}
