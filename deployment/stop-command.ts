import { isDurable } from '../shared/locks/executions/allowed.ts';

/**
 * The AWS CLI command that stops an execution. An operator needs it for a bound grant, which ends only with its execution.
 * @returns undefined if the text is not an execution ARN (a third-party client may have written anything), or if a terminal cannot show it
 */
export function stopCommand(execution: string): string | undefined {
  const [, , service, region = ''] = execution.split(':');
  if (!/^arn:[^\p{C}\p{Z}]+$/u.test(execution) || (service !== 'states' && !isDurable(execution))) return undefined;
  const [verb, option] = isDurable(execution)
    ? ['lambda stop-durable-execution', '--durable-execution-arn']
    : ['stepfunctions stop-execution', '--execution-arn'];
  return `aws ${verb} --region ${inShell(region)} ${option} ${inShell(execution)}`;
}

/** Quotes a word for a shell. */
export const inShell = (word: string): string =>
  /^[\w@%+=:,./][\w@%+=:,./-]*$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
