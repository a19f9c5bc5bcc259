import type { Change, Stack, StackEvent } from '@aws-sdk/client-cloudformation';
import { PARAMETERS } from '../infrastructure/parameters.ts';
import type { Artifact } from './artifact.ts';
import type { Aws } from './aws.ts';
import { hasCodeBucket, upload } from './code.ts';
import { changedResources } from './differences.ts';
import { makePlan, PENDING, type Plan } from './plan.ts';
import type { ParsedRequest } from './request.ts';
import * as stacks from './stack.ts';
import { pseudoParameters } from './storage.ts';
import type { Values } from './values.ts';

/** How a deployment reports its progress, and asks for consent. */
export interface Observer {
  say(line: string): void;
  onChanges(changes: Change[], isNew: boolean): void;
  onEvent(event: StackEvent): void;
  /** Asks whether to make the changes that were shown. */
  confirm(): Promise<boolean>;
}

interface Deployment {
  artifact: Artifact;
  order: ParsedRequest;
}

/**
 * Deploys a release, or changes the parameters of one that is deployed.
 * @returns the stack. Undefined if the operator did not confirm, or asked only for the plan
 * @throws Refusal before anything is changed; Error if CloudFormation failed
 */
export async function deploy(
  aws: Aws,
  { artifact, order }: Deployment,
  observer: Observer,
): Promise<Stack | undefined> {
  const plan = await makePlan(aws, { artifact, order }, observer.say);
  if (order.isPlan) {
    await preview(aws, { artifact, plan }, observer);
    return undefined;
  }
  const deployed = await carryOut(aws, { artifact, order, plan }, observer);
  if (!deployed) return undefined;
  const { deletionProtection: isProtected = PARAMETERS.deletionProtection?.default } = plan.next;
  const wasProtected = plan.previous.deletionProtection !== 'false';
  // If the tables are not protected and never were, an operator may have protected the stack by hand: leave that.
  if (isProtected === 'true' || wasProtected)
    if (Boolean(deployed.EnableTerminationProtection) !== (isProtected === 'true'))
      await stacks.protect(aws, plan.name, isProtected === 'true');
  return deployed;
}

async function preview(
  aws: Aws,
  { artifact, plan }: { artifact: Artifact; plan: Plan },
  { say, onChanges }: Observer,
): Promise<void> {
  const { stack, emptyStack, name, next } = plan;
  const bucket = next.codeBucket ?? '';
  if (!(await hasCodeBucket(aws, bucket))) say(`The deployment creates the bucket ${bucket} for the code`);
  if (emptyStack) say(emptyStackLeft(name));
  const changes = resourcesOf(aws, artifact, plan);
  if (stack && changes.length === 0) say('No resource changes');
  else onChanges(changes, !stack);
}

const emptyStackLeft = (name: string): string =>
  `A failed creation of ${name} left an empty stack, which is deleted first`;

/** Compares the templates, because CloudFormation cannot make a change set without an upload, or for a stack that it failed to create. */
function resourcesOf(aws: Aws, { template }: Artifact, { deployed, previous, next }: Plan): Change[] {
  const pseudoValues = pseudoParameters(aws);
  const from = deployed && { template: deployed, values: { ...previous, ...pseudoValues } };
  return changedResources(from, { template, values: { ...next, ...pseudoValues } }).map(
    ({ action: Action, type, id }) => ({
      ResourceChange: { Action, ResourceType: type, LogicalResourceId: id },
    }),
  );
}

/** @returns undefined if the operator did not confirm */
async function carryOut(
  aws: Aws,
  { artifact, order, plan }: Deployment & { plan: Plan },
  observer: Observer,
): Promise<Stack | undefined> {
  const { name, stack, emptyStack, next } = plan;
  const isNew = stack === undefined;
  const prefix = next.codePrefix ?? PARAMETERS.codePrefix?.default ?? '';
  const { TemplateURL, text } = await upload(aws, artifact, { bucket: next.codeBucket ?? '', prefix });
  const role = order.roleArn && { RoleARN: order.roleArn };
  const changeTo = (values: Values, type: 'CREATE' | 'UPDATE') =>
    stacks.propose(
      aws,
      { StackName: name, ChangeSetType: type, TemplateURL, ...stacks.requestOf(values, plan.tags), ...role },
      text,
    );
  // CloudFormation rolls a failed creation back, but cannot delete protected tables. So they are protected afterwards.
  const isProtected = isNew && (next.deletionProtection ?? PARAMETERS.deletionProtection?.default) === 'true';
  const first = isProtected ? { ...next, deletionProtection: PENDING } : next;
  if (emptyStack) {
    observer.say(emptyStackLeft(name));
    observer.onChanges(resourcesOf(aws, artifact, plan), isNew);
    if (!(await observer.confirm())) return undefined;
    observer.say(`Deleting what a failed creation of ${name} left`);
    await stacks.deleteEmptyStack(aws, emptyStack);
  }
  const changeSet = await changeTo(first, isNew ? 'CREATE' : 'UPDATE');
  if (!changeSet) {
    observer.say('Nothing to change');
    return stack;
  }
  if (!emptyStack) {
    observer.onChanges(changeSet.changes, isNew);
    if (!(await observer.confirm())) {
      await stacks.discard(aws, changeSet, name);
      return undefined;
    }
  }
  const execute = (changes: stacks.ChangeSet) =>
    stacks.executeChangeSet(aws, { changeSet: changes, name }, observer.onEvent);
  const deployed = await execute(changeSet);
  if (!isProtected) return deployed;
  observer.say('Protecting the tables from deletion');
  const last = await changeTo(next, 'UPDATE');
  return last ? execute(last) : deployed;
}
