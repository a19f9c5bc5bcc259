import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { call } from '../support/emulators/aws.ts';
import { dyingAfter } from '../support/faults/mortal.ts';
import { failure } from '../support/worlds/leases.ts';
import { steadyLineWorld } from '../support/worlds/steady-line.ts';

const world = await steadyLineWorld();
const { now, later } = world.timeline;
const { acquire, heartbeat, release, breakLease, withdraw, rawItem, putRaw, deleteRaw, rows, requests, steps } = world;
const { timeline, steady, refusedAfter, precededBy } = world;
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
const newKey = () => `in line ${keys++}`;
const asked = { holder: 'b', requestId: 'r', ttlSeconds: 10 };
const played = async <T>(waits: () => Promise<T>) => (await timeline.play(waits))[0];
const held = (key: string, ttlSeconds = 60) => acquire({ key, holder: 'first', ttlSeconds });
/** In the first look of a call that comes now, something happens before DynamoDB reads. The call hears of it so long after its arrival. */
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
/** Rewrites the record without some attributes, as another client may. */
const without = async (key: string, ...names: string[]) => {
  const left = Object.entries((await rawItem(key)) ?? {}).filter(([name]) => !names.includes(name));
  await putRaw(Object.fromEntries(left));
};

describe('a call in line that finds the grant of its request', () => {
  it('ended by a withdrawal learns that, and leaves no place', async () => {
    const key = newKey();
    const first = await held(key);
    inFirstLook(async () => {
      await release(first);
      await withdraw({ key, requestId: 'r', holder: 'b' });
    });
    const refused = await played(() => refusedAfter(key));
    expect(refused).toMatchObject({ code: 'LeaseLost', afterMs: FIRST_LOOK_MS, context: { reason: 'cancelled' } });
    expect(await rows(key)).toEqual([]);
  });

  // The other call takes the place of both along.
  it.each([
    ['over in that moment: it looks once more, and sees that its place is gone', 0, 25],
    [
      'over for so long that another may have the lease: it leaves at once, because its place is gone',
      MARGIN_MS + 1,
      0,
    ],
  ])('which another call has claimed, and which is %s', async (_, overForMs, laterMs) => {
    const key = newKey();
    const first = await held(key);
    const answeredAfterMs = FIRST_LOOK_MS + 2000 + overForMs;
    inFirstLook(async () => {
      await release(first);
      await acquire({ key, ...asked, ttlSeconds: 2 });
    }, answeredAfterMs);
    const refused = await played(() => refusedAfter(key, { ttlSeconds: 2 }));
    expect(refused).toMatchObject({ code: 'LeaseHeld', context: { holder: 'b', retryWith: { requestId: 'r' } } });
    expect(refused.context).not.toHaveProperty('place');
    expect(refused.afterMs).toBe(answeredAfterMs + laterMs);
  });

  it('claimed by another call that let it run out has its turn, where it has a place of its own', async () => {
    const key = newKey();
    const first = await held(key);
    await timeline.play(() => dyingAfter(3, () => acquire({ key, ...asked, ttlSeconds: 2, waitSeconds: 20 })));
    timeline.advance(1); // a later ticket
    inFirstLook(async () => {
      await release(first);
      await acquire({ key, ...asked, ttlSeconds: 2 });
    }, FIRST_LOOK_MS + 2000);
    const granted = await played(() => steady(key));
    expect(granted).toMatchObject({ repeated: false, previous: { holder: 'b', ended: 'expired' } });
    expect(granted).toMatchObject({ waitedMs: FIRST_LOOK_MS + 2000 + MARGIN_MS + 1, remainingMs: 10_000 });
  });

  it.each([
    ['at once', 0],
    ['also where its time in line is over by then', 1000],
  ])('broken right before its claim learns that %s', async (_, tookMs) => {
    const key = newKey();
    const first = await held(key);
    inFirstLook(async () => {
      await release(first);
      const fence = Number((await rawItem(key))?.fence?.N);
      const broken = async () => {
        await breakLease({ key, fence });
        timeline.advance(tookMs);
      };
      requests.faultsOf.UpdateItem = [precededBy(broken)];
    });
    const refused = await played(() => refusedAfter(key, { waitSeconds: 1 }));
    const afterMs = FIRST_LOOK_MS + tookMs;
    expect(refused).toMatchObject({ code: 'LeaseLost', afterMs, context: { reason: 'broken', holder: null } });
    expect(await rows(key)).toEqual([]);
  });

  it.each([
    ['withdrawn', 'cancelled', 1],
    ['given back', 'released', 0],
  ])('%s while it leaves learns that, and leaves no place', async (how, reason, places) => {
    const key = newKey();
    const first = await held(key);
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
    requests.faultsOf.GetItem = [grants, 'none', ends]; // its first look, and then its place and the record
    const refused = await played(() => refusedAfter(key, { waitSeconds: 1 }));
    expect(refused).toMatchObject({ code: 'LeaseLost', afterMs: FIRST_LOOK_MS + 1000, context: { reason } });
    expect([left, await rows(key)]).toEqual([places, []]);
  });

  it('and claims it too late: it writes nothing more, and leaves', async () => {
    const key = newKey();
    const first = await held(key);
    inFirstLook(async () => {
      await release(first);
      const taken = async () => {
        timeline.advance(WINDOW_MS + MARGIN_MS + 1);
        await acquire({ key, holder: 'other' });
        requests.sent.length = 0;
      };
      requests.faultsOf.UpdateItem = [precededBy(taken)];
    });
    const refused = await played(() => refusedAfter(key));
    expect(refused).toMatchObject({ code: 'LeaseHeld', context: { holder: 'other' } });
    expect([...new Set(requests.sent)]).toEqual(['GetItem']);
  });
});

