import { isDurable } from '../shared/locks/executions/allowed.ts';

/**
 * The AWS CLI command that stops an execution. An operator ends a bound grant by it, because the grant ends only with its execution.
 * @returns undefined if the text is not the ARN of an execution, as records of other clients may have, or if a terminal would not show all of the text
 */
export function stopCommand(execution: string): string | undefined {
  const [, , service, region = ''] = execution.split(':');
  if (!/^arn:[^\p{C}\p{Z}]+$/u.test(execution) || (service !== 'states' && !isDurable(execution))) return undefined;
  const [verb, option] = isDurable(execution)
    ? ['lambda stop-durable-execution', '--durable-execution-arn']
    : ['stepfunctions stop-execution', '--execution-arn'];
  return `aws ${verb} --region ${inShell(region)} ${option} ${inShell(execution)}`;
}

/** A word as a shell reads it. */
export const inShell = (word: string): string =>
  /^[\w@%+=:,./][\w@%+=:,./-]*$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
