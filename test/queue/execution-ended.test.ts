import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { endExecution } from '../../shared/locks/execution-ended.ts';
import { call } from '../support/emulators/aws.ts';
import { dyingAfter } from '../support/faults/mortal.ts';
import { lambdaContext, post } from '../support/stack/adapters.ts';
import { failure } from '../support/worlds/leases.ts';
import { queueWorld, redriveBefore } from '../support/worlds/line.ts';

const world = await queueWorld();
const {
  acquire,
  release,
  heartbeat,
  park,
  cancel,
  grantOf,
  executionEnded,
  read,
  rawItem,
  putRaw,
  rows,
  clock,
  dependencies,
  dynamodb,
  requests,
  steps,
  handlers,
} = world;
afterAll(() => steps.stop());
beforeEach(() => {
  steps.onTheWay = async () => {};
  steps.faults = {};
  requests.faultsOf = {};
});

/** Step Functions continues an execution that has ended. */
function redrive(execution: string): void {
  steps.redriven.add(execution);
  steps.executions.set(execution, 'RUNNING');
}

describe('an execution that ends', () => {
  it('holding: its lease goes to the next who is parked, or is free', async () => {
    const execution = steps.newExecution();
    await acquire({ key: 'holding', execution });
    await acquire({ key: 'alone', execution });
    const { task } = await park({ key: 'holding' });
    requests.sent.length = 0;
    expect(await executionEnded(execution)).toEqual({ execution, tickets: 0, freed: 2, graced: 0, kept: 0 });
    expect(requests.sent.filter((sent) => sent === 'GetItem')).toHaveLength(2); // each record once
    expect(grantOf(task)).toMatchObject({ previous: { holder: 'tester', ended: 'executionEnded' } });
    expect(await read({ key: 'alone' })).toMatchObject({ state: 'released' });
    expect(await rawItem('alone')).not.toHaveProperty('execution');
    expect(await rawItem('alone')).toMatchObject({ ended_by: { S: 'executionEnded' } });
    steps.requests.length = 0;
    expect(await executionEnded(execution, true)).toEqual({ execution, tickets: 0, freed: 0, graced: 0, kept: 0 });
    expect(steps.requests).toEqual([]); // of one that has nothing, Step Functions is asked nothing
  });

  it('holding what it was given by the queue: the same', async () => {
    const execution = steps.newExecution();
    const first = await acquire({ key: 'given' });
    await park({ key: 'given', execution });
    const { task } = await park({ key: 'given' });
    await release(first);
    await executionEnded(execution);
    expect(task.state).toBe('succeeded');
  });

  it('parked: it is out of the queue, and the lease is where it was', async () => {
    const execution = steps.newExecution();
    const first = await acquire({ key: 'parked' });
    const dead = await park({ key: 'parked', execution });
    dead.task.state = 'timedOut';
    expect(await executionEnded(execution)).toEqual({ execution, tickets: 1, freed: 0, graced: 0, kept: 0 });
    expect(await rows('parked')).toEqual([]);
    expect(await read({ key: 'parked' })).toMatchObject({ state: 'held', fence: first.fence, waiting: 0 });
    expect(await release(first)).toMatchObject({ released: true });
    expect(await rawItem('parked')).not.toHaveProperty('waiters');
    expect(await acquire({ key: 'parked' })).toMatchObject({ previous: { fence: first.fence, ended: 'released' } });
  });

  it('while its acquire was under way: the second pass frees what came too late', async () => {
    const execution = steps.newExecution();
    expect(await executionEnded(execution)).toMatchObject({ freed: 0 });
    await acquire({ key: 'late', execution });
    const late = await park({ key: 'late-too', execution });
    expect(late.task.state).toBe('succeeded');
    expect(await executionEnded(execution, true)).toMatchObject({ freed: 2 });
    expect(await read({ key: 'late' })).toMatchObject({ state: 'released' });
  });

  it('and was redriven: neither pass of an event that comes late takes what it has', async () => {
    const execution = steps.newExecution('RUNNING');
    steps.redriven.add(execution);
    await acquire({ key: 'redriven', execution });
    const { task } = await park({ key: 'redriven-parked', execution });
    await acquire({ key: 'redriven-waiting' });
    await park({ key: 'redriven-waiting', execution });
    for (const again of [false, true]) {
      expect(await executionEnded(execution, again)).toEqual({ execution, tickets: 0, freed: 0, graced: 0, kept: 0 });
      expect(await read({ key: 'redriven' })).toMatchObject({ state: 'held' });
      expect(await rows('redriven-waiting')).toHaveLength(1);
    }
    expect(task.state).toBe('succeeded');
    steps.executions.set(execution, 'FAILED');
    expect(await executionEnded(execution)).toMatchObject({ tickets: 1, freed: 2 });
  });

  it('and is redriven while its leases are looked up: it keeps what it acquires then', async () => {
    const execution = steps.newExecution('FAILED');
    await acquire({ key: 'redriven-now', execution, ttlSeconds: 2 });
    let looks = 0;
    const redrives =
      (next: (args: object) => Promise<object>, { commandName }: { commandName?: string }) =>
      async (args: object) => {
        if (commandName === 'GetItemCommand' && looks++ === 0) {
          clock.advance(3000);
          await acquire({ key: 'redriven-now', execution });
        }
        return next(args);
      };
    dynamodb.middlewareStack.add(redrives as never, { step: 'initialize', name: 'redrives' });
    expect(await executionEnded(execution)).toEqual({ execution, tickets: 0, freed: 0, graced: 0, kept: 0 });
    dynamodb.middlewareStack.remove('redrives');
    expect(looks).toBeGreaterThan(0);
    expect(await read({ key: 'redriven-now' })).toMatchObject({ state: 'held' });
  });

  it.each([
    ['reads the record', 'GetItem'],
    ['writes its end', 'UpdateItem'],
  ])('and is redriven before the pass %s: it keeps the grant that its task is answered with', async (_, command) => {
    const execution = steps.newExecution('FAILED');
    const asked = { key: `redriven before ${command}`, requestId: 'r', execution };
    const before = await park(asked);
    const again = async () => grantOf((await park(asked)).task);
    const answered = redriveBefore(command, { requests, steps, execution, again });
    expect(await executionEnded(execution)).toEqual({ execution, tickets: 0, freed: 0, graced: 0, kept: 0 });
    expect(answered).toMatchObject([{ fence: grantOf(before.task).fence, repeated: true }]);
    expect(await read({ key: asked.key })).toMatchObject({ state: 'held' });
  });

  it.each([
    ['heard', []],
    ['may not have heard', ['refused' as const]],
  ])('and %s of its grant: where the line cannot be read, the lease is free, with its mark', async (what, faults) => {
    const key = `unread, ${what}`;
    const execution = steps.newExecution();
    const first = await acquire({ key });
    await park({ key, execution });
    const { task } = await park({ key });
    steps.faults.SendTaskSuccess = faults;
    await release(first);
    const looks = ['none', 'none', 'none'] as const; // for what the execution has
    requests.faultsOf.Query = [...looks, { name: 'AccessDeniedException', status: 400 }];
    expect(await executionEnded(execution)).toMatchObject({ freed: 1 });
    expect(requests.faultsOf.Query).toEqual([]);
    expect(task.state).toBe('waiting');
    expect(await read({ key })).toMatchObject({ state: 'released' });
    expect(await rawItem(key)).toHaveProperty('waiters');
    await world.repair();
    expect(task.state).toBe('succeeded');
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
  ])('with two keys: they are taken by lot, here by %j', async (lots, order) => {
    const execution = steps.newExecution();
    await acquire({ key: `lots in line ${lots}` });
    await park({ key: `lots in line ${lots}`, execution }); // its deletion is the DeleteItem
    await acquire({ key: `lots held ${lots}`, execution });
    requests.sent.length = 0;
    const ids = { ...dependencies.ids, random: () => lots.shift() ?? 0 };
    await endExecution({ ...dependencies, ids })({ execution, again: false }, call());
    expect(requests.sent.filter((sent) => order.includes(sent))).toEqual(order);
  });

  it('and is still shown as running for a moment: the event is believed', async () => {
    const execution = steps.newExecution('RUNNING');
    await acquire({ key: 'shown', execution });
    expect(await executionEnded(execution)).toMatchObject({ freed: 1 });
  });

  it('with more than a page of leases and of tickets: all of them end', async () => {
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
    try {
      expect(await executionEnded(execution)).toEqual({ execution, tickets: 2, freed: 3, graced: 0, kept: 0 });
    } finally {
      dynamodb.middlewareStack.remove('one');
    }
    expect(await rows('page-4')).toEqual([]);
  });

  it('in a deployment without a table of pools: its leases are freed, and no permits are looked for', async () => {
    const execution = steps.newExecution();
    await acquire({ key: 'no pools', execution });
    requests.sent.length = 0;
    const ended = endExecution({ ...world.dependencies, poolsTable: undefined });
    expect(await ended({ execution, again: false }, call())).toEqual({
      execution,
      tickets: 0,
      freed: 1,
      graced: 0,
      kept: 0,
    });
    expect(requests.sent).toEqual(['Query', 'Query', 'GetItem', 'UpdateItem']);
  });

  it('frees no lease that went to another since', async () => {
    const execution = steps.newExecution();
    const before = await acquire({ key: 'anothers', execution, ttlSeconds: 2 });
    clock.advance(3000);
    const { fence } = await acquire({ key: 'anothers', holder: 'another', execution: steps.newExecution('RUNNING') });
    expect(fence).toBeGreaterThan(before.fence);
    await executionEnded(execution, true);
    expect(await read({ key: 'anothers' })).toMatchObject({ state: 'held', holder: 'another' });
  });
});

