import { randomUUID } from 'node:crypto';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { createTables } from '../../local/dynamodb.ts';
import { endExecution } from '../../shared/locks/execution-ended.ts';
import { call } from '../support/emulators/aws.ts';
import { dynamodbEndpoint } from '../support/emulators/endpoint.ts';
import { lambdaContext, post } from '../support/stack/adapters.ts';
import { failure } from '../support/worlds/leases.ts';
import { queueWorld } from '../support/worlds/line.ts';

// What the end of an execution does to leases and not to permits, and to the keys of one execution. For both locks: test/line/executions.ts.

const world = await queueWorld();
const { acquire, release, heartbeat, park, cancel, executionEnded, read, rawItem, putRaw, rows, repair } = world;
const { clock, dependencies, dynamodb, requests, steps, handlers } = world;
afterAll(() => steps.stop());
beforeEach(() => {
  steps.faults = {};
  requests.faultsOf = {};
  requests.sent.length = 0;
});

const none = { tickets: 0, freed: 0, graced: 0, kept: 0 };
const DENIED = { name: 'AccessDeniedException', status: 400 };

describe('the lease of an execution that ends', () => {
  it.each([
    ['was notified', []],
    ['may not have been notified', ['refused' as const]],
  ])('the lease is free and keeps its mark if the line cannot be read, and its task %s', async (what, faults) => {
    const key = `unread, ${what}`;
    const execution = steps.newExecution();
    const first = await acquire({ key });
    await park({ key, execution });
    const { task } = await park({ key });
    steps.faults.SendTaskSuccess = faults;
    await release(first);
    requests.faultsOf.Query = ['none', 'none', DENIED]; // after those for what the execution has
    expect(await executionEnded(execution)).toMatchObject({ freed: 1 });
    expect([requests.faultsOf.Query, task.state]).toEqual([[], 'waiting']);
    expect(await read({ key })).toMatchObject({ state: 'released' });
    expect(await rawItem(key)).toHaveProperty('waiters');
    await repair();
    expect(task.state).toBe('succeeded');
  });

  it('the lease of an execution that has ended shows who held it last', async () => {
    const [key, execution] = ['held last', steps.newExecution()];
    const { fence } = await acquire({ key, holder: 'worker', execution });
    await executionEnded(execution);
    expect(await read({ key })).toMatchObject({ state: 'released', holder: 'worker', fence });
  });

  it('the lease is free and counted once if the write that frees it has no answer, and the next grant names how it ended', async () => {
    const [key, execution] = ['freed without an answer', steps.newExecution()];
    await acquire({ key, execution });
    const { ticket } = await park({ key });
    await cancel(key, ticket);
    requests.faultsOf.UpdateItem = ['none', 'lostReply'];
    expect(await executionEnded(execution)).toEqual({ execution, ...none, freed: 1 });
    expect(await rawItem(key)).not.toHaveProperty('execution');
    expect(await acquire({ key })).toMatchObject({ previous: { ended: 'executionEnded' } });
  });

  it('the lease has ended if it went to a task that was gone, and another call handed it off from there', async () => {
    const [key, execution, dead] = ['passed on', steps.newExecution(), steps.newExecution()];
    await acquire({ key, execution });
    const gone = await park({ key, execution: dead });
    const next = await park({ key });
    gone.task.state = 'timedOut';
    const handsOff = async (send: () => Promise<unknown>) => {
      expect(await executionEnded(dead)).toMatchObject({ freed: 1 });
      return send();
    };
    requests.faultsOf.UpdateItem = ['none', 'none', handsOff];
    expect(await executionEnded(execution)).toMatchObject({ freed: 1, kept: 0 });
    expect(next.task.state).toBe('succeeded');
  });

  it('a late duplicate of an earlier heartbeat does not bring back the expiry from before the grace', async () => {
    const [key, execution] = ['late beat', steps.newExecution()];
    const grant = await acquire({ key, execution, ttlSeconds: 900, graceSeconds: 60 });
    clock.advance(1000);
    await heartbeat(grant);
    const beaten = await rawItem(key);
    clock.advance(1000);
    expect(await executionEnded(execution)).toMatchObject({ graced: 1 });
    expect((await rawItem(key))?.heartbeat_at).toEqual(beaten?.heartbeat_at);
  });

  it('a lease that names a target of an Express workflow is free at the second pass', async () => {
    const [key, execution] = ['express', steps.newExecution()];
    await acquire({ key, execution });
    const target = { S: 'arn:aws:states:us-east-1:123456789012:express:machine:run:1' };
    await putRaw({ ...(await rawItem(key)), target } as never);
    expect(await executionEnded(execution)).toMatchObject({ freed: 0, kept: 1 });
    expect(await executionEnded(execution, true)).toMatchObject({ freed: 1, kept: 0 });
  });
});

