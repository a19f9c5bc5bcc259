import { describe, expect, it } from 'vitest';
import { dyingAfter } from '../support/faults/mortal.ts';
import type { LineWorld } from './world.ts';

type Send = () => Promise<unknown>;

export async function looks(lineWorld: LineWorld) {
  const world = await lineWorld();
  const {
    acquire,
    release,
    cancel,
    executionEnded,
    park,
    rows,

    requests,
    steps,
    newKey,
    timeline,
    steady,
    refusedAfter,
    answeredLate,
  } = world;
  const { now, later } = timeline;

  const WINDOW_MS = 2000;
  /** The first look of a steady call, and the time between its looks. */
  const LOOK_MS = 25;

  const asked = (key: string) => ({ key, holder: 'b', requestId: 'r', ttlSeconds: 10 });
  /** The lock is held for a second already. */
  const held = async (key: string, ttlSeconds = 60) => {
    const first = await acquire({ key, holder: 'first', ttlSeconds });
    timeline.advance(1000);
    return first;
  };
  const cancelFirst = async (key: string) => cancel(key, (await rows(key))[0]?.ticket?.S ?? '');
  let executions = 0;
  const endedExecution = () => {
    const execution = `arn:aws:states:us-east-1:123456789012:execution:machine:looks-${executions++}`;
    steps.executions.set(execution, 'FAILED');
    return execution;
  };
  /** The next look takes so long. Meanwhile something happens, of which it sees nothing. */
  const standsStill = (ms: number, meanwhile: () => Promise<unknown> = async () => {}) => {
    const stands = async (send: Send) => {
      const answer = await send();
      const until = now() + ms;
      await meanwhile();
      timeline.advance(until - now());
      requests.sent = [];
      // A call that went on to look without a pause would never end.
      requests.faultsOf.GetItem = [...Array(20).fill('none'), { name: 'AccessDeniedException', status: 400 }];
      return answer;
    };
    requests.faultsOf.GetItem = [stands];
  };

  describe('a call in line that stood still for longer than the window', () => {
    const STANDS_MS = WINDOW_MS + 1;
    const AT = LOOK_MS + STANDS_MS;

    it.each([
      [WINDOW_MS, LOOK_MS + WINDOW_MS + LOOK_MS],
      [STANDS_MS, AT],
    ])(
      'and whose ticket is gone learns that at once, and after the window exactly by its next look (%i ms)',
      async (ms, at) => {
        const key = newKey();
        const execution = endedExecution();
        await held(key);
        standsStill(ms, async () => {
          await park({ key, holder: 'behind' });
          await executionEnded(execution);
        });
        const [refused] = await timeline.play(() => refusedAfter(key, { execution }));
        expect(refused).toMatchObject({
          code: 'LeaseHeld',
          afterMs: at,
          context: { holder: 'first', retryWith: { requestId: 'r' } },
        });
        expect(refused.context.retryWith).not.toHaveProperty('ticket');
      },
    );

    it('and whose ticket is there waits on', async () => {
      const key = newKey();
      const first = await held(key);
      standsStill(STANDS_MS);
      const [granted] = await timeline.play(
        () => steady(key),
        () => later(AT + 10, () => release(first)),
      );
      expect(granted).toMatchObject({ holder: 'b', repeated: false, waitedMs: AT + LOOK_MS });
    });

    it.each([
      ['that it has not claimed, and that is over', async () => {}],
      // The first try, and the claim.
      [
        'that another call of its request has claimed, and died',
        (key: string) => dyingAfter(2, () => acquire(asked(key))),
      ],
    ])('and was cancelled with a grant %s, gives it to the next at once', async (_, claim) => {
      const key = newKey();
      const first = await held(key);
      const behind = steps.newTask();
      standsStill(STANDS_MS, async () => {
        await park({ key, holder: 'behind' }, behind);
        await release(first);
        await cancelFirst(key);
        await claim(key);
      });
      const [refused] = await timeline.play(() => refusedAfter(key));
      expect(refused).toMatchObject({ code: 'LeaseLost', context: { reason: 'cancelled' }, afterMs: AT });
      expect(behind.output).toMatchObject({ holder: 'behind' });
    });

    it('has at once the lock that another call of its request was answered with meanwhile', async () => {
      const key = newKey();
      const first = await held(key);
      const others: { leaseId: string }[] = [];
      standsStill(STANDS_MS, async () => {
        await release(first);
        others.push(await acquire(asked(key)));
      });
      const [granted] = await timeline.play(() => steady(key));
      expect(granted).toMatchObject({ repeated: true, leaseId: others[0]?.leaseId, waitedMs: AT });
      // Its ticket, the record, the answer, its ticket.
      expect(requests.sent).toEqual(['GetItem', 'GetItem', 'UpdateItem', 'DeleteItem']);
    });

    it('learns at once that another call of its request has had the lock, and given it back', async () => {
      const key = newKey();
      const first = await held(key);
      standsStill(STANDS_MS, async () => {
        await release(first);
        await release(await acquire(asked(key)));
      });
      const [refused] = await timeline.play(() => refusedAfter(key));
      expect(refused).toMatchObject({ code: 'LeaseLost', context: { reason: 'released' }, afterMs: AT });
    });

    it('and whose request has had a grant, which is over in this very moment, gets no second one', async () => {
      const key = newKey();
      const first = await held(key);
      standsStill(STANDS_MS, async () => {
        await release(first);
        timeline.advance(STANDS_MS - WINDOW_MS);
        await acquire({ ...asked(key), ttlSeconds: WINDOW_MS / 1000 });
      });
      const [refused] = await timeline.play(() => refusedAfter(key, { ttlSeconds: WINDOW_MS / 1000 }));
      expect(refused).toMatchObject({ code: 'LeaseHeld', context: { retryWith: { requestId: 'r' } }, afterMs: AT });
      expect(refused.context.retryWith).not.toHaveProperty('ticket');
    });
  });

  describe('a call in line', () => {
    it('whose ticket DynamoDB leaves out of an answer stays in line', async () => {
      const key = newKey();
      const first = await held(key);
      const { result, asked: looks } = await world.leavingOut(world.dependencies.waitersTable, () =>
        timeline.play(
          () => steady(key),
          () => later(1010, () => release(first)),
        ),
      );
      expect(result[0]).toMatchObject({ holder: 'b', waitedMs: 1025 });
      expect(looks).toHaveLength(1);
    });

    it('leaves between two looks if its time is over then', async () => {
      const key = newKey();
      await held(key);
      requests.faultsOf.GetItem = [answeredLate(10)];
      const [refused] = await timeline.play(() => refusedAfter(key, { waitSeconds: 1 }));
      expect(refused).toMatchObject({ code: 'LeaseHeld', context: { holder: 'first', place: 1 }, afterMs: 1000 });
    });
  });
}
