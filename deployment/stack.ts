import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
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
  paginateDescribeStackEvents,
  type Stack,
  type StackEvent,
  type Tag,
  UpdateTerminationProtectionCommand,
  waitUntilStackDeleteComplete,
} from '@aws-sdk/client-cloudformation';
import type { CloudFormationTemplate } from '../infrastructure/cloudformation.ts';
import type { Aws } from './aws.ts';
import { Refusal } from './failure.ts';
import type { Values } from './values.ts';

/** How often the command polls CloudFormation, in milliseconds. */
const POLL_MS = 2000;

export interface Found {
  /** Undefined if there is no stack, or only one whose first change set was never executed. */
  stack?: Stack | undefined;
  /** The id of an empty stack that a failed creation has left. It must be deleted before CloudFormation can create the stack. */
  emptyStack?: string;
}

export async function findStack({ cloudFormation }: Aws, name: string): Promise<Found> {
  const stacks = await cloudFormation.send(new DescribeStacksCommand({ StackName: name })).catch((error: Error) => {
    if (error.name === 'ValidationError' && /does not exist/.test(error.message)) return { Stacks: [] };
    throw error;
  });
  const stack = stacks.Stacks?.[0];
  if (stack?.StackStatus === 'ROLLBACK_COMPLETE') return { emptyStack: String(stack.StackId) };
  return stack?.StackStatus === 'REVIEW_IN_PROGRESS' ? {} : { stack };
}

/** @param emptyStack the id of the empty stack. With its name, the call could delete a stack that another operator has created since */
export async function deleteEmptyStack({ cloudFormation }: Aws, emptyStack: string): Promise<void> {
  await cloudFormation.send(new DeleteStackCommand({ StackName: emptyStack }));
  await waitUntilStackDeleteComplete({ client: cloudFormation, maxWaitTime: 600 }, { StackName: emptyStack });
}

/** The deployed template in its original form. @throws Refusal if it is not JSON */
export async function deployedTemplate(aws: Aws, name: string): Promise<CloudFormationTemplate> {
  const template = await templateOf(aws, { StackName: name });
  if (template === undefined)
    throw new Refusal(
      `the template of the stack ${name} is not JSON, so it is not from a release of Holdfast: deploy with the tool that has written it`,
    );
  return { AWSTemplateFormatVersion: '', Description: '', Conditions: {}, Resources: {}, Outputs: {}, ...template };
}

/** @returns the original template of a stack or of a change set. Undefined if it is not JSON */
async function templateOf(
  { cloudFormation }: Aws,
  of: { StackName: string; ChangeSetName?: string },
): Promise<Partial<CloudFormationTemplate> | undefined> {
  const { TemplateBody = '{}' } = await cloudFormation.send(
    new GetTemplateCommand({ ...of, TemplateStage: 'Original' }),
  );
  try {
    return JSON.parse(TemplateBody);
  } catch {
    return undefined;
  }
}

/** The changes that a deployment would make. */
export interface ChangeSet {
  id: string;
  changes: Change[];
}

type Request = Omit<CreateChangeSetCommandInput, 'ChangeSetName'>;

/** The parts that are the same in every change of a stack. */
export const requestOf = (values: Values, Tags: Tag[]): Pick<Request, 'Capabilities' | 'Parameters' | 'Tags'> => ({
  Capabilities: ['CAPABILITY_NAMED_IAM'],
  Parameters: Object.entries(values).map(([ParameterKey, ParameterValue]) => ({ ParameterKey, ParameterValue })),
  Tags,
});

export const valuesOf = ({ Parameters = [] }: Stack): Values =>
  Object.fromEntries(
    Parameters.map(({ ParameterKey, ParameterValue }) => [String(ParameterKey), ParameterValue ?? '']),
  );

/**
 * Creates a change set.
 * @param sent the template that was uploaded. If CloudFormation has read another one at the URL, nothing is deployed
 * @returns undefined if nothing would change
 * @throws Refusal with the reason that CloudFormation gives, or if CloudFormation has read another template
 */
