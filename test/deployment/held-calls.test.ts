import { afterEach, beforeEach, expect, it } from 'vitest';
import { deploy } from '../../deployment/deploy.ts';
import {
  artifact,
  type CloudFormationDouble,
  consenting,
  ORDER,
  startCloudFormation,
} from '../support/stack/cloudformation.ts';
import { released } from '../support/stack/template.ts';

let double: CloudFormationDouble;
beforeEach(async () => {
  double = await startCloudFormation(released);
});
afterEach(() => double.stop());

/** @returns what the operator reads about held calls */
async function warnings(maxHeldCalls?: number): Promise<string[]> {
  const said: string[] = [];
  const given = maxHeldCalls === undefined ? {} : { maxHeldCalls: String(maxHeldCalls) };
  const stack = await deploy(double.aws, { artifact, order: { ...ORDER, given } }, consenting(said));
  expect(stack?.StackStatus).toBe('UPDATE_COMPLETE');
  return said.filter((line) => line.startsWith('maxHeldCalls is'));
}

it('a deployment warns if held calls may take more than a fifth of the concurrency', async () => {
  expect(await warnings()).toEqual([]);
  expect(await warnings(201)).toEqual([
    expect.stringMatching(/^maxHeldCalls is 201, and Lambda runs at most 1000 calls .* add --param maxHeldCalls=200$/),
  ]);
  expect(await warnings(200)).toEqual([]);
});

it('a deployment into an account of ten environments warns about the default', async () => {
  double.concurrency.limit = 10;
  expect(await warnings()).toEqual([expect.stringMatching(/^maxHeldCalls is 100, .* add --param maxHeldCalls=2$/)]);
  expect(await warnings()).toHaveLength(1);
  expect(await warnings(0)).toEqual([]);
});

it('a deployment goes on if AWS does not tell the concurrency', async () => {
  double.concurrency.limit = undefined;
  expect(await warnings(10_000)).toEqual([]);
});
