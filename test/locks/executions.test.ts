import { createHash, randomUUID } from 'node:crypto';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { createTables } from '../../local/dynamodb.ts';
import { freeEndedExecution } from '../../shared/locks/executions/ended.ts';
import { call } from '../support/emulators/aws.ts';
import { dynamodbEndpoint } from '../support/emulators/endpoint.ts';
import { exitingAfter } from '../support/faults/mortal.ts';
import { lambdaContext, post } from '../support/stack/adapters.ts';
import { counting, isFull } from '../support/time/rounds.ts';
import { failure } from '../support/worlds/leases.ts';
import { lineWorld } from '../support/worlds/line.ts';
import { permitLineWorld } from '../support/worlds/permits-in-line.ts';

// What test/line/executions.ts does not say: attributes, several permits of one execution, its row, and its keys.

const world = await lineWorld();
const { acquire, release, heartbeat, park, cancel, executionEnded, read, rawItem, rows, repair } = world;
const { clock, dependencies, dynamodb, requests, steps, handlers } = world;
afterAll(() => steps.stop());
beforeEach(() => {
  steps.faults = {};
  requests.faultsOf = {};
  requests.sent.length = 0;
});

const none = { tickets: 0, freed: 0, graced: 0, kept: 0 };
const DENIED = { name: 'AccessDeniedException', status: 400 };

it.each([
  ['was notified', []],
  ['may not have been notified', ['refused' as const]],
])('the lease is free and marked if its line is unreadable (task %s)', async (what, faults) => {
  const key = `unread, ${what}`;
  const execution = steps.newExecution();
  const first = await acquire({ key });
  await park({ key, execution });
  const { task } = await park({ key });
  steps.faults.SendTaskSuccess = faults;
  await release(first);
  requests.faultsOf.Query = ['none', 'none', DENIED]; // after the queries for what the execution holds
  expect(await executionEnded(execution)).toMatchObject({ freed: 1 });
  expect([requests.faultsOf.Query, task.state]).toEqual([[], 'waiting']);
  expect(await read({ key })).toMatchObject({ state: 'released' });
  expect(await rawItem(key)).toHaveProperty('mark');
  await repair();
  expect(task.state).toBe('succeeded');
});

it('the lease is counted once if the write that frees it is unanswered', async () => {
  const [key, execution] = ['freed without an answer', steps.newExecution()];
  await acquire({ key, execution });
  const { ticket } = await park({ key });
  await cancel(key, ticket);
  requests.faultsOf.UpdateItem = ['lostReply'];
  expect(await executionEnded(execution)).toEqual({ execution, ...none, freed: 1 });
  expect(await rawItem(key)).not.toHaveProperty('execution');
  expect(await acquire({ key })).toMatchObject({ previous: { ended: 'executionEnded' } });
});

it('a late heartbeat does not bring back the expiry from before the grace', async () => {
  const [key, execution] = ['late beat', steps.newExecution()];
  const grant = await acquire({ key, execution, ttlSeconds: 900, graceSeconds: 60 });
  clock.advance(1000);
  await heartbeat(grant);
  const beaten = await rawItem(key);
  clock.advance(1000);
  expect(await executionEnded(execution)).toMatchObject({ graced: 1 });
  expect((await rawItem(key))?.h?.M?.b).toEqual(beaten?.h?.M?.b);
});

it.each([
  [
    [0.1, 0.2],
    ['DeleteItem', 'UpdateItem'],
  ],
  [
    [0.2, 0.1],
    ['UpdateItem', 'DeleteItem'],
  ],
])('a pass takes the keys in an order by chance (%j)', async (lots, order) => {
  const execution = steps.newExecution();
  await acquire({ key: `lots in line ${lots}` });
  await park({ key: `lots in line ${lots}`, execution }); // the pass deletes this ticket by a DeleteItem
  await acquire({ key: `lots held ${lots}`, execution });
  requests.sent.length = 0;
  const ids = { ...dependencies.ids, random: () => lots.shift() ?? 0 };
  await freeEndedExecution({ ...dependencies, ids })({ execution, again: false }, call());
  expect(requests.sent.filter((sent) => order.includes(sent)).slice(0, 2)).toEqual(order);
});

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

