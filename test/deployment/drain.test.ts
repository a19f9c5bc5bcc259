import { PutItemCommand } from '@aws-sdk/client-dynamodb';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { drain, resume } from '../../deployment/drain.ts';
import { acquire } from '../../shared/locks/calls/acquire.ts';
import { acquireInput } from '../../shared/locks/calls/inputs.ts';
import { systemClock } from '../../shared/surroundings/clock.ts';
import { call, testClient } from '../support/emulators/aws.ts';
import { type CloudFormationDouble, idOf, startCloudFormation } from '../support/stack/cloudformation.ts';
import { ManualClock } from '../support/time/clock.ts';
import { lineWorld } from '../support/worlds/line.ts';

const NAME = 'holdfast-prod';

let double: CloudFormationDouble;
let clock: ManualClock;
/** What the operator read. */
let said: string[];
let world: Awaited<ReturnType<typeof lineWorld>>;

beforeEach(async () => {
  double = await startCloudFormation();
  world = await lineWorld();
  world.clock.set(systemClock.now());
  [clock, said] = [new ManualClock(), []];
  const outputs = { LeasesTableName: world.table, WaitersTableName: world.dependencies.waitersTable };
  const parameters = { stage: 'prod', acquireConcurrency: '50', clockSkewMs: '500', drained: 'false' };
  double.stacks.set(NAME, { id: idOf(NAME, 0), status: 'UPDATE_COMPLETE', parameters, tags: { team: 'a' }, outputs });
});
afterEach(() => Promise.all([double.stop(), world.steps.stop()]));

const observer = (confirms = true) => ({
  say: (line: string) => void said.push(line),
  onEvent: () => {},
  confirm: async () => confirms,
});
const aws = () => ({ ...double.aws, dynamodb: testClient() });
const stack = () => double.stacks.get(NAME);

const drained = (timeoutMs = 60_000, confirms = true): Promise<boolean> =>
  drain(aws(), { stage: 'prod', timeoutMs, clock }, observer(confirms));

describe('a drain', () => {
  it('a drain stops acquire, and keeps the concurrency and the tags of the stage', async () => {
    expect(await drained()).toBe(true);
    expect(stack()?.parameters).toMatchObject({ drained: 'true', acquireConcurrency: '50' });
    expect(stack()?.tags).toEqual({ team: 'a' });
    expect(said.at(-1)).toBe('holdfast-prod is drained. holdfast resume starts acquire again');
  });

  it('a drain does not stop a function if the tables cannot be read', async () => {
    const outputs = { ...stack()?.outputs, WaitersTableName: 'no-such-table' };
    double.stacks.set(NAME, { ...(stack() as NonNullable<ReturnType<typeof stack>>), outputs });
    await expect(drained()).rejects.toThrow();
    expect(stack()?.parameters.drained).toBe('false');
  });

  it('a drain keeps what another deployment changed between the question and the answer', async () => {
    const confirm = async () => {
      const { parameters, ...before } = stack() as NonNullable<ReturnType<typeof stack>>;
      double.stacks.set(NAME, { ...before, parameters: { ...parameters, acquireConcurrency: '500' } });
      return true;
    };
    await drain(aws(), { stage: 'prod', timeoutMs: 60_000, clock }, { ...observer(), confirm });
    expect(stack()?.parameters).toMatchObject({ drained: 'true', acquireConcurrency: '500' });
  });

  it('a drain waits until everything is released that a call may have granted', async () => {
    const lease = await world.acquire({ key: 'nightly', ttlSeconds: 3600 });
    const begun = clock.now();
    // No call of acquire takes longer than 30 seconds, so one that began before the drain may still grant a lease.
    clock.at(begun + 29_000, () => expect(said.join()).not.toContain('are held'));
    clock.at(begun + 61_000, () => world.release(lease));
    expect(await drained(600_000)).toBe(true);
    expect(clock.now() - begun).toBe(70_000);
    expect(said.join()).toContain('1 leases or permits are held (nightly), 0 calls or tasks wait');
    expect(said.filter((line) => line.startsWith('Waiting: '))).toHaveLength(1);
  });

  it('a drain waits for tasks and calls, not for executions and callers that sleep', async () => {
    const row = (ticket: string, more: Record<string, { N: string }>) => ({
      TableName: stack()?.outputs?.WaitersTableName,
      Item: { key: { S: 'nightly' }, ticket: { S: ticket }, ...more },
    });
    const at = (ms: number) => ({ N: String(systemClock.now() + ms) });
    const [past, future] = [at(-60_000), at(3_600_000)];
    const put = (input: ReturnType<typeof row>) => world.dynamodb.send(new PutItemCommand(input));
    await put(row('x1', {}));
    await put(row('call-that-ended', { deadline: past, keep_until: past }));
    await put(row('p1', { deadline: { N: '0' }, awake_at: future, keep_until: future }));
    expect(await drained()).toBe(true);
    await put(row('call', { deadline: past, keep_until: future }));
    await put(row('task', { deadline: future }));
    await expect(drained(0)).rejects.toThrow('0 leases or permits are held, 2 calls or tasks wait');
  });

  it('a drain waits for a lease that has expired within the clock skew margin', async () => {
    Object.assign(stack()?.parameters ?? {}, { clockSkewMs: '60000' });
    world.clock.advance(-40_000);
    await world.acquire({ key: 'nightly', ttlSeconds: 30 });
    await expect(drained(0)).rejects.toThrow('1 leases or permits are held (nightly)');
    Object.assign(stack()?.parameters ?? {}, { clockSkewMs: '0' });
    expect(await drained(0)).toBe(true);
  });

  it('a drain that runs out of time leaves acquire stopped, and may be repeated', async () => {
    const lease = await world.acquire({ key: 'nightly', ttlSeconds: 3600 });
    await expect(drained(40_000)).rejects.toThrow(
      'holdfast-prod is not drained: 1 leases or permits are held (nightly)',
    );
    expect(stack()?.parameters.drained).toBe('true');
    await world.release(lease);
    double.actions.length = 0;
    expect(await drained()).toBe(true);
    expect(double.actions).not.toContain('CreateChangeSet');
  });

  it('a drain does not change a stack if the operator does not confirm', async () => {
    expect(await drained(1000, false)).toBe(false);
    expect(stack()?.parameters.drained).toBe('false');
  });

  it('a drain is refused while the stack changes, or if another tool deployed it', async () => {
    const { parameters = {} } = stack() ?? {};
    Object.assign(stack() ?? {}, { parameters: {} });
    await expect(drained()).rejects.toThrow(
      'this command cannot change it. Set the parameter drained=true with that tool',
    );
    Object.assign(stack() ?? {}, { parameters, status: 'UPDATE_ROLLBACK_FAILED' });
    await expect(drained()).rejects.toThrow('continue-update-rollback');
    double.stacks.clear();
    await expect(drained()).rejects.toThrow(
      'there is no stack holdfast-prod in account 111122223333, region eu-west-1',
    );
  });
});

