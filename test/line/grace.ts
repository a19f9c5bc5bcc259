import { expect, it } from 'vitest';
import { failure } from '../support/worlds/leases.ts';
import type { LineWorld } from './world.ts';

const MARGIN_MS = 500;
const NEVER_STARTED = 'arn:aws:states:us-east-1:123456789012:execution:machine:never-started';

/** How long a grant lasts after its execution has ended abnormally. */
export async function graces(lineWorld: LineWorld) {
  const world = await lineWorld();
  const { acquire, release, park, grantOf, executionEnded, see, rows, repair, runRepair } = world;
  const { putTickets, callerRow, steps, messages, newKey, timeline } = world;

  /** A lock of an execution with a status, with a grace of a minute. */
  async function hold(more: object = {}, status = 'FAILED') {
    const execution = steps.newExecution(status);
    const key = newKey();
    const asked = { key, holder: 'wf', requestId: 'r', execution, ttlSeconds: 900, graceSeconds: 60, ...more };
    return { execution, asked, grant: await acquire(asked), key };
  }

  /** An execution whose grant waits for the claim of a call that has exited. */
  async function unclaimed() {
    const [key, execution] = [newKey(), steps.newExecution()];
    const first = await acquire({ key, holder: 'first' });
    const row = { holder: { S: 'wf' }, execution: { S: execution }, grace_seconds: { N: '900' } };
    await putTickets([callerRow(key, 'r', row)]);
    await repair(key);
    await release(first);
    expect(await see(key)).toMatchObject({ holder: 'wf', execution });
    return { key, execution };
  }

  it.each(['FAILED', 'TIMED_OUT', 'ABORTED'])(
    'a grant lasts for its grace after its execution ended with %s',
    async (status) => {
      const { key, execution } = await hold({}, 'RUNNING');
      timeline.advance(1000);
      steps.executions.set(execution, status);
      expect(await executionEnded(execution)).toEqual({ execution, tickets: 0, freed: 0, graced: 1, kept: 0 });
      expect(await see(key)).toMatchObject({ holder: 'wf', execution, inGrace: true, remainingMs: 60_000 });
      expect(await failure(acquire({ key, holder: 'other' }))).toMatchObject({ code: 'LeaseHeld' });
      expect(await executionEnded(execution, true)).toMatchObject({ freed: 0, graced: 0 });
      timeline.advance(60_000 + MARGIN_MS + 1);
      expect(await acquire({ key, holder: 'other' })).toMatchObject({ previous: { ended: 'expired' } });
      expect(await see(key)).toMatchObject({ inGrace: false });
    },
  );

  it.each([
    ['SUCCEEDED', undefined, { freed: 1, graced: 0 }],
    ['RUNNING', 'SUCCEEDED', { freed: 1, graced: 0 }],
    ['RUNNING', 'ABORTED', { freed: 0, graced: 1 }],
    // A call by hand has no event, and is not believed.
    ['RUNNING', undefined, { freed: 0, graced: 0 }],
    ['FAILED', 'SUCCEEDED', { freed: 1, graced: 0 }],
    ['FAILED', undefined, { freed: 0, graced: 1 }],
    // The execution may be about to start.
    ['unknown', undefined, { freed: 0, graced: 0 }],
  ] as const)('the first pass judges an execution shown as %s with the event %s', async (shown, status, expected) => {
    const { execution } = await hold({}, shown);
    if (shown === 'unknown') steps.executions.delete(execution);
    const event = status && { status, stopDate: timeline.now() };
    expect(await executionEnded(execution, false, event)).toMatchObject(expected);
  });

  it('the grace never outlasts the grant itself', async () => {
    const { key, execution, asked, grant } = await hold({ ttlSeconds: 30, graceSeconds: 900 });
    timeline.advance(10_000);
    expect(await executionEnded(execution)).toMatchObject({ graced: 1 });
    expect(await see(key)).toMatchObject({ expiresAt: grant.expiresAt });
    await acquire({ ...asked, key: newKey() });
    timeline.advance(30_000 + MARGIN_MS + 1);
    expect(await executionEnded(execution)).toMatchObject({ freed: 1, graced: 0 });
  });

  it('a message hands off a grant soon after its grace and the margin', async () => {
    const { key, execution } = await hold();
    timeline.advance(1000);
    const { task } = await park({ key });
    messages.length = 0;
    expect(await executionEnded(execution)).toMatchObject({ graced: 1 });
    expect(messages).toMatchObject([{ delaySeconds: 62 }]);
    timeline.advance(62_000);
    await runRepair(messages[0]);
    expect(grantOf(task)).toMatchObject({ previous: { ended: 'expired' } });
  });

  it('a grant from the line has the grace of its own request', async () => {
    const [one, two, three] = [steps.newExecution(), steps.newExecution(), steps.newExecution()];
    const { key, grant } = await hold();
    await park({ key, execution: one });
    timeline.advance(1); // so that the next ticket is later
    const { task } = await park({ key, execution: two, graceSeconds: 5 });
    await release(grant);
    expect(await executionEnded(one)).toMatchObject({ freed: 1, graced: 0 });
    expect(await executionEnded(two)).toMatchObject({ graced: 1 });
    await timeline.play(
      () => acquire({ key, holder: 'caller', waitSeconds: 20, execution: three, graceSeconds: 5 }),
      () => timeline.later(1000, () => release({ key, leaseId: grantOf(task).leaseId })),
    );
    expect(await executionEnded(three)).toMatchObject({ graced: 1 });
  });

  it.each([
    [40, { graced: 1, freed: 0 }],
    [0, { graced: 0, freed: 1 }],
  ])('an unclaimed grant takes the grace of its task, %s seconds', async (graceSeconds, expected) => {
    const { key, execution } = await unclaimed();
    await park({ key, holder: 'wf', requestId: 'r', execution, ttlSeconds: 600, graceSeconds });
    expect(await executionEnded(execution)).toMatchObject(expected);
  });

  it('an unclaimed grant ends at once with its execution', async () => {
    const { execution } = await unclaimed();
    expect(await executionEnded(execution)).toMatchObject({ freed: 1, graced: 0 });
  });

  it('a grant lasts for its grace if its task may have been notified', async () => {
    const [key, execution] = [newKey(), steps.newExecution()];
    const first = await acquire({ key });
    await park({ key, execution, ttlSeconds: 900, graceSeconds: 60 });
    steps.faults.SendTaskSuccess = ['lost'];
    await release(first);
    expect(await rows(key)).toHaveLength(1);
    expect(await executionEnded(execution)).toMatchObject({ graced: 1, tickets: 1, freed: 0 });
    expect(await rows(key)).toEqual([]);
  });

  it.each([
    ['SUCCEEDED', 'ABORTED', { freed: 1, graced: 0 }],
    ['TIMED_OUT', 'SUCCEEDED', { freed: 0, graced: 1 }],
  ])(
    'the status of the target counts, %s, although the execution ended with %s',
    async (ofTarget, status, expected) => {
      const { execution } = await hold({ target: steps.newExecution(ofTarget) }, status);
      expect(await executionEnded(execution)).toMatchObject(expected);
    },
  );

  it('the grace stays with a grant that passes to the target', async () => {
    const target = steps.newExecution('RUNNING');
    const { key, execution } = await hold({ target });
    expect(await executionEnded(execution)).toMatchObject({ kept: 1 });
    steps.executions.set(target, 'ABORTED');
    expect(await executionEnded(target)).toMatchObject({ graced: 1 });
    expect(await see(key)).toMatchObject({ execution: target, inGrace: true });
  });

  it('a grant has no grace for a target that never started', async () => {
    const { execution } = await hold({ target: NEVER_STARTED });
    expect(await executionEnded(execution)).toMatchObject({ kept: 1 });
    expect(await executionEnded(execution, true)).toMatchObject({ freed: 1, graced: 0 });
    const target = steps.newExecution();
    steps.foreign.add(target);
    const other = await hold({ target });
    expect(await executionEnded(other.execution, true)).toMatchObject({ graced: 1 });
  });

  it('the first pass leaves grants and tickets from after the end', async () => {
    const { asked, execution } = await hold({ graceSeconds: 0 }, 'RUNNING');
    const [event, granted, waiting] = [steps.end(execution), newKey(), newKey()]; // DescribeExecution still shows this end
    timeline.advance(1000);
    await acquire({ ...asked, key: granted });
    await acquire({ key: waiting });
    timeline.advance(1);
    await park({ key: waiting, execution });
    expect(await executionEnded(execution, false, event)).toMatchObject({ freed: 1, tickets: 0 });
    expect([await see(granted), await rows(waiting)]).toMatchObject([{ holder: 'wf' }, [{}]]);
    timeline.advance(90_000);
    expect(await executionEnded(execution, true, event)).toMatchObject({ freed: 1, tickets: 1 });
  });
}