describe('a lease with others in line, at the end of its execution,', () => {
  it('goes to the next also where a heartbeat of its holder comes in between', async () => {
    const execution = steps.newExecution();
    const grant = await acquire({ key: 'beaten', execution });
    const { task } = await park({ key: 'beaten' });
    const beats = async (send: () => Promise<unknown>) => {
      await heartbeat(grant);
      return send();
    };
    requests.faultsOf.UpdateItem = ['none', beats]; // the end, which the mark refuses, and the transfer
    expect(await executionEnded(execution)).toMatchObject({ freed: 1 });
    expect(task.state).toBe('succeeded');
  });

  it('is free where nobody is left in the line', async () => {
    const execution = steps.newExecution();
    await acquire({ key: 'deserted', execution });
    const { ticket } = await park({ key: 'deserted' });
    await cancel('deserted', ticket);
    expect(await rawItem('deserted')).toHaveProperty('waiters');
    expect(await executionEnded(execution)).toMatchObject({ freed: 1 });
    expect(await read({ key: 'deserted' })).toMatchObject({ state: 'released' });
    expect(await rawItem('deserted')).not.toHaveProperty('waiters');
    const { previous } = await acquire({ key: 'deserted' });
    expect(previous).toMatchObject({ ended: 'executionEnded' });
  });

  it('is free, and counted once, where the write that frees it landed without an answer', async () => {
    const execution = steps.newExecution();
    await acquire({ key: 'freed unheard', execution });
    const { ticket } = await park({ key: 'freed unheard' });
    await cancel('freed unheard', ticket);
    requests.faultsOf.UpdateItem = ['none', 'lostReply'];
    expect(await executionEnded(execution)).toEqual({ execution, tickets: 0, freed: 1, graced: 0, kept: 0 });
    expect(await read({ key: 'freed unheard' })).toMatchObject({ state: 'released' });
  });

  it('has ended where it went to a task that was gone, and another call handed it on from there', async () => {
    const [execution, dead] = [steps.newExecution(), steps.newExecution()];
    await acquire({ key: 'passed on', execution });
    const gone = await park({ key: 'passed on', execution: dead });
    const next = await park({ key: 'passed on' });
    gone.task.state = 'timedOut';
    const handsOn = async (send: () => Promise<unknown>) => {
      expect(await executionEnded(dead)).toMatchObject({ freed: 1 });
      return send();
    };
    requests.faultsOf.UpdateItem = ['none', 'none', handsOn];
    expect(await executionEnded(execution)).toMatchObject({ freed: 1, kept: 0 });
    expect(next.task.state).toBe('succeeded');
  });
});