describe('a call in line that leaves', () => {
  /** Too little to look at the line. */
  const short = () => call({ timeLeftMs: () => 1999 });
  /** Its first look shows what is no longer so when its time in line is over. */
  const late = async (send: Send) => {
    const seen = await send();
    timeline.advance(1000);
    return seen;
  };
  const comes = (key: string, requestId: string) =>
    dyingAfter(3, () => acquire({ key, ...asked, requestId, waitSeconds: 20 }));
  const leaving = (key: string, reads: ReturnType<typeof precededBy>) => {
    requests.faultsOf.GetItem = [late, 'none', reads]; // its first look, and then its place and the record
    return steady(key, { waitSeconds: 1 });
  };

  it('has the lease that another hand-off has granted to it, by a clock that is behind', async () => {
    const key = newKey();
    const first = await held(key);
    requests.faultsOf.UpdateItem = [
      'none', // its mark, and that of the other call
      'none',
      precededBy(async () => {
        timeline.advance(-400);
        await world.handOn(key, 'free');
        timeline.advance(400);
      }),
    ];
    const [granted] = await timeline.play(
      () =>
        leaving(
          key,
          precededBy(() => release(first, short())),
        ),
      () => later(5, () => comes(key, 'behind')),
    );
    expect(granted).toMatchObject({ holder: 'b', repeated: false });
  });

  it('learns that such a grant has been given back', async () => {
    const key = newKey();
    const first = await held(key);
    requests.faultsOf.Query = [
      precededBy(async () => {
        timeline.advance(-400);
        await world.handOn(key, 'free');
        await release(await acquire({ key, ...asked }));
        timeline.advance(400);
      }),
    ];
    const refused = await played(() =>
      failure(
        leaving(
          key,
          precededBy(() => release(first, short())),
        ),
      ),
    );
    expect(refused).toMatchObject({ code: 'LeaseLost', context: { reason: 'released' } });
  });
});

