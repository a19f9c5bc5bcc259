import { createHash, randomUUID } from 'node:crypto';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { createTables } from '../../local/dynamodb.ts';
import { acquireLease } from '../../shared/leases/acquire.ts';
import { endExecution } from '../../shared/locks/execution-ended.ts';
import { call } from '../support/emulators/aws.ts';
import { dynamodbEndpoint } from '../support/emulators/endpoint.ts';
import { dyingAfter } from '../support/faults/mortal.ts';
import { counting } from '../support/time/rounds.ts';
import { failure } from '../support/worlds/leases.ts';
import { redriveBefore } from '../support/worlds/line.ts';
import { poolLineWorld } from '../support/worlds/permits-in-line.ts';

const world = await poolLineWorld();
const { acquire, release, heartbeat, park, grantOf, read, rows, executionRows, repairLine, executionEnded } = world;
const { clock, requests, steps, dependencies } = world;
afterAll(() => steps.stop());
beforeEach(() => {
  requests.faultsOf = {};
  requests.sent.length = 0;
  steps.faults = {};
  steps.onTheWay = async () => {};
});

const holders = async (key: string) => (await read(key)).holders.map(({ holder }) => holder);
const none = { tickets: 0, freed: 0, graced: 0, kept: 0 };

/** Longer than a call can take, and than what counts as young. */
const AGAIN_MS = 90_000;

