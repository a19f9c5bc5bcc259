import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import type { RepairMessage } from '../../shared/line/dependencies.ts';
import { failure } from '../support/worlds/leases.ts';
import { redriveBefore } from '../support/worlds/line.ts';
import { poolLineWorld } from '../support/worlds/permits-in-line.ts';

const messages: RepairMessage[] = [];
const world = await poolLineWorld({ repairLater: async (message) => void messages.push(message) });
const { acquire, heartbeat, release, park, grantOf, read, rows, repairLine, executionEnded } = world;
const { clock, requests, steps, precededBy } = world;
afterAll(() => steps.stop());
beforeEach(() => {
  messages.length = 0;
  steps.faults = {};
  requests.faultsOf = {};
});

const MARGIN_MS = 500;
const LONG = { limit: 1, ttlSeconds: 900, graceSeconds: 60 };
const NEVER_STARTED = 'arn:aws:states:us-east-1:123456789012:execution:machine:never-started';
const none = { tickets: 0, freed: 0, graced: 0, kept: 0 };
const holdersOf = async (key: string) => (await read(key)).holders;

describe('a permit with graceSeconds', () => {
  it.each(['FAILED', 'TIMED_OUT', 'ABORTED'])(
    'goes on for its grace after its execution ended with %s',
    async (status) => {
      const key = `after ${status}`;
      const execution = steps.newExecution('RUNNING');
      await acquire({ key, execution, ...LONG });
      clock.advance(1000);
      steps.executions.set(execution, status);
      expect(await executionEnded(execution)).toEqual({ execution, ...none, graced: 1 });
      expect(await holdersOf(key)).toMatchObject([{ state: 'held', execution, inGrace: true, remainingMs: 60_000 }]);
      expect(await failure(acquire({ key, holder: 'other', limit: 1 }))).toMatchObject({ code: 'LeaseHeld' });
      expect(await executionEnded(execution, true)).toEqual({ execution, ...none });
      clock.advance(60_000 + MARGIN_MS + 1);
      expect(await acquire({ key, holder: 'other', limit: 1 })).toMatchObject({ previous: { ended: 'expired' } });
    },
  );

  it('ends at once after SUCCEEDED, as another permit of the execution does that has no grace', async () => {
    const execution = steps.newExecution('SUCCEEDED');
    await acquire({ key: 'succeeded', holder: 'a', execution, ...LONG, limit: 2 });
    await acquire({ key: 'succeeded', holder: 'b', execution, limit: 2 });
    expect(await executionEnded(execution)).toEqual({ execution, ...none, freed: 2 });
  });

  it('goes on while another permit of the execution that has no grace ends', async () => {
    const execution = steps.newExecution('FAILED');
    await acquire({ key: 'mixed', holder: 'a', execution, ...LONG, limit: 2 });
    await acquire({ key: 'mixed', holder: 'b', execution, limit: 2 });
    expect(await executionEnded(execution)).toEqual({ execution, ...none, freed: 1, graced: 1 });
    expect(await holdersOf('mixed')).toMatchObject([{ holder: 'a', inGrace: true }]);
  });

  it('goes on no longer than its own expiry, and ends at once if it has expired', async () => {
    const execution = steps.newExecution('FAILED');
    const asked = { key: 'expires', execution, limit: 1, ttlSeconds: 30, graceSeconds: 900 };
    const { expiresAt } = await acquire(asked);
    clock.advance(10_000);
    expect(await executionEnded(execution)).toMatchObject({ graced: 1 });
    expect(await holdersOf('expires')).toMatchObject([{ expiresAt }]);
    await acquire({ ...asked, key: 'expired' });
    clock.advance(30_000 + MARGIN_MS + 1);
    expect(await executionEnded(execution)).toMatchObject({ freed: 1, graced: 0 });
  });

  it('goes on for its grace also if a heartbeat comes between the read and the write of the pass', async () => {
    const execution = steps.newExecution();
    const grant = await acquire({ key: 'beat between', execution, ...LONG });
    clock.advance(1);
    requests.faultsOf.UpdateItem = [precededBy(() => heartbeat(grant))];
    expect(await executionEnded(execution)).toMatchObject({ graced: 1 });
    expect(await holdersOf('beat between')).toMatchObject([{ inGrace: true, remainingMs: 60_000 }]);
  });

  it('stays with an execution that is redriven between the read and the write of the pass, and that was answered with it', async () => {
    const execution = steps.newExecution();
    const asked = { key: 'redriven between', requestId: 'r', execution, ...LONG };
    await park(asked);
    const again = async () => grantOf((await park(asked)).task);
    redriveBefore('UpdateItem', { requests, steps, execution, again });
    expect(await executionEnded(execution)).toMatchObject({ graced: 0, freed: 0 });
    expect(await holdersOf(asked.key)).toMatchObject([{ execution, inGrace: false }]);
  });

  it('is extended by a heartbeat in its grace, and ended by its release', async () => {
    const execution = steps.newExecution();
    const grant = await acquire({ key: 'beaten', execution, ...LONG });
    clock.advance(1000);
    await executionEnded(execution);
    expect(await heartbeat(grant)).toMatchObject({ remainingMs: 900_000 });
    expect(await executionEnded(execution, true)).toEqual({ execution, ...none });
    expect(await release(grant)).toMatchObject({ released: true });
    expect(await holdersOf('beaten')).toEqual([]);
  });

  it('gives its room to the task in line by a message one to two seconds after its grace and the margin', async () => {
    const execution = steps.newExecution();
    await acquire({ key: 'waited for', execution, ...LONG });
    const { task } = await park({ key: 'waited for', limit: 1 });
    messages.length = 0;
    expect(await executionEnded(execution)).toMatchObject({ graced: 1 });
    expect(messages).toEqual([{ key: 'waited for', delaySeconds: 62 }]);
    clock.advance(62_000);
    await repairLine('waited for');
    expect(grantOf(task)).toMatchObject({ previous: { ended: 'expired' } });
  });

  it('from the line has the grace of its own request, whether a task or a call waited for it', async () => {
    const [one, two] = [steps.newExecution(), steps.newExecution()];
    const first = await acquire({ key: 'line', limit: 1 });
    const { task } = await park({ key: 'line', execution: one, ...LONG });
    await release(first);
    expect(await executionEnded(one)).toMatchObject({ graced: 1 });
    const waits = acquire({ key: 'line', holder: 'caller', waitSeconds: 20, execution: two, ...LONG });
    await expect.poll(() => rows('line')).toHaveLength(1);
    await release({ key: 'line', leaseId: grantOf(task).leaseId });
    await waits;
    expect(await executionEnded(two)).toMatchObject({ graced: 1 });
  });

  it.each([
    [40, { graced: 1, freed: 0 }],
    [0, { graced: 0, freed: 1 }],
  ])(
    'that passes unclaimed to a task of the request, has the %s seconds of the task',
    async (graceSeconds, expected) => {
      const key = `passed to a task with ${graceSeconds}`;
      const execution = steps.newExecution();
      const first = await acquire({ key, holder: 'first', limit: 1 });
      const row = { holder: { S: 'wf' }, execution: { S: execution }, grace_seconds: { N: '900' }, weight: { N: '1' } };
      await world.putTicket(world.callerRow(key, 'r', { ...row, limit: { N: '1' } }));
      await repairLine(key);
      await release(first);
      await park({ key, holder: 'wf', requestId: 'r', execution, limit: 1, ttlSeconds: 600, graceSeconds });
      expect(await executionEnded(execution)).toMatchObject(expected);
    },
  );

  it('ends at once if its call has not claimed it, because nothing works under it', async () => {
    const execution = steps.newExecution();
    const first = await acquire({ key: 'unclaimed', limit: 1, execution });
    const row = { execution: { S: execution }, grace_seconds: { N: '900' }, weight: { N: '1' }, limit: { N: '1' } };
    await world.putTicket(world.callerRow('unclaimed', 'c', row));
    await repairLine('unclaimed');
    await release(first);
    expect(await holdersOf('unclaimed')).toMatchObject([{ holder: 'c' }]);
    expect(await executionEnded(execution)).toMatchObject({ freed: 1, graced: 0 });
  });

  it('goes by the status of its target, and has no grace for a target that never started', async () => {
    const execution = steps.newExecution('ABORTED');
    const asked = { key: 'targets', execution, ...LONG, limit: 9 };
    await acquire({ ...asked, holder: 'done', target: steps.newExecution('SUCCEEDED') });
    await acquire({ ...asked, holder: 'stopped', target: steps.newExecution('ABORTED') });
    await acquire({ ...asked, holder: 'never started', target: NEVER_STARTED });
    expect(await executionEnded(execution)).toEqual({ execution, ...none, freed: 1, graced: 1, kept: 1 });
    expect(await executionEnded(execution, true)).toEqual({ execution, ...none, freed: 1 });
    expect(await holdersOf('targets')).toMatchObject([{ holder: 'stopped', inGrace: true }]);
  });
});

