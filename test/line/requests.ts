import { describe, expect, it } from 'vitest';
import { call } from '../support/emulators/aws.ts';
import { dyingAfter } from '../support/faults/mortal.ts';
import { failure } from '../support/worlds/leases.ts';
import type { Grant, LineWorld } from './world.ts';

export async function duplicateCalls(lineWorld: LineWorld) {
  const world = await lineWorld();
  const {
    acquire,
    heartbeat,
    release,
    breakGrant,
    cancel,
    see,
    repair,
    park,
    grantOf,
    rows,

    requests,
    steps,
    newKey,
    timeline,
  } = world;
  const { sleep, later } = timeline;

  describe('a request that stands in line twice', () => {
    it('loses one of its places to an operator: the lock that its other call was answered with stays', async () => {
      const key = newKey();
      const first = await acquire({ key, holder: 'first' });
      const asked = { key, holder: 'b', requestId: 'twice', ttlSeconds: 60, waitSeconds: 20 };
      const [, grant, refused] = await timeline.play(
        () =>
          later(300, async () => {
            const [, second] = await rows(key);
            expect(await cancel(key, second?.ticket?.S ?? '')).toMatchObject({ cancelled: true });
            await release(first);
          }),
        () => acquire(asked),
        () => later(10, () => failure(acquire(asked))),
      );
      expect(refused).toMatchObject({ code: 'LeaseLost', context: { reason: 'cancelled' } });
      expect(await see(key)).toMatchObject({ fence: grant.fence });
      expect(await release(grant)).toMatchObject({ released: true });
    });
  });

  describe('a request that stands in line twice, and asks again with a place that an operator took from it', () => {
    it('learns that, and its other call keeps the lock', async () => {
      const key = newKey();
      const first = await acquire({ key, holder: 'first' });
      const asked = { key, holder: 'b', requestId: 'asks twice', ttlSeconds: 60 };
      const [left] = await timeline.play(() => failure(acquire({ ...asked, waitSeconds: 1 })));
      const { ticket } = left.context.retryWith as { ticket: string };
      await cancel(key, ticket);
      const [, grant] = await timeline.play(
        () => later(300, () => release(first)),
        () => acquire({ ...asked, waitSeconds: 20 }),
      );
      const refused = await failure(acquire({ ...asked, ticket }));
      expect(refused).toMatchObject({ code: 'LeaseLost', context: { reason: 'cancelled' } });
      expect(await see(key)).toMatchObject({ fence: grant.fence });
    });
  });

  describe('a call that claims the grant of another place of its request', () => {
    it('and loses its own place right then: it leaves the lock to the other call', async () => {
      const key = newKey();
      const first = await acquire({ key, holder: 'first' });
      const asked = { key, holder: 'b', requestId: 'other place', waitSeconds: 20 };
      await timeline.play(() => dyingAfter(3, () => acquire(asked)));
      timeline.advance(1);
      const [, refused] = await timeline.play(
        () =>
          later(300, async () => {
            const [, second] = await rows(key);
            await release(first);
            requests.faultsOf.DeleteItem = [
              async (send) => {
                await cancel(key, second?.ticket?.S ?? '');
                return send();
              },
            ];
          }),
        () => failure(acquire(asked)),
      );
      expect(refused).toMatchObject({ code: 'LeaseLost', context: { reason: 'cancelled' } });
      expect(await acquire({ ...asked, waitSeconds: 0 })).toMatchObject({
        repeated: true,
      });
    });

    /** Its first call dies in line, and its second one meets the grant of that place after `meanwhile`. */
    async function secondOf(asked: { key: string }, meanwhile: (ticket: string) => Promise<unknown>, as = call()) {
      const { key } = asked;
      const first = await acquire({ key, holder: 'first' });
      await timeline.play(() => dyingAfter(3, () => acquire({ ...asked, waitSeconds: 20 })));
      timeline.advance(1);
      const [, answer] = await timeline.play(
        () =>
          later(300, async () => {
            const [, second] = await rows(key);
            await release(first);
            await meanwhile(second?.ticket?.S ?? '');
          }),
        () => acquire({ ...asked, waitSeconds: 20 }, as).catch((error) => error),
      );
      return answer;
    }

    it('and finds that its retry had the lock, and took its own place out of the line: it is answered with that', async () => {
      const key = newKey();
      const asked = { key, holder: 'b', requestId: 'own place gone' };
      const measured: string[] = [];
      const as = call({ measure: (measure) => void measured.push(measure) });
      let retried: Grant | undefined;
      const retry = async (ticket: string) => {
        retried = await acquire({ ...asked, ticket });
      };
      const answer = await secondOf(asked, retry, as);
      expect(answer).toMatchObject({ leaseId: retried?.leaseId, repeated: true });
      expect(measured).toEqual([]); // it was handed to the retry
    });
  });

  describe('a request of a task', () => {
    it('that a call stands in line for too: the lock stays with the call if the task is gone', async () => {
      const key = newKey();
      const first = await acquire({ key, holder: 'first' });
      const { task } = await park({ key, holder: 'b', requestId: 'gone' });
      const [, grant] = await timeline.play(
        () =>
          later(300, async () => {
            steps.onTheWay = async () => {
              steps.onTheWay = async () => {};
              await sleep(3000); // the call is answered meanwhile
              task.state = 'timedOut';
            };
            await release(first);
          }),
        () => later(10, () => acquire({ key, holder: 'b', requestId: 'gone', waitSeconds: 20 })),
      );
      expect(grant).toMatchObject({ holder: 'b', repeated: true });
      expect(await see(key)).toMatchObject({ fence: grant.fence });
    });

    it('that a call stands in line for too, whose task is gone: the call has the lock, and not the next one as well', async () => {
      const key = newKey();
      const first = await acquire({ key, holder: 'first' });
      const asked = { key, holder: 'b', requestId: 'task gone' };
      const { task } = await park(asked);
      task.state = 'timedOut';
      const [, grant, refused] = await timeline.play(
        () =>
          later(300, async () => {
            // Between the deletion of the ticket and the transfer to the next one, the call looks.
            const slow = (send: () => Promise<unknown>) => sleep(500).then(send);
            requests.faultsOf.Query = ['none', slow];
            await release(first);
          }),
        () => later(10, () => acquire({ ...asked, waitSeconds: 5 })),
        () => later(20, () => failure(acquire({ key, holder: 'next', waitSeconds: 5 }))),
      );
      expect(refused).toMatchObject({ code: 'LeaseHeld', context: { holder: 'b', fence: grant.fence } });
      expect(await heartbeat(grant)).toMatchObject({ fence: grant.fence });
    });

    describe('that a call in line was granted and has not claimed', () => {
      const execution = 'arn:aws:states:us-east-1:123456789012:execution:machine:takes-over';
      const asked = { holder: 'b', requestId: 'unclaimed', ttlSeconds: 3600, execution };
      /** The call is dead. */
      async function unclaimed() {
        const first = await acquire({ key: newKey(), holder: 'first' });
        const { key } = first;
        await timeline.play(() => dyingAfter(3, () => acquire({ ...asked, key, waitSeconds: 20 })));
        await release(first);
        timeline.advance(500);
        return key;
      }

      it('goes on to the next if the task which comes is gone', async () => {
        const key = await unclaimed();
        const gone = steps.newTask();
        gone.state = 'timedOut';
        const next = await park({ key, holder: 'next' });
        await park({ key, ...asked }, gone);
        timeline.advance(5000);
        await repair(key);
        expect(grantOf(next.task)).toMatchObject({ holder: 'next' });
      });

      it('is claimed by another call in that moment: the task is notified of that grant', async () => {
        const key = await unclaimed();
        const grants: { leaseId: string }[] = [];
        requests.faultsOf.UpdateItem = [
          'none', // the mark
          async (send) => {
            grants.push(await acquire({ key, ...asked }));
            return send();
          },
        ];
        const { task } = await park({ key, ...asked });
        expect(grantOf(task)).toMatchObject({ leaseId: grants[0]?.leaseId, repeated: true });
      });

      it.each(['before', 'after'])(
        'stays with the task if an operator takes the call’s place %s it came',
        async (when) => {
          const first = await acquire({ key: newKey(), holder: 'first' });
          const { key } = first;
          const own = { key, ...asked };
          const [told, refused] = await timeline.play(
            () =>
              later(300, async () => {
                const [row] = await rows(key);
                const stop = async () =>
                  expect(await cancel(key, row?.ticket?.S ?? '')).toMatchObject({ cancelled: true });
                await release(first);
                if (when === 'before') await stop();
                const { task } = await park(own);
                if (when === 'after') await stop();
                return grantOf(task);
              }),
            () => failure(acquire({ ...own, waitSeconds: 20 })),
            () => later(20, () => failure(acquire({ key, holder: 'next', waitSeconds: 20 }))),
          );
          expect(refused).toMatchObject({ code: 'LeaseLost', context: { reason: 'cancelled' } });
          expect(await see(key)).toMatchObject({ fence: told.fence });
        },
      );
    });

    describe('that a call had and gave back before the task heard of it', () => {
      /** A task that has not heard of its grant, and a call that was answered with it. Another task may wait behind. */
      async function shared({ others }: { others: boolean }) {
        const first = await acquire({ key: newKey(), holder: 'first' });
        const asked = { key: first.key, holder: 'task', requestId: 'shared' };
        const { task } = await park(asked);
        timeline.advance(1);
        const next = others ? [await park({ key: first.key, holder: 'next' })] : [];
        steps.faults.SendTaskSuccess = ['refused'];
        await release(first);
        return { task, next: next[0]?.task, grant: await acquire(asked) };
      }

      it('is over for the task, which learns that', async () => {
        const { task, next, grant } = await shared({ others: true });
        expect(await release(grant)).toMatchObject({ released: true });
        expect(task).toMatchObject({ state: 'failed', error: 'LeaseLost', cause: { reason: 'released' } });
        expect(next && grantOf(next)).toMatchObject({ holder: 'next' });
        expect(await rows(grant.key)).toEqual([]);
      });

      it('is over for the task by an operator’s break', async () => {
        const { task, grant } = await shared({ others: true });
        await breakGrant(grant);
        expect(task).toMatchObject({ state: 'failed', error: 'LeaseLost', cause: { reason: 'broken' } });
      });

      it('is over for the task too if another token of the request had it', async () => {
        const first = await acquire({ key: newKey(), holder: 'first' });
        const asked = { key: first.key, holder: 'task', requestId: 'two tokens' };
        const old = await park(asked);
        steps.faults.SendTaskSuccess = ['refused'];
        await release(first);
        const { task } = await park(asked);
        await park({ key: first.key, holder: 'next' });
        await release(grantOf(task));
        expect(old.task).toMatchObject({
          state: 'failed',
          error: 'LeaseLost',
          cause: { reason: 'released', holder: null },
        });
      });
    });
  });
}
