import { ScanCommand } from '@aws-sdk/client-dynamodb';
import { afterAll, expect, it } from 'vitest';
import { runNext } from '../../shared/locks/calls/run-next.ts';
import { call } from '../support/emulators/aws.ts';
import { post, throughTask } from '../support/stack/adapters.ts';
import { lineWorld } from '../support/worlds/line.ts';

// What only a function of its own does to keys with several holders: test/deployment/roles.test.ts compares the roles with what the functions send here.

const { handlers, steps, clock, dynamodb, dependencies } = await lineWorld();
const { acquire, readLeases, repairQueues, executionEnded } = handlers;
afterAll(() => steps.stop());

/** An execution of the account of the functions. */
const executionOf = (name: string, status: string) => {
  const arn = `arn:aws:states:us-east-1:000000000000:execution:machine:${name}`;
  steps.executions.set(arn, status);
  return arn;
};
const holdersOf = async (key: string) => Object(await throughTask(readLeases, { key })).body.holders;

it('the function repairQueues takes a dead task out of the line', async () => {
  const key = 'dead first';
  await post(acquire, { key, holder: 'reader', mode: 'shared', ttlSeconds: 600 });
  const writer = steps.newTask();
  await throughTask(acquire, { key, holder: 'writer', mode: 'exclusive', taskToken: writer.token });
  writer.state = 'timedOut';
  clock.advance(60_000);
  expect((await throughTask(repairQueues, {})).outcome).toBe('ok');
  expect((await post(acquire, { key, holder: 'another reader', mode: 'shared' })).status).toBe(201);
});

it('the function executionEnded frees a permit, and then deletes its row', async () => {
  const execution = 'arn:aws:states:us-east-1:000000000000:execution:machine:ended';
  steps.executions.set(execution, 'FAILED');
  await post(acquire, { key: 'ended', holder: 'h', limit: 1, execution });
  const end = async (again: boolean) => (await throughTask(executionEnded, { execution, again })).body;
  expect(await end(false)).toEqual({ execution, tickets: 0, freed: 1, graced: 0, kept: 0 });
  clock.advance(900_000);
  expect(await end(true)).toEqual({ execution, tickets: 0, freed: 0, graced: 0, kept: 0 });
  const { Items: rows = [] } = await dynamodb.send(new ScanCommand({ TableName: dependencies.waitersTable }));
  expect(rows.filter(({ key }) => key?.S === 'ended')).toEqual([]); // the row by which the first pass found the permit has gone
});

it('the function executionEnded serves the waiter that an operator has moved', async () => {
  const [key, execution] = ['moved', executionOf('moved', 'FAILED')];
  await throughTask(acquire, { key, holder: 'h', execution });
  const [first, last] = [steps.newTask(), steps.newTask()];
  await throughTask(acquire, { key, holder: 'first', taskToken: first.token });
  const { body } = await throughTask(acquire, { key, holder: 'last', taskToken: last.token });
  await runNext(dependencies)({ key, ticket: String(body.ticket) }, call());
  await throughTask(executionEnded, { execution });
  expect([first.state, last.state]).toEqual(['waiting', 'succeeded']);
});

it('the function executionEnded passes a permit to the target that works under it', async () => {
  const [key, execution, target] = ['passed', executionOf('ended', 'FAILED'), executionOf('runs', 'RUNNING')];
  await throughTask(acquire, { key, holder: 'h', limit: 1, execution, target });
  expect((await throughTask(executionEnded, { execution })).body).toMatchObject({ kept: 1 });
  expect(await holdersOf(key)).toMatchObject([{ execution: target }]);
});

it('the function repairQueues passes a permit on after a lost event', async () => {
  const [key, execution, target] = ['passed later', executionOf('lost', 'FAILED'), executionOf('goes-on', 'RUNNING')];
  await throughTask(acquire, { key, holder: 'h', limit: 1, ttlSeconds: 3600, execution, target });
  await throughTask(acquire, { key, holder: 'next', limit: 1, taskToken: steps.newTask().token });
  clock.advance(120_000);
  expect((await throughTask(repairQueues, {})).outcome).toBe('ok');
  expect(await holdersOf(key)).toMatchObject([{ holder: 'h', execution: target }]);
});
