import { createHash } from 'node:crypto';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { dyingAfter } from '../support/faults/mortal.ts';
import { counting } from '../support/time/rounds.ts';
import { failure } from '../support/worlds/leases.ts';
import { poolLineWorld } from '../support/worlds/permits-in-line.ts';

// The end of an execution that has several permits of a pool, and the row of the execution. For both locks: test/line/executions.ts.

const world = await poolLineWorld();
const { acquire, release, park, grantOf, read, rows, executionRows, repairLine, executionEnded } = world;
const { clock, requests, steps, sent, precededBy } = world;
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
const none = { tickets: 0, freed: 0, graced: 0, kept: 0 };
const DENIED = { name: 'AccessDeniedException', status: 400 };
const NEVER_STARTED = 'arn:aws:states:us-east-1:123456789012:execution:machine:never-started';

/** Longer than a call can take, and than what counts as young. */
const AGAIN_MS = 90_000;

describe('the permits of an execution that ends', () => {
  it('all permits and waiters of the execution go, others stay, and the line receives what is free', async () => {
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

  it('a look at a bound permit leaves the plain permit that its redriven execution took, while the status lags', async () => {
    const [key, execution] = ['bound and plain', steps.newExecution('RUNNING')];
    await park({ key, holder: 'bound', limit: 2, execution, bound: true });
    clock.advance(10_000);
    steps.end(execution);
    clock.advance(2000);
    await acquire({ key, holder: 'plain', limit: 2, execution, ttlSeconds: 3600 });
    await acquire({ key, holder: 'other', limit: 2 });
    expect(await holders(key)).toEqual(['other', 'plain']);
  });

  it('a look frees the permit from before a redrive, although its execution has another permit and runs', async () => {
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

  it('a heavy waiter whose execution ends makes way for those behind', async () => {
    const [key, execution] = ['line', steps.newExecution()];
    await acquire({ key, holder: 'a', limit: 2 });
    await park({ key, holder: 'heavy', limit: 2, weight: 2, execution });
    const { task } = await park({ key, holder: 'light', limit: 2 });
    expect(await executionEnded(execution)).toEqual({ execution, ...none, tickets: 1 });
    expect(task.state).toBe('succeeded');
  });

  it.each([
    [18, 1],
    [19, 2],
  ])(
    'the end of an execution ends %i permits and two that have expired beside them by %i writes',
    async (count, writes) => {
      const [key, execution] = [`crowd of ${count}`, steps.newExecution()];
      await crowd(count, { key, limit: 50, execution });
      for (const holder of ['x', 'y']) await acquire({ key, holder, limit: 50, ttlSeconds: 2 });
      const { task } = await park({ key, holder: 'next', limit: 50, weight: 50 });
      clock.advance(2600);
      requests.sent.length = 0;
      expect(await executionEnded(execution)).toMatchObject({ freed: count });
      expect(grantOf(task)).toMatchObject({ holder: 'next', used: 50 });
      expect(sent('UpdateItem')).toBe(writes);
    },
  );

  it('a permit that has expired and whose execution has ended makes room once, for a writer behind it too', async () => {
    const [key, execution] = ['both', steps.newExecution()];
    await acquire({ key, holder: 'x', limit: 2, ttlSeconds: 2 });
    await acquire({ key, holder: 'y', limit: 2, ttlSeconds: 2, execution });
    const { task } = await park({ key, holder: 'next', mode: 'exclusive' });
    clock.advance(2600);
    expect(await executionEnded(execution)).toMatchObject({ freed: 1 });
    expect(grantOf(task)).toMatchObject({ mode: 'exclusive', previous: { holder: 'y', ended: 'executionEnded' } });
  });

  it('a pool forgets the requests of an ended execution, also in the write that grants to the line', async () => {
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

  it('a permit ends if its target ends before the write, and a permit that the target has passed on goes to the last target', async () => {
    const [key, execution] = ['chain', steps.newExecution()];
    const [target, last] = [steps.newExecution('RUNNING'), steps.newExecution('RUNNING')];
    await acquire({ key, holder: 'a', limit: 2, execution, target });
    await acquire({ key, holder: 'b', limit: 2, execution: target, target: last });
    requests.faultsOf.UpdateItem = ['none', precededBy(async () => steps.executions.set(target, 'SUCCEEDED'))];
    expect(await executionEnded(execution)).toEqual({ execution, ...none, freed: 1, kept: 1 });
    expect(await read(key)).toMatchObject({ used: 1, holders: [{ holder: 'b', execution: last }] });
  });

  it('a permit that its task was not notified of goes to the next task even if another client has removed the mark', async () => {
    const [key, execution] = ['unmarked', steps.newExecution()];
    await world.untold(await acquire({ key, holder: 'first', limit: 1 }), { limit: 1, execution });
    const { task } = await park({ key, holder: 'next', limit: 1 });
    await world.removeMark(key);
    expect(await executionEnded(execution)).toEqual({ execution, ...none, tickets: 1, freed: 1 });
    expect(grantOf(task)).toMatchObject({ holder: 'next', used: 1 });
  });
});

it.each([[{}], [{ target: steps.newExecution('RUNNING') }]])(
  'the schedule counts the tasks that receive the room of a permit whose task is gone, also if its target ends at that moment',
  async (terms: { target?: string }) => {
    const [key, execution] = [`counts ${Object.keys(terms)}`, steps.newExecution()];
    await acquire({ key, holder: 'other', limit: 3, ttlSeconds: 600 });
    const first = await acquire({ key, holder: 'first', limit: 3, weight: 2 });
    await park({ key, holder: 'gone', limit: 3, weight: 2, ttlSeconds: 600, execution, ...terms });
    for (const holder of ['c', 'd']) await park({ key, holder, limit: 3 });
    steps.faults.SendTaskSuccess = ['lost'];
    await release(first);
    clock.advance(10_000);
    const end = precededBy(async () => steps.executions.set(terms.target ?? '', 'SUCCEEDED'));
    if (terms.target) requests.faultsOf.UpdateItem = ['none', 'none', end]; // a new version, the row of the target
    expect(await repairLine(key)).toEqual({ keys: 1, granted: 2, told: 0, unanswered: 0, complete: true });
    expect(await holders(key)).toEqual(['c', 'd', 'other']);
  },
);

describe('the row of an execution', () => {
  it('one row serves all requests of the execution in a pool, until no execution can run any more', async () => {
    const execution = steps.newExecution();
    for (let n = 0; n < 10; n++) {
      clock.advance(1);
      await release(await acquire({ key: 'often', limit: 1, execution }));
    }
    const [row, ...more] = await executionRows('often');
    expect(more).toEqual([]);
    const hash = createHash('sha256').update(execution).digest('base64url');
    expect(row?.ticket).toEqual({ S: `x${hash.slice(0, 16)}` }); // by which functions of each version find it
    expect(row?.ttl).toEqual({ N: `${Math.ceil(clock.now() / 1000) + 400 * 86_400}` });
  });

  it('an execution that has released its permits costs one read at either pass and no question to Step Functions, and loses its row', async () => {
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

  it('an execution that is redriven while its permits are looked up keeps what it acquires then, and its row', async () => {
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

  it('an acquire that names no execution is one write, and one that does is two', async () => {
    await world.form('cost');
    requests.sent.length = 0;
    await release(await acquire({ key: 'cost', limit: 1 }));
    expect(requests.sent).toHaveLength(2); // the acquire and the release
    await acquire({ key: 'cost', limit: 1, execution: steps.newExecution() });
    expect(requests.sent).toEqual(Array(4).fill('UpdateItem'));
  });
});

describe('calls that fail or exit', () => {
  it('a row or a ticket whose write has no answer grants no permit, and the error names the request to ask with', async () => {
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
  ] as const)(
    'a query of the %s that fails keeps no permit from being freed, because the pass fails and is tried again',
    async (table, faults, freedByRetry) => {
      const [key, execution] = [`query of ${table}`, steps.newExecution()];
      await acquire({ key, limit: 1, execution });
      const { task } = await park({ key, holder: 'next', limit: 1 });
      requests.faultsOf.Query = [...faults];
      expect((await failure(executionEnded(execution))).code).toBe('Unavailable');
      expect(await executionEnded(execution)).toEqual({ execution, ...none, freed: freedByRetry });
      expect(grantOf(task)).toMatchObject({ holder: 'next', used: 1 });
    },
  );

  it.each(['call', 'task'])(
    'the end of an execution leaves no row of a %s that exited after any of its writes',
    async (kind) => {
      for (const writes of counting()) {
        const [key, execution, task] = [`${kind} ${writes}`, steps.newExecution(), steps.newTask()];
        const asked = { key, limit: 1, ttlSeconds: 86_400, execution };
        const { survived } = await dyingAfter(writes, () => (kind === 'call' ? acquire(asked) : park(asked, task)));
        task.state = 'timedOut';
        await executionEnded(execution);
        expect([await holders(key), await rows(key)]).toEqual([[], []]);
        if (survived) return;
      }
    },
  );

  it('the second pass finishes a first pass that exited after any of its writes, even if its own answers are lost', async () => {
    for (const writes of counting()) {
      const [key, execution, target] = [`ends ${writes}`, steps.newExecution(), steps.newExecution('RUNNING')];
      const long = { key, limit: 3, ttlSeconds: 86_400 };
      await acquire({ ...long, holder: 'a', execution });
      await acquire({ ...long, holder: 'b', execution, target });
      await acquire({ ...long, holder: 'c' });
      await park({ ...long, holder: 'heavy', weight: 3, execution });
      const { task } = await park({ ...long, holder: 'next' });
      const { survived } = await dyingAfter(writes, () => executionEnded(execution));
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