export async function propose(aws: Aws, request: Request, sent?: string): Promise<ChangeSet | undefined> {
  const { cloudFormation } = aws;
  const StackName = String(request.StackName); // IAM checks the permission for the stack
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
    throw new Refusal(`CloudFormation refuses the changes: ${reason}`);
  }
  const isOther = async (text: string) =>
    !isDeepStrictEqual(await templateOf(aws, { StackName, ChangeSetName: id }), JSON.parse(text));
  if (sent !== undefined && (await isOther(sent))) {
    await discard(aws, { id, changes: [] }, StackName);
    throw new Refusal(
      'CloudFormation has read a template that is not from this release. Check who else writes to the bucket',
    );
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

/** Deletes a change set, and the empty stack that CloudFormation may have made for it. */
export async function discard({ cloudFormation }: Aws, changeSet: ChangeSet, name: string): Promise<void> {
  await cloudFormation.send(new DeleteChangeSetCommand({ ChangeSetName: changeSet.id, StackName: name }));
  const { Stacks = [] } = await cloudFormation
    .send(new DescribeStacksCommand({ StackName: name }))
    .catch(() => ({ Stacks: [] as Stack[] }));
  if (Stacks[0]?.StackStatus === 'REVIEW_IN_PROGRESS')
    await cloudFormation.send(new DeleteStackCommand({ StackName: name }));
}

/**
 * Executes a change set, and waits until CloudFormation has also removed what is left over.
 * @param onEvent called with each step of each resource
 * @throws Error with each failure, if CloudFormation has rolled the changes back
 */
export async function executeChangeSet(
  aws: Aws,
  { changeSet, name }: { changeSet: ChangeSet; name: string },
  onEvent: (event: StackEvent) => void,
): Promise<Stack> {
  let last = await newestEvent(aws, name);
  await aws.cloudFormation.send(new ExecuteChangeSetCommand({ ChangeSetName: changeSet.id, StackName: name }));
  const failures: string[] = [];
  for (;;) {
    const { Stacks: [stack] = [] } = await aws.cloudFormation.send(new DescribeStacksCommand({ StackName: name }));
    for (const event of await eventsSince(aws, name, last)) {
      last = event.EventId;
      onEvent(event);
      const { ResourceStatus = '', LogicalResourceId, ResourceStatusReason: reason = '' } = event;
      if (ResourceStatus.endsWith('_FAILED') && !/cancelled/.test(reason))
        failures.push(`${LogicalResourceId}: ${reason}`);
    }
    const status = String(stack?.StackStatus);
    if (stack && /^(CREATE|UPDATE)_COMPLETE$/.test(status)) return stack;
    if (/_(COMPLETE|FAILED)$/.test(status)) {
      const reasons = failures.length > 0 ? failures : [stack?.StackStatusReason ?? 'CloudFormation gives no reason'];
      throw new Error(`the stack ${name} is ${status}\n${reasons.join('\n')}`);
    }
    await sleep(POLL_MS);
  }
}

async function newestEvent({ cloudFormation }: Aws, name: string): Promise<string | undefined> {
  const { StackEvents: [newest] = [] } = await cloudFormation.send(new DescribeStackEventsCommand({ StackName: name }));
  return newest?.EventId;
}

/** @param last the id of the last known event @returns the later events, in their order */
async function eventsSince({ cloudFormation }: Aws, name: string, last: string | undefined): Promise<StackEvent[]> {
  const later: StackEvent[] = [];
  const pages = paginateDescribeStackEvents({ client: cloudFormation }, { StackName: name });
  for await (const { StackEvents = [] } of pages) {
    const known = StackEvents.findIndex(({ EventId }) => EventId === last);
    later.push(...(known < 0 ? StackEvents : StackEvents.slice(0, known)));
    if (known >= 0) break;
  }
  return later.reverse();
}

/** Waits until CloudFormation has removed what an earlier deployment left over. @returns the stack as it is then */
export async function waitForStackCleanup({ cloudFormation }: Aws, stack: Stack): Promise<Stack> {
  let now = stack;
  while (/_CLEANUP_IN_PROGRESS$/.test(String(now.StackStatus))) {
    await sleep(POLL_MS);
    const { Stacks: [next] = [] } = await cloudFormation.send(
      new DescribeStacksCommand({ StackName: String(stack.StackId) }),
    );
    now = next ?? now;
  }
  return now;
}

/** Sets whether CloudFormation refuses to delete the stack. @throws Error that names the missing permission */
export async function protect({ cloudFormation }: Aws, name: string, isProtected: boolean): Promise<void> {
  const command = new UpdateTerminationProtectionCommand({
    StackName: name,
    EnableTerminationProtection: isProtected,
  });
  await cloudFormation.send(command).catch((error: Error) => {
    if (!error.name.startsWith('AccessDenied')) throw error;
    throw new Error(
      `${name} is deployed, but its termination protection could not be changed. Allow the deployer cloudformation:UpdateTerminationProtection: ${error.message}`,
    );
  });
}