describe('where an execution ends, and is redriven, a late request of it', () => {
  /** Its task has the lease and never heard of it. */
  async function untold(key: string, more: object = {}) {
    const execution = steps.newExecution();
    const asked = { key, requestId: 'r', execution, ttlSeconds: 60 };
    steps.faults.SendTaskSuccess = ['refused'];
    const { task } = await park({ ...asked, ...more });
    task.state = 'timedOut';
    expect(await rows(key)).toHaveLength(1);
    return { asked, execution, task };
  }

  it('is granted the lease anew where no task heard of the grant: its ticket goes last, so a pass that fails leaves it', async () => {
    const { asked, execution } = await untold('ticket last');
    requests.faultsOf.UpdateItem = ['error500', 'error500', 'error500'];
    await failure(executionEnded(execution));
    expect(await rows(asked.key)).toHaveLength(1);
    expect(await executionEnded(execution, true)).toEqual({ execution, tickets: 1, freed: 1, graced: 0, kept: 0 });
    redrive(execution);
    expect(grantOf((await park(asked)).task)).toMatchObject({ key: asked.key });
  });

  it('is granted the lease again if the index did not list the waiter of its task, which was not notified', async () => {
    const { asked, execution } = await untold('not in the index');
    const [{ execution: _, ...row } = {}] = await rows(asked.key);
    await world.putTicket(row as never);
    expect(await executionEnded(execution)).toEqual({ execution, tickets: 0, freed: 1, graced: 0, kept: 0 });
    await cancel(asked.key, String(row.ticket?.S));
    expect(await rows(asked.key)).toEqual([]);
    redrive(execution);
    expect(await acquire(asked)).toMatchObject({ repeated: false });
  });

  it('is granted the lease anew where the call that waited for it is gone, and never claimed it', async () => {
    const execution = steps.newExecution();
    const asked = { key: 'unclaimed', requestId: 'r', execution, waitSeconds: 20 };
    const first = await acquire({ key: asked.key });
    await dyingAfter(3, () => acquire(asked));
    await release(first);
    expect(await rawItem(asked.key)).toMatchObject({ request_id: { S: 'r' }, claim_ttl_ms: {} });
    expect(await executionEnded(execution)).toEqual({ execution, tickets: 1, freed: 1, graced: 0, kept: 0 });
    redrive(execution);
    expect(await acquire(asked)).toMatchObject({
      repeated: false,
      previous: { fence: first.fence, ended: 'released' },
    });
  });

  it.each(['', ', by a function of version 0.2.0, which did not write answered_at'])(
    'leases nothing where the call that waited for it had claimed it, though its row is there%s',
    async (by) => {
      const execution = steps.newExecution();
      const asked = { key: `claimed${by}`, requestId: 'r', execution, waitSeconds: 20 };
      const first = await acquire({ key: asked.key });
      clock.at(clock.now() + 300, () => release(first));
      requests.faultsOf.DeleteItem = ['neverSent', 'neverSent', 'neverSent'];
      await failure(acquire(asked));
      const { answered_at, ...record } = (await rawItem(asked.key)) ?? {};
      expect(record).not.toHaveProperty('claim_ttl_ms');
      if (by) await putRaw(record);
      expect(await executionEnded(execution)).toEqual({ execution, tickets: 1, freed: 1, graced: 0, kept: 0 });
      redrive(execution);
      expect(await failure(acquire(asked))).toMatchObject({ code: 'LeaseLost', context: { reason: 'released' } });
    },
  );

  it('leases nothing where a call was answered with the grant in place of the task, whose ticket is there', async () => {
    const { asked, execution } = await untold('answered at once');
    expect(await acquire(asked)).toMatchObject({ repeated: true });
    expect(await rows(asked.key)).toHaveLength(1);
    expect(await executionEnded(execution)).toMatchObject({ freed: 1 });
    redrive(execution);
    expect(await failure(acquire(asked))).toMatchObject({ code: 'LeaseLost', context: { reason: 'released' } });
  });

  it.each([
    ['was granted it by another', 60],
    ['took it over from a holder that died', 2],
  ])('leases nothing where the call that waited for it %s, though its time is over', async (how, ttlSeconds) => {
    const execution = steps.newExecution();
    const asked = { key: how, requestId: 'r', execution, ttlSeconds: 2, waitSeconds: 20 };
    const first = await acquire({ key: asked.key, ttlSeconds });
    if (ttlSeconds === 60) clock.at(clock.now() + 300, () => release(first));
    expect(await acquire(asked)).toMatchObject({ repeated: false });
    clock.advance(2000);
    expect(await executionEnded(execution)).toMatchObject({ freed: 1 });
    redrive(execution);
    expect(await failure(acquire(asked))).toMatchObject({ code: 'LeaseLost', context: { reason: 'released' } });
  });

  it('leases nothing where the lease was not of the line, though its time was over', async () => {
    const execution = steps.newExecution();
    const asked = { key: 'plain', requestId: 'r', execution, ttlSeconds: 2 };
    await acquire(asked);
    clock.advance(2000);
    expect(await executionEnded(execution)).toMatchObject({ freed: 1 });
    redrive(execution);
    expect(await failure(acquire(asked))).toMatchObject({ code: 'LeaseLost', context: { reason: 'released' } });
  });

  it('leases nothing where a call was answered with the grant in place of the task, and its time was over', async () => {
    const { asked, execution } = await untold('answered', { ttlSeconds: 5, parkSeconds: 5 });
    expect(await acquire(asked)).toMatchObject({ repeated: true });
    clock.advance(5501);
    await world.repairKey(asked.key);
    expect(await rows(asked.key)).toEqual([]);
    expect(await executionEnded(execution)).toMatchObject({ freed: 1 });
    redrive(execution);
    expect(await failure(acquire(asked))).toMatchObject({ code: 'LeaseLost', context: { reason: 'released' } });
  });
});

