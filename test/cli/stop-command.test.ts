import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { stopCommand } from '../../shared/line/executions/stop-command.ts';

/** The words of a command as a shell passes them on. */
const wordsOf = async (command: string) => {
  const { stdout } = await promisify(execFile)('sh', ['-c', `printf '%s\\n' ${command}`]);
  return stdout.trimEnd().split('\n');
};

it.each([
  ['arn:aws:states:eu-west-1:123456789012:execution:nightly:run-1', 'stepfunctions stop-execution', '--execution-arn'],
  [
    'arn:aws:lambda:eu-west-1:123456789012:function:bill:$LATEST/durable-execution/a/b',
    'lambda stop-durable-execution',
    '--durable-execution-arn',
  ],
  [
    "arn:aws:states:eu-west-1:123456789012:execution:m:it's;$(id)`id`",
    'stepfunctions stop-execution',
    '--execution-arn',
  ],
])('the command that stops the execution %s passes its ARN on as one word', async (arn, verb, option) => {
  const words = await wordsOf(stopCommand(arn) ?? '');
  expect(words).toEqual(['aws', ...verb.split(' '), '--region', 'eu-west-1', option, arn]);
});

it.each(['', 'run-1', 'arn:aws:sqs:eu-west-1:123456789012:queue', 'arn:aws:states:\u202e:x', 'arn:aws:states:a\n'])(
  'no command stops %j, which is no execution',
  (text) => {
    expect(stopCommand(text)).toBeUndefined();
  },
);
