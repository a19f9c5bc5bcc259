import { expect, it } from 'vitest';
import { exitingAfter } from '../support/faults/mortal.ts';
import { failure } from '../support/worlds/leases.ts';
import { resetting, steadyLineWorld } from '../support/worlds/line.ts';

// What a call in line does by what it sees.

const world = await steadyLineWorld();
const { now, later } = world.timeline;
const { acquire, release, breakLease, withdraw, rawItem, deleteRaw, rows, requests } = world;
const { timeline, steady, refusedAfter, precededBy } = world;
resetting(world);

const MARGIN_MS = 500;
/** When a steady call first polls the record. */
const FIRST_POLL_MS = 25;

let keys = 0;
const asked = { holder: 'b', requestId: 'r', ttlSeconds: 10 };
const lost = (reason: string) => ({ code: 'LeaseLost', context: { reason } });
const played = async <T>(waits: () => Promise<T>) => (await timeline.play(waits))[0];
/** The key is held for a second already, so that a call first polls as early as a steady call does. */
const held = async () => {
  const first = await acquire({ key: `in line ${keys++}`, holder: 'first', ttlSeconds: 60 });
  timeline.advance(1000);
  return first;
};
const fenceOf = async (key: string) => Number((await rawItem(key))?.fence?.N);
/** `what` happens during the first poll of a call that comes now, before DynamoDB reads. The poll is answered `answeredAfterMs` after the call came. */
function duringFirstPoll(what: () => Promise<unknown>, answeredAfterMs?: number) {
  const from = now();
  requests.faultsOf.GetItem = [
    async (send) => {
      await what();
      const seen = await send();
      if (answeredAfterMs !== undefined) timeline.advance(from + answeredAfterMs - now());
      return seen;
    },
  ];
}

it('a call receives LeaseLost if a withdrawal has ended the grant', async () => {
  const first = await held();
  const { key } = first;
  duringFirstPoll(async () => {
    await release(first);
    await withdraw({ key, requestId: 'r', holder: 'b' });
  });
  expect(await played(() => refusedAfter(key))).toMatchObject({ ...lost('cancelled'), afterMs: FIRST_POLL_MS });
  expect(await rows(key)).toEqual([]);
});

it.each([
  ['the grant of a duplicate call is over in that moment', 0],
  ['another may have the key after the grant of a duplicate call', MARGIN_MS + 1],
])('a call whose row is gone leaves at once if %s', async (_, overForMs) => {
  const first = await held();
  const { key } = first;
  const answeredAfterMs = FIRST_POLL_MS + 2000 + overForMs;
  duringFirstPoll(async () => {
    await release(first);
    await acquire({ key, ...asked, ttlSeconds: 2 }); // deletes the row of both
  }, answeredAfterMs);
  const refused = await played(() => refusedAfter(key, { ttlSeconds: 2 }));
  const context = { holder: 'b', retryWith: { requestId: 'r' } };
  expect(refused).toMatchObject({ code: 'LeaseHeld', context, afterMs: answeredAfterMs });
  expect(refused.context).not.toHaveProperty('place');
});

it.each([0, 1000])('a call receives LeaseLost if its grant is broken before its claim (%i ms)', async (ms) => {
  const first = await held();
  const { key } = first;
  duringFirstPoll(async () => {
    await release(first);
    const fence = await fenceOf(key);
    const broken = async () => {
      await breakLease({ key, fence });
      timeline.advance(ms);
    };
    requests.faultsOf.UpdateItem = [precededBy(broken)];
  });
  const refused = await played(() => refusedAfter(key, { waitSeconds: 1 }));
  expect(refused).toMatchObject({ code: 'LeaseLost', context: { reason: 'broken', holder: null } });
  expect([refused.afterMs, await rows(key)]).toEqual([FIRST_POLL_MS + ms, []]);
});

it.each([
  // Chance adds up to 10 ms to the first 25. Four tenths of 10 ms make 29 ms.
  [0.4, 29],
  [0, FIRST_POLL_MS],
])('a call takes a key without a record (chance: %d)', async (chance, waitedMs) => {
  const { key } = await held();
  duringFirstPoll(() => deleteRaw(key));
  expect(await played(() => steady(key, {}, chance))).toMatchObject({ holder: 'b', previous: null, waitedMs });
});

it('a call waits for the turn of the one before it', async () => {
  const first = await held();
  const { key } = first;
  const polls: number[] = [];
  const from = now();
  await timeline.play(
    () => exitingAfter(3, () => acquire({ key, holder: 'before', waitSeconds: 20 })),
    () => later(10, () => failure(steady(key, { waitSeconds: 1 }))),
    () =>
      later(455, async () => {
        await release(first);
        const poll = precededBy(async () => polls.push(now() - from));
        requests.faultsOf.GetItem = Array(3).fill(poll);
      }),
  );
  expect(await rawItem(key)).toMatchObject({ h: { M: { h: { S: 'before' } } }, turn_ms: { N: '1455' } });
  // A first turn counts as a hundred milliseconds, and a hand-off as twelve.
  expect(polls.slice(0, 2)).toEqual([460, 455 + 100 + 8]);
});
