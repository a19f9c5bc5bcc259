import { DeleteItemCommand } from '@aws-sdk/client-dynamodb';
import { afterAll, expect, it } from 'vitest';
import { throughTask } from '../support/stack/adapters.ts';
import { queueWorld } from '../support/worlds/line.ts';

// What only a function of its own does to pools: test/deployment/roles.test.ts compares the roles with what the functions send here.

const { handlers, steps, clock, dynamodb, dependencies } = await queueWorld();
const { acquire, release, readLeases, repairQueues, executionEnded } = handlers;
afterAll(() => steps.stop());

/** An execution of the account of the functions. */
const executionOf = (name: string, status: string) => {
  const arn = `arn:aws:states:us-east-1:000000000000:execution:machine:${name}`;
  steps.executions.set(arn, status);
  return arn;
};
const holdersOf = async (key: string) => Object(await throughTask(readLeases, { key })).body.holders;

it('the function executionEnded passes a permit to the target that works under it', async () => {
  const [key, execution, target] = ['passed', executionOf('ended', 'FAILED'), executionOf('runs', 'RUNNING')];
  await throughTask(acquire, { key, holder: 'h', limit: 1, execution, target });
  expect((await throughTask(executionEnded, { execution })).body).toMatchObject({ kept: 1 });
  expect(await holdersOf(key)).toMatchObject([{ execution: target }]);
});

it('the function repairQueues passes a permit to its target if the event of the end of the execution was lost and a task waits', async () => {
  const [key, execution, target] = ['passed later', executionOf('lost', 'FAILED'), executionOf('goes-on', 'RUNNING')];
  await throughTask(acquire, { key, holder: 'h', limit: 1, ttlSeconds: 3600, execution, target });
  await throughTask(acquire, { key, holder: 'next', limit: 1, taskToken: steps.newTask().token });
  clock.advance(120_000);
  expect((await throughTask(repairQueues, {})).outcome).toBe('ok');
  expect(await holdersOf(key)).toMatchObject([{ holder: 'h', execution: target }]);
});

it('the function repairQueues makes a pool of a free lease for a task whose record a third-party client has deleted', async () => {
  const key = 'changed';
  await throughTask(acquire, { key, holder: 'h', limit: 1 });
  const task = steps.newTask();
  await throughTask(acquire, { key, holder: 'waits', limit: 1, taskToken: task.token });
  await dynamodb.send(new DeleteItemCommand({ TableName: dependencies.table, Key: { key: { S: key } } }));
  const { body } = await throughTask(acquire, { key, holder: 'foreign' });
  await throughTask(release, { key, leaseId: body.leaseId });
  for (let runs = 0; runs < 3 && task.state === 'waiting'; runs++) await throughTask(repairQueues, {});
  expect(task.state).toBe('succeeded');
  expect(await holdersOf(key)).toMatchObject([{ holder: 'waits' }]);
});