describe('the schedule, where the task that was granted the lease is gone and its execution has ended,', () => {
  /** Its task never heard of the lease, and is gone when the schedule tells it. */
  async function gone(key: string, more: object = {}) {
    const execution = steps.newExecution();
    steps.faults.SendTaskSuccess = ['refused'];
    const { task } = await park({ key, execution, ttlSeconds: 60, ...more });
    expect(await rows(key)).toHaveLength(1);
    task.state = 'timedOut';
    clock.advance(11_000);
    return execution;
  }

  it('leaves the lease of a task that names no execution, and asks about none', async () => {
    await gone('gone, of no execution', { execution: undefined });
    steps.requests.length = 0;
    expect(await world.repairKey('gone, of no execution')).toMatchObject({ granted: 0, told: 0 });
    expect(steps.requests).toMatchObject([{ action: 'SendTaskSuccess' }]);
    expect(await read({ key: 'gone, of no execution' })).toMatchObject({ state: 'held' });
  });

  it('leaves the lease to the second pass while the start of the target may be on the way', async () => {
    const target = 'arn:aws:states:us-east-1:123456789012:execution:machine:not-yet-started';
    const execution = await gone('gone, with a target', { target });
    expect(await world.repairKey('gone, with a target')).toMatchObject({ granted: 0, told: 0 });
    expect(await read({ key: 'gone, with a target' })).toMatchObject({ state: 'held' });
    expect(await executionEnded(execution, true)).toMatchObject({ freed: 1 });
  });

  it('grants it to nobody where nobody is left in the line', async () => {
    const key = 'gone, and nobody behind';
    await gone(key);
    const { ticket } = await park({ key });
    await cancel(key, ticket);
    expect(await rawItem(key)).toHaveProperty('waiters');
    expect(await world.repairKey(key)).toMatchObject({ granted: 0, told: 0 });
    expect(await read({ key })).toMatchObject({ state: 'released' });
    expect(await rawItem(key)).toMatchObject({ ended_by: { S: 'executionEnded' } });
  });
});

