import { expect, it } from 'vitest';
import { deleteWaiter } from '../../shared/locks/line/waiters.ts';
import { flagRow } from '../../shared/locks/line/waiting-calls.ts';
import { call } from '../support/emulators/aws.ts';
import { exitingAfter } from '../support/faults/mortal.ts';
import { failure } from '../support/worlds/leases.ts';
import { callInHurry, type LineWorld } from './world.ts';

/** Rules of a call in line (docs/protocols/queue.md#wait). */
export async function rulesOfCalls(lineWorld: LineWorld) {
  const world = await lineWorld();
  const { acquire, release, see, rows, isMarked, removeMark, grantOf, precededBy, steady } = world;
  const { parkNext: park, exitInLine, dependencies, requests, newKey, timeline } = world;
  const { later } = timeline;
  const waits = (key: string, more: object = {}) => acquire({ key, ttlSeconds: 10, waitSeconds: 20, ...more });
  const names = async (key: string) =>
    (await rows(key)).map((row) => ({ key: row.key?.S ?? '', ticket: row.ticket?.S ?? '' }));
  const held = async (ttlSeconds = 60) => {
    const first = await acquire({ key: newKey(), holder: 'first', ttlSeconds });
    timeline.advance(1000);
    return { key: first.key, first };
  };

  it('a call whose waiter is gone does not put the mark back', async () => {
    const { key } = await held();
    const [refused] = await timeline.play(
      () => failure(waits(key, { waitSeconds: 2 })),
      () =>
        later(500, async () => {
          for (const name of await names(key)) await deleteWaiter(dependencies, name, call());
          await removeMark(key);
        }),
    );
    expect(refused).toMatchObject({ code: 'LeaseHeld' });
    expect(refused?.context).not.toHaveProperty('place');
    expect(await isMarked(key)).toBe(false);
  });

  it('a paused call reads its waiter before it hands off', async () => {
    const { key, first } = await held();
    const [grant] = await timeline.play(
      () => steady(key),
      () =>
        later(500, async () => {
          requests.faultsOf.GetItem = [
            async (send) => {
              await precededBy(() => release(first, callInHurry))(async () => undefined);
              const answer = await send();
              timeline.advance(2001);
              requests.sent.length = 0;
              return answer;
            },
          ];
        }),
    );
    expect(grant).toMatchObject({ holder: 'b' });
    expect(requests.sent.slice(0, 2)).toEqual(['GetItem', 'Query']);
  });

  it('a call is answered although duplicates change its grant', async () => {
    const { key, first } = await held();
    const asked = { key, holder: 'c', requestId: 'r', ttlSeconds: 10 };
    const duplicates = () => Array.from({ length: 8 }, () => precededBy(() => acquire(asked)));
    let reads = 0;
    const [grant] = await timeline.play(
      () => waits(key, asked),
      () =>
        later(500, async () => {
          await release(first);
          requests.faultsOf.UpdateItem = duplicates();
          reads = requests.sent.length;
        }),
    );
    expect(grant).toMatchObject({ holder: 'c', repeated: true });
    // One read finds the grant. All others read rows.
    expect(requests.sent.slice(reads).filter((name) => name === 'GetItem').length).toBeLessThanOrEqual(1);
    requests.faultsOf.UpdateItem = duplicates();
    expect(await acquire(asked)).toMatchObject({ holder: 'c', repeated: true });
  });

  it.each(['with its ticket', 'without its ticket'])(
    'a withdrawn call gives up its claimed grant if the call asks again %s',
    async (how) => {
      const { key, first } = await held();
      const asked = { key, holder: 'dead', requestId: 'r' };
      const ticket = await exitInLine(asked);
      await release(first);
      await exitingAfter(2, () => acquire(asked)); // exits between its claim and the deletion of the row
      for (const name of await names(key))
        expect(await flagRow(dependencies, { rowKey: name }, call())).toMatchObject(name);
      const again = how === 'without its ticket' ? asked : { ...asked, ticket, waitSeconds: 20 };
      expect(await failure(acquire(again))).toMatchObject({ code: 'LeaseLost', context: { reason: 'cancelled' } });
      expect(await see(key)).toMatchObject({ holder: undefined });
    },
  );

  it('a waiter that is not next sleeps no longer than its patience', async () => {
    const { key, first } = await held();
    const { task } = await park({ key, holder: 'next' });
    timeline.advance(1); // so that the next ticket is later
    const left = await failure(timeline.play(() => steady(key, { waitSeconds: 1 })));
    let releasedAt = 0;
    await timeline.play(
      // A call that asks again does not know its position, so it polls every 150 ms.
      () => failure(steady(key, { ...(left.context.retryWith as object), waitSeconds: 5 })),
      () =>
        later(1080, async () => {
          await release(first, callInHurry);
          releasedAt = timeline.now();
        }),
    );
    expect(Date.parse(grantOf(task).acquiredAt) - releasedAt).toBeLessThanOrEqual(200);
  });
}
