import { createServer, type Socket } from 'node:net';
import { afterAll, expect, it } from 'vitest';
import { stepFunctionsClient } from '../../shared/aws/step-functions.ts';
import { releaseGrant } from '../../shared/locks/calls/release.ts';
import { describeExecution } from '../../shared/locks/executions/state.ts';
import { call } from '../support/emulators/aws.ts';
import { lineWorld } from '../support/worlds/line.ts';

/**
 * A Step Functions that answers one request on each connection and keeps the connection. A second request there meets a reset, as after an idle
 * time behind a NAT gateway, or in an environment that Lambda had frozen.
 */
async function forgetfulStepFunctions() {
  const sockets = new Set<Socket>();
  const arrived: string[] = [];
  const server = createServer((socket) => {
    sockets.add(socket);
    let [received, isAnswered] = ['', false];
    socket.on('error', () => {});
    socket.on('data', (data) => {
      if (isAnswered) return void socket.resetAndDestroy();
      received += data;
      const [head = '', body] = received.split('\r\n\r\n');
      const length = Number(/content-length: (\d+)/i.exec(head)?.[1]);
      if (body === undefined || body.length < length) return;
      isAnswered = true;
      arrived.push(String(/AWSStepFunctions\.(\w+)/.exec(head)?.[1]));
      const answer = JSON.stringify({ status: 'RUNNING' });
      const type = 'content-type: application/x-amz-json-1.0';
      socket.write(`HTTP/1.1 200 OK\r\n${type}\r\ncontent-length: ${answer.length}\r\n\r\n${answer}`);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  const stop = () => {
    for (const socket of sockets) socket.destroy();
    server.close();
  };
  return { arrived, endpoint: `http://127.0.0.1:${port}`, stop };
}

const forgetful = await forgetfulStepFunctions();
const idle = await lineWorld({ stepFunctions: async () => stepFunctionsClient({ endpoint: forgetful.endpoint }) });
const world = await lineWorld();
const { acquire, steps, clock, executionEnded, dependencies, rawItem } = world;
afterAll(() => {
  forgetful.stop();
  return Promise.all([idle.steps.stop(), steps.stop()]);
});

it('a message to a task survives a closed idle connection to Step Functions', async () => {
  for (const key of ['one', 'two']) {
    const first = await idle.acquire({ key });
    await idle.park({ key });
    expect(await idle.release(first)).toMatchObject({ released: true });
    expect(await idle.rows(key)).toEqual([]); // the task was notified, so its ticket is gone
  }
  expect(forgetful.arrived).toEqual(['SendTaskSuccess', 'SendTaskSuccess']);
});

it('a question about an execution survives a closed idle connection', async () => {
  const execution = steps.newExecution();
  for (const _ of ['first', 'second'])
    expect(await describeExecution(idle.dependencies, execution, call())).toMatchObject({ state: 'running' });
});

it("a message to a task is sent once, even by a caller's own client", async () => {
  const client = stepFunctionsClient({ endpoint: steps.endpoint, maxAttempts: 3 });
  const release = releaseGrant({ ...dependencies, stepFunctions: async () => client });
  const first = await acquire({ key: 'own client' });
  const { task } = await world.park({ key: 'own client' });
  steps.requests.length = 0;
  steps.faults.SendTaskSuccess = ['lost'];
  expect(await release({ key: 'own client', leaseId: first.leaseId }, call())).toMatchObject({ released: true });
  expect(steps.requests.map(({ action }) => action)).toEqual(['SendTaskSuccess']);
  expect(await rawItem('own client')).toMatchObject({
    h: { M: { i: { S: world.grantOf(task).leaseId.split('.')[2] } } },
  });
});

const asked = () => steps.requests.splice(0).filter(({ action }) => action === 'DescribeExecution').length;

it.each(['throttled', 'lost', 'refused'] as const)(
  'a question about an execution is asked again if its answer was %s',
  async (fault) => {
    const execution = steps.newExecution('RUNNING');
    await acquire({ key: fault, ttlSeconds: 3600, execution });
    steps.executions.set(execution, 'FAILED');
    clock.advance(1000);
    steps.faults.DescribeExecution = [fault, fault];
    expect(await executionEnded(execution)).toMatchObject({ freed: 1 });
    expect(await rawItem(fault)).not.toHaveProperty('lease_version');
  },
);

it('a question about an execution ends with the error of its third try', async () => {
  asked();
  const execution = steps.newExecution();
  steps.faults.DescribeExecution = ['throttled', 'throttled', 'throttled'];
  await expect(describeExecution(dependencies, execution, call())).rejects.toMatchObject({ code: 'Throttled' });
  expect(asked()).toBe(3);
});

it('a question is not asked again after a definite answer, or late', async () => {
  asked();
  expect(await describeExecution(dependencies, `${steps.newExecution()}-missing`, call())).toMatchObject({
    state: 'missing',
  });
  expect(asked()).toBe(1);
  steps.faults.DescribeExecution = ['throttled'];
  const late = call({ timeLeftMs: () => 400 });
  await expect(describeExecution(dependencies, steps.newExecution(), late)).rejects.toMatchObject({
    code: 'Throttled',
  });
  expect(asked()).toBe(1);
});
