import { describe, expect, it } from 'vitest';
import { dyingAfter } from '../support/faults/mortal.ts';
import { aFew } from '../support/time/rounds.ts';
import { failure } from '../support/worlds/leases.ts';
import type { LineWorld } from './world.ts';

const WINDOW_MS = 2000;
const MARGIN_MS = 500;

/** Calls that wait in line: their order, their grants, how they leave, and what happens if they exit. */
export async function callers(lineWorld: LineWorld) {
  const world = await lineWorld();
  const { acquire, release, breakGrant, cancel, see, repair, executionEnded, steps } = world;
  const { requests, rows, isMarked, messages, park, grantOf, newKey, timeline, precededBy, answeredLate, exitInLine } =
    world;
  const { now, sleep, later } = timeline;

  const waiting = (key: string, holder: string, more: object = {}) =>
    acquire({ key, holder, ttlSeconds: 10, waitSeconds: 20, ...more });
  /** Acquires, holds for that long, and releases. */
  const turn = async (key: string, holder: string, holdMs: number, more: object = {}) => {
    const grant = await waiting(key, holder, more);
    const grantedAt = now();
    await sleep(holdMs);
    await release(grant);
    return { ...grant, grantedAt, releasedAt: now() };
  };

  describe('callers that wait', () => {
    it('callers are served in the order of their arrival', async () => {
      const key = newKey();
      const first = await acquire({ key, holder: 'first' });
      const names = ['b', 'c', 'd', 'e', 'f'];
      const turns = names.map((name, index) => () => later(10 * index, () => turn(key, name, 20)));
      const [, ...served] = await timeline.play(() => later(1000, () => release(first)), ...turns);
      const order = (served as { holder: string; fence: number }[]).sort((a, b) => a.fence - b.fence);
      expect(order.map(({ holder }) => holder)).toEqual(names);
      expect(await rows(key)).toEqual([]);
      expect(await isMarked(key)).toBe(false);
    });

    it('a caller has its whole ttl from its claim on', async () => {
      const key = newKey();
      const first = await acquire({ key, holder: 'first' });
      const [releasedAt, grant] = await timeline.play(
        () => later(1000, async () => (await release(first)) && now()),
        () => waiting(key, 'second'),
      );
      expect(grant).toMatchObject({ holder: 'second', remainingMs: 10_000, repeated: false });
      expect(grant.fence).toBeGreaterThan(first.fence);
      expect(now() - releasedAt).toBeLessThanOrEqual(35); // the next in line looks every 25 to 35 ms
      expect(await see(key)).toMatchObject({ holder: 'second', fence: grant.fence });
      expect(await release(grant)).toMatchObject({ released: true });
    });

    it('callers in line keep plain callers out, even of an expired grant', async () => {
      const key = newKey();
      await acquire({ key, holder: 'first', ttlSeconds: 2 });
      const [grant, refused] = await timeline.play(
        () => waiting(key, 'second'),
        () => later(2000 + MARGIN_MS + 1, () => failure(acquire({ key, holder: 'plain' }))),
      );
      expect(grant.holder).toBe('second');
      expect(refused.code).toBe('LeaseHeld');
    });

    it('callers in line are not passed by a call that does not wait, nor by a call that races', async () => {
      const key = newKey();
      const first = await acquire({ key, holder: 'first' });
      const barge = async () => {
        await sleep(200);
        await release(first);
        return failure(acquire({ key, holder: 'barger' }));
      };
      const race = () => later(100, () => waiting(key, 'racer', { fair: false }));
      const [b, c, refused, racer] = await timeline.play(
        () => turn(key, 'b', 500),
        () => later(10, () => turn(key, 'c', 500)),
        barge,
        race,
      );
      expect(refused.code).toBe('LeaseHeld');
      expect([b.fence < c.fence, c.fence < racer.fence]).toEqual([true, true]);
    });

    it('a caller whose ticket is written late is not passed by a later caller', async () => {
      const key = newKey();
      const first = await acquire({ key, holder: 'first' });
      requests.faultsOf.PutItem = [precededBy(() => release(first))];
      const [b, refused] = await timeline.play(
        () => waiting(key, 'b'),
        () => later(1, () => failure(acquire({ key, holder: 'barger' }))),
      );
      expect(b).toMatchObject({ holder: 'b', waitedMs: 0 });
      expect(refused.code).toBe('LeaseHeld');
      expect(await see(key)).toMatchObject({ holder: 'b' });
    });

    it('the next caller takes the lock over in the first moment after the margin', async () => {
      const key = newKey();
      const { expiresAt } = await acquire({ key, holder: 'first', ttlSeconds: 5 });
      await timeline.play(() => waiting(key, 'second'));
      expect(now()).toBe(Date.parse(expiresAt) + MARGIN_MS + 1);
    });

    it('callers and tasks are served in one line', async () => {
      const key = newKey();
      const first = await acquire({ key, holder: 'first' });
      const task = steps.newTask();
      const [, b, , d] = await timeline.play(
        () => later(1000, () => release(first)),
        () => later(10, () => turn(key, 'b', 20)),
        () => later(20, () => park({ key, holder: 'c' }, task)),
        () => later(30, () => turn(key, 'd', 20)),
        () => later(1500, () => release(grantOf(task))),
      );
      expect(task.output).toMatchObject({ holder: 'c' });
      const fences = [b.fence, grantOf(task).fence, d.fence];
      expect(fences).toEqual(fences.toSorted((x, y) => x - y));
    });

    it('callers look when they may be served, and rarely before', async () => {
      const key = newKey();
      const first = await acquire({ key, holder: 'first' });
      const before = requests.sent.length;
      const turns = Array.from({ length: 24 }, (_, index) => () => later(index, () => turn(key, `c${index}`, 20)));
      const [, ...served] = await timeline.play(() => later(100, () => release(first)), ...turns);
      const grants = served as { fence: number; grantedAt: number; releasedAt: number }[];
      const sorted = grants.sort((a, b) => a.fence - b.fence);
      const gaps = sorted.slice(3).map(({ grantedAt }, index) => grantedAt - (sorted[index + 2]?.releasedAt ?? 0));
      const looks = requests.sent.slice(before).filter((command) => /Get/.test(command)).length;
      // Chance decides who comes first. If all of them looked as often as the next one does, each would look about eighty times.
      expect(looks / turns.length).toBeLessThan(20);
      // Less than the shortest pause of a call that knows nothing of its turn.
      expect(gaps.toSorted((a, b) => a - b)[Math.floor(gaps.length / 2)]).toBeLessThan(150);
    });

    it('a reader sees callers beside tasks, without their request ids', async () => {
      const key = newKey();
      const first = await acquire({ key, holder: 'first' });
      const since = now();
      const [, listed] = await timeline.play(
        () => failure(waiting(key, 'b', { waitSeconds: 2, requestId: 'secret' })),
        () =>
          later(100, async () => {
            await park({ key, holder: 'c', parkSeconds: 60 });
            return see(key);
          }),
      );
      expect(listed).toMatchObject({
        holder: 'first',
        waiting: 2,
        waiters: [
          { kind: 'caller', holder: 'b', parkedAt: new Date(since).toISOString() },
          { kind: 'task', holder: 'c' },
        ],
      });
      expect(JSON.stringify(listed)).not.toContain('secret');
      // The caller may come back for five seconds.
      expect(await see(key)).toMatchObject({ waiting: 2 });
      timeline.advance(5000);
      expect(await see(key)).toMatchObject({ waiting: 1, waiters: [{ holder: 'c' }] });
      await release(first);
    });
  });

  describe('a caller that exits', () => {
    /** A call that dies when so many of its requests have landed: three put it in line. */
    const dying = (key: string, calls: number) =>
      dyingAfter(calls, () => waiting(key, 'dead')).then(async () => void (await sleep(60_000)));

    it('a caller that exits in line delays the next one by the grant window, the margin, and a look', async () => {
      const key = newKey();
      const first = await acquire({ key, holder: 'first' });
      const [released, , grant] = await timeline.play(
        () => later(1000, async () => (await release(first)) && now()),
        () => dying(key, 3),
        () => later(10, async () => ({ ...(await waiting(key, 'next')), at: now() })),
      );
      expect(grant.at - released).toBeGreaterThanOrEqual(WINDOW_MS + MARGIN_MS);
      expect(grant.at - released).toBeLessThanOrEqual(WINDOW_MS + MARGIN_MS + 250);
      expect(await rows(key)).toEqual([]);
    });

    it.each(aFew(1, [1, 2, 3]))(
      'each of %i callers that exit in line behind an expired grant delays the next one by no more',
      async (dead) => {
        const key = newKey();
        await acquire({ key, holder: 'first', ttlSeconds: 2 });
        const canBeHadAt = now() + 2000 + MARGIN_MS;
        for (let at = 0; at < dead; at++) await exitInLine({ key, holder: `dead ${at}` });
        const [grantedAt] = await timeline.play(async () => (await waiting(key, 'next')) && now());
        expect(grantedAt - canBeHadAt).toBeGreaterThanOrEqual(dead * (WINDOW_MS + MARGIN_MS));
        expect(grantedAt - canBeHadAt).toBeLessThanOrEqual(dead * (WINDOW_MS + MARGIN_MS + 400));
      },
    );

    it('a caller that exits alone in line keeps the lock for the grant window, and not for its ttl', async () => {
      const key = newKey();
      const first = await acquire({ key, holder: 'first' });
      const [, , grant] = await timeline.play(
        () => later(100, () => release(first)),
        () => dying(key, 3),
        () => later(100 + WINDOW_MS + MARGIN_MS + 1, () => acquire({ key, holder: 'plain' })),
      );
      expect(grant).toMatchObject({ holder: 'plain', repeated: false });
      expect(messages).toEqual([]); // no task waits behind it
      await repair(key); // its ticket goes, so it is not granted a second time
      expect([await rows(key), await see(key)]).toMatchObject([[], { fence: grant.fence }]);
    });

    it('the message that looks again serves the task behind a caller that exited', async () => {
      const key = newKey();
      const first = await acquire({ key, holder: 'first' });
      await exitInLine({ key, holder: 'dead' });
      const { task } = await park({ key, holder: 'task' });
      messages.length = 0;
      steps.requests.length = 0;
      await release(first);
      expect(messages).toMatchObject([{ delaySeconds: 4 }]);
      expect(task.state).toBe('waiting');
      timeline.advance(4000);
      await world.lookAgain(messages[0]);
      expect(grantOf(task)).toMatchObject({ holder: 'task' });
    });

    it('a task that parks behind an unclaimed grant sends the message that looks again', async () => {
      const key = newKey();
      const first = await acquire({ key, holder: 'first' });
      for (const holder of ['dead', 'too']) await exitInLine({ key, holder });
      await release(first);
      messages.length = 0;
      steps.requests.length = 0;
      await park({ key, holder: 'task' });
      expect(messages).toMatchObject([{ delaySeconds: 4 }]);
    });

    /** A call that was granted the lock in line, and dies between its claim and the deletion of its row. */
    const dyingAtClaim = async (key: string) => {
      const first = await acquire({ key, holder: 'first' });
      await exitInLine({ key, holder: 'dead', requestId: 'r', ttlSeconds: 60 });
      await release(first);
      await dyingAfter(2, () => acquire({ key, holder: 'dead', requestId: 'r', ttlSeconds: 60 }));
      expect(await rows(key)).toHaveLength(1);
    };

    it('a retry of a caller that exited right after its claim receives the grant, and its waiter goes', async () => {
      const key = newKey();
      await dyingAtClaim(key);
      expect(await acquire({ key, holder: 'dead', requestId: 'r' })).toMatchObject({ repeated: true });
      expect(await rows(key)).toEqual([]);
    });

    it('a caller that exited right after its claim holds the lock, and the schedule deletes its waiter', async () => {
      const key = newKey();
      await dyingAtClaim(key);
      timeline.advance(9999);
      await repair(key);
      expect(await rows(key)).toHaveLength(1); // the call may be about to do so
      timeline.advance(1);
      await repair(key);
      expect([await rows(key), steps.requests]).toEqual([[], []]);
      expect(await see(key)).toMatchObject({ holder: 'dead' });
    });

    it('an operator cannot cancel a caller that exited right after its claim', async () => {
      const key = newKey();
      await dyingAtClaim(key);
      const [row] = await rows(key);
      expect(await cancel(key, row?.ticket?.S ?? '')).toMatchObject({ cancelled: false, reason: 'granted' });
      expect(await see(key)).toMatchObject({ holder: 'dead' });
    });

    it('a retry that does not wait receives the unclaimed grant of a caller that exited', async () => {
      const key = newKey();
      const first = await acquire({ key, holder: 'first' });
      await exitInLine({ key, holder: 'dead', requestId: 'r' });
      await release(first);
      const grant = await acquire({ key, holder: 'dead', requestId: 'r', ttlSeconds: 10 });
      expect(grant).toMatchObject({ holder: 'dead', remainingMs: 10_000 });
      expect(await rows(key)).toEqual([]);
    });
  });

  it.each([
    ['that is answered late is renewed', answeredLate(5000)],
    ['whose answer is lost is known by its version', 'lostReply'],
  ] as const)('a claim %s, and the caller has its whole ttl', async (_, fault) => {
    const key = newKey();
    const first = await acquire({ key, holder: 'first' });
    const [, grant] = await timeline.play(
      () =>
        later(100, async () => {
          await release(first);
          requests.faultsOf.UpdateItem = [fault];
        }),
      () => waiting(key, 'second'),
    );
    expect(grant).toMatchObject({ holder: 'second', repeated: false, remainingMs: 10_000 });
  });

  describe('a caller whose deadline comes', () => {
    it('a caller that left is passed over while it is absent, and is next at the following hand-off', async () => {
      const key = newKey();
      const first = await acquire({ key, holder: 'first', ttlSeconds: 60 });
      const [b, , c, d] = await timeline.play(
        async () => {
          const { context } = await failure(waiting(key, 'b', { waitSeconds: 2, requestId: 'rb2' }));
          await sleep(2000);
          return turn(key, 'b', 20, context.retryWith as object);
        },
        () => later(3000, () => release(first)),
        () => later(100, () => turn(key, 'c', 2000)),
        () => later(200, () => turn(key, 'd', 20)),
      );
      expect([c.fence < b.fence, b.fence < d.fence]).toEqual([true, true]);
    });

    it('a call cannot use the ticket of another request, which stays in line', async () => {
      const key = newKey();
      const first = await acquire({ key, holder: 'first', ttlSeconds: 60 });
      await timeline.play(() => failure(waiting(key, 'b', { waitSeconds: 1, requestId: 'rb3' })));
      const [row] = await rows(key);
      const ticket = row?.ticket?.S;
      await timeline.play(() => failure(waiting(key, 'thief', { waitSeconds: 1, requestId: 'other', ticket })));
      expect((await rows(key)).map(({ holder }) => holder?.S)).toEqual(['b', 'thief']);
      await release(first);
      await acquire({ key, holder: 'thief', requestId: 'other 2', ticket });
      expect((await rows(key)).some((one) => one.ticket?.S === ticket)).toBe(true);
    });

    it('a crowd that has left does not delay the next caller', async () => {
      const key = newKey();
      const first = await acquire({ key, holder: 'first', ttlSeconds: 60 });
      const leaves = (at: number) => () => failure(waiting(key, `i${at}`, { waitSeconds: 1 }));
      const impatient = Array.from({ length: 15 }, (_, at) => leaves(at));
      const [released, grant] = await timeline.play(
        () => later(2000, async () => (await release(first)) && now()),
        () => later(500, async () => ({ ...(await waiting(key, 'patient')), at: now() })),
        ...impatient,
      );
      expect((grant as { at: number }).at - (released as number)).toBeLessThanOrEqual(250);
    });
  });

  describe('others that act on a call in line', () => {
    it('a call receives LeaseLost if an operator breaks its unclaimed grant', async () => {
      const key = newKey();
      const first = await acquire({ key, holder: 'first' });
      const [, grant] = await timeline.play(
        () =>
          later(100, async () => {
            await release(first);
            await breakGrant({ key, fence: (await see(key)).fence ?? 0 });
          }),
        () => failure(waiting(key, 'b')),
      );
      expect(grant).toMatchObject({ code: 'LeaseLost', context: { reason: 'broken' } });
      expect(await acquire({ key, holder: 'c' })).toMatchObject({ holder: 'c' });
    });

    it('a call has the lock if a third-party client deletes the record', async () => {
      const key = newKey();
      await acquire({ key, holder: 'first', ttlSeconds: 60 });
      const [grant] = await timeline.play(
        () => waiting(key, 'b'),
        () => later(1000, () => world.deleteRecord(key)),
      );
      expect(grant).toMatchObject({ holder: 'b' });
      await release(grant);
    });

    it('a call puts back the mark that a third-party client removes', async () => {
      const key = newKey();
      const held = await acquire({ key, holder: 'first', ttlSeconds: 60 });
      const [grant, , marked] = await timeline.play(
        () => waiting(key, 'b'),
        () => later(1000, () => world.removeMark(key)),
        () => later(1300, () => isMarked(key)),
        () => later(1310, () => release(held)),
      );
      expect(marked).toBe(true);
      expect(grant).toMatchObject({ holder: 'b' });
    });

    it('a call has no position after the end of its execution, and may ask again', async () => {
      const key = newKey();
      const execution = world.steps.newExecution();
      const first = await acquire({ key, holder: 'first' });
      const [grant] = await timeline.play(
        async () => {
          const { code, context } = await failure(waiting(key, 'b', { execution, requestId: 'of execution' }));
          expect({ code, ...context }).toMatchObject({ code: 'LeaseHeld', retryWith: { requestId: 'of execution' } });
          expect(context).not.toHaveProperty('place');
          return waiting(key, 'b', { execution, ...(context.retryWith as object) });
        },
        () => later(500, () => executionEnded(execution)),
        () => later(3000, () => release(first)),
      );
      expect(grant).toMatchObject({ holder: 'b' });
      await executionEnded(execution);
      expect(await acquire({ key, holder: 'c' })).toMatchObject({ holder: 'c' });
    });
  });
}