describe('an execution that ends', () => {
  it('holding: all of its permits end, and their room goes to the line', async () => {
    const execution = steps.newExecution();
    for (const holder of ['a', 'b']) await acquire({ key: 'held', holder, limit: 3, execution });
    await acquire({ key: 'held', holder: 'other', limit: 3 });
    await acquire({ key: 'alone', mode: 'exclusive', execution });
    const { task } = await park({ key: 'held', holder: 'next', limit: 3, weight: 2 });
    expect(await read('alone')).toMatchObject({ holders: [{ execution }] });
    expect(await executionEnded(execution)).toEqual({ execution, ...none, freed: 3 });
    const at = new Date(clock.now()).toISOString();
    expect(grantOf(task)).toMatchObject({ holder: 'next', previous: { ended: 'executionEnded', holder: 'b', at } });
    expect(await holders('held')).toEqual(['other', 'next']);
    expect(await read('alone')).toMatchObject({ used: 0, holders: [] });
  });

  it('holding more than one write ends: all of them end', async () => {
    const execution = steps.newExecution();
    const asked = Array.from({ length: 45 }, (_, n) =>
      acquire({ key: 'crowd', holder: `h${n}`, limit: 50, execution }),
    );
    await Promise.all(asked);
    expect(await executionEnded(execution)).toMatchObject({ freed: 45 });
    expect(await read('crowd')).toMatchObject({ used: 0 });
  });

  it('holding what it was given by the line, as a task and as a call: the same', async () => {
    const execution = steps.newExecution();
    const first = await acquire({ key: 'given', limit: 1 });
    const parked = await park({ key: 'given', holder: 'b', limit: 1, execution });
    await release(first);
    expect(parked.task.state).toBe('succeeded');
    expect(await executionEnded(execution)).toMatchObject({ freed: 1 });
    await acquire({ key: 'given', holder: 'c', limit: 1, ttlSeconds: 2 });
    const waited = await acquire({ key: 'given', holder: 'd', limit: 1, waitSeconds: 10, execution });
    expect(waited.waitedMs).toBeGreaterThan(2000);
    expect(await executionEnded(execution)).toMatchObject({ freed: 1 });
    expect(await holders('given')).toEqual([]);
  });

  it('in line: its places go, and those behind it come in', async () => {
    const execution = steps.newExecution();
    await acquire({ key: 'line', holder: 'a', limit: 2, weight: 1 });
    const heavy = await park({ key: 'line', holder: 'heavy', limit: 2, weight: 2, execution });
    const light = await park({ key: 'line', holder: 'light', limit: 2 });
    expect(light.task.state).toBe('waiting');
    heavy.task.state = 'timedOut';
    expect(await executionEnded(execution)).toEqual({ execution, ...none, tickets: 1 });
    expect(light.task.state).toBe('succeeded');
    expect(await rows('line')).toEqual([]);
  });

  it('while its acquire was under way: the second pass ends what came too late, and the row of the execution goes', async () => {
    const execution = steps.newExecution();
    await acquire({ key: 'late', holder: 'early', limit: 3, execution });
    expect(await executionEnded(execution)).toMatchObject({ freed: 1 });
    await acquire({ key: 'late', holder: 'late', limit: 3, execution });
    expect(await executionRows('late')).toHaveLength(2);
    clock.advance(AGAIN_MS);
    expect(await executionEnded(execution, true)).toEqual({ execution, ...none, freed: 1 });
    expect(await executionRows('late')).toHaveLength(1);
    expect(await executionEnded(execution, true)).toEqual({ execution, ...none });
  });

  it('and asks again a thousand times in one key: it leaves one row there', async () => {
    const execution = steps.newExecution();
    for (let n = 0; n < 10; n++) {
      clock.advance(1);
      await release(await acquire({ key: 'often', limit: 1, execution }));
    }
    expect(await executionRows('often')).toHaveLength(2);
  });

  it('and was redriven: neither pass of an event that comes late takes what it has', async () => {
    const execution = steps.newExecution('RUNNING');
    steps.redriven.add(execution);
    await acquire({ key: 'redriven', limit: 1, execution });
    await park({ key: 'redriven', holder: 'in line', limit: 1, execution });
    clock.advance(10_000);
    for (const again of [false, true]) expect(await executionEnded(execution, again)).toEqual({ execution, ...none });
    expect([await holders('redriven'), await rows('redriven'), (await executionRows('redriven')).length]).toMatchObject([
      ['tester'],
      [{}],
      2,
    ]);
    steps.executions.set(execution, 'FAILED');
    expect(await executionEnded(execution)).toMatchObject({ freed: 1, tickets: 1 });
  });

  it('and is redriven while its permits are looked up: it keeps what it acquires then, and the row for it', async () => {
    const execution = steps.newExecution();
    await acquire({ key: 'redriven-now', holder: 'before', limit: 2, execution });
    clock.advance(AGAIN_MS);
    steps.onTheWay = async (action) => {
      if (action !== 'DescribeExecution') return;
      steps.onTheWay = async () => {};
      clock.advance(1);
      await acquire({ key: 'redriven-now', holder: 'after', limit: 2, execution });
    };
    expect(await executionEnded(execution, true)).toMatchObject({ freed: 1 });
    expect([await holders('redriven-now'), (await executionRows('redriven-now')).length]).toEqual([['after'], 2]);
    expect(await executionEnded(execution)).toMatchObject({ freed: 1 });
  });

  it.each([
    ['reads the record', 'GetItem'],
    ['writes its end', 'UpdateItem'],
  ])('and is redriven before the pass %s: it keeps the permit that its task is answered with', async (_, command) => {
    const execution = steps.newExecution();
    const key = `redriven before ${command}`;
    const asked = { key, holder: 'h', limit: 1, requestId: 'r', execution };
    const before = await park(asked);
    const again = async () => grantOf((await park(asked)).task);
    const answered = redriveBefore(command, { requests, steps, execution, again });
    expect(await executionEnded(execution)).toMatchObject({ freed: 0 });
    expect(answered).toMatchObject([{ fence: grantOf(before.task).fence, repeated: true }]);
    expect(await holders(key)).toEqual(['h']);
  });

  it('is remembered by its request, which gets no other permit: a redriven execution asks by another one', async () => {
    const execution = steps.newExecution();
    const asked = { key: 'asks again', holder: 'h', limit: 1, requestId: 'r', execution };
    const before = await acquire(asked);
    await executionEnded(execution);
    const released = { code: 'LeaseLost', context: { reason: 'released' } };
    expect(await failure(acquire(asked))).toMatchObject(released);
    expect(await failure(heartbeat(before))).toMatchObject(released);
    const after = await acquire({ ...asked, requestId: 'r-1' });
    expect(after).toMatchObject({ repeated: false, holder: 'h' });
    expect(after.fence).toBeGreaterThan(before.fence);
  });

  it('is remembered by up to eight requests, also in the write that grants their places', async () => {
    const execution = steps.newExecution();
    const asked = (nth: number) => ({ key: 'eight', holder: 'h', limit: 9, requestId: `r${nth}`, execution });
    for (let nth = 0; nth < 9; nth++) await acquire(asked(nth));
    const { task } = await park({ key: 'eight', holder: 'next', limit: 9, weight: 9 });
    expect(await executionEnded(execution)).toMatchObject({ freed: 9 });
    expect(grantOf(task)).toMatchObject({ holder: 'next', used: 9, previous: { ended: 'executionEnded' } });
    const codes: unknown[] = [];
    for (let nth = 0; nth < 9; nth++) codes.push((await failure(acquire(asked(nth)))).code);
    expect(codes.toSorted()).toEqual(['LeaseHeld', ...Array(8).fill('LeaseLost')]);
  });

  it('is forgotten by the request of a permit that its task may never have heard of', async () => {
    const execution = steps.newExecution('RUNNING');
    const key = 'unheard';
    const asked = { key, holder: 'h', limit: 1, requestId: 'r', execution };
    await world.untold(await acquire({ key, limit: 1 }), asked);
    steps.executions.set(execution, 'FAILED');
    expect(await executionEnded(execution)).toMatchObject({ freed: 1 });
    expect(await acquire(asked)).toMatchObject({ repeated: false });
  });

  it('frees no permit that went to another since, nor one that its holder keeps alive under a new version', async () => {
    const execution = steps.newExecution();
    await acquire({ key: 'anothers', holder: 'x', limit: 1, ttlSeconds: 2, execution });
    clock.advance(3000);
    await acquire({ key: 'anothers', holder: 'y', limit: 1, execution: steps.newExecution('RUNNING') });
    expect(await executionEnded(execution, true)).toMatchObject({ freed: 0 });
    expect(await holders('anothers')).toEqual(['y']);
    const beaten = await acquire({ key: 'beaten', limit: 1, execution });
    requests.faultsOf.Query = [
      ...(['none', 'none', 'none'] as const),
      async (send) => {
        clock.advance(1);
        await heartbeat(beaten);
        return send();
      },
    ];
    expect(await executionEnded(execution)).toMatchObject({ freed: 1 });
    expect(await read('beaten')).toMatchObject({ used: 0 });
  });
});