describe('a redriven execution that asks again', () => {
  it('a redriven execution is granted the lease if its task may not have been notified, and the schedule found the end', async () => {
    const execution = steps.newExecution('RUNNING');
    const asked = { key: 'lost, unnotified', requestId: 'r', execution, ttlSeconds: 3600 };
    steps.faults.SendTaskSuccess = ['refused', 'refused'];
    await park(asked);
    const { ticket } = await park({ key: asked.key });
    await cancel(asked.key, ticket); // the mark stays
    steps.executions.set(execution, 'ABORTED');
    clock.advance(60_000);
    await repair();
    expect(await read({ key: asked.key })).toMatchObject({ state: 'released' });
    expect(await acquire(asked)).toMatchObject({ repeated: false });
  });
});

describe('the keys of an execution', () => {
  it.each([
    [
      [0.1, 0.2],
      ['DeleteItem', 'UpdateItem'],
    ],
    [
      [0.2, 0.1],
      ['UpdateItem', 'DeleteItem'],
    ],
  ])(
    'a pass takes the keys in an order by chance, so it does not reach the same one each time (%j)',
    async (lots, order) => {
      const execution = steps.newExecution();
      await acquire({ key: `lots in line ${lots}` });
      await park({ key: `lots in line ${lots}`, execution }); // its deletion is the DeleteItem
      await acquire({ key: `lots held ${lots}`, execution });
      requests.sent.length = 0;
      const ids = { ...dependencies.ids, random: () => lots.shift() ?? 0 };
      await endExecution({ ...dependencies, ids })({ execution, again: false }, call());
      expect(requests.sent.filter((sent) => order.includes(sent))).toEqual(order);
    },
  );

  it('a pass ends all leases and tickets of more than a page', async () => {
    const execution = steps.newExecution();
    for (const key of ['page-1', 'page-2', 'page-3']) await acquire({ key, execution });
    for (const key of ['page-4', 'page-5']) {
      await acquire({ key });
      await park({ key, execution });
    }
    let pages = 0;
    const one = (next: (args: object) => Promise<object>) => async (args: { input: { IndexName?: string } }) => {
      if (args.input.IndexName === undefined) return next(args);
      if (++pages > 20) throw new Error('the same page again and again');
      return next({ ...args, input: { ...args.input, Limit: 1 } });
    };
    dynamodb.middlewareStack.add(one as never, { step: 'initialize', name: 'one' });
    const ended = await executionEnded(execution).finally(() => dynamodb.middlewareStack.remove('one'));
    expect(ended).toEqual({ execution, ...none, tickets: 2, freed: 3 });
    expect(await rows('page-4')).toEqual([]);
  });

  it('a key that fails stops no other key, and the pass reports the failure', async () => {
    const execution = steps.newExecution();
    const keys = ['fails-1', 'fails-2', 'fails-3'];
    for (const key of keys) await acquire({ key, execution });
    requests.faultsOf.GetItem = ['none', DENIED];
    expect((await failure(executionEnded(execution))).code).toBe('Unavailable');
    const states = await Promise.all(keys.map((key) => read({ key })));
    expect(states.map((one) => 'state' in one && one.state).toSorted()).toEqual(['held', 'released', 'released']);
    expect(await executionEnded(execution, true)).toMatchObject({ freed: 1 });
  });

  it('a key that fails stops no other key of the schedule', async () => {
    const tasks = [];
    for (let at = 0; at < 20; at++) {
      const key = `schedule-${at}`;
      await acquire({ key, ttlSeconds: 2 });
      tasks.push((await park({ key })).task);
    }
    clock.advance(3000);
    requests.faultsOf.GetItem = [() => Promise.reject(new TypeError('an unexpected record'))];
    await expect(repair()).rejects.toThrow();
    expect(tasks.filter(({ state }) => state === 'succeeded')).toHaveLength(19);
  });

  it('a message of the delay queue that fails stays in the queue, and the other messages are done', async () => {
    const execution = steps.newExecution();
    await acquire({ key: 'queued', execution });
    const message = (messageId: string, body: string) => ({ messageId, eventSource: 'aws:sqs', body });
    const records = [
      message('unreadable', '{'),
      message('wrong', JSON.stringify({ execution: 'not an arn' })),
      message('right', JSON.stringify({ execution, again: true })),
    ];
    const answer = await handlers.executionEnded({ Records: records }, lambdaContext());
    expect(answer).toEqual({ batchItemFailures: [{ itemIdentifier: 'unreadable' }, { itemIdentifier: 'wrong' }] });
    expect(await read({ key: 'queued' })).toMatchObject({ state: 'released' });
  });
});

