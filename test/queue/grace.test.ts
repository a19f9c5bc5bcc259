import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import type { RepairMessage } from '../../shared/line/dependencies.ts';
import { failure } from '../support/worlds/leases.ts';
import { queueWorld, redriveBefore } from '../support/worlds/line.ts';

const messages: RepairMessage[] = [];
const world = await queueWorld({ repairLater: async (message) => void messages.push(message) });
const { acquire, heartbeat, release, park, grantOf, executionEnded, read, rawItem, rows, repair, repairKey } = world;
const { clock, requests, steps, precededBy } = world;
afterAll(() => steps.stop());
beforeEach(() => {
  messages.length = 0;
  steps.faults = {};
  requests.faultsOf = {};
});

const MARGIN_MS = 500;
const LONG = { ttlSeconds: 900, graceSeconds: 60 };
const instant = (epochMs: number) => new Date(epochMs).toISOString();

describe('a lease with graceSeconds', () => {
  it.each(['FAILED', 'TIMED_OUT', 'ABORTED'])(
    'goes on for its grace after its execution ended with %s, because a function of the execution may still work',
    async (status) => {
      const key = `after ${status}`;
      const execution = steps.newExecution('RUNNING');
      const { fence } = await acquire({ key, holder: 'wf', execution, ...LONG });
      clock.advance(1000);
      steps.executions.set(execution, status);
      expect(await executionEnded(execution)).toEqual({ execution, tickets: 0, freed: 0, graced: 1, kept: 0 });
      const expiresAt = instant(clock.now() + 60_000);
      expect(await read({ key })).toMatchObject({ state: 'held', fence, execution, inGrace: true, expiresAt });
      expect(await failure(acquire({ key, holder: 'other' }))).toMatchObject({ code: 'LeaseHeld' });
      expect(await executionEnded(execution, true)).toMatchObject({ freed: 0, graced: 0 });
      clock.advance(60_000 + MARGIN_MS + 1);
      expect(await acquire({ key, holder: 'other' })).toMatchObject({ previous: { fence, ended: 'expired' } });
      expect(await rawItem(key)).not.toHaveProperty('ended_execution');
    },
  );

  it('ends at once after its execution ended with SUCCEEDED', async () => {
    const execution = steps.newExecution('SUCCEEDED');
    await acquire({ key: 'succeeded', execution, ...LONG });
    expect(await executionEnded(execution)).toMatchObject({ freed: 1, graced: 0 });
    const record = await rawItem('succeeded');
    expect(record).not.toHaveProperty('grace_ms');
    expect(await read({ key: 'succeeded' })).toMatchObject({ state: 'released', execution: null, inGrace: false });
  });

  it.each([
    ['SUCCEEDED', { freed: 1, graced: 0 }],
    ['ABORTED', { freed: 0, graced: 1 }],
    [undefined, { freed: 0, graced: 1 }],
  ] as const)(
    'whose event says %s while DescribeExecution still shows RUNNING, is judged by the event',
    async (status, expected) => {
      const execution = steps.newExecution('RUNNING');
      await acquire({ key: `lags ${status}`, execution, ...LONG });
      expect(await executionEnded(execution, false, { ...(status && { status }) })).toMatchObject(expected);
    },
  );

  it('is judged by DescribeExecution and not by the event, if both show an end', async () => {
    const execution = steps.newExecution('FAILED');
    await acquire({ key: 'both', execution, ...LONG });
    expect(await executionEnded(execution, false, { status: 'SUCCEEDED' })).toMatchObject({ graced: 1 });
  });

  it('goes on for its grace after an execution that Step Functions does not know any more', async () => {
    const execution = 'arn:aws:states:us-east-1:123456789012:execution:machine:forgotten';
    await acquire({ key: 'forgotten', execution, ...LONG });
    expect(await executionEnded(execution, true)).toMatchObject({ graced: 1 });
  });

  it('ends no later than its own expiry', async () => {
    const execution = steps.newExecution();
    const { expiresAt } = await acquire({ key: 'short', execution, ttlSeconds: 30, graceSeconds: 900 });
    clock.advance(10_000);
    expect(await executionEnded(execution)).toMatchObject({ graced: 1 });
    expect(await read({ key: 'short' })).toMatchObject({ expiresAt });
  });

  it('ends at once if it has expired before the pass', async () => {
    const execution = steps.newExecution();
    await acquire({ key: 'over', execution, ttlSeconds: 30, graceSeconds: 900 });
    clock.advance(30_000 + MARGIN_MS + 1);
    expect(await executionEnded(execution)).toMatchObject({ freed: 1, graced: 0 });
  });

  it('goes on for its grace also if a heartbeat comes between the read and the write of the pass', async () => {
    const execution = steps.newExecution();
    const grant = await acquire({ key: 'beat between', execution, ...LONG });
    clock.advance(1);
    requests.faultsOf.UpdateItem = [precededBy(() => heartbeat(grant))];
    expect(await executionEnded(execution)).toMatchObject({ graced: 1 });
    expect(await read({ key: 'beat between' })).toMatchObject({ inGrace: true, remainingMs: 60_000 });
  });

  it('stays with an execution that is redriven between the read and the write of the pass, and that was answered with it', async () => {
    const execution = steps.newExecution();
    const asked = { key: 'redriven between', requestId: 'r', execution, ...LONG };
    await park(asked);
    const again = async () => grantOf((await park(asked)).task);
    redriveBefore('UpdateItem', { requests, steps, execution, again });
    expect(await executionEnded(execution)).toMatchObject({ graced: 0, freed: 0 });
    expect(await read({ key: asked.key })).toMatchObject({ execution, inGrace: false });
  });
});

