import type { Change, Stack, StackEvent } from '@aws-sdk/client-cloudformation';
import { PARAMETERS } from '../infrastructure/parameters.ts';
import type { Artifact } from './artifact.ts';
import type { Aws } from './aws.ts';
import { defaultCodeBucket, upload } from './code.ts';
import { Refusal } from './failure.ts';
import { refuseSplit } from './guards.ts';
import { inferred } from './previous.ts';
import { mergedTags, type Order } from './request.ts';
import * as stacks from './stack.ts';
import { checkStorage, ownNames } from './storage.ts';
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
 * Deploys a release, or changes the parameters of one that is deployed.
 * @returns the stack, or nothing where the caller did not confirm
 * @throws Refusal before anything is changed; Error if CloudFormation failed
 */
export async function deploy(
  aws: Aws,
  { artifact, order }: { artifact: Artifact; order: Order },
  observer: Observer,
): Promise<Stack | undefined> {
  const { template } = artifact;
  const { stage, given, reset, allowedChanges } = order;
  const name = `holdfast-${stage}`;
  const stack = await stacks.find(aws, name, observer.say);
  const isNew = stack === undefined;
  observer.say(`${isNew ? 'New stack' : 'Stack'} ${name} in account ${aws.account}, region ${aws.region}`);
  if (stack && !/^(CREATE|UPDATE|IMPORT|UPDATE_ROLLBACK)_COMPLETE$/.test(String(stack.StackStatus)))
    throw new Refusal(`the stack ${name} is ${stack.StackStatus}: it can be deployed once it is complete`);
  const previous = stack ? await previousValues(aws, artifact, { stack, stage }) : {};
  const kept = Object.fromEntries(
    Object.entries(previous).filter(([one]) => template.Parameters?.[one] && !reset.includes(one)),
  );
  const next: Values = { codeBucket: defaultCodeBucket(aws), ...kept, ...given, stage };
  checkValues(template, next);
  checkPlace(next, aws);
  const Tags = mergedTags(stack?.Tags ?? [], order.tags);
  if (!isNew) {
    const own = ownNames(aws, template, stage);
    refuseSplit(template, { previous, next, allowed: allowedChanges, own });
  }
  await checkStorage(aws, template, { values: next, isNew });

  const prefix = next.codePrefix ?? PARAMETERS.codePrefix?.default ?? '';
  const TemplateURL = await upload(aws, artifact, { bucket: next.codeBucket ?? '', prefix });
  const changeTo = (values: Values, type: 'CREATE' | 'UPDATE') =>
    stacks.propose(aws, {
      StackName: name,
      ChangeSetType: type,
      TemplateURL,
      Capabilities: ['CAPABILITY_NAMED_IAM'],
      Parameters: Object.entries(values).map(([ParameterKey, ParameterValue]) => ({ ParameterKey, ParameterValue })),
      Tags,
    });
  // CloudFormation rolls a failed creation back, and cannot delete a protected table.
  const isProtected = isNew && (next.deletionProtection ?? PARAMETERS.deletionProtection?.default) === 'true';
  const changeSet = await changeTo(
    isProtected ? { ...next, deletionProtection: 'false' } : next,
    isNew ? 'CREATE' : 'UPDATE',
  );
  if (!changeSet) {
    observer.say('Nothing to change');
    return stack;
  }
  observer.onChanges(changeSet.changes, isNew);
  if (!(await observer.confirm())) {
    await stacks.withdraw(aws, changeSet, name);
    return undefined;
  }
  const deployed = await stacks.execute(aws, { changeSet, name }, observer.onEvent);
  if (!isProtected) return deployed;
  observer.say('Protecting the tables from deletion');
  const protection = await changeTo(next, 'UPDATE');
  return protection ? stacks.execute(aws, { changeSet: protection, name }, observer.onEvent) : deployed;
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
