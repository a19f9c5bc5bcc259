import { afterAll, beforeEach, expect, it } from 'vitest';
import { aFew } from '../support/time/rounds.ts';
import { failure } from '../support/worlds/leases.ts';
import { steadyLineWorld } from '../support/worlds/line.ts';

// A call in line takes an expired lease over with one transfer, which grants the lease to itself.

const world = await steadyLineWorld();
const { later } = world.timeline;
const { acquire, release, withdraw, read, rows, rawItem, requests, steps } = world;
const { timeline, steady, answeredLate } = world;
afterAll(() => steps.stop());
beforeEach(() => {
  requests.faultsOf = {};
});

let keys = 0;
const newKey = () => `taken over ${keys++}`;
const TTL_SECONDS = 2;
const MARGIN_MS = 500;
const EXPIRY_MS = TTL_SECONDS * 1000 + MARGIN_MS + 1;
const held = (key: string) => acquire({ key, holder: 'first', ttlSeconds: TTL_SECONDS });
/** A call waits in line until it takes an expired lease over. `arm` runs just before that moment. */
async function takenOver(key: string, arm: () => unknown = () => {}) {
  await held(key);
  const [grant] = await timeline.play(
    () => steady(key),
    () => later(EXPIRY_MS - 1, async () => void arm()),
  );
  return grant;
}

const TRANSFERS = [
  ['is answered after 6 s', answeredLate(6000)],
  ['is answered after its ttl', answeredLate(12_000)],
  ['has no answer', 'lostReply'],
] as const;

it('a call has a full grant by its transfer, without a claim', async () => {
  const key = newKey();
  const grant = await takenOver(key, () => requests.sent.splice(0));
  expect(requests.sent).toEqual(['Query', 'UpdateItem', 'DeleteItem']);
  const previous = { holder: 'first', ended: 'expired' };
  expect(grant).toMatchObject({ repeated: false, waitedMs: EXPIRY_MS, remainingMs: 10_000, previous });
  expect(await rawItem(key)).not.toHaveProperty('mark');
  expect((await rawItem(key))?.h?.M).not.toHaveProperty('c');
  expect(await rows(key)).toEqual([]);
  expect(await release(grant)).toMatchObject({ released: true });
});

it.each(aFew(1, TRANSFERS))('a call has its whole ttl if its transfer %s', async (_, fault) => {
  const key = newKey();
  const grant = await takenOver(key, () => {
    requests.faultsOf.UpdateItem = [fault];
  });
  expect(grant).toMatchObject({ holder: 'b', repeated: false, remainingMs: 10_000 });
  expect(await rows(key)).toEqual([]);
});

it('a call that is withdrawn in that moment leaves the lease free', async () => {
  const key = newKey();
  const refused = await failure(
    takenOver(key, () => {
      requests.faultsOf.Query = [
        async (send) => {
          const line = await send();
          // The flag lands after the read of the line. The withdrawal then ends the expired grant, because no waiter is left.
          expect(await withdraw({ key, requestId: 'r', holder: 'b' })).toMatchObject({ cancelled: true });
          return line;
        },
      ];
    }),
  );
  expect(refused).toMatchObject({ code: 'LeaseLost', context: { reason: 'cancelled' } });
  expect(await read({ key })).not.toMatchObject({ state: 'held' });
  expect(await acquire({ key, holder: 'other' })).toMatchObject({ holder: 'other' });
});
