import { setTimeout as sleep } from 'node:timers/promises';
import {
  type Change,
  CreateChangeSetCommand,
  type CreateChangeSetCommandInput,
  DeleteChangeSetCommand,
  DeleteStackCommand,
  DescribeChangeSetCommand,
  type DescribeChangeSetCommandOutput,
  DescribeStackEventsCommand,
  DescribeStacksCommand,
  ExecuteChangeSetCommand,
  GetTemplateCommand,
  type Stack,
  type StackEvent,
  waitUntilStackDeleteComplete,
} from '@aws-sdk/client-cloudformation';
import type { CloudFormationTemplate } from '../infrastructure/cloudformation.ts';
import type { Aws } from './aws.ts';
import { Refusal } from './failure.ts';

/** How often the command polls CloudFormation, in milliseconds. */
const POLL_MS = 2000;

/** What there is of a stack. */
export interface Found {
  /** Not there without a stack, and where a change set was never executed. */
  stack?: Stack | undefined;
  /** The id of what a failed creation left. CloudFormation creates the stack again only when that is deleted. */
  shell?: string;
}

export async function find({ cloudFormation }: Aws, name: string): Promise<Found> {
  const stacks = await cloudFormation.send(new DescribeStacksCommand({ StackName: name })).catch((error: Error) => {
    if (error.name === 'ValidationError' && /does not exist/.test(error.message)) return { Stacks: [] };
    throw error;
  });
  const stack = stacks.Stacks?.[0];
  if (stack?.StackStatus === 'ROLLBACK_COMPLETE') return { shell: String(stack.StackId) };
  return stack?.StackStatus === 'REVIEW_IN_PROGRESS' ? {} : { stack };
}

/** @param shell its id: under its name, another operator may have created the stack since */
export async function removeShell({ cloudFormation }: Aws, shell: string): Promise<void> {
  await cloudFormation.send(new DeleteStackCommand({ StackName: shell }));
  await waitUntilStackDeleteComplete({ client: cloudFormation, maxWaitTime: 600 }, { StackName: shell });
}

/** The deployed template, as it was sent. */
export async function deployedTemplate({ cloudFormation }: Aws, name: string): Promise<CloudFormationTemplate> {
  const { TemplateBody = '{}' } = await cloudFormation.send(
    new GetTemplateCommand({ StackName: name, TemplateStage: 'Original' }),
  );
  const template = JSON.parse(TemplateBody);
  return { Conditions: {}, Resources: {}, Outputs: {}, ...template };
}

/** The changes that a deployment would make. */
export interface ChangeSet {
  id: string;
  changes: Change[];
}

/** Which template a change set has. */
export type TemplateOf = Pick<CreateChangeSetCommandInput, 'TemplateURL' | 'UsePreviousTemplate'>;

type Request = Omit<CreateChangeSetCommandInput, 'ChangeSetName'>;

/** @returns nothing where nothing would change @throws Refusal with the reason of CloudFormation */
export async function propose({ cloudFormation }: Aws, request: Request): Promise<ChangeSet | undefined> {
  const { StackName } = request; // permissions are on the stack
  const { Id: id = '' } = await cloudFormation.send(
    new CreateChangeSetCommand({ ...request, ChangeSetName: `holdfast-${Date.now()}` }),
  );
  let described: DescribeChangeSetCommandOutput;
  for (;;) {
    described = await cloudFormation.send(new DescribeChangeSetCommand({ ChangeSetName: id, StackName }));
    if (!/PENDING|IN_PROGRESS/.test(String(described.Status))) break;
    await sleep(POLL_MS);
  }
  if (described.Status === 'FAILED') {
    await cloudFormation.send(new DeleteChangeSetCommand({ ChangeSetName: id, StackName }));
    const { StatusReason: reason = '' } = described;
    if (/didn't contain changes|No updates are to be performed/.test(reason)) return undefined;
    throw new Refusal(`CloudFormation refuses it: ${reason}`);
  }
  const changes = [...(described.Changes ?? [])];
  while (described.NextToken) {
    described = await cloudFormation.send(
      new DescribeChangeSetCommand({ ChangeSetName: id, StackName, NextToken: described.NextToken }),
    );
    changes.push(...(described.Changes ?? []));
  }
  return { id, changes };
}

/** Deletes a change set, and the shell of a stack that it made. */
export async function withdraw({ cloudFormation }: Aws, changeSet: ChangeSet, name: string): Promise<void> {
  await cloudFormation.send(new DeleteChangeSetCommand({ ChangeSetName: changeSet.id, StackName: name }));
  const { Stacks = [] } = await cloudFormation
    .send(new DescribeStacksCommand({ StackName: name }))
    .catch(() => ({ Stacks: [] as Stack[] }));
  if (Stacks[0]?.StackStatus === 'REVIEW_IN_PROGRESS')
    await cloudFormation.send(new DeleteStackCommand({ StackName: name }));
}

/**
 * Executes a change set, and waits for its end.
 * @param onEvent hears of each step of each resource
 * @throws Error with what failed first, if CloudFormation took everything back
 */
export async function execute(
  aws: Aws,
  { changeSet, name }: { changeSet: ChangeSet; name: string },
  onEvent: (event: StackEvent) => void,
): Promise<Stack> {
  const seen = new Set((await eventsOf(aws, name)).map(({ EventId }) => EventId));
  await aws.cloudFormation.send(new ExecuteChangeSetCommand({ ChangeSetName: changeSet.id, StackName: name }));
  const failures: string[] = [];
  for (;;) {
    const { Stacks: [stack] = [] } = await aws.cloudFormation.send(new DescribeStacksCommand({ StackName: name }));
    for (const event of (await eventsOf(aws, name)).reverse()) {
      if (seen.has(event.EventId)) continue;
      seen.add(event.EventId);
      onEvent(event);
      const { ResourceStatus = '', LogicalResourceId, ResourceStatusReason: reason = '' } = event;
      if (ResourceStatus.endsWith('_FAILED') && !/cancelled/.test(reason))
        failures.push(`${LogicalResourceId}: ${reason}`);
    }
    const status = String(stack?.StackStatus);
    if (stack && /^(CREATE|UPDATE)_COMPLETE/.test(status)) return stack;
    if (/_(COMPLETE|FAILED)$/.test(status)) throw new Error(`the stack ${name} is ${status}\n${failures.join('\n')}`);
    await sleep(POLL_MS);
  }
}

async function eventsOf({ cloudFormation }: Aws, name: string): Promise<StackEvent[]> {
  const { StackEvents = [] } = await cloudFormation
    .send(new DescribeStackEventsCommand({ StackName: name }))
    .catch(() => ({ StackEvents: [] }));
  return StackEvents;
}
