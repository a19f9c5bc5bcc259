import { describe, expect, it } from 'vitest';
import { call } from '../support/emulators/aws.ts';
import { failure } from '../support/worlds/leases.ts';
import type { Grant, LineWorld } from './world.ts';

/** A request with more than one call, or with a call and a task: the request has one grant. */
export async function duplicateCalls(lineWorld: LineWorld) {
  const world = await lineWorld();
  const { acquire, heartbeat, release, cancel, see, repair, park, grantOf, rows, executionEnded } = world;
  const { messages, requests, steps, newKey, timeline, precededBy, exitInLine } = world;
  const { later } = timeline;
  const lost = (reason: string) => ({ code: 'LeaseLost', context: { reason } });
  const ended = (reason: string) => ({ state: 'failed', error: 'LeaseLost', cause: { reason } });
  const ticketAt = async (key: string, place: number) => (await rows(key)).at(place)?.ticket?.S ?? '';
  const first = () => acquire({ key: newKey(), holder: 'first' });

  it('a cancelled call leaves the lock to the other of its request', async () => {
    const held = await first();
    const { key } = held;
    const asked = { key, holder: 'b', requestId: 'twice', ttlSeconds: 60, waitSeconds: 20 };
    const [, grant, refused] = await timeline.play(
      () =>
        later(300, async () => {
          expect(await cancel(key, await ticketAt(key, 1))).toMatchObject({ cancelled: true });
          await release(held);
        }),
      () => acquire(asked),
      () => later(10, () => failure(acquire(asked))),
    );
    expect(refused).toMatchObject(lost('cancelled'));
    expect(await see(key)).toMatchObject({ fence: grant.fence });
    expect(await release(grant)).toMatchObject({ released: true });
  });

  /** The first call exits in line. The second call finds the grant of the first one's waiter after `meanwhile`. */
  async function secondOf(asked: object, meanwhile: (ticket: string, key: string) => Promise<unknown>, as = call()) {
    const held = await first();
    const { key } = held;
    await exitInLine({ key, ...asked });
    const [, answer] = await timeline.play(
      () =>
        later(300, async () => {
          const ticket = await ticketAt(key, 1);
          await release(held);
          await meanwhile(ticket, key);
        }),
      () => acquire({ key, ...asked, waitSeconds: 20 }, as).catch((error) => error),
    );
    return { key, answer };
  }

  it('a call that is cancelled does not claim a grant of another waiter', async () => {
    const asked = { holder: 'b', requestId: 'own waiter gone' };
    const { key, answer } = await secondOf(asked, (ticket, of) => cancel(of, ticket));
    expect(answer).toMatchObject(lost('cancelled'));
    timeline.advance(2501); // the grant window and the margin
    expect(await acquire({ key, holder: 'plain' })).toMatchObject({ holder: 'plain' });
  });

  it('a call that is cancelled during its claim leaves the lock', async () => {
    const asked = { holder: 'b', requestId: 'other waiter' };
    const { key, answer } = await secondOf(asked, async (ticket, of) => {
      requests.faultsOf.DeleteItem = [precededBy(() => cancel(of, ticket))];
    });
    expect(answer).toMatchObject(lost('cancelled'));
    expect(await acquire({ key, ...asked })).toMatchObject({ repeated: true });
  });

  it('a call is answered with the grant of its retry', async () => {
    const asked = { holder: 'b', requestId: 'retried' };
    const measured: string[] = [];
    const as = call({ measure: (measure) => void measured.push(measure) });
    const retried: Grant[] = [];
    const retry = async (ticket: string, key: string) => retried.push(await acquire({ key, ...asked, ticket }));
    const { answer } = await secondOf(asked, retry, as);
    expect(answer).toMatchObject({ leaseId: retried[0]?.leaseId, repeated: true });
    expect(measured).toEqual([]);
  });

  it('a call is answered with the grant that a duplicate call receives then', async () => {
    const { key } = await acquire({ key: newKey(), holder: 'dead', ttlSeconds: 3 });
    const asked = { key, holder: 'b', requestId: 'r' };
    await exitInLine(asked);
    await park({ key, holder: 'behind' });
    timeline.advance(3501);
    const duplicates: Grant[] = [];
    requests.faultsOf.Query = [precededBy(async () => duplicates.push(await acquire(asked)))];
    expect(await acquire(asked)).toMatchObject({ fence: duplicates[0]?.fence, repeated: true });
    expect(duplicates).toHaveLength(1);
  });

  describe('unclaimed grants', () => {
    const execution = steps.newExecution();
    const unnamed = { holder: 'b', requestId: 'unclaimed', ttlSeconds: 3600 };
    const asked = { ...unnamed, execution };
    /** The call has exited. */
    async function unclaimed() {
      const held = await first();
      await exitInLine({ key: held.key, ...unnamed });
      await release(held);
      timeline.advance(500);
      return held.key;
    }

    it('an unclaimed grant becomes the grant of the task of its request', async () => {
      const key = await unclaimed();
      messages.length = 0;
      const { task, parked } = await park({ key, ...asked });
      expect([parked, messages]).toEqual([false, []]); // no task waits behind it
      const { leaseId } = grantOf(task);
      expect(grantOf(task)).toMatchObject({ remainingMs: 3_600_000, waitedMs: 0, repeated: false });
      timeline.advance(1000);
      expect(await heartbeat(grantOf(task))).toMatchObject({ remainingMs: 3_600_000 });
      expect(await acquire({ key, ...asked, waitSeconds: 20 })).toMatchObject({ repeated: true, leaseId });
      expect(await executionEnded(execution)).toMatchObject({ freed: 1 });
    });

    it('an unclaimed grant has the target that the task names', async () => {
      const key = await unclaimed();
      const target = steps.newExecution('RUNNING');
      await park({ key, ...asked, target });
      expect(await executionEnded(execution)).toMatchObject({ freed: 0 }); // the target runs
      steps.executions.set(target, 'FAILED');
      expect(await executionEnded(target)).toMatchObject({ freed: 1 });
    });

    it('an unclaimed grant goes to a task that cannot be notified yet', async () => {
      const key = await unclaimed();
      await park({ key, holder: 'next' });
      timeline.advance(1); // so that the next ticket is later
      steps.faults.SendTaskSuccess = ['refused'];
      const { task, parked } = await park({ key, ...asked });
      expect([parked, task.state]).toEqual([true, 'waiting']);
      timeline.advance(10_000);
      await repair(key);
      expect(grantOf(task)).toMatchObject({ remainingMs: 3_600_000 });
    });

    it('an unclaimed grant of a gone task goes to the next waiter', async () => {
      const key = await unclaimed();
      const gone = steps.newTask();
      gone.state = 'timedOut';
      const next = await park({ key, holder: 'next' });
      await park({ key, ...asked }, gone);
      timeline.advance(5000);
      await repair(key);
      expect(grantOf(next.task)).toMatchObject({ holder: 'next' });
    });

    it('a task is notified of the grant of a duplicate call', async () => {
      const key = await unclaimed();
      const grants: Grant[] = [];
      const claims = precededBy(async () => grants.push(await acquire({ key, ...asked })));
      requests.faultsOf.UpdateItem = ['none', claims]; // the mark comes first
      const { task } = await park({ key, ...asked });
      expect(grantOf(task)).toMatchObject({ leaseId: grants[0]?.leaseId, repeated: true });
    });

    it.each(['before', 'after'])('a task keeps the grant if the call is cancelled %s', async (when) => {
      const held = await first();
      const { key } = held;
      const [grant, refused] = await timeline.play(
        () =>
          later(300, async () => {
            const ticket = await ticketAt(key, 0);
            const stop = async () => expect(await cancel(key, ticket)).toMatchObject({ cancelled: true });
            await release(held);
            if (when === 'before') await stop();
            const { task } = await park({ key, ...asked });
            if (when === 'after') await stop();
            return grantOf(task);
          }),
        () => failure(acquire({ key, ...asked, waitSeconds: 20 })),
        () => later(20, () => failure(acquire({ key, holder: 'next', waitSeconds: 2 }))),
      );
      expect(refused).toMatchObject(lost('cancelled'));
      expect(await see(key)).toMatchObject({ fence: grant.fence });
    });
  });

  /** A duplicate call was answered with the grant. Another task may wait behind. */
  async function shared(others: boolean) {
    const held = await first();
    const { key } = held;
    const asked = { key, holder: 'task', requestId: 'shared' };
    const { task } = await park(asked);
    timeline.advance(1);
    const next = others ? (await park({ key, holder: 'next' })).task : undefined;
    steps.faults.SendTaskSuccess = ['refused'];
    await release(held);
    return { key, task, next, grant: await acquire(asked) };
  }

  it('a task receives LeaseLost if a duplicate call releases the grant', async () => {
    const { key, task, next, grant } = await shared(true);
    expect(await release(grant)).toMatchObject({ released: true });
    expect(task).toMatchObject(ended('released'));
    expect(next && grantOf(next)).toMatchObject({ holder: 'next' });
    expect(await rows(key)).toEqual([]);
  });

  it('the schedule sends LeaseLost again until the task is notified', async () => {
    const { key, task, grant } = await shared(false);
    await release(grant);
    steps.faults.SendTaskFailure = ['refused'];
    await repair(key);
    expect([task.state, await rows(key)]).toMatchObject(['waiting', [{}]]);
    await repair(key);
    expect(task).toMatchObject(ended('released'));
    expect(await rows(key)).toEqual([]);
  });

  it("a leaving call keeps its waiter if its request's grant has just expired", async () => {
    const held = await acquire({ key: newKey(), holder: 'first', ttlSeconds: 60 });
    const { key } = held;
    const asked = { key, holder: 'b', requestId: 'r', ttlSeconds: 2 };
    await exitInLine(asked);
    requests.faultsOf.GetItem = [
      async (send) => {
        const seen = await send();
        await release(held);
        await acquire(asked);
        timeline.advance(2000); // the grant expires at this moment
        return seen;
      },
    ];
    const [refused] = await timeline.play(() => failure(acquire({ ...asked, waitSeconds: 2 })));
    const ticket = await ticketAt(key, 0);
    expect(refused).toMatchObject({ code: 'LeaseHeld', context: { retryWith: { ticket } } });
  });
}