describe('the tables in which a pass looks up an execution', () => {
  it('a leases table without the index is named, and so is the index', async () => {
    const table = `test-leases-without-index-${randomUUID()}`;
    const definition = {
      TableName: table,
      BillingMode: 'PAY_PER_REQUEST' as const,
      AttributeDefinitions: [{ AttributeName: 'key', AttributeType: 'S' as const }],
      KeySchema: [{ AttributeName: 'key', KeyType: 'HASH' as const }],
    };
    await createTables(dynamodbEndpoint(), [{ definition, ttlAttribute: undefined }]);
    const foreign = await queueWorld({ table });
    const execution = steps.newExecution();
    const grant = await foreign.acquire({ key: 'k', execution });
    await expect(foreign.executionEnded(execution)).rejects.toMatchObject({
      code: 'Unavailable',
      message: `table ${table} has no index by-execution, so leases and permits stay until they expire after their executions end: create the index`,
    });
    const { task } = await foreign.park({ key: 'k' });
    await foreign.release(grant);
    expect(task.state).toBe('succeeded');
    await foreign.steps.stop();
  });

  it('a table of waiters without the index is named', async () => {
    requests.faultsOf.Query = [{ name: 'ValidationException', status: 400 }];
    expect(await failure(executionEnded(steps.newExecution()))).toMatchObject({
      code: 'Unavailable',
      message: `table ${dependencies.waitersTable} has no index by-execution, so leases and permits stay until they expire after their executions end: create the index`,
      context: { retryAfterMs: 1000 },
    });
  });

  it('a query of the waiters that fails keeps no lease from being freed, and the pass reports the failure', async () => {
    const execution = steps.newExecution();
    await acquire({ key: 'freed', execution });
    await acquire({ key: 'waited for' });
    await park({ key: 'waited for', execution });
    requests.faultsOf.Query = [DENIED];
    expect((await failure(executionEnded(execution))).code).toBe('Unavailable');
    expect(await read({ key: 'freed' })).toMatchObject({ state: 'released' });
    expect(await executionEnded(execution)).toMatchObject({ freed: 0, tickets: 1 });
  });

  it('a table that is too busy is not reported as one without an index', async () => {
    requests.faultsOf.Query = ['throttle', 'throttle', 'throttle'];
    const { code, message } = await failure(executionEnded(steps.newExecution()));
    expect(code).toBe('Throttled');
    expect(message).not.toContain('index');
  });
});

it.each([
  ['arn:aws:states:us-east-1:999999999999:execution:machine:run', 'in the account and region'],
  ['arn:aws:states:eu-west-1:000000000000:execution:machine:run', 'in the account and region'],
  ['arn:aws-cn:states:us-east-1:000000000000:execution:machine:run', 'in the account and region'],
  ['arn:aws:states:us-east-1:000000000000:express:machine:run:1', 'Standard'],
])('acquire refuses an execution that cannot be asked about: %s', async (arn, why) => {
  const own = 'arn:aws:states:us-east-1:000000000000:execution:machine:own';
  for (const input of [{ execution: arn }, { execution: own, target: arn }, { execution: arn, taskToken: 't' }]) {
    const { outcome, body } = await post(handlers.acquire, { key: 'refused', holder: 'h', ...input });
    expect(outcome).toBe('InvalidRequest');
    const path = 'target' in input ? 'target' : 'execution';
    expect(body.issues).toEqual([{ path, message: expect.stringContaining(why) }]);
  }
  expect([await rawItem('refused'), await rows('refused')]).toEqual([undefined, []]);
});