describe('a lease in its grace', () => {
  async function inGrace(key: string, more: object = {}) {
    const execution = steps.newExecution();
    const grant = await acquire({ key, holder: 'wf', execution, ...LONG, ...more });
    clock.advance(1000);
    expect(await executionEnded(execution)).toMatchObject({ graced: 1 });
    return { ...grant, execution };
  }

  it('is extended by a heartbeat as any other lease, and ended by no later event of its execution', async () => {
    const grant = await inGrace('beaten');
    clock.advance(1000);
    expect(await heartbeat(grant)).toMatchObject({ remainingMs: 900_000 });
    for (const again of [false, true])
      expect(await executionEnded(grant.execution, again)).toMatchObject({ freed: 0, graced: 0 });
    expect(await read({ key: 'beaten' })).toMatchObject({ state: 'held', remainingMs: 900_000 });
  });

  it('is not brought back to its longer expiry by a late duplicate of an earlier heartbeat', async () => {
    const execution = steps.newExecution();
    const grant = await acquire({ key: 'late beat', execution, ...LONG });
    clock.advance(1000);
    await heartbeat(grant);
    const beaten = await rawItem('late beat');
    clock.advance(1000);
    await executionEnded(execution);
    expect((await rawItem('late beat'))?.heartbeat_at).toEqual(beaten?.heartbeat_at);
  });

  it('is given back by its holder, and then goes to the first in line', async () => {
    const grant = await inGrace('given back');
    const { task } = await park({ key: 'given back' });
    expect(await release(grant)).toMatchObject({ released: true });
    expect(grantOf(task)).toMatchObject({ previous: { holder: 'wf', ended: 'released' } });
    const record = await rawItem('given back');
    expect(record).not.toHaveProperty('ended_execution');
    expect(record).not.toHaveProperty('grace_ms');
  });

  it('answers a redriven execution that asks again with what is left of it', async () => {
    const execution = steps.newExecution();
    const asked = { key: 'asks again', requestId: 'r', execution, ...LONG };
    const { fence } = await acquire(asked);
    await executionEnded(execution);
    clock.advance(20_000);
    expect(await acquire(asked)).toMatchObject({ fence, repeated: true, remainingMs: 40_000 });
  });

  it('goes to the task behind it by a message one to two seconds after its grace and the margin', async () => {
    const execution = steps.newExecution();
    const { fence } = await acquire({ key: 'waited for', execution, ...LONG });
    const { task } = await park({ key: 'waited for' });
    messages.length = 0;
    expect(await executionEnded(execution)).toMatchObject({ graced: 1 });
    expect(messages).toEqual([{ key: 'waited for', fence, delaySeconds: 62 }]);
    clock.advance(62_000);
    await repairKey('waited for', fence);
    expect(grantOf(task)).toMatchObject({ previous: { fence, ended: 'expired' } });
  });
});

