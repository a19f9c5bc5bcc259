import { describe, expect, it } from 'vitest';
import { failure } from '../support/worlds/leases.ts';
import type { LineWorld } from './world.ts';

const LAG_MS = 60_000;
const SETTLED_MS = 90_000;
const NEVER_STARTED = 'arn:aws:states:us-east-1:123456789012:execution:machine:never-started';
const none = { tickets: 0, freed: 0, graced: 0, kept: 0 };

/** An execution ends, is redriven, and asks again: by the same request, or by another one. */
export async function redrivenExecutions(lineWorld: LineWorld) {
  const world = await lineWorld();
  const { acquire, heartbeat, release, park, grantOf, repair, repairAll, rows, executionEnded, see } = world;
  const { requests, steps, newKey, timeline } = world;
  const asked = () => steps.requests.filter(({ action }) => action === 'DescribeExecution').length;
  const askedBy = (execution = steps.newExecution('RUNNING')) => ({ key: newKey(), requestId: 'r', execution });

  /** A grant with a ttl that was repeated after the end and a redrive, while DescribeExecution still shows the end. */
  async function answeredAgain() {
    const request = { ...askedBy(), ttlSeconds: 3600 };
    const grant = await acquire(request);
    timeline.advance(10_000);
    const event = steps.end(request.execution);
    timeline.advance(1000);
    const redrivenAt = timeline.now();
    timeline.advance(1000);
    expect(await acquire(request)).toMatchObject({ repeated: true, fence: grant.fence });
    return { ...request, grant, event, redrivenAt };
  }

  it('the first pass of the former end leaves the grant while the status lags', async () => {
    const { key, execution, event, grant } = await answeredAgain();
    expect(await executionEnded(execution, false, event)).toEqual({ execution, ...none });
    expect(await heartbeat(grant)).toMatchObject({ fence: grant.fence });
    expect(await see(key)).toMatchObject({ holder: 'tester' });
  });

  it('the second pass and the schedule leave the grant while the status lags', async () => {
    const { key, execution, event, redrivenAt } = await answeredAgain();
    const { task } = await park({ key, holder: 'next' });
    timeline.advance(LAG_MS);
    expect(await executionEnded(execution, true, event)).toEqual({ execution, ...none });
    await repairAll();
    steps.redrive(execution, redrivenAt);
    timeline.advance(SETTLED_MS);
    expect(await executionEnded(execution, true, event)).toEqual({ execution, ...none });
    await repairAll();
    expect([task.state, await see(key)]).toMatchObject(['waiting', { holder: 'tester' }]);
  });

  it('the grant ends with the next end of the execution', async () => {
    const { execution, key } = await answeredAgain();
    timeline.advance(1000);
    steps.requests.length = 0;
    expect(await executionEnded(execution, false, steps.end(execution))).toMatchObject({ freed: 1 });
    expect([asked(), (await see(key)).holder]).toEqual([0, undefined]);
  });

  describe('another request', () => {
    type Ended = { execution: string; key: string };
    /** Cases in which a grant outlives the end of its execution. */
    const CASES: Record<string, { target?: string; ends: (held: Ended) => Promise<unknown> }> = {
      'the event is lost': { ends: async ({ execution }) => steps.end(execution) },
      'the event names an end before the answer, by clocks that differ': {
        ends: async ({ execution }) => {
          const { status } = steps.end(execution);
          const stopDate = timeline.now() - 1100;
          steps.stopped.set(execution, stopDate);
          expect(await executionEnded(execution, false, { status, stopDate })).toEqual({ execution, ...none });
        },
      },
      'its target never started': {
        target: NEVER_STARTED,
        ends: async ({ execution }) =>
          expect(await executionEnded(execution, false, steps.end(execution))).toMatchObject({ kept: 1 }),
      },
    };

    /** The execution had a bound grant, ended, and runs again. @returns the former grant, and the next request */
    async function redriven(name: string) {
      const { target, ends } = CASES[name] ?? { ends: async () => {} };
      const request = { ...askedBy(), holder: 'wf', bound: true, ...(target && { target }) };
      const grant = grantOf((await park(request)).task);
      timeline.advance(1000);
      await ends(request);
      timeline.advance(5000);
      steps.redrive(request.execution);
      if (target) timeline.advance(SETTLED_MS);
      return { grant, again: { ...request, requestId: 'r-1' } };
    }

    it.each(Object.keys(CASES))('a task does not wait for the former grant of its execution if %s', async (name) => {
      const { grant, again } = await redriven(name);
      const { task } = await park(again);
      timeline.advance(1000);
      await repair(again.key);
      const { fence } = grant;
      expect(grantOf(task)).toMatchObject({ bound: true, previous: { holder: 'wf', fence, ended: 'executionEnded' } });
    });

    it.each(Object.keys(CASES))('a call does not wait for the former grant of its execution if %s', async (name) => {
      const { grant, again } = await redriven(name);
      const { bound: _, target: __, ...plain } = again;
      const [answer] = await timeline.play(() => acquire({ ...plain, waitSeconds: 20 }));
      expect((answer as typeof grant).fence).toBeGreaterThan(grant.fence);
    });

    it('the second pass ends the former grant, not one received since the redrive', async () => {
      const { grant, again } = await redriven('the event is lost');
      const beside = askedBy(again.execution);
      const kept = await acquire({ ...beside, ttlSeconds: 3600 });
      timeline.advance(SETTLED_MS);
      expect(await executionEnded(again.execution, true)).toMatchObject({ freed: 1 });
      expect(await failure(heartbeat(grant))).toMatchObject({ code: 'LeaseLost' });
      expect(await heartbeat(kept)).toMatchObject({ fence: kept.fence });
    });
  });

  /** The execution ends and is redriven, and its request comes again. */
  async function askAgain(request: { execution: string }) {
    expect(await executionEnded(request.execution)).toMatchObject({ freed: 1 });
    steps.redrive(request.execution);
    return acquire(request);
  }

  it.each(['is there', 'is still in the index'])(
    'a redriven execution is granted the lock again after a claim whose row %s',
    async (where) => {
      const request = { ...askedBy(steps.newExecution()), ttlSeconds: 5 };
      requests.faultsOf.DeleteItem = ['neverSent', 'neverSent', 'neverSent'];
      const first = await acquire({ key: request.key, holder: 'first' });
      await timeline.play(
        () => acquire({ ...request, waitSeconds: 20 }).catch((error) => error),
        () => timeline.later(1300, () => release(first)),
      );
      expect([requests.faultsOf.DeleteItem, (await rows(request.key)).length]).toEqual([[], 1]);
      if (where === 'is still in the index')
        requests.faultsOf.Query = [
          async (send) => {
            const found = await send();
            expect(await acquire(request)).toMatchObject({ repeated: true }); // deletes the row
            return found;
          },
        ];
      expect(await askAgain(request)).toMatchObject({ repeated: false });
    },
  );

  it('a redriven execution is granted again after a call answered for its task', async () => {
    const request = { ...askedBy(steps.newExecution()), ttlSeconds: 5 };
    steps.faults.SendTaskSuccess = ['refused'];
    (await park({ ...request, parkSeconds: 5 })).task.state = 'timedOut';
    expect(await acquire(request)).toMatchObject({ repeated: true });
    expect(await askAgain(request)).toMatchObject({ repeated: false });
  });
}
