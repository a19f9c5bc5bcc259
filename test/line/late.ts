import { describe, expect, it } from 'vitest';
import { call } from '../support/emulators/aws.ts';
import { networkError } from '../support/faults/cuttable.ts';
import { failure } from '../support/worlds/leases.ts';
import type { LineWorld } from './world.ts';

type Send = () => Promise<unknown>;

/** Writes that land late or without an answer, and what happens in the moment of a write. */
export async function lateWrites(lineWorld: LineWorld) {
  const world = await lineWorld();
  const { acquire, release, cancel, repair, park, grantOf, rows, withdraw, exitInLine } = world;
  const { requests, newKey, timeline, precededBy, answeredLate } = world;
  const { now, later } = timeline;

  const denied = { name: 'AccessDeniedException', status: 400 };
  const held = () => acquire({ key: newKey(), holder: 'first', ttlSeconds: 60 });
  const cancelFirst = async (key: string) => cancel(key, (await rows(key))[0]?.ticket?.S ?? '');

  it('a call and a task recognize their tickets after a lost answer', async () => {
    const first = await held();
    const { key } = first;
    requests.faultsOf.PutItem = ['lostReply'];
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

  it('a first try that arrives after a withdrawal does not undo the withdrawal', async () => {
    const { key } = await held();
    const asked = { key, holder: 'b', requestId: 'r' };
    let late: Send | undefined;
    const delayed = async (send: Send) => {
      late = send;
      throw networkError('ECONNRESET', 'write');
    };
    requests.faultsOf.PutItem = [delayed];
    const [refused] = await timeline.play(
      () => failure(acquire({ ...asked, waitSeconds: 20 })),
      () =>
        later(500, async () => {
          expect(await withdraw(asked)).toMatchObject({ cancelled: true });
          await late?.().catch(() => {});
        }),
    );
    expect(refused).toMatchObject({ code: 'LeaseLost', context: { reason: 'cancelled' } });
    expect(await rows(key)).toEqual([]);
  });

  it.each(['granted', 'gone'] as const)('a cancel of a call that is %s just then does not write', async (reason) => {
    const first = await held();
    const { key } = first;
    const asked = { key, holder: 'b', requestId: 'r' };
    await exitInLine({ ...asked, waitSeconds: 1 });
    const granted = async () => {
      await release(first);
      await acquire(asked);
    };
    const gone = async () => {
      timeline.advance(6000); // past the time for which its row is kept
      await repair(key);
    };
    requests.faultsOf.UpdateItem = [precededBy(reason === 'granted' ? granted : gone)];
    expect(await cancelFirst(key)).toMatchObject({ cancelled: false, reason });
    expect(await rows(key)).toEqual([]);
  });

  const WAIT_MS = 1000;
  /** @returns the answer of a call that waits, if `what` happens before the nth read that the call sends after its deadline */
  async function leaving(key: string, nth: number, what: () => Promise<unknown>) {
    const deadline = now() + WAIT_MS;
    let reads = 0;
    requests.faultsOf.GetItem = Array(50).fill(async (send: Send) => {
      if (now() >= deadline && ++reads === nth) {
        timeline.advance(-100); // by a clock that is behind
        await what();
        timeline.advance(100);
      }
      return send();
    });
    const asked = { key, holder: 'b', waitSeconds: WAIT_MS / 1000 };
    const [answer] = await timeline.play(() => acquire(asked).catch((error) => error));
    requests.faultsOf.GetItem = [];
    expect(await rows(key)).toEqual([]);
    return answer;
  }

  it('a call that leaves has the lock that it is granted', async () => {
    const first = await held();
    const answer = await leaving(first.key, 2, () => release(first));
    expect(answer).toMatchObject({ holder: 'b', repeated: false });
  });

  it('a call receives LeaseLost if an operator cancels it in that moment', async () => {
    const { key } = await held();
    const answer = await leaving(key, 1, async () => {
      expect(await cancelFirst(key)).toMatchObject({ cancelled: true });
    });
    expect(answer).toMatchObject({ code: 'LeaseLost', context: { reason: 'cancelled' } });
  });

  /** Delays the first try, so that the second try is refused. @returns lets the first try arrive */
  async function refusedWithTryOnTheWay(asked: { key: string; holder: string }) {
    timeline.advance(1000); // a higher fence
    let arrive: Send = async () => {};
    const delayed = async (send: Send) => {
      arrive = send;
      timeline.advance(2000); // the timeout of the SDK
      throw networkError('ECONNRESET', 'write');
    };
    requests.faultsOf = { UpdateItem: [delayed] };
    expect(await failure(acquire(asked))).toMatchObject({ code: 'LeaseHeld' });
    return () => arrive().catch(() => {});
  }

  it('a first try does not take a lock released after its caller was refused', async () => {
    const first = await held();
    const arrive = await refusedWithTryOnTheWay({ key: first.key, holder: 'b' });
    await release(first);
    timeline.advance(1000);
    await arrive();
    expect(await world.see(first.key)).toMatchObject({ holder: undefined });
    expect(await acquire({ key: first.key, holder: 'c' })).toMatchObject({ holder: 'c' });
  });

  it('a call whose clock is far behind the last release succeeds by two writes', async () => {
    const first = await held();
    await release(first);
    timeline.advance(-5000);
    requests.sent.length = 0;
    expect(await acquire({ key: first.key, holder: 'b' })).toMatchObject({ holder: 'b', repeated: false });
    expect(requests.sent).toHaveLength(2);
    timeline.advance(5000);
  });

  it('the second pass ends a grant that a faster clock dates after the end', async () => {
    const key = newKey();
    const execution = world.steps.newExecution('RUNNING');
    timeline.advance(400);
    await acquire({ key, holder: 'b', execution });
    timeline.advance(-300); // the clock of the machine that runs the pass
    const event = world.steps.end(execution);
    expect(await world.executionEnded(execution, false, event)).toMatchObject({ freed: 0 });
    timeline.advance(90_000);
    expect(await world.executionEnded(execution, true, event)).toMatchObject({ freed: 1 });
  });

  describe('claims', () => {
    const asked = { holder: 'b', requestId: 'r', ttlSeconds: 10 };
    const isHeld = { code: 'LeaseHeld', context: { holder: 'b' } };
    /** A call in line for a grant of ten seconds. `arm` runs once the call has been granted that. */
    async function claiming(arm: (key: string) => unknown) {
      const first = await held();
      const { key } = first;
      const granted = async () => {
        await release(first);
        await arm(key);
      };
      const waiting = () => acquire({ key, ...asked, waitSeconds: 5 }).catch((error) => error);
      const [, answer] = await timeline.play(() => later(500, granted), waiting);
      expect([requests.faultsOf.DeleteItem ?? [], requests.faultsOf.UpdateItem ?? []]).toEqual([[], []]);
      return { key, answer };
    }

    it('a claim gives the whole ttl after a slow deletion', async () => {
      const { answer } = await claiming(() => {
        requests.faultsOf.DeleteItem = [answeredLate(10_000)];
      });
      expect(answer).toMatchObject({ holder: 'b', repeated: false, remainingMs: 10_000 });
    });

    it('a claim does not give a grant if another has the lock by then', async () => {
      const { answer } = await claiming((key) => {
        requests.faultsOf.DeleteItem = [
          async (send) => {
            const answered = await send();
            timeline.advance(10_501);
            await acquire({ key, holder: 'other' });
            return answered;
          },
        ];
      });
      expect(answer).toMatchObject({ code: 'LeaseHeld', context: { holder: 'other' } });
    });

    it.each([10_000, 10_500])('a claim does not give a grant whose renewal is answered after %i ms', async (ms) => {
      const { answer } = await claiming(() => {
        const claimed = Promise.withResolvers<void>();
        const claim = (send: Send) => send().finally(claimed.resolve);
        // The row is deleted beside the claim, and this answer comes after that of the claim.
        const late = async (send: Send) => {
          await claimed.promise;
          await new Promise(setImmediate);
          return answeredLate(10_000)(send);
        };
        requests.faultsOf.DeleteItem = [late];
        requests.faultsOf.UpdateItem = [claim, answeredLate(ms)]; // the claim, and the renewal
      });
      expect(answer).toMatchObject(isHeld);
    });

    it.each([10_000, 10_500])('a claim does not give a grant that has expired after %i ms', async (ms) => {
      const { answer } = await claiming(async (key) => {
        const { expiresAt } = await acquire({ key, ...asked });
        const late = (send: Send) => answeredLate(Date.parse(expiresAt) - 10_000 + ms - now())(send);
        requests.faultsOf.DeleteItem = [late];
      });
      expect(answer).toMatchObject(isHeld);
    });

    it('a claim is written five times at most', async () => {
      const { key, answer } = await claiming(() => {
        requests.faultsOf.UpdateItem = Array(5).fill(answeredLate(6000));
      });
      expect(answer).toMatchObject({ holder: 'b', remainingMs: 4000 });
      expect(await rows(key)).toEqual([]);
    });
  });

  it.each(['the record is denied', 'the record does not answer', 'the line is denied'])(
    'a call in line that fails because %s names its request and its ticket',
    async (why) => {
      const first = await held();
      const { key } = first;
      const errors: ('error500' | typeof denied)[] = why.endsWith('denied') ? [denied] : Array(3).fill('error500');
      const [failed] = await timeline.play(
        () => failure(acquire({ key, holder: 'b', requestId: 'r', waitSeconds: 20 })),
        () =>
          later(500, async () => {
            if (why.startsWith('the record')) requests.faultsOf = { GetItem: errors, BatchGetItem: [...errors] };
            else {
              await release(first, call({ timeLeftMs: () => 1999 }));
              requests.faultsOf = { Query: [denied] };
            }
          }),
      );
      requests.faultsOf = {};
      const ticket = (await rows(key))[0]?.ticket?.S;
      expect(failed).toMatchObject({ code: 'Unavailable', context: { retryWith: { requestId: 'r', ticket } } });
    },
  );
}