describe('the lease of an execution with a target', () => {
  it.each(['RUNNING', 'PENDING_REDRIVE'])(
    'stays while the target is %s, passes to it, and ends with it',
    async (status) => {
      const key = `target ${status}`;
      const [execution, target] = [steps.newExecution(), steps.newExecution(status)];
      await acquire({ key, execution, target });
      const { task } = await park({ key });
      for (const again of [false, true]) {
        expect(await executionEnded(execution, again)).toMatchObject({ freed: 0 });
        expect(task.state).toBe('waiting');
      }
      expect((await rawItem(key))?.execution?.S).toBe(target);
      steps.executions.set(target, 'SUCCEEDED');
      expect(await executionEnded(target)).toMatchObject({ freed: 1 });
      expect(task.state).toBe('succeeded');
    },
  );

  it('ends at once where the target has ended', async () => {
    const execution = steps.newExecution();
    await acquire({ key: 'ended', execution, target: steps.newExecution('TIMED_OUT') });
    expect(await executionEnded(execution)).toMatchObject({ freed: 1 });
  });

  it('ends at once where the target ends while the lease passes to it', async () => {
    const [execution, target] = [steps.newExecution(), steps.newExecution('RUNNING')];
    await acquire({ key: 'just-ended', execution, target });
    let asked = 0;
    steps.onTheWay = async () => {
      if (++asked === 3) steps.executions.set(target, 'SUCCEEDED'); // it has just been asked about, and ran
    };
    expect(await executionEnded(execution)).toMatchObject({ freed: 1, kept: 0 });
    expect(await read({ key: 'just-ended' })).toMatchObject({ state: 'released' });
  });

  it('stays at first where the target does not exist, because its start may be on the way, and ends at the second pass', async () => {
    const execution = steps.newExecution();
    const target = 'arn:aws:states:us-east-1:123456789012:execution:machine:never-started';
    await acquire({ key: 'unborn', execution, target });
    expect(await executionEnded(execution)).toMatchObject({ freed: 0, kept: 1 });
    expect(await executionEnded(execution, true)).toMatchObject({ freed: 1, kept: 0 });
  });

  it('stays where Step Functions does not say what has become of the target', async () => {
    const execution = steps.newExecution();
    await acquire({ key: 'unknown', execution, target: steps.newExecution() });
    steps.faults.DescribeExecution = ['refused', 'refused', 'refused'];
    expect((await failure(executionEnded(execution))).code).toBe('Unavailable');
    expect(await read({ key: 'unknown' })).toMatchObject({ state: 'held' });
  });
});