describe('the event of an end says when the execution stopped:', () => {
  it('the first pass leaves permits and places in line from later, as a redriven execution may have them', async () => {
    const execution = steps.newExecution('FAILED'); // what DescribeExecution still shows of the redriven one
    const stopDate = clock.now();
    await acquire({ key: 'stopped', holder: 'before', execution, limit: 2 });
    clock.advance(1000);
    await acquire({ key: 'stopped', holder: 'later', execution, limit: 2 });
    await park({ key: 'stopped', holder: 'parked later', execution, limit: 2, weight: 2 });
    expect(await executionEnded(execution, false, { stopDate })).toEqual({ execution, ...none, freed: 1 });
    expect(await holdersOf('stopped')).toMatchObject([{ holder: 'later' }]);
    expect(await rows('stopped')).toHaveLength(1);
    expect(await executionEnded(execution, true, { stopDate })).toEqual({ execution, ...none, freed: 1, tickets: 1 });
  });
});

describe('the end of an execution that has given back all of its permits', () => {
  it('asks Step Functions nothing at either pass, and takes one read of the record', async () => {
    const execution = steps.newExecution('SUCCEEDED');
    await release(await acquire({ key: 'gave back', execution, limit: 1 }));
    steps.requests.length = 0;
    for (const again of [false, true]) {
      clock.advance(90_000);
      requests.sent.length = 0;
      expect(await executionEnded(execution, again)).toEqual({ execution, ...none });
      expect(requests.sent.filter((sent) => sent === 'GetItem')).toHaveLength(1);
    }
    expect(steps.requests).toEqual([]);
    expect(await world.executionRows('gave back')).toHaveLength(1);
  });

  it('keeps the row of an execution that was redriven and is about to ask again', async () => {
    const execution = steps.newExecution('RUNNING');
    await release(await acquire({ key: 'about to', execution, limit: 1 }));
    clock.advance(30_000);
    expect(await executionEnded(execution, true)).toEqual({ execution, ...none });
    expect(await world.executionRows('about to')).toHaveLength(2);
  });
});

describe('a question to Step Functions that fails', () => {
  it('ends no permit, and the pass says so', async () => {
    const execution = steps.newExecution();
    await acquire({ key: 'throttled', execution, ...LONG });
    steps.faults.DescribeExecution = Array.from({ length: 40 }, () => 'throttled' as const);
    expect(await failure(executionEnded(execution))).toMatchObject({ code: 'Throttled' });
    expect(await holdersOf('throttled')).toMatchObject([{ state: 'held', inGrace: false }]);
  });
});