describe('the permit of an execution with a target', () => {
  it('stays while the target runs, passes to it, and ends with it', async () => {
    const [execution, target] = [steps.newExecution(), steps.newExecution('RUNNING')];
    const { leaseId } = await acquire({ key: 'target', limit: 1, execution, target });
    const { task } = await park({ key: 'target', holder: 'next', limit: 1 });
    expect(await executionEnded(execution)).toEqual({ execution, ...none, kept: 1 });
    expect(await executionEnded(execution, true)).toEqual({ execution, ...none });
    expect(await read('target')).toMatchObject({ holders: [{ execution: target }] });
    expect(await heartbeat({ key: 'target', leaseId })).toMatchObject({ holder: 'tester' });
    expect(task.state).toBe('waiting');
    steps.executions.set(target, 'SUCCEEDED');
    expect(await executionEnded(target)).toMatchObject({ freed: 1 });
    expect(task.state).toBe('succeeded');
  });

  it('ends at once where the target has ended, also while the permit passes to it', async () => {
    const execution = steps.newExecution();
    await acquire({ key: 'ended', limit: 2, holder: 'a', execution, target: steps.newExecution('TIMED_OUT') });
    const target = steps.newExecution('RUNNING');
    await acquire({ key: 'ended', limit: 2, holder: 'b', execution, target });
    let asked = 0;
    steps.onTheWay = async (action) => {
      if (action === 'DescribeExecution' && ++asked === 4) steps.executions.set(target, 'SUCCEEDED');
    };
    expect(await executionEnded(execution)).toMatchObject({ freed: 2 });
    expect(asked).toBeGreaterThanOrEqual(4);
    expect(await read('ended')).toMatchObject({ used: 0 });
  });

  it('stays at first where the target does not exist, because its start may be on the way, and ends at the second pass', async () => {
    const execution = steps.newExecution();
    const target = 'arn:aws:states:us-east-1:123456789012:execution:machine:never-started';
    await acquire({ key: 'unborn', limit: 1, execution, target });
    expect(await executionEnded(execution)).toMatchObject({ freed: 0, kept: 1 });
    expect(await executionEnded(execution, true)).toMatchObject({ freed: 1, kept: 0 });
  });

  it('stays where Step Functions does not say what has become of the target, and other pools are freed', async () => {
    const execution = steps.newExecution();
    const target = steps.newExecution('RUNNING');
    await acquire({ key: 'unknown', limit: 1, execution, target });
    await acquire({ key: 'beside unknown', limit: 1, execution });
    steps.foreign.add(target);
    const ended = endExecution(dependencies);
    const own = call({ home: 'aws:us-east-1:123456789012' });
    expect((await failure(ended({ execution, again: true }, own))).code).toBe('Unavailable');
    expect([await holders('unknown'), await holders('beside unknown')]).toEqual([['tester'], []]);
  });
});

