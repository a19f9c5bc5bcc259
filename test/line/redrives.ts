import { describe, expect, it } from 'vitest';
import { failure } from '../support/worlds/leases.ts';
import type { LineWorld } from './world.ts';

/** A call was answered with a grant of the line, and its execution ended. The record remembers the request, whatever became of the row and of the grant. */
export async function redrivesAfterAnswers(lineWorld: LineWorld) {
  const world = await lineWorld();
  const { acquire, release, park, repair, rows, executionEnded, requests, steps, newKey, timeline } = world;
  const released = { code: 'LeaseLost', context: { reason: 'released' } };
  const askedBy = (execution = steps.newExecution()) => ({ key: newKey(), requestId: 'r', execution, ttlSeconds: 5 });

  /** The execution ends and is redriven, and its request comes again. */
  async function askAgain(asked: { execution: string }) {
    expect(await executionEnded(asked.execution)).toMatchObject({ freed: 1 });
    steps.redriven.add(asked.execution);
    steps.executions.set(asked.execution, 'RUNNING');
    return failure(acquire(asked));
  }

  /** A call in line, and the end of the grant before it. @param ttlSeconds of that grant */
  async function grantedInLine(asked: { key: string }, ttlSeconds = 60) {
    const first = await acquire({ key: asked.key, holder: 'first', ttlSeconds });
    const [answer] = await timeline.play(
      () => acquire({ ...asked, waitSeconds: 20 }).catch((error) => error),
      () => timeline.later(1300, async () => ttlSeconds === 60 && release(first)),
    );
    return answer;
  }

  describe('a redriven execution that asks again', () => {
    it.each([
      ['received the lock from its holder', 60],
      ['took the lock over from an expired holder', 2],
    ])('a redriven execution receives LeaseLost for a call that %s, although the grant has expired', async (_, ttl) => {
      const asked = askedBy();
      expect(await grantedInLine(asked, ttl)).toMatchObject({ repeated: false });
      timeline.advance(5000);
      expect(await askAgain(asked)).toMatchObject(released);
    });

    it.each(['is there', 'is still in the index'])(
      'a redriven execution receives LeaseLost for a call that claimed the lock, although its row %s',
      async (where) => {
        const asked = askedBy();
        requests.faultsOf.DeleteItem = ['neverSent', 'neverSent', 'neverSent'];
        await grantedInLine(asked);
        expect([requests.faultsOf.DeleteItem, (await rows(asked.key)).length]).toEqual([[], 1]);
        if (where === 'is still in the index')
          requests.faultsOf.Query = [
            async (send) => {
              const found = await send();
              expect(await acquire(asked)).toMatchObject({ repeated: true }); // deletes the row
              return found;
            },
          ];
        expect(await askAgain(asked)).toMatchObject(released);
      },
    );

    it.each([
      ['whose row is there', 0],
      ['which was overdue, and the grant has expired', 5501],
    ])(
      'a redriven execution receives LeaseLost for a lock that a call was answered with in place of the task, %s',
      async (_, ms) => {
        const asked = askedBy();
        steps.faults.SendTaskSuccess = ['refused'];
        (await park({ ...asked, parkSeconds: 5 })).task.state = 'timedOut';
        expect(await acquire(asked)).toMatchObject({ repeated: true });
        timeline.advance(ms);
        await repair(asked.key);
        expect(await rows(asked.key)).toHaveLength(ms ? 0 : 1);
        expect(await askAgain(asked)).toMatchObject(released);
      },
    );
  });
}
