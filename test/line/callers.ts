import { expect, it } from 'vitest';
import { exitingAfter } from '../support/faults/mortal.ts';
import { failure } from '../support/worlds/leases.ts';
import type { LineWorld } from './world.ts';

const WINDOW_MS = 2000;
const MARGIN_MS = 500;

/** Calls that wait in line: their order, their grants, how they leave, and what happens if they exit. */
export async function callers(lineWorld: LineWorld) {
  const world = await lineWorld();
  const { acquire, release, cancel, see, repair, steps } = world;
  const { requests, rows, messages, park, grantOf, heldKey, newKey, timeline, precededBy, answeredLate, exitInLine } =
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

  it('a caller has its whole ttl from its claim on', async () => {
    const { key, first } = await heldKey({ holder: 'first' });
    const [releasedAt, grant] = await timeline.play(
      () => later(1000, async () => (await release(first)) && now()),
      () => waiting(key, 'second'),
    );
    expect(grant).toMatchObject({ holder: 'second', remainingMs: 10_000, repeated: false });
    expect(grant.fence).toBeGreaterThan(first.fence);
    expect(now() - releasedAt).toBeLessThanOrEqual(35); // the next waiter polls every 25 to 35 ms
    expect(await see(key)).toMatchObject({ holder: 'second', fence: grant.fence });
    expect(await release(grant)).toMatchObject({ released: true });
  });

  it('callers in line are passed by neither plain nor racing calls', async () => {
    const { key, first } = await heldKey({ holder: 'first' });
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
    const { key, first } = await heldKey({ holder: 'first' });
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

  it('a reader sees callers beside tasks, without their request ids', async () => {
    const { key, first } = await heldKey({ holder: 'first' });
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

  /** A call that exits when `calls` of its requests have landed: three put it in line. */
  const dying = (key: string, calls: number) =>
    exitingAfter(calls, () => waiting(key, 'dead')).then(async () => void (await sleep(60_000)));

  it('a caller that exits in line delays the next by a grant window', async () => {
    const { key, first } = await heldKey({ holder: 'first' });
    const [released, , grant] = await timeline.play(
      () => later(1000, async () => (await release(first)) && now()),
      () => dying(key, 3),
      () => later(10, async () => ({ ...(await waiting(key, 'next')), at: now() })),
    );
    expect(grant.at - released).toBeGreaterThanOrEqual(WINDOW_MS + MARGIN_MS);
    expect(grant.at - released).toBeLessThanOrEqual(WINDOW_MS + MARGIN_MS + 250);
    expect(await rows(key)).toEqual([]);
  });

  it('a delayed repair serves the task behind a caller that exited', async () => {
    const { key, first } = await heldKey({ holder: 'first' });
    await exitInLine({ key, holder: 'dead' });
    const { task } = await park({ key, holder: 'task' });
    messages.length = 0;
    steps.requests.length = 0;
    await release(first);
    expect(messages).toMatchObject([{ delaySeconds: 4 }]);
    expect(task.state).toBe('waiting');
    timeline.advance(4000);
    await world.runRepair(messages[0]);
    expect(grantOf(task)).toMatchObject({ holder: 'task' });
  });

  it('a task that parks behind an unclaimed grant sends a delayed repair', async () => {
    const { key, first } = await heldKey({ holder: 'first' });
    for (const holder of ['dead', 'too']) await exitInLine({ key, holder });
    await release(first);
    messages.length = 0;
    steps.requests.length = 0;
    await park({ key, holder: 'task' });
    expect(messages).toMatchObject([{ delaySeconds: 4 }]);
  });

  /** A call that was granted the lock in line, and exits between its claim and the deletion of its row. */
  const dyingAtClaim = async (key: string) => {
    const first = await acquire({ key, holder: 'first' });
    await exitInLine({ key, holder: 'dead', requestId: 'r', ttlSeconds: 60 });
    await release(first);
    await exitingAfter(2, () => acquire({ key, holder: 'dead', requestId: 'r', ttlSeconds: 60 }));
    expect(await rows(key)).toHaveLength(1);
  };

  it('a retry after an exit right after the claim receives the grant', async () => {
    const key = newKey();
    await dyingAtClaim(key);
    expect(await acquire({ key, holder: 'dead', requestId: 'r' })).toMatchObject({ repeated: true });
    expect(await rows(key)).toEqual([]);
  });

  it('the schedule deletes the waiter of a caller that has claimed', async () => {
    const key = newKey();
    await dyingAtClaim(key);
    timeline.advance(9999);
    await repair(key);
    expect(await rows(key)).toHaveLength(1); // the call itself may be about to delete its row
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

  it.each([
    ['that is answered late is renewed', answeredLate(5000)],
    ['whose answer is lost is known by its version', 'lostReply'],
  ] as const)('a claim %s, and the caller has its whole ttl', async (_, fault) => {
    const { key, first } = await heldKey({ holder: 'first' });
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

  it('a caller that left is passed over until it comes back', async () => {
    const { key, first } = await heldKey({ holder: 'first', ttlSeconds: 60 });
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
    const { key, first } = await heldKey({ holder: 'first', ttlSeconds: 60 });
    await timeline.play(() => failure(waiting(key, 'b', { waitSeconds: 1, requestId: 'rb3' })));
    const [row] = await rows(key);
    const ticket = row?.ticket?.S;
    await timeline.play(() => failure(waiting(key, 'thief', { waitSeconds: 1, requestId: 'other', ticket })));
    expect((await rows(key)).map(({ holder }) => holder?.S)).toEqual(['b', 'thief']);
    await release(first);
    await acquire({ key, holder: 'thief', requestId: 'other 2', ticket });
    expect((await rows(key)).some((one) => one.ticket?.S === ticket)).toBe(true);
  });
}
