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

/** The deployed template, as it was sent. @throws Refusal if the template is not JSON */
export async function deployedTemplate(aws: Aws, name: string): Promise<CloudFormationTemplate> {
  const template = await templateOf(aws, { StackName: name });
  if (template === undefined)
    throw new Refusal(
      `the template of the stack ${name} is not JSON, so no release of Holdfast wrote it: deploy with the tool that did`,
    );
  return { AWSTemplateFormatVersion: '', Description: '', Conditions: {}, Resources: {}, Outputs: {}, ...template };
}

/** @returns the template of a stack or of a change set, as it was sent; undefined if it is not JSON */
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

/** The parts of a request that every change of a stack has. */
export const requestOf = (values: Values, Tags: Tag[]): Pick<Request, 'Capabilities' | 'Parameters' | 'Tags'> => ({
  Capabilities: ['CAPABILITY_NAMED_IAM'],
  Parameters: Object.entries(values).map(([ParameterKey, ParameterValue]) => ({ ParameterKey, ParameterValue })),
  Tags,
});

/** The parameters of a stack with their values. */
export const valuesOf = ({ Parameters = [] }: Stack): Values =>
  Object.fromEntries(
    Parameters.map(({ ParameterKey, ParameterValue }) => [String(ParameterKey), ParameterValue ?? '']),
  );

/**
 * @param sent the template behind the URL of the request. If CloudFormation has read another one there, nothing is deployed
 * @returns nothing where nothing would change
 * @throws Refusal with the reason of CloudFormation, or if CloudFormation has read another template
 */
export async function propose(aws: Aws, request: Request, sent?: string): Promise<ChangeSet | undefined> {
  const { cloudFormation } = aws;
  const StackName = String(request.StackName); // permissions are on the stack
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
    await withdraw(aws, { id, changes: [] }, StackName);
    throw new Refusal(
      'CloudFormation has read a template that is not of this release. Check who else writes to the bucket',
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
 * Executes a change set, and waits for its end, also until CloudFormation has removed what is left over.
 * @param onEvent called with each step of each resource
 * @throws Error with each failure, if CloudFormation took everything back
 */
export async function execute(
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

/** @param last the id of the last event that is known @returns the later events, in their order */
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

/** Waits while CloudFormation removes what an earlier deployment left over. @returns the stack as it is then */
export async function cleanedUp({ cloudFormation }: Aws, stack: Stack): Promise<Stack> {
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

/** Sets whether CloudFormation refuses to delete the stack. @throws Error that names the right which is missing */
export async function protect({ cloudFormation }: Aws, name: string, isProtected: boolean): Promise<void> {
  const command = new UpdateTerminationProtectionCommand({
    StackName: name,
    EnableTerminationProtection: isProtected,
  });
  await cloudFormation.send(command).catch((error: Error) => {
    if (!error.name.startsWith('AccessDenied')) throw error;
    throw new Error(
      `${name} is deployed, and its termination protection could not be changed. Allow the deployer cloudformation:UpdateTerminationProtection: ${error.message}`,
    );
  });
}
