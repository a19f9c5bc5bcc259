import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, expect, it } from 'vitest';
import { stopCommand } from '../../deployment/stop-command.ts';
import { systemClock as clock } from '../../shared/surroundings/clock.ts';
import { builtCli } from '../support/programs/cli.ts';
import { startApi } from '../support/stack/api.ts';
import { until } from '../support/time/until.ts';
import { lineWorld } from '../support/worlds/line.ts';

// How the command shows leases and permits that last as long as their execution. Their expiry is 400 days away.

const world = await lineWorld({ clock });
const [api, cli] = await Promise.all([startApi(world.handlers), builtCli()]);
afterAll(() => Promise.all([api.stop(), cli.remove(), world.steps.stop()]));

const env = { HOLDFAST_ENDPOINT: api.url };
const call = (...args: string[]) => cli.call(args, { env });

async function hold(key: string, more: object = {}) {
  const execution = `arn:aws:states:us-east-1:000000000000:execution:machine:${key.replace('/', '-')}`;
  world.steps.executions.set(execution, 'RUNNING');
  const { token: taskToken } = world.steps.newTask();
  const response = await fetch(`${api.url}/v1/leases/acquire`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ key, holder: 'wf', execution, bound: true, taskToken, ...more }),
  });
  expect(response.status, await response.text()).toBe(201);
  return execution;
}

await hold('bound/lease');
await hold('bound/permit', { limit: 1 });

it('holdfast status and queue say that a bound lease ends with its execution', async () => {
  const { stdout } = await call('status', 'bound/');
  expect(stdout.match(/when its execution ends/g)).toHaveLength(2);
  const shown = [stdout, (await call('queue', 'bound/lease')).stdout, (await call('queue', 'bound/permit')).stdout];
  for (const text of shown) {
    expect(text).toContain('when its execution ends');
    expect(text).not.toMatch(/in \d+d/);
  }
});

it('holdfast watch says that a bound lease is held until its execution ends', async () => {
  const { child, stdout, exited } = cli.start(['watch', 'bound/lease'], { env });
  await until(stdout).toMatch(/bound\/lease is held by wf, fence \d+, since \S+Z, until its execution ends\n/);
  child.kill('SIGTERM');
  await exited;
});

it('holdfast acquire and break say that a bound grant lasts until its execution ends', async () => {
  const lease = await call('acquire', 'bound/lease');
  expect(lease.stderr).toMatch(/^holdfast: bound\/lease is held by wf since \S+Z until its execution ends\n$/);
  const permit = await call('acquire', 'bound/permit', '--limit', '1');
  expect(permit.stderr).toBe('holdfast: bound/permit is held by wf until its execution ends, in use: 1 of 1\n');
  const unseen = await call('break', 'bound/lease', '--fence', '1');
  expect(unseen.stderr).toMatch(/is held by wf since \S+Z until its execution ends, with the fence/);
  const { fence } = JSON.parse((await call('queue', 'bound/lease', '--json')).stdout) as { fence: number };
  const { stdout } = await call('break', 'bound/lease', '--fence', String(fence));
  expect(stdout).toContain('wf may work until its execution ends');
});

/** The command that stops the execution of the holder. */
const stopping = (text: string) => /to stop the execution of wf: (aws .*)\n/.exec(text)?.[1];
const fencesOf = async (key: string): Promise<number[]> => {
  const read = JSON.parse((await call('queue', key, '--json')).stdout);
  return (read.holders ?? [read]).map(({ fence }: { fence: number }) => fence);
};

it.each([
  ['lease', {}, []],
  ['lease', {}, ['--now']],
  ['permit', { limit: 1 }, []],
  ['permit', { limit: 1 }, ['--now']],
])('holdfast break of a bound %s prints how to stop its execution: %j %j', async (_, terms, options) => {
  const key = `bound/stop-${options.length}-${Object.keys(terms).length}`;
  const execution = await hold(key, terms);
  const command = `aws stepfunctions stop-execution --region us-east-1 --execution-arn ${execution}`;
  expect(stopping((await call('break', key)).stderr)).toBe(command);
  const [fence] = await fencesOf(key);
  expect(stopping((await call('break', key, '--fence', String(fence), ...options)).stdout)).toBe(command);
});

it('holdfast break does not print a stop command for a lease with a ttl', async () => {
  await hold('unbound', { bound: undefined, ttlSeconds: 600 });
  expect(stopping((await call('break', 'unbound')).stderr)).toBeUndefined();
  const [fence] = await fencesOf('unbound');
  const { stdout } = await call('break', 'unbound', '--fence', String(fence));
  expect([stdout.includes('is ending'), stopping(stdout)]).toEqual([true, undefined]);
});

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
  'holdfast does not print a stop command for %j, which is not an execution',
  (text) => {
    expect(stopCommand(text)).toBeUndefined();
  },
);
