import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { call } from '../support/emulators/aws.ts';
import { dyingAfter } from '../support/faults/mortal.ts';
import { failure } from '../support/worlds/leases.ts';
import { steadyLineWorld } from '../support/worlds/line.ts';

// What a call in line does by what it sees.

const world = await steadyLineWorld();
const { now, later } = world.timeline;
const { acquire, release, breakLease, withdraw, rawItem, deleteRaw, rows, requests, steps } = world;
const { timeline, steady, refusedAfter, precededBy, answeredLate } = world;
afterAll(() => steps.stop());
beforeEach(() => {
  requests.faultsOf = {};
  steps.faults = {};
});

type Send = () => Promise<unknown>;

const WINDOW_MS = 2000;
const MARGIN_MS = 500;
/** When a steady call looks for the first time. */
const FIRST_LOOK_MS = 25;

let keys = 0;
const asked = { holder: 'b', requestId: 'r', ttlSeconds: 10 };
const lost = (reason: string) => ({ code: 'LeaseLost', context: { reason } });
const played = async <T>(waits: () => Promise<T>) => (await timeline.play(waits))[0];
/** The key is held for a second already, so that a call looks for the first time when a steady call does. */
const held = async () => {
  const first = await acquire({ key: `in line ${keys++}`, holder: 'first', ttlSeconds: 60 });
  timeline.advance(1000);
  return first;
};
const fenceOf = async (key: string) => Number((await rawItem(key))?.fence?.N);
/** Something happens in the first look of a call that comes now, before DynamoDB reads. The look is answered that long after the arrival of the call. */
function inFirstLook(what: () => Promise<unknown>, answeredAfterMs?: number) {
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

describe('a call in line that finds the grant of its request', () => {
  it('a call receives LeaseLost, and leaves no row, if a withdrawal has ended the grant', async () => {
    const first = await held();
    const { key } = first;
    inFirstLook(async () => {
      await release(first);
      await withdraw({ key, requestId: 'r', holder: 'b' });
    });
    expect(await played(() => refusedAfter(key))).toMatchObject({ ...lost('cancelled'), afterMs: FIRST_LOOK_MS });
    expect(await rows(key)).toEqual([]);
  });

  it.each([
    ['the grant of a duplicate call is over in that moment', 0],
    ['another may have the key after the grant of a duplicate call', MARGIN_MS + 1],
  ])('a call whose row is gone leaves at once if %s', async (_, overForMs) => {
    const first = await held();
    const { key } = first;
    const answeredAfterMs = FIRST_LOOK_MS + 2000 + overForMs;
    inFirstLook(async () => {
      await release(first);
      await acquire({ key, ...asked, ttlSeconds: 2 }); // deletes the row of both
    }, answeredAfterMs);
    const refused = await played(() => refusedAfter(key, { ttlSeconds: 2 }));
    const context = { holder: 'b', retryWith: { requestId: 'r' } };
    expect(refused).toMatchObject({ code: 'LeaseHeld', context, afterMs: answeredAfterMs });
    expect(refused.context).not.toHaveProperty('place');
  });

  it.each([0, 1000])(
    'a call receives LeaseLost if its grant is broken right before its claim, %i ms long',
    async (ms) => {
      const first = await held();
      const { key } = first;
      inFirstLook(async () => {
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
      expect([refused.afterMs, await rows(key)]).toEqual([FIRST_LOOK_MS + ms, []]);
    },
  );

  it.each([
    ['withdrawn', 'cancelled', 1],
    ['released', 'released', 0],
  ])('a call that leaves receives LeaseLost, and leaves no row, if its grant is %s', async (how, reason, places) => {
    const first = await held();
    const { key } = first;
    let left = 0;
    const grants = async (send: Send) => {
      const seen = await send();
      await release(first);
      timeline.advance(1000);
      return seen;
    };
    const ends = precededBy(async () => {
      if (how === 'withdrawn') await withdraw({ key, requestId: 'r', holder: 'b' });
      else await release(await acquire({ key, ...asked }));
      left = (await rows(key)).length;
    });
    requests.faultsOf.GetItem = [grants, 'none', ends]; // its first look, and then its row and the record
    const refused = await played(() => refusedAfter(key, { waitSeconds: 1 }));
    expect(refused).toMatchObject({ ...lost(reason), afterMs: FIRST_LOOK_MS + 1000 });
    expect([left, await rows(key)]).toEqual([places, []]);
  });

  it('a call that claims its grant too late leaves', async () => {
    const first = await held();
    const { key } = first;
    inFirstLook(async () => {
      await release(first);
      const taken = async () => {
        timeline.advance(WINDOW_MS + MARGIN_MS + 1);
        await acquire({ key, holder: 'other' });
      };
      requests.faultsOf.UpdateItem = [precededBy(taken)];
    });
    const refused = await played(() => refusedAfter(key));
    expect(refused).toMatchObject({ code: 'LeaseHeld', context: { holder: 'other' } });
  });
});

describe('a call in line that leaves, and is granted the lease by a clock that is behind', () => {
  const byAnEarlierClock = (key: string, then: () => Promise<unknown> = async () => {}) =>
    precededBy(async () => {
      timeline.advance(-400);
      await world.handOn(key);
      await then();
      timeline.advance(400);
    });
  /** Its first look is answered after its deadline, and the lease is free before its next reads. */
  const leaving = (first: Parameters<typeof release>[0]) => {
    const free = precededBy(() => release(first, call({ timeLeftMs: () => 1999 }))); // too little to look at the line
    requests.faultsOf.GetItem = [answeredLate(1000), 'none', free];
    return steady(first.key, { waitSeconds: 1 });
  };

  it('a call has the lease that another hand-off grants in that moment', async () => {
    const first = await held();
    requests.faultsOf.UpdateItem = [...Array(4).fill('none'), byAnEarlierClock(first.key)]; // two tries and two marks
    const [granted] = await timeline.play(
      () => leaving(first),
      () => later(5, () => exitNow(first.key)),
    );
    expect(granted).toMatchObject({ holder: 'b', repeated: false });
  });

  it('a call receives LeaseLost if a duplicate call has released that grant', async () => {
    const first = await held();
    const { key } = first;
    const ends = async () => release(await acquire({ key, ...asked }));
    requests.faultsOf.Query = [byAnEarlierClock(key, ends)];
    expect(await played(() => failure(leaving(first)))).toMatchObject(lost('released'));
  });

  const exitNow = (key: string) =>
    dyingAfter(3, () => acquire({ key, ...asked, requestId: 'behind', waitSeconds: 20 }));
});

describe('a call in line that finds the lease free', () => {
  it.each([
    // At four tenths of what chance may bring, a call looks after 29 milliseconds.
    [0.4, 29],
    [0, FIRST_LOOK_MS],
  ])('a call takes a key whose record was deleted at its next look (chance: %d)', async (chance, waitedMs) => {
    const { key } = await held();
    inFirstLook(() => deleteRaw(key));
    expect(await played(() => steady(key, {}, chance))).toMatchObject({ holder: 'b', previous: null, waitedMs });
  });
});

it('a call waits for the turn of the one before it that has just been granted the lease, and for a quick hand-off', async () => {
  const first = await held();
  const { key } = first;
  const looks: number[] = [];
  const from = now();
  await timeline.play(
    () => dyingAfter(3, () => acquire({ key, holder: 'before', waitSeconds: 20 })),
    () => later(10, () => failure(steady(key, { waitSeconds: 1 }))),
    () =>
      later(455, async () => {
        await release(first);
        const look = precededBy(async () => looks.push(now() - from));
        requests.faultsOf.GetItem = Array(3).fill(look);
      }),
  );
  expect(await rawItem(key)).toMatchObject({ h: { M: { h: { S: 'before' } } }, turn_ms: { N: '1455' } });
  // A first turn counts as a hundred milliseconds, and a hand-off as twelve.
  expect(looks.slice(0, 2)).toEqual([460, 455 + 100 + 12]);
});