describe('a call in line that takes an expired lease over', () => {
  const TTL_SECONDS = 5;
  const TAKES_OVER_MS = TTL_SECONDS * 1000 + MARGIN_MS + 1;

  it('while another hands that on to it claims what it was given, for its whole ttl', async () => {
    const key = newKey();
    await held(key, TTL_SECONDS);
    const ends: string[] = [];
    const handedOn = async () => ends.push((await world.handOn(key, 'expired')).end);
    requests.faultsOf.UpdateItem = ['none', precededBy(handedOn)]; // its mark, and its transfer
    const granted = await played(() => steady(key));
    expect(ends).toEqual(['granted']);
    expect(granted).toMatchObject({ repeated: false, waitedMs: TAKES_OVER_MS, remainingMs: 10_000 });
    expect(await rawItem(key)).not.toHaveProperty('claim_ttl_ms');
  });

  it('while its holder extends that sends nothing more before its next look', async () => {
    const key = newKey();
    const first = await held(key, TTL_SECONDS);
    const extended = async () => {
      await heartbeat(first);
      requests.sent.length = 0;
    };
    requests.faultsOf.UpdateItem = ['none', precededBy(extended)]; // its mark, and its transfer
    const [granted, sent] = await timeline.play(
      () => steady(key),
      () => later(TAKES_OVER_MS + 10, async () => [...requests.sent]),
      () => later(TAKES_OVER_MS + 20, () => release(first)),
    );
    expect(sent).toEqual([]);
    expect(granted).toMatchObject({ holder: 'b', previous: { holder: 'first', ended: 'released' } });
  });

  it('does so at once where the record names none in line', async () => {
    const key = newKey();
    await held(key, TTL_SECONDS);
    const [granted] = await timeline.play(
      () => steady(key),
      () => later(10, () => without(key, 'next_ticket')),
    );
    expect(granted).toMatchObject({ holder: 'b', waitedMs: TAKES_OVER_MS });
  });
});

describe('a call in line that finds the lease free', () => {
  it.each([
    // At four tenths of what chance may bring it looks after 29 milliseconds, and leaves the lease to others for ten.
    ['it leaves that to others of a crowd for a while, and then takes it', 0.4, 29 + 10],
    ['it takes that at once, where it is the first of a crowd by chance', 0, FIRST_LOOK_MS],
  ])('because another client has deleted its record: %s', async (_, chance, waitedMs) => {
    const key = newKey();
    await held(key);
    inFirstLook(() => deleteRaw(key));
    expect(await played(() => steady(key, {}, chance))).toMatchObject({ holder: 'b', previous: null, waitedMs });
  });
});

describe('a call in line that finds the lease held without its mark', () => {
  /** Where the call joins, there is no record, so that its mark is refused. Right after that, another takes the lease. */
  const refusedMark = (key: string, taken: () => Promise<unknown>) => async (send: Send) => {
    await deleteRaw(key);
    try {
      return await send();
    } finally {
      await taken();
    }
  };

  it('and has not been counted takes it at once where it is free by then', async () => {
    const key = newKey();
    await held(key);
    let other: Awaited<ReturnType<typeof held>> | undefined;
    const taken = async () => {
      other = await acquire({ key, holder: 'other' });
    };
    requests.faultsOf.UpdateItem = [
      refusedMark(key, taken),
      'none', // its transfer, which is lost
      precededBy(async () => other && release(other)),
    ];
    const granted = await played(() => steady(key));
    expect(granted).toMatchObject({ waitedMs: FIRST_LOOK_MS, previous: { holder: 'other', ended: 'released' } });
  });

  it('and has not been counted is counted beside one that came after it', async () => {
    const key = newKey();
    await held(key);
    let other: Awaited<ReturnType<typeof held>> | undefined;
    const marks: unknown[] = [];
    const taken = async () => {
      requests.faultsOf.UpdateItem = [];
      timeline.advance(1); // a later ticket
      other = await acquire({ key, holder: 'other' });
      await dyingAfter(3, () => acquire({ key, holder: 'behind', waitSeconds: 20 }));
      marks.push((await rawItem(key))?.waiters);
    };
    requests.faultsOf.UpdateItem = [refusedMark(key, taken)];
    const [granted] = await timeline.play(
      () => steady(key),
      () =>
        later(500, async () => {
          marks.push((await rawItem(key))?.waiters);
          if (other) await release(other);
        }),
    );
    expect(marks).toEqual([{ N: '1' }, { N: '2' }]);
    expect(granted).toMatchObject({ holder: 'b', previous: { holder: 'other', ended: 'released' } });
  });
});
