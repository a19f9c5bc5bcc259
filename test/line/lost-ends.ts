import { beforeEach, expect, it } from 'vitest';
import { isFull } from '../support/time/rounds.ts';
import { failure } from '../support/worlds/leases.ts';
import type { LineWorld } from './world.ts';

const MINUTE_MS = 60_000;
/** From then on every call of an execution that has ended has ended too. */
const SETTLED_MS = 90_000;
const NOT_STARTED = 'arn:aws:states:us-east-1:123456789012:execution:machine:not-yet-started';

/** An execution ends, and the event of its end is lost: the schedule asks Step Functions. */
export async function lostEnds(lineWorld: LineWorld) {
  const world = await lineWorld();
  const { acquire, park, cancel, grantOf, executionEnded, see, repair, repairAll } = world;
  const { putTickets, callerRow, steps, newKey, timeline } = world;
  const asked = () => steps.requests.filter(({ action }) => action === 'DescribeExecution').length;
  /** A run of the schedule asks about all keys, so no test leaves a waiter that another test meets. */
  let waiting: { key: string; ticket: string }[] = [];
  beforeEach(async () => {
    for (const { key, ticket } of waiting) await cancel(key, ticket);
    waiting = [];
    steps.requests.length = 0;
  });

  /** A lock of an execution with a status, with a task behind. */
  async function held(status: string, more: object = {}) {
    const [key, execution] = [newKey(), steps.newExecution(status)];
    const grant = await acquire({ key, holder: 'wf', execution, ttlSeconds: 3600, ...more });
    const { ticket, task } = await park({ key });
    waiting.push({ key, ticket });
    return { ...grant, execution, task };
  }
  /** The execution stops now, without an event. */
  async function stopped(more: object = {}, status = 'ABORTED') {
    const lock = await held(status, more);
    steps.stopped.set(lock.execution, timeline.now());
    return lock;
  }

  it('the schedule serves the task a minute after the grant', async () => {
    const { task } = await stopped();
    timeline.advance(MINUTE_MS - 1000);
    await repairAll();
    expect([task.state, asked()]).toEqual(['waiting', 0]);
    timeline.advance(1000);
    expect(await repairAll()).toMatchObject({ granted: 1 });
    expect(grantOf(task)).toMatchObject({ previous: { holder: 'wf', ended: 'executionEnded' } });
  });

  it('a lock of a target is free within two minutes', async () => {
    const target = steps.newExecution('RUNNING');
    const { key, task, execution } = await stopped({ target });
    await executionEnded(execution);
    expect(await see(key)).toMatchObject({ execution: target });
    timeline.advance(MINUTE_MS);
    await repairAll();
    expect(task.state).toBe('waiting');
    steps.executions.set(target, 'ABORTED'); // and the event is lost
    timeline.advance(MINUTE_MS);
    await repairAll();
    expect(task.state).toBe('succeeded');
  });

  it('the lock stays while the start of its target may be on the way', async () => {
    const { task, execution } = await stopped({ target: NOT_STARTED });
    timeline.advance(MINUTE_MS);
    steps.stopped.set(execution, timeline.now());
    timeline.advance(SETTLED_MS - 1);
    await repairAll();
    expect(task.state).toBe('waiting');
    timeline.advance(MINUTE_MS);
    await repairAll();
    expect(task.state).toBe('succeeded');
  });

  it('the schedule does not ask about a lock without waiters', async () => {
    const key = newKey();
    await acquire({ key, execution: steps.newExecution(), ttlSeconds: 3600 });
    timeline.advance(2 * MINUTE_MS);
    await repairAll();
    expect([asked(), await see(key)]).toMatchObject([0, { holder: 'tester' }]);
  });

  it('the schedule asks once in a run, and a message never', async () => {
    const { key } = await held('RUNNING');
    timeline.advance(2 * MINUTE_MS);
    await repair(key);
    expect(asked()).toBe(0);
    await repairAll();
    expect(asked()).toBe(1);
  });

  it('the lock stays with an execution that belongs to another account', async () => {
    const { execution, task } = await held('FAILED');
    steps.foreign.add(execution);
    timeline.advance(2 * MINUTE_MS);
    await repairAll();
    expect(task.state).toBe('waiting');
  });

  it('an execution that does not exist yet keeps the lock for a minute', async () => {
    const { execution, task } = await held('FAILED');
    steps.executions.delete(execution);
    timeline.advance(MINUTE_MS - 1);
    await repairAll();
    expect(task.state).toBe('waiting');
    timeline.advance(MINUTE_MS);
    await repairAll();
    expect(task.state).toBe('succeeded');
  });

  it('a run stops asking once Step Functions throttles it, and does not fail', async () => {
    for (let nth = 0; nth < 12; nth++) await held('RUNNING');
    timeline.advance(2 * MINUTE_MS);
    steps.faults.DescribeExecution = Array.from({ length: 40 }, () => 'throttled' as const);
    expect(await repairAll()).toMatchObject({ complete: false });
    // A run works on eight keys at once, and each question has three tries.
    expect(asked()).toBeGreaterThan(0);
    expect(asked()).toBeLessThanOrEqual(24);
  });

  it('a run does not ask about keys that a call has just asked about', async () => {
    const execution = steps.newExecution('RUNNING');
    const key = newKey();
    await park({ key, holder: 'wf', execution, bound: true });
    waiting.push({ key, ticket: (await park({ key })).ticket });
    await failure(acquire({ key, holder: 'other' }));
    steps.described.length = 0;
    expect(await repairAll()).toMatchObject({ complete: true });
    expect(steps.described).toEqual([]);
    timeline.advance(MINUTE_MS);
    await repairAll();
    expect(steps.described).toEqual([execution]);
  });

  it.runIf(isFull)('a run that cannot ask about all keys leaves them to the next run', async () => {
    const deadline = { N: String(timeline.now() + 3_600_000) };
    const locks = Array.from({ length: 203 }, () => ({ key: newKey(), execution: steps.newExecution('RUNNING') }));
    await Promise.all(locks.map((lock) => acquire({ ...lock, ttlSeconds: 3600 })));
    await putTickets(locks.map(({ key }) => callerRow(key, 'c', { deadline, keep_until: deadline })));
    await repairAll(); // puts the marks on the records
    timeline.advance(2 * MINUTE_MS);
    steps.described.length = 0;
    expect(await repairAll()).toMatchObject({ complete: false });
    expect(steps.described).toHaveLength(200);
    const others = locks.map(({ execution }) => execution).filter((one) => !steps.described.includes(one));
    timeline.advance(MINUTE_MS);
    steps.described.length = 0;
    await repairAll();
    // A run works on eight keys at once.
    expect(steps.described.slice(0, 8)).toEqual(expect.arrayContaining(others));
  });
}