describe('a drain with bound holders', () => {
  const executionOf = (key: string) => `arn:aws:states:us-east-1:000000000000:execution:machine:${key}`;
  /** A task acquires the key, and holds the key until its execution ends. */
  const hold = async (key: string, more: object = {}) => {
    const { token: taskToken } = world.steps.newTask();
    world.steps.executions.set(executionOf(key), 'RUNNING');
    const asked = { key, holder: 'wf', taskToken, execution: executionOf(key), bound: true, ...more };
    await acquire(world.dependencies)(acquireInput().parse(asked), call());
  };
  const end = (key: string) => {
    world.clock.advance(10_000);
    world.steps.executions.set(executionOf(key), 'ABORTED');
    return world.executionEnded(executionOf(key), false, { status: 'ABORTED', stopDate: world.clock.now() });
  };
  const left = (bound: number, behind = 0) =>
    `holdfast-prod is not drained: ${bound} leases or permits are bound to executions, and ${behind} calls or tasks wait behind them. Acquire stays stopped`;

  it('a drain ends if only bound grants are left, and names their executions', async () => {
    await hold('nightly');
    await hold('render', { limit: 2 });
    const begun = clock.now();
    await expect(drained(600_000)).rejects.toThrow(left(2));
    expect(clock.now() - begun).toBe(30_000);
    expect(stack()?.parameters.drained).toBe('true');
    for (const key of ['nightly', 'render'])
      expect(said).toContainEqual(
        expect.stringMatching(
          new RegExp(
            `^${key} is held by wf since \\S+Z until its execution ends. To stop the execution: aws stepfunctions stop-execution --region us-east-1 --execution-arn ${executionOf(key)}$`,
          ),
        ),
      );
  });

  it('a drain removes control characters from the names that a caller chose', async () => {
    await hold('nightly', { holder: 'wf\nTo stop it: \u001b[2K' });
    await expect(drained(600_000)).rejects.toThrow(left(1));
    expect(said).toContainEqual(expect.stringContaining('nightly is held by wf\\nTo stop it: \\x1b[2K since'));
  });

  it('a drain waits for other holders, and names a bound holder once', async () => {
    await hold('nightly');
    const lease = await world.acquire({ key: 'hourly', ttlSeconds: 3600 });
    const begun = clock.now();
    clock.at(begun + 61_000, () => world.release(lease));
    await expect(drained(600_000)).rejects.toThrow(left(1));
    expect(clock.now() - begun).toBe(70_000);
    expect(said).toContain('Waiting: 1 leases or permits are held (hourly), 0 calls or tasks wait');
    expect(said.filter((line) => line.startsWith('nightly is held by wf'))).toHaveLength(1);
  });

  it('a drain does not wait for tasks in line behind a bound holder', async () => {
    await hold('nightly');
    await world.park({ key: 'nightly' });
    await expect(drained(600_000)).rejects.toThrow(left(1, 1));
  });

  it('a drain succeeds when the executions of the bound holders have been stopped', async () => {
    await hold('nightly');
    await expect(drained(600_000)).rejects.toThrow(left(1));
    await end('nightly');
    expect(await drained()).toBe(true);
  });

  it('a drain names twenty bound holders, and counts the others', async () => {
    for (let nth = 0; nth < 22; nth++) await hold(`job-${nth}`);
    await expect(drained()).rejects.toThrow(left(22));
    expect(said.filter((line) => line.includes('until its execution ends'))).toHaveLength(20);
    expect(said).toContain('and 2 more');
  });
});

describe('the end of a drain', () => {
  const resumed = () => resume(aws(), { stage: 'prod' }, observer());

  it('the end of a drain restores the concurrency of acquire, and may be repeated', async () => {
    await drained();
    expect(await resumed()).toBe(true);
    expect(stack()?.parameters).toMatchObject({ drained: 'false', acquireConcurrency: '50' });
    expect(said.at(-1)).toBe('Acquire of holdfast-prod runs again');
    double.actions.length = 0;
    expect(await resumed()).toBe(true);
    expect(said.at(-1)).toBe('holdfast-prod is not drained');
    expect(double.actions).toEqual(['DescribeStacks']);
  });

  it('the end of a drain names another parameter that still stops acquire', async () => {
    Object.assign(stack()?.parameters ?? {}, { acquireConcurrency: '0' });
    await resumed();
    expect(said.at(-1)).toContain('acquireConcurrency is 0: holdfast deploy --reset acquireConcurrency');
  });
});
