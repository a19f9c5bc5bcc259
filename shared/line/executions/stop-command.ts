import { isDurable } from './allowed.ts';

/**
 * The command that stops an execution: the way out of a bound grant, which ends with its execution alone.
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
