import { beforeEach, describe, expect, it } from 'vitest';
import { dyingAfter } from '../support/faults/mortal.ts';
import { failure } from '../support/worlds/leases.ts';
import type { LineWorld } from './world.ts';

export async function lateWrites(lineWorld: LineWorld) {
  const world = await lineWorld();
  const { acquire, release, cancel, repair, park, grantOf, rows, requests, newKey, timeline } = world;
  const { now, later } = timeline;
  beforeEach(() => {
    requests.faultsOf = {};
  });

  describe('the first try of a new ticket', () => {
    it('that landed without an answer is known: the call waits, and so does a task', async () => {
      const key = newKey();
      const first = await acquire({ key, holder: 'first', ttlSeconds: 60 });
      requests.faultsOf.PutItem = [(send) => send(), 'lostReply'];
      const [grant] = await timeline.play(
        () => acquire({ key, holder: 'b', ttlSeconds: 10, waitSeconds: 20 }),
        () =>
          later(500, async () => {
            expect(await rows(key)).toHaveLength(1);
            await release(first);
          }),
      );
      expect(grant).toMatchObject({ holder: 'b', repeated: false });
      requests.faultsOf.PutItem = ['lostReply'];
      const { task, parked } = await park({ key, holder: 'task' });
      expect(parked).toBe(true);
      await release(grant);
      expect(grantOf(task)).toMatchObject({ holder: 'task' });
    });
  });

  describe('an operator that cancels a call which has been granted the lock and has not claimed it', () => {
    it('is seen with the grant: the lock goes to the next one at once', async () => {
      const key = newKey();
      const first = await acquire({ key, holder: 'first', ttlSeconds: 60 });
      let cancelledAt = 0;
      const [refused, next] = await timeline.play(
        () => failure(acquire({ key, holder: 'b', waitSeconds: 20 })),
        () => later(100, async () => ({ ...(await acquire({ key, holder: 'c', waitSeconds: 20 })), at: now() })),
        () =>
          later(1500, async () => {
            const [row] = await rows(key);
            await release(first);
            expect(await cancel(key, row?.ticket?.S ?? '')).toMatchObject({ cancelled: true });
            timeline.advance(1500); // less than the window, and long enough for a look at the ticket
            cancelledAt = now();
          }),
      );
      expect(refused).toMatchObject({ code: 'LeaseLost', context: { reason: 'cancelled' } });
      expect(next.at - cancelledAt).toBeLessThanOrEqual(250);
    });
  });

  describe('an operator that cancels a call', () => {
    it.each(['granted', 'gone'] as const)('whose row goes in that moment puts none back: it is %s', async (reason) => {
      const key = newKey();
      const asked = { key, holder: 'b', requestId: 'r' };
      const first = await acquire({ key, holder: 'first', ttlSeconds: 60 });
      await timeline.play(() => dyingAfter(3, () => acquire({ ...asked, waitSeconds: 1 })));
      const [row] = await rows(key);
      requests.faultsOf.UpdateItem = [
        async (send) => {
          if (reason === 'granted') {
            await release(first);
            await acquire(asked);
          } else {
            timeline.advance(6000); // its place is over
            await repair(key);
          }
          return send();
        },
      ];
      expect(await cancel(key, row?.ticket?.S ?? '')).toMatchObject({ cancelled: false, reason });
      expect(await rows(key)).toEqual([]);
    });
  });

  describe('a call whose patience ends', () => {
    const WAIT_MS = 1000;
    /** Its answer, where something happens once its time is over: before the nth of its reads from then on. */
    async function leaving(key: string, nth: number, what: () => Promise<unknown>) {
      const deadline = timeline.now() + WAIT_MS;
      let reads = 0;
      requests.faultsOf.GetItem = Array(50).fill(async (send: () => Promise<unknown>) => {
        if (timeline.now() >= deadline && ++reads === nth) await what();
        return send();
      });
      const asked = { key, holder: 'b', waitSeconds: WAIT_MS / 1000 };
      const [answer] = await timeline.play(() => acquire(asked).catch((error) => error));
      requests.faultsOf.GetItem = [];
      return answer;
    }

    it('has the lock that another call grants it in that moment, by a clock that is behind', async () => {
      const key = newKey();
      const first = await acquire({ key, holder: 'first', ttlSeconds: 60 });
      const answer = await leaving(key, 2, async () => {
        timeline.advance(-100);
        await release(first);
        timeline.advance(100);
      });
      expect(answer).toMatchObject({ holder: 'b', repeated: false });
      expect(await rows(key)).toEqual([]);
    });

    it('learns that an operator has cancelled it in that moment', async () => {
      const key = newKey();
      await acquire({ key, holder: 'first', ttlSeconds: 60 });
      const answer = await leaving(key, 1, async () => {
        timeline.advance(-100);
        const [row] = await rows(key);
        expect(await cancel(key, row?.ticket?.S ?? '')).toMatchObject({ cancelled: true });
        timeline.advance(100);
      });
      expect(answer).toMatchObject({ code: 'LeaseLost', context: { reason: 'cancelled' } });
      expect(await rows(key)).toEqual([]);
    });
  });

  it('the first pass of an end takes a grant of a faster clock, even if the pass starts before that clock shows its start', async () => {
    const key = newKey();
    const execution = world.steps.newExecution('RUNNING');
    timeline.advance(400);
    await acquire({ key, holder: 'b', execution });
    timeline.advance(-300); // the clock of the machine that runs the pass
    world.steps.executions.set(execution, 'FAILED');
    const stopDate = now();
    expect(await world.executionEnded(execution, false, { stopDate })).toMatchObject({ freed: 1 });
  });

  it('a call that joins when TTL deletes the record has the lock', async () => {
    const key = newKey();
    await acquire({ key, holder: 'first', ttlSeconds: 60 });
    requests.faultsOf.UpdateItem = [
      async (send) => {
        await world.deleteRecord(key);
        return send();
      },
    ];
    const [grant] = await timeline.play(() => acquire({ key, holder: 'b', waitSeconds: 5 }));
    expect(grant).toMatchObject({ holder: 'b', repeated: false });
    expect(await rows(key)).toEqual([]);
  });

  describe('a claim', () => {
    const slowBy = (ms: number) => async (send: () => Promise<unknown>) => {
      const answered = await send();
      timeline.advance(ms);
      return answered;
    };
    const asked = { holder: 'b', requestId: 'r', ttlSeconds: 10 };
    /** A call in line for a grant of ten seconds, where `arm` runs once it has been granted that. */
    async function claiming(key: string, arm: () => unknown) {
      const first = await acquire({ key, holder: 'first', ttlSeconds: 60 });
      const granted = async () => {
        await release(first);
        await arm();
      };
      const waiting = () => acquire({ key, ...asked, waitSeconds: 5 }).catch((error) => error);
      const [, answer] = await timeline.play(() => later(500, granted), waiting);
      return answer;
    }

    it.each([
      ['has its whole time from then on', undefined],
      ['has none if another has it by then', 'other'],
    ])('whose ticket is deleted so slowly that the grant is over %s', async (_, holder) => {
      const key = newKey();
      const answer = await claiming(key, () => {
        requests.faultsOf.DeleteItem = [
          async (send) => {
            const answered = await send();
            timeline.advance(holder ? 10_501 : 10_000);
            if (holder) await acquire({ key, holder });
            return answered;
          },
        ];
      });
      if (holder) expect(answer).toMatchObject({ code: 'LeaseHeld', context: { holder } });
      else expect(answer).toMatchObject({ holder: 'b', repeated: false, remainingMs: 10_000 });
    });

    it.each([10_000, 10_500])(
      'has none if its renewal after that was answered so slowly that the grant is over again, by %s ms',
      async (ms) => {
        const key = newKey();
        const answer = await claiming(key, () => {
          requests.faultsOf.DeleteItem = [slowBy(10_000)];
          requests.faultsOf.UpdateItem = ['none', slowBy(ms)]; // the claim, and the renewal
        });
        expect(requests.faultsOf.UpdateItem).toEqual([]);
        expect(answer).toMatchObject({ code: 'LeaseHeld', context: { holder: 'b' } });
      },
    );

    it.each([10_000, 10_500])(
      'has none of what another call of the request was quicker with, if that is over by then: after %s ms',
      async (ms) => {
        const key = newKey();
        const answer = await claiming(key, async () => {
          const { expiresAt } = await acquire({ key, ...asked });
          requests.faultsOf.DeleteItem = [(send) => slowBy(Date.parse(expiresAt) - 10_000 + ms - now())(send)];
        });
        expect(requests.faultsOf.DeleteItem).toEqual([]);
        expect(answer).toMatchObject({ code: 'LeaseHeld', context: { holder: 'b' } });
      },
    );

    it('is written five times at most, where each answer comes late: the call has what is left then', async () => {
      const key = newKey();
      const answer = await claiming(key, () => {
        requests.faultsOf.UpdateItem = Array(5).fill(slowBy(6000));
      });
      expect(requests.faultsOf.UpdateItem).toEqual([]);
      expect(answer).toMatchObject({ holder: 'b', remainingMs: 4000 });
      expect(await rows(key)).toEqual([]);
    });
  });

  describe('a call whose patience ends while another call of its request has had the lock, and let it run out', () => {
    it('keeps its own place', async () => {
      const key = newKey();
      const asked = { key, holder: 'b', requestId: 'r', ttlSeconds: 2 };
      const first = await acquire({ key, holder: 'first', ttlSeconds: 60 });
      await timeline.play(() => dyingAfter(3, () => acquire({ ...asked, waitSeconds: 20 })));
      timeline.advance(1);
      const [refused] = await timeline.play(
        () => failure(acquire({ ...asked, waitSeconds: 2 })),
        () =>
          later(1, async () => {
            requests.faultsOf.GetItem = [
              async (send) => {
                const seen = await send();
                await release(first);
                await acquire(asked);
                timeline.advance(2000); // the grant is over in this very moment, and this call stood still
                return seen;
              },
            ];
          }),
      );
      const [row] = await rows(key);
      expect(refused).toMatchObject({ code: 'LeaseHeld', context: { retryWith: { ticket: row?.ticket?.S } } });
    });
  });

  describe('a call in line that fails', () => {
    it('names its request and its ticket if the store does not answer', async () => {
      const key = newKey();
      await acquire({ key, holder: 'first', ttlSeconds: 60 });
      const [failed] = await timeline.play(
        () => failure(acquire({ key, holder: 'b', requestId: 'r', waitSeconds: 20 })),
        () =>
          later(500, async () => {
            requests.faultsOf.GetItem = ['error500', 'error500', 'error500'];
            requests.faultsOf.BatchGetItem = ['error500', 'error500', 'error500'];
          }),
      );
      requests.faultsOf = {};
      const [row] = await rows(key);
      expect(failed).toMatchObject({
        code: 'Unavailable',
        context: { retryWith: { requestId: 'r', ticket: row?.ticket?.S } },
      });
    });
  });
}