describe('what fails', () => {
  it('the write of the row: nothing is granted, and the error names the request to ask with', async () => {
    requests.faultsOf.UpdateItem = ['lostReply', 'lostReply', 'lostReply'];
    const execution = steps.newExecution();
    const { code, context } = await failure(acquire({ key: 'no answer', limit: 1, execution }));
    expect([code, context.retryWith]).toEqual(['OutcomeUnknown', { requestId: expect.any(String) }]);
    expect(await world.rawItem('no answer')).toBeUndefined();
    const again = await acquire({ key: 'no answer', limit: 1, execution, ...(context.retryWith as object) });
    expect(again).toMatchObject({ repeated: false, used: 1 });
  });

  it('the write of the ticket of a task: the error names the request to ask with', async () => {
    requests.faultsOf.PutItem = ['lostReply', 'lostReply', 'lostReply'];
    const { code, context } = await failure(park({ key: 'no ticket', limit: 1, execution: steps.newExecution() }));
    expect([code, context.retryWith]).toEqual(['OutcomeUnknown', { requestId: expect.any(String) }]);
  });

  it('the call that asks, after any of its writes: the end of the execution leaves no permit', async () => {
    for (const writes of counting()) {
      const [key, execution] = [`dies ${writes}`, steps.newExecution()];
      const { survived } = await dyingAfter(writes, () => acquire({ key, limit: 1, ttlSeconds: 86_400, execution }));
      await executionEnded(execution);
      expect(await holders(key)).toEqual([]);
      if (survived) return;
    }
  });

  it('a park, after any of its writes: no ticket and no permit is left', async () => {
    for (const writes of counting()) {
      const [key, execution] = [`parks ${writes}`, steps.newExecution()];
      const task = steps.newTask();
      const asked = { key, limit: 1, ttlSeconds: 86_400, execution };
      const { survived } = await dyingAfter(writes, () => park(asked, task));
      task.state = 'timedOut';
      await executionEnded(execution);
      expect([await holders(key), await rows(key)]).toEqual([[], []]);
      if (survived) return;
    }
  });

  it('the end of the execution, after any of its writes, once or with a lost answer: the second pass finishes it', async () => {
    for (const writes of counting()) {
      const [key, execution, target] = [`ends ${writes}`, steps.newExecution(), steps.newExecution('RUNNING')];
      await acquire({ key, holder: 'a', limit: 3, ttlSeconds: 86_400, execution });
      await acquire({ key, holder: 'b', limit: 3, ttlSeconds: 86_400, execution, target });
      await acquire({ key, holder: 'c', limit: 3, ttlSeconds: 86_400 });
      await park({ key, holder: 'heavy', limit: 3, weight: 3, execution });
      const { task } = await park({ key, holder: 'next', limit: 3, ttlSeconds: 86_400 });
      const { survived } = await dyingAfter(writes, () => executionEnded(execution));
      clock.advance(AGAIN_MS);
      requests.faultsOf.UpdateItem = ['lostReply', 'lostReply'];
      await executionEnded(execution, true);
      requests.faultsOf = {};
      await repairLine(key);
      expect(task.state).toBe('succeeded');
      steps.executions.set(target, 'SUCCEEDED');
      await executionEnded(target);
      expect((await holders(key)).toSorted()).toEqual(['c', 'next']);
      expect(await read(key)).toMatchObject({ used: 2 });
      if (survived) return;
    }
  });

  it('word of a grant, and the task is gone: the schedule ends the permit where the execution has ended', async () => {
    const [execution, running] = [steps.newExecution(), steps.newExecution('RUNNING')];
    for (const [key, of, freed] of [
      ['dead task', execution, true],
      ['lost word', running, false],
    ] as const) {
      const first = await acquire({ key, holder: 'x', limit: 1 });
      const dead = await park({ key, holder: 'b', limit: 1, ttlSeconds: 600, execution: of });
      const { task } = await park({ key, holder: 'c', limit: 1 });
      steps.faults.SendTaskSuccess = ['lost'];
      await release(first);
      expect(dead.task.state).toBe('succeeded');
      clock.advance(11_000);
      await repairLine(key);
      expect(task.state).toBe(freed ? 'succeeded' : 'waiting');
    }
  });
});

