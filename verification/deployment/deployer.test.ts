import { readFile } from 'node:fs/promises';
import { expect, it } from 'vitest';
import { allow, deploy, user } from './support/aws.ts';

const policy = JSON.parse(await readFile('deployment/deployer-policy.json', 'utf8'));

it('a user with the policy of a deployer deploys, and one without a statement of it does not', async () => {
  const deployer = await user('deployer', policy.Statement);
  const first = await deploy('deployer', ['--yes', '--tag=team=platform'], deployer);
  expect(first.exitCode, first.output).toBe(0);
  const changed = await deploy('deployer', ['--yes', '--param=memoryMb=256'], deployer);
  expect(changed.exitCode, changed.output).toBe(0);
  for (const sid of ['Stack', 'Code', 'Tables']) {
    await allow(
      'deployer',
      policy.Statement.filter((one: { Sid: string }) => one.Sid !== sid),
    );
    const refused = await deploy(`without-${sid.toLowerCase()}`, ['--yes'], deployer);
    expect(refused.exitCode, `${sid}: ${refused.output}`).not.toBe(0);
  }
});

it('the policy names no resource that is not of Holdfast, but where AWS knows none', () => {
  for (const { Sid, Resource } of policy.Statement)
    for (const resource of [Resource].flat())
      if (!['QueueOfAFunction', 'AccessLogs', 'Api'].includes(Sid)) expect(resource, Sid).toMatch(/holdfast-/);
});