describe('a record that names executions of other accounts', () => {
  const foreignTarget = (name: string) => {
    const arn = `arn:aws:states:us-east-1:999999999999:execution:machine:${name}`;
    steps.foreign.add(arn);
    return arn;
  };

  it('keeps no other lease or ticket of the execution from being freed, and is freed at the second pass', async () => {
    const execution = steps.newExecution();
    const keys = Array.from({ length: 6 }, (_, at) => `victim-${at}`);
    for (const key of keys) await acquire({ key, execution });
    await acquire({ key: 'victim-foreign', execution, target: foreignTarget('one') });
    const { task } = await park({ key: 'victim-3' });
    expect(await executionEnded(execution)).toEqual({ execution, tickets: 0, freed: 6, graced: 0, kept: 1 });
    expect(task.state).toBe('succeeded');
    expect(await executionEnded(execution, true)).toMatchObject({ freed: 1, kept: 0 });
  });

  it('is freed at the second pass also where it names one of an Express workflow', async () => {
    const execution = steps.newExecution();
    const target = 'arn:aws:states:us-east-1:123456789012:express:machine:run:1';
    await acquire({ key: 'express', execution });
    await putRaw({ ...(await rawItem('express')), target: { S: target } } as never);
    expect(await executionEnded(execution)).toMatchObject({ freed: 0, kept: 1 });
    expect(await executionEnded(execution, true)).toMatchObject({ freed: 1, kept: 0 });
  });

  it('is freed then also where our own account is known: the refusal of another one shows no missing permission', async () => {
    const execution = steps.newExecution();
    await acquire({ key: 'other-account', execution, target: foreignTarget('two') });
    const as = call({ home: 'aws:us-east-1:123456789012' });
    expect(await endExecution(world.dependencies)({ execution, again: true }, as)).toMatchObject({ freed: 1 });
  });

  it('is left to its expiry by the schedule, which goes on with the other keys', async () => {
    const execution = foreignTarget('holder');
    const first = await acquire({ key: 'foreign-ticket' });
    await park({ key: 'foreign-ticket', execution, ttlSeconds: 60 });
    const other = await acquire({ key: 'next-to-foreign', ttlSeconds: 2 });
    const { task } = await park({ key: 'next-to-foreign' });
    steps.faults.SendTaskSuccess = ['lost'];
    await release(first);
    clock.advance(11_000);
    expect(await world.repair()).toMatchObject({ complete: true });
    expect(await read({ key: 'foreign-ticket' })).toMatchObject({ state: 'held' });
    expect(task.state).toBe('succeeded');
    expect(await release(other)).toMatchObject({ released: false });
  });

  it('is not freed where it names our own account: a permission that is missing must not end a lease under its target', async () => {
    const [execution, target] = [steps.newExecution(), steps.newExecution('RUNNING')];
    await acquire({ key: 'denied', execution, target });
    await acquire({ key: 'beside-denied', execution });
    steps.foreign.add(target);
    const own = { home: 'aws:us-east-1:123456789012' };
    const ended = endExecution(world.dependencies);
    const { code } = await failure(ended({ execution, again: true }, call(own)));
    expect(code).toBe('Unavailable');
    expect(await read({ key: 'denied' })).toMatchObject({ state: 'held' });
    expect(await read({ key: 'beside-denied' })).toMatchObject({ state: 'released' });
    steps.foreign.delete(target);
    expect(await ended({ execution, again: true }, call(own))).toMatchObject({ kept: 1 });
  });

  it.each([
    ['arn:aws:states:us-east-1:999999999999:execution:machine:run', 'in the account and region'],
    ['arn:aws:states:eu-west-1:000000000000:execution:machine:run', 'in the account and region'],
    ['arn:aws-cn:states:us-east-1:000000000000:execution:machine:run', 'in the account and region'],
    ['arn:aws:states:us-east-1:000000000000:express:machine:run:1', 'Standard'],
  ])('is not written any more: %s', async (arn, why) => {
    const own = 'arn:aws:states:us-east-1:000000000000:execution:machine:own';
    for (const input of [{ execution: arn }, { execution: own, target: arn }, { execution: arn, taskToken: 't' }]) {
      const { outcome, body } = await post(handlers.acquire, { key: 'refused', holder: 'h', ...input });
      expect(outcome).toBe('InvalidRequest');
      const path = 'target' in input ? 'target' : 'execution';
      expect(body.issues).toEqual([{ path, message: expect.stringContaining(why) }]);
    }
    expect(await rawItem('refused')).toBeUndefined();
    expect(await rows('refused')).toEqual([]);
  });
});

