import { expect, it } from 'vitest';
import { HoldfastError } from '../../shared/errors.ts';
import { acquire as acquireKey } from '../../shared/locks/calls/acquire.ts';
import { acquireInput } from '../../shared/locks/calls/inputs.ts';
import { call } from '../support/emulators/aws.ts';
import type { EndStatus } from '../support/emulators/step-functions.ts';
import { failure } from '../support/worlds/leases.ts';
import type { LineWorld } from './world.ts';

const LOOK_MS = 30_000;

/** Callers and tasks that want a lock ask about the execution of its bound grant. */
export async function looksAtHolders(lineWorld: LineWorld) {
  const world = await lineWorld();
  const { acquire, release, park, grantOf, see, repair, requests, rows, steps, newKey, timeline } = world;
  const asked = () => steps.requests.filter(({ action }) => action === 'DescribeExecution').length;

  /** A bound lock of an execution that runs. */
  async function hold() {
    const execution = steps.newExecution('RUNNING');
    const request = { key: newKey(), holder: 'wf', requestId: 'r', execution, bound: true };
    const grant = await ask(request);
    timeline.advance(1000);
    return { execution, request, grant, key: request.key };
  }
  /** Parks a task that is notified at once. @returns its grant */
  const ask = async (request: object) => grantOf((await park(request)).task);
  /** The execution ends now, and the event of its end is lost. */
  const end = (execution: string, status: EndStatus = 'SUCCEEDED') => steps.end(execution, status);
  const other = (key: string, more: object = {}) => acquire({ key, holder: 'other', ...more });
  const held = (key: string, more: object = {}) => failure(other(key, more));
  /** Does `what` while each question of `act` is on its way. */
  const whileAsked = async (what: () => Promise<unknown>, act: () => Promise<unknown>) => {
    steps.onTheWay = async (action) => (action === 'DescribeExecution' ? what() : undefined);
    await act().finally(() => {
      steps.onTheWay = async () => {};
    });
  };

  it('a caller whose look frees the lock receives it if the event is lost', async () => {
    const { key, execution } = await hold();
    end(execution);
    expect(await other(key)).toMatchObject({ holder: 'other', repeated: false });
  });

  it('a caller whose look frees the lock is refused if a task waits', async () => {
    const { key, execution } = await hold();
    const { task } = await park({ key });
    end(execution);
    expect(await held(key)).toMatchObject({ code: 'LeaseHeld', context: { holder: 'tester' } });
    expect(task.state).toBe('succeeded');
  });

  it('refused callers ask once in thirty seconds about an execution that runs', async () => {
    const { key } = await hold();
    steps.requests.length = 0;
    for (let tries = 0; tries < 10; tries++) await held(key);
    expect(asked()).toBe(1);
    timeline.advance(LOOK_MS + 1);
    await held(key);
    expect(asked()).toBe(2);
  });

  it('a call in line receives the lock even if the event is lost', async () => {
    const { key, execution } = await hold();
    await held(key);
    timeline.advance(LOOK_MS - 2000);
    const [granted] = await timeline.play(
      () => other(key, { waitSeconds: 20 }),
      () => timeline.later(1000, async () => end(execution)),
    );
    expect(granted).toMatchObject({ holder: 'other', previous: { ended: 'executionEnded' } });
  });

  it('a racing call receives the lock even if the event is lost', async () => {
    const { key, execution } = await hold();
    await held(key);
    timeline.advance(LOOK_MS - 2000);
    const [granted] = await timeline.play(
      () => other(key, { waitSeconds: 20, fair: false }),
      () => timeline.later(1000, async () => end(execution)),
    );
    expect(granted).toMatchObject({ holder: 'other' });
  });

  it('the schedule frees the lock within 75 seconds if the event is lost', async () => {
    const { key, execution } = await hold();
    const { task } = await park({ key });
    await repair(key); // a run of the schedule just before the end
    end(execution);
    const endedAt = timeline.now();
    timeline.advance(60_000);
    await repair(key);
    expect(grantOf(task)).toMatchObject({ previous: { ended: 'executionEnded' } });
    expect(timeline.now() - endedAt).toBeLessThan(75_000);
  });

  it('the schedule frees the grant of a task that was never notified', async () => {
    const { key, grant } = await hold();
    const execution = steps.newExecution('RUNNING');
    await park({ key, holder: 'late', requestId: 'late', execution, bound: true, parkSeconds: 600 });
    steps.faults.SendTaskSuccess = Array(10).fill('refused');
    await release(grant);
    end(execution);
    timeline.advance(800_000);
    await repair(key);
    expect(await see(key)).toMatchObject({ holder: undefined });
    await repair(key);
    expect(await rows(key)).toEqual([]);
  });

  it.each([['throttled'], ['refused']] as const)('a look leaves the grant if the question is %s', async (fault) => {
    const { key, execution } = await hold();
    end(execution);
    steps.faults.DescribeExecution = [fault, fault, fault];
    expect(await held(key)).toMatchObject({ code: 'LeaseHeld' });
    expect(await see(key)).toMatchObject({ holder: 'wf' });
    timeline.advance(LOOK_MS + 1);
    expect(await other(key)).toMatchObject({ holder: 'other' });
  });

  it('the next waiter receives its grant even if the answer takes six seconds', async () => {
    const { key, grant } = await hold();
    await held(key);
    timeline.advance(LOOK_MS - 2000);
    const slow = () => timeline.play(() => timeline.sleep(6000));
    await whileAsked(slow, async () => {
      const [first] = await timeline.play(
        () => other(key, { waitSeconds: 20, ttlSeconds: 10 }),
        () => timeline.later(3500, () => release(grant)),
      );
      expect(first).toMatchObject({ holder: 'other', repeated: false });
      expect(first.waitedMs).toBeLessThan(4600);
    });
  });

  it('a racing call receives a released lock even if the answer takes six seconds', async () => {
    const { key, grant } = await hold();
    const slow = () => timeline.play(() => timeline.sleep(6000));
    await whileAsked(slow, async () => {
      const [first] = await timeline.play(
        () => other(key, { waitSeconds: 20, fair: false }),
        () => timeline.later(2000, () => release(grant)),
      );
      expect(first.waitedMs).toBeLessThan(2500);
    });
  });

  it('a call that waits is in line before it asks', async () => {
    const { key } = await hold();
    const inLine: number[] = [];
    const count = async () => {
      inLine.push((await rows(key)).length);
    };
    await whileAsked(count, () => timeline.play(() => held(key, { waitSeconds: 2 })));
    expect(inLine).toEqual([1]);
  });

  /** A call of a process that has no client of Step Functions. */
  const fromThere = (key: string, more: object = {}) => {
    const stepFunctions = async () => {
      throw new HoldfastError('Unavailable', 'this process has no client of Step Functions');
    };
    const input = acquireInput().parse({ key, holder: 'there', ...world.terms, ...more });
    return acquireKey({ ...world.dependencies, stepFunctions })(input, call());
  };

  it('a process that cannot ask leaves the look to the next caller', async () => {
    const { key, execution } = await hold();
    end(execution);
    requests.sent.length = 0;
    expect(await failure(fromThere(key))).toMatchObject({ code: 'LeaseHeld' });
    expect(requests.sent).toHaveLength(1);
    expect(await other(key)).toMatchObject({ holder: 'other' });
  });

  it('a waiter that cannot ask leaves the look to the schedule', async () => {
    const { key, execution } = await hold();
    end(execution);
    const waits = (waitSeconds: number) => fromThere(key, { waitSeconds, requestId: 'there' });
    const [granted] = await timeline.play(
      () => waits(20),
      () => timeline.later(2000, () => repair(key)),
    );
    expect(granted).toMatchObject({ holder: 'there' });
  });
}
