import { expect, it } from 'vitest';
import { call } from '../support/emulators/aws.ts';
import { failure } from '../support/worlds/leases.ts';
import type { LineWorld } from './world.ts';

/** A call that asks again with its ticket, and what a call that leaves says of its position. */
export async function askingAgain(lineWorld: LineWorld) {
  const world = await lineWorld();
  const { acquire, release, cancel, park, repair, rows, requests, steps, as, newKey, timeline } = world;
  const { now, sleep, later } = timeline;

  const held = (ttlSeconds = 60) => acquire({ key: newKey(), holder: 'first', ttlSeconds });
  const asked = (key: string) => ({ key, holder: 'b', requestId: 'rb', ttlSeconds: 10 });

  /** Waits for a second, and is answered with its position. */
  async function placeOf(key: string): Promise<{ requestId: string; ticket: string }> {
    const [refused] = await timeline.play(() => failure(acquire({ ...asked(key), waitSeconds: 1 })));
    const retryWith = { requestId: 'rb', ticket: expect.stringMatching(/^\d{15}-/) };
    expect(refused).toMatchObject({ code: 'LeaseHeld', context: { place: 1, waiting: 0, retryWith } });
    return refused.context.retryWith as { requestId: string; ticket: string };
  }

  it('a call that asks again keeps its position past its new deadline', async () => {
    const first = await held();
    const { key } = first;
    const retryWith = await placeOf(key);
    const askedAt = now();
    const [, grant] = await timeline.play(
      () =>
        later(5100, async () => {
          await repair(key); // past its first deadline, and past the five seconds after that
          const seconds = Math.ceil((askedAt + 25_000) / 1000);
          expect(await rows(key)).toMatchObject([
            {
              ...{ ticket: { S: retryWith.ticket }, deadline: { N: String(askedAt + 20_000) } },
              ...{ keep_until: { N: String(askedAt + 25_000) }, ttl: { N: String(seconds + 3600) } },
            },
          ]);
          await release(first);
        }),
      () => acquire({ ...asked(key), waitSeconds: 20, ...retryWith }),
    );
    expect(grant).toMatchObject({ holder: 'b', repeated: false });
    expect(await rows(key)).toEqual([]);
  });

  it('a call that asks again keeps its position despite a slow try', async () => {
    const first = await held();
    const { key } = first;
    const retryWith = await placeOf(key);
    const [granted, behind] = await timeline.play(
      async () => {
        await sleep(300);
        requests.faultsOf.PutItem = [(send) => sleep(2000).then(send)];
        const refused = await failure(acquire({ ...asked(key), waitSeconds: 1, ...retryWith }));
        expect(refused).toMatchObject({ code: 'LeaseHeld', context: { place: 1, waiting: 1, retryWith } });
        // Five seconds from its answer, and not from its arrival.
        expect(await rows(key)).toMatchObject([{ keep_until: { N: String(now() + 5000) } }, {}]);
        return acquire({ ...asked(key), waitSeconds: 20, ...retryWith });
      },
      () => later(100, () => failure(acquire({ key, holder: 'behind', ttlSeconds: 10, waitSeconds: 5 }))),
      () => later(4000, () => release(first)),
    );
    expect(granted).toMatchObject({ holder: 'b' });
    expect(behind).toMatchObject({ code: 'LeaseHeld', context: { holder: 'b' } });
  });

  it('a call keeps its position while the schedule deletes its row', async () => {
    const first = await held();
    const { key } = first;
    const retryWith = await placeOf(key);
    timeline.advance(5100);
    requests.faultsOf.DeleteItem = [(send) => sleep(500).then(send)];
    const [, , grant] = await timeline.play(
      () => repair(key),
      () =>
        later(1000, async () => {
          expect((await rows(key)).map(({ ticket }) => ticket?.S)).toEqual([retryWith.ticket]);
          await release(first);
        }),
      () => later(100, () => acquire({ ...asked(key), waitSeconds: 20, ...retryWith })),
    );
    expect(grant).toMatchObject({ holder: 'b', repeated: false });
  });

  it('a call that asks again without waiting sends only its first try', async () => {
    const { key } = await held();
    const retryWith = await placeOf(key);
    requests.sent.length = 0;
    const refused = await failure(acquire({ ...asked(key), waitSeconds: 0, ...retryWith }));
    expect([refused.code, requests.sent.length]).toEqual(['LeaseHeld', 1]);
  });

  it.each([
    ['holder', { holder: 'another' }, call()],
    ['principal', {}, as('another')],
  ])('a call of another %s does not see the withdrawal of the ticket', async (_, other, caller) => {
    const first = await held();
    const { key } = first;
    const { ticket } = await placeOf(key);
    expect(await cancel(key, ticket)).toMatchObject({ cancelled: true });
    const again = { ...asked(key), ...other, ticket };
    const [refused] = await timeline.play(() => failure(acquire({ ...again, waitSeconds: 1 }, caller)));
    expect(refused).toMatchObject({ code: 'LeaseHeld', context: { holder: 'first' } });
    await release(first);
    expect(await release(await acquire(again, caller))).toMatchObject({ released: true });
  });

  it('a call that asks again and has the lock leaves the line', async () => {
    const first = await held();
    const { key } = first;
    const retryWith = await placeOf(key);
    await release(first);
    expect(await rows(key)).toHaveLength(1);
    const grant = await acquire({ ...asked(key), waitSeconds: 1, ...retryWith });
    expect(grant).toMatchObject({ holder: 'b', waitedMs: 0 });
    expect(await rows(key)).toEqual([]);
  });

  it('the position does not count an unnotified task that has the lock', async () => {
    const first = await held();
    await park({ key: first.key, holder: 'task', ttlSeconds: 60 });
    steps.faults.SendTaskSuccess = ['refused'];
    await release(first);
    const [left] = await timeline.play(() => failure(acquire({ ...asked(first.key), waitSeconds: 1 })));
    expect(left).toMatchObject({ code: 'LeaseHeld', context: { holder: 'task', waiting: 0, place: 1 } });
  });

  it('the position does not count a duplicate call of the same ticket', async () => {
    const { key } = await held();
    const { ticket } = await placeOf(key);
    const [left] = await timeline.play(
      () => failure(acquire({ ...asked(key), ticket, waitSeconds: 1 })),
      () => later(500, () => failure(acquire({ ...asked(key), ticket, waitSeconds: 2 }))),
    );
    expect(left).toMatchObject({ code: 'LeaseHeld', context: { waiting: 0, place: 1 } });
  });
}