describe('one key that fails', () => {
  it('stops no other, and the failure is reported', async () => {
    const execution = steps.newExecution();
    for (const key of ['fails-1', 'fails-2', 'fails-3']) await acquire({ key, execution });
    requests.faultsOf.GetItem = ['none', { name: 'AccessDeniedException', status: 400 }];
    expect((await failure(executionEnded(execution))).code).toBe('Unavailable');
    const states = await Promise.all(['fails-1', 'fails-2', 'fails-3'].map((key) => read({ key })));
    expect(states.map((one) => 'state' in one && one.state).toSorted()).toEqual(['held', 'released', 'released']);
    expect(await executionEnded(execution, true)).toMatchObject({ freed: 1 });
  });

  it('and is not the same one each time where a try does not reach all', async () => {
    const keys = Array.from({ length: 8 }, (_, at) => `out-of-time-${at}`);
    const reached = new Set<string>();
    for (let round = 0; round < 10; round++) {
      const execution = steps.newExecution();
      for (const key of keys) await acquire({ key, execution });
      requests.faultsOf.GetItem = [
        'none',
        ...keys.slice(1).map(() => ({ name: 'AccessDeniedException', status: 400 })),
      ];
      await failure(executionEnded(execution));
      for (const key of keys) {
        const one = await read({ key });
        if ('state' in one && one.state === 'released') reached.add(key);
      }
      expect(await executionEnded(execution, true)).toMatchObject({ freed: 7 });
    }
    expect(reached.size).toBeGreaterThan(1);
  });

  it('stops no other key of the schedule, whatever it fails with', async () => {
    const tasks = [];
    for (let at = 0; at < 20; at++) {
      const key = `schedule-${at}`;
      await acquire({ key, ttlSeconds: 2 });
      tasks.push((await park({ key })).task);
    }
    clock.advance(3000);
    requests.faultsOf.GetItem = [() => Promise.reject(new TypeError('a record that nobody thought of'))];
    await expect(world.repair()).rejects.toThrow();
    expect(tasks.filter(({ state }) => state === 'succeeded')).toHaveLength(19);
  });
});

describe('the messages of the delay queue', () => {
  const message = (messageId: string, body: unknown) => ({
    messageId,
    eventSource: 'aws:sqs',
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });

  it('are taken each for itself: those that fail stay in the queue', async () => {
    const execution = steps.newExecution();
    await acquire({ key: 'queued', execution });
    const records = [
      message('unreadable', '{'),
      message('wrong', { execution: 'not an arn' }),
      message('right', { execution, again: true }),
    ];
    const answer = await handlers.executionEnded({ Records: records }, lambdaContext());
    expect(answer).toEqual({ batchItemFailures: [{ itemIdentifier: 'unreadable' }, { itemIdentifier: 'wrong' }] });
    expect(await read({ key: 'queued' })).toMatchObject({ state: 'released' });
  });
});