describe('the grant of a lease from the line', () => {
  it('has the grace of its own request, whether a task or a call waited for it, and none of the holder before', async () => {
    const first = await acquire({ key: 'line', execution: steps.newExecution('RUNNING'), graceSeconds: 900 });
    const one = await park({ key: 'line', execution: steps.newExecution('RUNNING'), graceSeconds: 30 });
    const two = await park({ key: 'line', execution: steps.newExecution('RUNNING') });
    await release(first);
    expect(await rawItem('line')).toMatchObject({ grace_ms: { N: '30000' } });
    await release({ key: 'line', leaseId: grantOf(one.task).leaseId });
    expect(await rawItem('line')).not.toHaveProperty('grace_ms');
    const waits = acquire({ key: 'line', waitSeconds: 20, execution: steps.newExecution('RUNNING'), graceSeconds: 20 });
    await expect.poll(() => rows('line')).toHaveLength(1);
    await release({ key: 'line', leaseId: grantOf(two.task).leaseId });
    await waits;
    expect(await rawItem('line')).toMatchObject({ grace_ms: { N: '20000' } });
  });

  it.each([
    [40, { N: '40000' }],
    [0, undefined],
  ])(
    'has the grace of the task, %s seconds, to which an unclaimed grant of its request passes',
    async (graceSeconds, expected) => {
      const key = `passed to a task with ${graceSeconds}`;
      const execution = steps.newExecution('RUNNING');
      const first = await acquire({ key, holder: 'first' });
      const row = { holder: { S: 'wf' }, execution: { S: execution }, grace_seconds: { N: '900' } };
      await world.putTicket(world.callerRow(key, 'r', row));
      await repair();
      await release(first);
      expect(await rawItem(key)).toMatchObject({ claim_ttl_ms: {}, grace_ms: { N: '900000' } });
      await park({ key, holder: 'wf', requestId: 'r', execution, graceSeconds });
      expect((await rawItem(key))?.grace_ms).toEqual(expected);
    },
  );

  it('goes on for its grace if its task may have been notified of the grant', async () => {
    const execution = steps.newExecution();
    const first = await acquire({ key: 'perhaps' });
    await park({ key: 'perhaps', execution, ...LONG });
    steps.faults.SendTaskSuccess = ['lost'];
    await release(first);
    expect(await rows('perhaps')).toHaveLength(1);
    expect(await executionEnded(execution)).toMatchObject({ graced: 1, tickets: 1, freed: 0 });
    expect(await rows('perhaps')).toEqual([]);
  });

  it('ends at once if its call has not claimed it, because nothing works under it', async () => {
    const execution = steps.newExecution();
    const first = await acquire({ key: 'unclaimed' });
    await world.putTicket(
      world.callerRow('unclaimed', 'c', { execution: { S: execution }, grace_seconds: { N: '900' } }),
    );
    await repair();
    await release(first);
    expect(await rawItem('unclaimed')).toMatchObject({ claim_ttl_ms: {}, grace_ms: {} });
    expect(await executionEnded(execution)).toMatchObject({ freed: 1, graced: 0 });
  });
});

describe('the grace of a lease with a target', () => {
  const NEVER_STARTED = 'arn:aws:states:us-east-1:123456789012:execution:machine:never-started';

  it.each([
    ['SUCCEEDED', 'ABORTED', { freed: 1, graced: 0 }],
    ['TIMED_OUT', 'SUCCEEDED', { freed: 0, graced: 1 }],
  ])(
    'goes by the status of the target: %s, although the execution ended with %s',
    async (ofTarget, status, expected) => {
      const execution = steps.newExecution(status);
      await acquire({ key: `target ${ofTarget}`, execution, target: steps.newExecution(ofTarget), ...LONG });
      expect(await executionEnded(execution)).toMatchObject(expected);
    },
  );

  it('stays with the lease that passes to the target', async () => {
    const [execution, target] = [steps.newExecution('ABORTED'), steps.newExecution('RUNNING')];
    await acquire({ key: 'passes', execution, target, ...LONG });
    expect(await executionEnded(execution)).toMatchObject({ kept: 1 });
    steps.executions.set(target, 'ABORTED');
    expect(await executionEnded(target)).toMatchObject({ graced: 1 });
    expect(await read({ key: 'passes' })).toMatchObject({ execution: target, inGrace: true });
  });

  it('is not given for a target that never started, because nothing worked under the lease', async () => {
    const execution = steps.newExecution('ABORTED');
    await acquire({ key: 'never started', execution, target: NEVER_STARTED, ...LONG });
    expect(await executionEnded(execution)).toMatchObject({ kept: 1 });
    expect(await executionEnded(execution, true)).toMatchObject({ freed: 1, graced: 0 });
  });

  it('is given for a target about which Step Functions tells nothing', async () => {
    const [execution, target] = [steps.newExecution('ABORTED'), steps.newExecution()];
    steps.foreign.add(target);
    await acquire({ key: 'foreign', execution, target, ...LONG });
    expect(await executionEnded(execution, true)).toMatchObject({ graced: 1 });
  });
});