it('a table of pools without the index is named, and keeps no lease from being freed', async () => {
  const poolsTable = `test-pools-without-index-${randomUUID()}`;
  const definition = {
    TableName: poolsTable,
    BillingMode: 'PAY_PER_REQUEST' as const,
    AttributeDefinitions: ['key', 'row'].map((name) => ({ AttributeName: name, AttributeType: 'S' as const })),
    KeySchema: [
      { AttributeName: 'key', KeyType: 'HASH' as const },
      { AttributeName: 'row', KeyType: 'RANGE' as const },
    ],
  };
  await createTables(dynamodbEndpoint(), [{ definition, ttlAttribute: undefined }]);
  const old = await poolLineWorld({ poolsTable });
  const execution = steps.newExecution();
  old.steps.executions.set(execution, 'FAILED');
  const plain = acquireLease(old.dependencies);
  await plain({ key: 'lease', holder: 'h', ttlSeconds: 60, waitSeconds: 0, execution }, call());
  await old.acquire({ key: 'permit', limit: 1, execution }); // it is stored, and found by nobody
  await expect(old.executionEnded(execution)).rejects.toMatchObject({
    code: 'Unavailable',
    message: `table ${poolsTable} has no index by-execution: permits of executions that end there stay until they expire`,
  });
  expect((await old.read('permit')).holders).toHaveLength(1);
  expect(await plain({ key: 'lease', holder: 'next', ttlSeconds: 60, waitSeconds: 0 }, call())).toMatchObject({
    previous: { holder: 'h', ended: 'executionEnded' },
  });
  await old.steps.stop();
});

it('an acquire that names no execution is one write, and one that does is two', async () => {
  const released = await acquire({ key: 'cost', limit: 1 });
  expect(requests.sent).toEqual(['UpdateItem']);
  await release(released);
  requests.sent.length = 0;
  await acquire({ key: 'cost', limit: 1, execution: steps.newExecution() });
  expect(requests.sent).toEqual(['UpdateItem', 'UpdateItem']);
});

it('the row of an execution is for TTL to delete when no execution can run any more', async () => {
  const execution = steps.newExecution();
  await acquire({ key: 'kept', limit: 1, execution });
  const [, row] = await executionRows('kept');
  const hash = createHash('sha256').update(execution).digest('base64url');
  expect(row?.row).toEqual({ S: `x${hash.slice(0, 16)}` }); // by which functions of each version find it
  expect(row?.ttl_at).toEqual({ N: `${Math.ceil(clock.now() / 1000) + 400 * 86_400}` });
});
