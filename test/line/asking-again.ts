import { describe, expect, it } from 'vitest';
import { call } from '../support/emulators/aws.ts';
import { failure } from '../support/worlds/leases.ts';
import type { LineWorld } from './world.ts';

export async function askingAgain(lineWorld: LineWorld) {
  const world = await lineWorld();
  const { acquire, release, cancel, park, rows, requests, steps, as, newKey, timeline } = world;
  const { now, sleep, later } = timeline;

  const asked = (key: string) => ({ key, holder: 'b', requestId: 'rb', ttlSeconds: 10 });

  /** Waits for a second, and is answered with its place. */
  async function placeOf(key: string): Promise<{ requestId: string; ticket: string }> {
    const [refused] = await timeline.play(() => failure(acquire({ ...asked(key), waitSeconds: 1 })));
    expect(refused.code).toBe('LeaseHeld');
    return refused.context.retryWith as { requestId: string; ticket: string };
  }

  describe('a call that asks again with what its LeaseHeld said', () => {
    it('keeps its place, though its first try takes longer than the call was to wait', async () => {
      const key = newKey();
      const first = await acquire({ key, holder: 'first', ttlSeconds: 60 });
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
        () => later(100, () => failure(acquire({ key, holder: 'behind', ttlSeconds: 10, waitSeconds: 8 }))),
        () => later(4000, () => release(first)),
      );
      expect(granted).toMatchObject({ holder: 'b' });
      expect(behind).toMatchObject({ code: 'LeaseHeld', context: { holder: 'b' } });
    });

    it.each([
      ['holder', { holder: 'another' }, call()],
      ['principal', {}, as('another')],
    ])(
      'and is of another %s learns nothing of a withdrawal, and neither loses what it gets',
      async (_, other, caller) => {
        const key = newKey();
        const first = await acquire({ key, holder: 'first', ttlSeconds: 60 });
        const { ticket } = await placeOf(key);
        expect(await cancel(key, ticket)).toMatchObject({ cancelled: true });
        const again = { ...asked(key), ...other, ticket };
        const [refused] = await timeline.play(() => failure(acquire({ ...again, waitSeconds: 1 }, caller)));
        expect(refused).toMatchObject({ code: 'LeaseHeld', context: { holder: 'first' } });
        await release(first);
        const grant = await acquire(again, caller);
        expect(await release(grant)).toMatchObject({ released: true });
      },
    );

    it('leaves the line if it has the lock at once', async () => {
      const key = newKey();
      const first = await acquire({ key, holder: 'first', ttlSeconds: 60 });
      const retryWith = await placeOf(key);
      await release(first);
      expect(await rows(key)).toHaveLength(1);
      const grant = await acquire({ ...asked(key), waitSeconds: 1, ...retryWith });
      expect(grant).toMatchObject({ holder: 'b', waitedMs: 0 });
      expect(await rows(key)).toEqual([]);
    });
  });

  it('the place of a call that leaves counts no task that has the lock and was not notified of it', async () => {
    const first = await acquire({ key: newKey(), holder: 'first' });
    await park({ key: first.key, holder: 'task', ttlSeconds: 60 });
    steps.faults.SendTaskSuccess = ['refused'];
    await release(first);
    const [left] = await timeline.play(() => failure(acquire({ ...asked(first.key), waitSeconds: 1 })));
    expect(left).toMatchObject({ code: 'LeaseHeld', context: { holder: 'task', waiting: 0, place: 1 } });
  });

  it('the place of a call that leaves counts none that wait in it, also where another call of its request waits there longer', async () => {
    const key = newKey();
    await acquire({ key, holder: 'first', ttlSeconds: 60 });
    const { ticket } = await placeOf(key);
    const [left] = await timeline.play(
      () => failure(acquire({ ...asked(key), ticket, waitSeconds: 2 })),
      () => later(500, () => failure(acquire({ ...asked(key), ticket, waitSeconds: 5 }))),
    );
    expect(left).toMatchObject({ code: 'LeaseHeld', context: { waiting: 0, place: 1 } });
  });
}