describe('the event of an end says when the execution stopped:', () => {
  it('the first pass leaves what was granted or parked later, as a redriven execution may hold it', async () => {
    const execution = steps.newExecution('FAILED'); // what DescribeExecution still shows of the redriven one
    const stopDate = clock.now();
    await acquire({ key: 'before', execution });
    clock.advance(1000);
    await acquire({ key: 'later', execution });
    await acquire({ key: 'parked later' });
    await park({ key: 'parked later', execution });
    clock.advance(300);
    expect(await executionEnded(execution, false, { status: 'FAILED', stopDate })).toMatchObject({
      ...{ freed: 1, tickets: 0 },
    });
    expect(await read({ key: 'later' })).toMatchObject({ state: 'held' });
    expect(await rows('parked later')).toHaveLength(1);
    expect(await executionEnded(execution, true, { status: 'FAILED', stopDate })).toMatchObject({
      ...{ freed: 1, tickets: 1 },
    });
  });

  it('the first pass still takes what was granted within the margin of the clocks', async () => {
    const execution = steps.newExecution('FAILED');
    const stopDate = clock.now() - MARGIN_MS;
    await acquire({ key: 'within the margin', execution });
    expect(await executionEnded(execution, false, { stopDate })).toMatchObject({ freed: 1 });
  });

  it('a later grant keeps its ticket too, so that the second pass knows that perhaps no task was notified of it', async () => {
    const execution = steps.newExecution('FAILED');
    const first = await acquire({ key: 'unheard' });
    const asked = { key: 'unheard', requestId: 'r', execution };
    await park(asked);
    const stopDate = clock.now();
    clock.advance(1000);
    steps.faults.SendTaskSuccess = ['refused'];
    await release(first);
    expect(await executionEnded(execution, false, { stopDate })).toMatchObject({ freed: 0, tickets: 0 });
    expect(await rows('unheard')).toHaveLength(1);
    expect(await executionEnded(execution, true, { stopDate })).toMatchObject({ freed: 1, tickets: 1 });
    expect(await acquire(asked)).toMatchObject({ repeated: false });
  });
});

describe('the end of an execution asks Step Functions', () => {
  const asked = () => steps.requests.filter(({ action }) => action === 'DescribeExecution').length;

  it('nothing about an execution whose lease has gone to another, though the index still lists it', async () => {
    const execution = steps.newExecution('RUNNING');
    const before = await acquire({ key: 'listed', execution });
    requests.faultsOf.GetItem = [
      precededBy(async () => {
        await release(before);
        await acquire({ key: 'listed', holder: 'other' });
      }),
    ];
    steps.requests.length = 0;
    expect(await executionEnded(execution)).toMatchObject({ freed: 0 });
    expect([asked(), requests.faultsOf.GetItem]).toEqual([0, []]);
  });

  it('once for each lease that it holds, and once for all of its tickets', async () => {
    const execution = steps.newExecution('FAILED');
    for (const key of ['held 1', 'held 2']) await acquire({ key, execution });
    for (const key of ['line 1', 'line 2']) {
      await acquire({ key });
      await park({ key, execution });
    }
    steps.requests.length = 0;
    expect(await executionEnded(execution)).toMatchObject({ freed: 2, tickets: 2 });
    expect(asked()).toBe(3);
  });
});