it('a key that fails does not stop other keys, and the pass reports it', async () => {
  const execution = steps.newExecution();
  const keys = ['fails-1', 'fails-2', 'fails-3'];
  for (const key of keys) await acquire({ key, execution });
  requests.faultsOf.GetItem = ['none', DENIED];
  expect((await failure(executionEnded(execution))).code).toBe('Unavailable');
  const states = await Promise.all(keys.map((key) => read({ key })));
  expect(states.map((one) => 'state' in one && one.state).toSorted()).toEqual(['held', 'released', 'released']);
  expect(await executionEnded(execution, true)).toMatchObject({ freed: 1 });
});

it('a message that fails stays in the queue, and the others are done', async () => {
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

it('a leases table without the index is named, and so is the index', async () => {
  const table = `test-leases-without-index-${randomUUID()}`;
  const definition = {
    TableName: table,
    BillingMode: 'PAY_PER_REQUEST' as const,
    AttributeDefinitions: [{ AttributeName: 'key', AttributeType: 'S' as const }],
    KeySchema: [{ AttributeName: 'key', KeyType: 'HASH' as const }],
  };
  await createTables(dynamodbEndpoint(), [{ definition, ttlAttribute: undefined }]);
  const foreign = await lineWorld({ table });
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

describe('several permits of a key', async () => {
  const world = await permitLineWorld();
  const { acquire, release, park, grantOf, read, rows, executionRows, repairLine, executionEnded } = world;
  const { clock, requests, steps, sent } = world;
  afterAll(() => steps.stop());
  beforeEach(() => {
    requests.faultsOf = {};
    requests.sent.length = 0;
    steps.faults = {};
    steps.onTheWay = async () => {};
  });

  const holders = async (key: string) => (await read(key)).holders.map(({ holder }) => holder).toSorted();
  const crowd = (count: number, asked: object) =>
    Promise.all(Array.from({ length: count }, (_, n) => acquire({ holder: `h${n}`, requestId: `r${n}`, ...asked })));
  const NEVER_STARTED = 'arn:aws:states:us-east-1:123456789012:execution:machine:never-started';

  /** Longer than any call takes, and longer than a grant counts as young. */
  const AGAIN_MS = 90_000;

  describe('permits', () => {
    it('all permits and waiters of the execution go, and others stay', async () => {
      const [key, execution] = ['held', steps.newExecution()];
      for (const holder of ['a', 'b']) await acquire({ key, holder, limit: 3, execution });
      await acquire({ key, holder: 'other', limit: 3 });
      (await park({ key, holder: 'heavy', limit: 3, weight: 3, execution })).task.state = 'timedOut';
      const { task } = await park({ key, holder: 'next', limit: 3, weight: 2 });
      expect(await executionEnded(execution)).toEqual({ execution, ...none, freed: 2, tickets: 1 });
      const at = new Date(clock.now()).toISOString();
      expect(grantOf(task)).toMatchObject({ holder: 'next', previous: { ended: 'executionEnded', holder: 'b', at } });
      expect([await holders(key), await rows(key)]).toEqual([['next', 'other'], []]);
    });

    it('a look leaves the plain permit of a redriven execution', async () => {
      const [key, execution] = ['bound and plain', steps.newExecution('RUNNING')];
      await park({ key, holder: 'bound', limit: 2, execution, bound: true });
      clock.advance(10_000);
      steps.end(execution);
      clock.advance(2000);
      await acquire({ key, holder: 'plain', limit: 2, execution, ttlSeconds: 3600 });
      await acquire({ key, holder: 'other', limit: 2 });
      expect(await holders(key)).toEqual(['other', 'plain']);
    });

    it('a look frees a permit from before a redrive beside a later one', async () => {
      const [key, execution] = ['before and after', steps.newExecution('RUNNING')];
      await park({ key, holder: 'before', limit: 2, execution, bound: true });
      clock.advance(10_000);
      steps.end(execution);
      clock.advance(2000);
      steps.redrive(execution);
      clock.advance(2000);
      await park({ key, holder: 'after', limit: 2, execution, bound: true });
      await acquire({ key, holder: 'other', limit: 2 });
      expect(await holders(key)).toEqual(['after', 'other']);
    });

    it.each([
      [18, 1],
      [19, 2],
    ])('the end of an execution ends %i permits by %i writes', async (count, writes) => {
      const [key, execution] = [`crowd of ${count}`, steps.newExecution()];
      await crowd(count, { key, limit: 50, execution });
      for (const holder of ['x', 'y']) await acquire({ key, holder, limit: 50, ttlSeconds: 2 });
      const { task } = await park({ key, holder: 'next', limit: 50, weight: 50 });
      clock.advance(2600);
      requests.sent.length = 0;
      expect(await executionEnded(execution)).toMatchObject({ freed: count });
      expect(grantOf(task)).toMatchObject({ holder: 'next', used: 50 });
      expect(sent('UpdateItem')).toBe(writes);
    });

    it('an expired permit whose execution has ended makes room once', async () => {
      const [key, execution] = ['both', steps.newExecution()];
      await acquire({ key, holder: 'x', limit: 2, ttlSeconds: 2 });
      await acquire({ key, holder: 'y', limit: 2, ttlSeconds: 2, execution });
      const { task } = await park({ key, holder: 'next', mode: 'exclusive' });
      clock.advance(2600);
      expect(await executionEnded(execution)).toMatchObject({ freed: 1 });
      expect(grantOf(task)).toMatchObject({ holder: 'next', previous: { holder: 'y', ended: 'executionEnded' } });
    });

    it('a record forgets the requests of an ended execution, even in a hand-off', async () => {
      const [key, execution] = ['forgotten', steps.newExecution()];
      await crowd(9, { key, limit: 9, execution });
      const { task } = await park({ key, holder: 'next', limit: 9, weight: 9 });
      expect(await executionEnded(execution)).toMatchObject({ freed: 9 });
      expect(grantOf(task)).toMatchObject({ holder: 'next', used: 9, previous: { ended: 'executionEnded' } });
      const again = Array.from({ length: 9 }, (_, n) => ({
        key,
        holder: `h${n}`,
        requestId: `r${n}`,
        limit: 9,
        execution,
      }));
      const codes = await Promise.all(again.map(async (asked) => (await failure(acquire(asked))).code));
      expect(codes).toEqual(Array(9).fill('LeaseHeld'));
    });

    it('each permit has its own grace and target', async () => {
      const execution = steps.newExecution('ABORTED');
      const plain = { key: 'mixed', execution, limit: 9 };
      const asked = { ...plain, ttlSeconds: 900, graceSeconds: 60 };
      await acquire({ ...plain, holder: 'no grace' });
      await acquire({ ...asked, holder: 'grace' });
      await acquire({ ...asked, holder: 'done', target: steps.newExecution('SUCCEEDED') });
      await acquire({ ...asked, holder: 'never started', target: NEVER_STARTED });
      expect(await executionEnded(execution)).toEqual({ execution, ...none, freed: 2, graced: 1, kept: 1 });
      expect(await executionEnded(execution, true)).toEqual({ execution, ...none, freed: 1 });
      expect((await read('mixed')).holders).toMatchObject([{ holder: 'grace', inGrace: true }]);
    });
  });

  describe('rows', () => {
    it('one row serves all requests of an execution for a key', async () => {
      const execution = steps.newExecution();
      for (let n = 0; n < 10; n++) {
        clock.advance(1);
        await release(await acquire({ key: 'often', limit: 1, execution }));
      }
      const [row, ...more] = await executionRows('often');
      expect(more).toEqual([]);
      const hash = createHash('sha256').update(execution).digest('base64url');
      expect(row?.ticket).toEqual({ S: `x${hash.slice(0, 16)}` }); // functions of every version find the row by this name
      expect(row?.ttl).toEqual({ N: `${Math.ceil(clock.now() / 1000) + 400 * 86_400}` });
    });

    it('an execution without permits costs one read at either pass', async () => {
      const execution = steps.newExecution('SUCCEEDED');
      await release(await acquire({ key: 'gave back', limit: 1, execution }));
      await acquire({ key: 'gave back', holder: 'a', limit: 1, ttlSeconds: 600 });
      await park({ key: 'gave back', holder: 'b', limit: 1 });
      steps.requests.length = 0;
      for (const again of [false, true]) {
        clock.advance(AGAIN_MS);
        requests.sent.length = 0;
        expect(await executionEnded(execution, again)).toEqual({ execution, ...none });
        const row = again ? ['DeleteItem'] : [];
        expect(requests.sent).toEqual(['Query', 'Query', 'GetItem', ...row]);
      }
      expect([steps.requests, (await executionRows('gave back')).length]).toEqual([[], 0]);
    });

    it('an execution that was redriven and is about to ask again keeps its row', async () => {
      const execution = steps.newExecution('RUNNING');
      await release(await acquire({ key: 'about to', execution, limit: 1 }));
      clock.advance(30_000);
      expect(await executionEnded(execution, true)).toEqual({ execution, ...none });
      expect(await executionRows('about to')).toHaveLength(1);
    });

    it('an execution that is redriven during the pass keeps what it acquires', async () => {
      const [key, execution] = ['redriven-now', steps.newExecution()];
      await acquire({ key, holder: 'before', limit: 2, execution });
      clock.advance(AGAIN_MS);
      const event = steps.end(execution);
      steps.onTheWay = async (action) => {
        if (action !== 'DescribeExecution') return;
        steps.onTheWay = async () => {};
        clock.advance(1);
        await acquire({ key, holder: 'after', limit: 2, execution });
      };
      expect(await executionEnded(execution, true, event)).toMatchObject({ freed: 1 });
      expect([await holders(key), (await executionRows(key)).length]).toEqual([['after'], 1]);
      clock.advance(AGAIN_MS);
      expect(await executionEnded(execution, true)).toMatchObject({ freed: 1 });
      expect(await executionRows(key)).toHaveLength(0);
    });
  });

  describe('calls that fail or exit', () => {
    it('a row or a ticket without an answer does not grant a permit', async () => {
      const asked = { key: 'no answer', limit: 1, execution: steps.newExecution() };
      const unknown = { code: 'OutcomeUnknown', context: { retryWith: { requestId: expect.any(String) } } };
      requests.faultsOf.UpdateItem = ['lostReply', 'lostReply', 'lostReply'];
      const failed = await failure(acquire(asked));
      expect(failed).toMatchObject(unknown);
      expect(await world.rawItem(asked.key)).toBeUndefined();
      expect(await acquire({ ...asked, ...(failed.context.retryWith as object) })).toMatchObject({
        repeated: false,
        used: 1,
      });
      requests.faultsOf.PutItem = ['lostReply', 'lostReply', 'lostReply'];
      expect(await failure(park({ ...asked, requestId: undefined }))).toMatchObject(unknown);
    });

    it.each([
      ['leases', ['none', DENIED], 0],
      ['waiters', [DENIED], 1], // which finds the permits too
    ] as const)('a query of the %s that fails is tried again', async (table, faults, freedByRetry) => {
      const [key, execution] = [`query of ${table}`, steps.newExecution()];
      await acquire({ key, limit: 1, execution });
      const { task } = await park({ key, holder: 'next', limit: 1 });
      requests.faultsOf.Query = [...faults];
      expect((await failure(executionEnded(execution))).code).toBe('Unavailable');
      expect(await executionEnded(execution)).toEqual({ execution, ...none, freed: freedByRetry });
      expect(grantOf(task)).toMatchObject({ holder: 'next', used: 1 });
    });

    it.each(['call', 'task'])('the end of an execution removes the row of an exited %s', async (kind) => {
      for (const writes of counting()) {
        const [key, execution, task] = [`${kind} ${writes}`, steps.newExecution(), steps.newTask()];
        const asked = { key, limit: 1, ttlSeconds: 86_400, execution };
        const { survived } = await exitingAfter(writes, () => (kind === 'call' ? acquire(asked) : park(asked, task)));
        task.state = 'timedOut';
        await executionEnded(execution);
        expect([await holders(key), await rows(key)]).toEqual([[], []]);
        if (survived) return;
      }
    });

    it.runIf(isFull)('the second pass finishes a first pass that exited anywhere', async () => {
      for (const writes of counting()) {
        const [key, execution, target] = [`ends ${writes}`, steps.newExecution(), steps.newExecution('RUNNING')];
        const long = { key, limit: 3, ttlSeconds: 86_400 };
        await acquire({ ...long, holder: 'a', execution });
        await acquire({ ...long, holder: 'b', execution, target });
        await acquire({ ...long, holder: 'c' });
        await park({ ...long, holder: 'heavy', weight: 3, execution });
        const { task } = await park({ ...long, holder: 'next' });
        const { survived } = await exitingAfter(writes, () => executionEnded(execution));
        clock.advance(AGAIN_MS);
        requests.faultsOf.UpdateItem = ['lostReply', 'lostReply'];
        await executionEnded(execution, true);
        requests.faultsOf = {};
        await repairLine(key);
        expect(task.state).toBe('succeeded');
        steps.executions.set(target, 'SUCCEEDED');
        await executionEnded(target);
        expect([await holders(key), (await read(key)).used]).toEqual([['c', 'next'], 2]);
        if (survived) return;
      }
    });
  });
});
