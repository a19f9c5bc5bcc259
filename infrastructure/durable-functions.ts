import { allowOnlyIf, type CloudFormationTemplate, type Properties, sub } from './cloudformation.ts';

/** Defined in events.yml. */
const SERVES = 'ServesDurableFunctions';

const ACTION = /^lambda:(SendDurableExecutionCallback\w+|GetDurableExecution)$/;

/**
 * Leaves out the permissions on durable functions if the parameter `durableFunctions` is empty, and otherwise lets the rule receive only the events
 * of the functions that it names.
 */
export function restrictDurableFunctions({ Resources }: CloudFormationTemplate): void {
  for (const resource of Object.values(Resources))
    if (resource.Type === 'AWS::IAM::Role') allowOnlyIf(SERVES, resource, ACTION);
  const { EventPattern } = Resources.DurableExecutionEndedRule?.Properties ?? {};
  const arns = `arn:\${AWS::Partition}:lambda:\${AWS::Region}:\${AWS::AccountId}:function:\${durableFunctions}:*`;
  Object.assign((EventPattern as { detail: Properties }).detail, { durableExecutionArn: [{ wildcard: sub(arns) }] });
}
