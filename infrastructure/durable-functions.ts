import { type CloudFormationTemplate, choose, type Json, NO_VALUE, type Properties, sub } from './cloudformation.ts';

/** The condition of events.yml. */
const SERVES = 'ServesDurableFunctions';

const ACTION = /^lambda:(SendDurableExecutionCallback\w+|GetDurableExecution)$/;

/**
 * Leaves out the permissions on durable functions if the deployment serves none, because the framework takes no condition around a statement of a
 * function's role. The rule receives only the events of the functions that the parameter names.
 */
export function durableFunctions({ Resources }: CloudFormationTemplate): void {
  for (const { Type, Properties } of Object.values(Resources)) {
    if (Type !== 'AWS::IAM::Role') continue;
    for (const { PolicyDocument } of (Properties?.Policies ?? []) as { PolicyDocument: { Statement: Json[] } }[])
      PolicyDocument.Statement = PolicyDocument.Statement.map((one) =>
        isOfDurableFunctions(one) ? choose(SERVES, one, NO_VALUE) : one,
      );
  }
  const { EventPattern } = Resources.DurableExecutionEndedRule?.Properties ?? {};
  const arns = `arn:\${AWS::Partition}:lambda:\${AWS::Region}:\${AWS::AccountId}:function:\${durableFunctions}:*`;
  Object.assign((EventPattern as { detail: Properties }).detail, { durableExecutionArn: [{ wildcard: sub(arns) }] });
}

const isOfDurableFunctions = (statement: Json): boolean =>
  [Object(statement).Action].flat().some((action) => ACTION.test(String(action)));
