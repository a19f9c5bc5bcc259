import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { DEFAULT_QUOTAS } from '../../shared/line/limits/quotas.ts';
import { acquireInput } from '../../shared/locks/inputs.ts';
import { acquirePermit } from '../../shared/permits/acquire.ts';
import { call } from '../support/emulators/aws.ts';
import { dyingAfter } from '../support/faults/mortal.ts';
import { Timeline } from '../support/time/timeline.ts';
import { failure } from '../support/worlds/leases.ts';
import { poolLineWorld } from '../support/worlds/permits-in-line.ts';

const timeline = new Timeline();
const { now, later } = timeline;
const world = await poolLineWorld({ clock: timeline });
const { acquire, release, heartbeat, park, read, rows, repairLine, requests, steps, precededBy } = world;
afterAll(() => steps.stop());
beforeEach(() => {
  requests.faultsOf = {};
});

type Grant = Awaited<ReturnType<typeof acquire>>;
type Send = () => Promise<unknown>;

const own = { holder: 'R', requestId: 'r', limit: 1, ttlSeconds: 10 };

/** A call that joins the line, and then exits. */
const dieInLine = async (key: string, more: object = {}) => {
  await timeline.play(() => dyingAfter(3, () => acquire({ key, holder: 'dead', limit: 1, waitSeconds: 20, ...more })));
  timeline.advance(1); // a later ticket
};
const expectRepeated = (answer: Grant, duplicates: Grant[]) => {
  const [{ leaseId, fence } = {}] = duplicates;
  expect([answer, duplicates]).toMatchObject([{ leaseId, fence, repeated: true }, [{ repeated: false }]]);
};

/** A heartbeat, which writes a new version. */
const beat = ({ key, leaseId }: Grant) => {
  timeline.advance(1);
  return heartbeat({ key, leaseId });
};

describe('a call whose duplicate call receives a permit meanwhile', () => {
  it('a call that looks at the line receives the permit of a duplicate call, though another joins', async () => {
    const key = 'looking';
    await acquire({ key, holder: 'dead', limit: 1, ttlSeconds: 3 });
    await park({ key, holder: 'overdue', limit: 1, parkSeconds: 5 });
    timeline.advance(8000);
    const duplicates: Grant[] = [];
    requests.faultsOf.Query = [
      precededBy(async () => {
        duplicates.push(await acquire({ key, ...own }));
        await park({ key, holder: 'behind', limit: 1 });
      }),
    ];
    const answer = await acquire({ key, ...own });
    expectRepeated(answer, duplicates);
    expect(await read(key)).toMatchObject({ used: 1, waiting: 1, holders: [{ holder: 'R' }] });
  });

  it.each(['empty', 'full'])(
    'a call before its claim receives the permit of a duplicate call, with a line behind that is %s',
    async (line) => {
      const key = `claim ${line}`;
      const first = await acquire({ key, holder: 'x', limit: 1, ttlSeconds: 60 });
      await dieInLine(key, own);
      if (line === 'full') await park({ key, holder: 'behind', limit: 1 });
      else await repairLine(key); // puts the mark back
      await release(first);
      const duplicates: Grant[] = [];
      requests.faultsOf.UpdateItem = ['none', precededBy(async () => duplicates.push(await acquire({ key, ...own })))];
      const answer = await acquire({ key, ...own });
      expectRepeated(answer, duplicates);
      expect(await rows(key)).toHaveLength(line === 'full' ? 1 : 0);
    },
  );

  it.each([1, 12])(
    'a call whose deadline has come receives the permit of a duplicate call that has changed it %i times',
    async (changes) => {
      const key = `leaves ${changes}`;
      const first = await acquire({ key, holder: 'x', limit: 1, ttlSeconds: 60 });
      const deadline = now() + 1000;
      const duplicates: Grant[] = [];
      const lastLook = async (send: Send) => {
        const answer = await send();
        if (now() < deadline - 500) return answer;
        await release(first); // gives the permit to the call in line
        timeline.advance(500);
        const claims = precededBy(async () => duplicates.push(await acquire({ key, ...own })));
        const beats = precededBy(() => Promise.all(duplicates.map(beat)));
        requests.faultsOf = { UpdateItem: [claims, ...Array(changes - 1).fill(beats)] };
        return answer;
      };
      requests.faultsOf.GetItem = Array(1000).fill(lastLook);
      const [answer] = await timeline.play(() => acquire({ key, ...own, waitSeconds: 1 }));
      expectRepeated(answer, duplicates);
      expect(await rows(key)).toEqual([]);
    },
  );
});

it.each([
  ['twelve', 12, 'repeated', 26],
  ['a hundred', 100, 'LeaseHeld', 40], // it gives up after twenty tries
])(
  'a call whose permit others change %s times before its claim receives the permit or LeaseHeld',
  async (_, changes, outcome, writes) => {
    const key = `changed ${changes}`;
    const first = await acquire({ key, holder: 'x', limit: 1, ttlSeconds: 60 });
    await dieInLine(key, own);
    await park({ key, holder: 'behind', limit: 1 });
    await release(first);
    const duplicate = await acquire({ key, ...own });
    const beats = precededBy(() => beat(duplicate));
    // Each second write is that of a claim.
    let written = 0;
    const counted = (send: Send) => (written++ < 2 * changes ? beats(send) : send());
    requests.faultsOf.UpdateItem = Array(1000).fill(counted);
    const answer = await acquire({ key, ...own }).then(
      ({ leaseId, repeated }) => leaseId === duplicate.leaseId && repeated && 'repeated',
      ({ code }) => code,
    );
    expect([answer, written]).toEqual([outcome, writes]);
  },
);

it('a call whose permit was changed five times, and has then expired, receives another permit', async () => {
  const key = 'changed, then over';
  const first = await acquire({ key, holder: 'x', limit: 1, ttlSeconds: 60 });
  await dieInLine(key, own);
  await repairLine(key); // puts the mark back
  await release(first); // gives the permit to the place, and takes the mark off
  const duplicate = await acquire({ key, ...own });
  const beats = precededBy(() => beat(duplicate));
  const ends = precededBy(async () => {
    await beat(duplicate);
    timeline.advance(10_501);
  });
  // Each second write is that of a claim.
  requests.faultsOf.UpdateItem = [...Array(5).fill(beats), ends].flatMap((claim) => ['none', claim]);
  const again = await acquire({ key, ...own });
  expect(again).toMatchObject({ repeated: false, previous: { fence: duplicate.fence, ended: 'expired' } });
});

it('a call that does not wait receives LeaseLost if its old waiter receives a permit and releases it in between', async () => {
  const key = 'given back';
  const first = await acquire({ key, holder: 'x', limit: 1, ttlSeconds: 60 });
  await dieInLine(key, own);
  await repairLine(key); // puts the mark back
  await release(first, call({ timeLeftMs: () => 1999 })); // too little to look at the line
  timeline.advance(100); // the call that released has exited
  requests.faultsOf.UpdateItem = ['none', precededBy(async () => release(await acquire({ key, ...own })))];
  const refused = await failure(acquire({ key, ...own }));
  expect(refused).toMatchObject({ code: 'LeaseLost', context: { reason: 'released' } });
});

it('a call in line whose permit others change before each of its claims leaves at its deadline', async () => {
  const key = 'changed in line';
  const first = await acquire({ key, holder: 'x', limit: 1, ttlSeconds: 60 });
  const duplicates: Grant[] = [];
  let claims = 0;
  let isOwn = true;
  // Each write but those of the hooks themselves is that of a claim.
  const changes = async (send: Send) => {
    if (!isOwn) return send();
    isOwn = false;
    claims++;
    if (duplicates.length === 0) duplicates.push(await acquire({ key, ...own }));
    else if (claims <= 100) await Promise.all(duplicates.map(beat));
    isOwn = true;
    return send();
  };
  const stands = async (send: Send) => {
    await release(first); // gives the permit to the call in line
    const answer = await send();
    timeline.advance(1000);
    requests.faultsOf = { UpdateItem: Array(1000).fill(changes) };
    return answer;
  };
  requests.faultsOf.GetItem = [stands];
  const [refused] = await timeline.play(() => failure(acquire({ key, ...own, waitSeconds: 1 })));
  expect(refused).toMatchObject({ code: 'LeaseHeld', context: { holders: [{ holder: 'R' }] } });
  expect(claims).toBe(40); // twenty tries, and twenty more when it leaves
});

it('a call in line whose request receives a permit of another weight is refused, and leaves no place behind', async () => {
  const key = 'another weight';
  const first = await acquire({ key, holder: 'x', limit: 3, weight: 3, ttlSeconds: 60 });
  const asked = { key, ...own, limit: 3, waitSeconds: 10 };
  const [granted, refused] = await timeline.play(
    () => acquire(asked),
    () => later(10, () => failure(acquire({ ...asked, weight: 2 }))),
    () => later(500, () => release(first)),
  );
  expect(granted).toMatchObject({ weight: 1, used: 1 });
  expect(refused).toMatchObject({ code: 'InvalidRequest', context: { issues: [{ path: 'requestId' }] } });
  expect(await rows(key)).toEqual([]);
});

/** Calls whose pauses are the shortest ones, and no matter of chance. */
const withShortestPauses = acquirePermit({
  ...world.dependencies,
  ids: { ...world.dependencies.ids, random: () => 0 },
});
const asks = (input: object) => acquireInput().parse({ limit: 1, ttlSeconds: 60, waitSeconds: 1, ...input });
describe('a call that has others before it in line', () => {
  it('a call receives its permit at once after short turns', async () => {
    const key = 'short turns';
    const first = await acquire({ key, holder: 'x', limit: 1 });
    const turn = (holder: string) => async () => {
      const grant = await acquire({ key, holder, limit: 1, waitSeconds: 20 });
      await later(10, () => release(grant));
      return grant;
    };
    const [, , last] = await timeline.play(
      () => later(10, () => release(first)),
      turn('b'),
      () => later(1, turn('c')),
    );
    expect(last.waitedMs).toBeLessThan(100);
  });

  it('a call leaves free room to the one waiter before it for 50 milliseconds', async () => {
    const key = 'patience';
    const first = await acquire({ key, holder: 'x', limit: 1, ttlSeconds: 60 });
    timeline.advance(1000);
    await dieInLine(key);
    const from = now();
    const at = { looks: [] as number[], queries: [] as number[] };
    const looks = precededBy(async () => {
      at.looks.push(now() - from);
      // The second look takes until those 50 milliseconds are over.
      if (at.looks.length === 2) timeline.advance(1);
    });
    const queries = precededBy(async () => at.queries.push(now() - from));
    await timeline.play(
      () => failure(withShortestPauses(asks({ key, holder: 'b' }), call())),
      () =>
        later(100, async () => {
          await dyingAfter(1, () => release(first));
          requests.faultsOf = { GetItem: Array(100).fill(looks), Query: Array(100).fill(queries) };
        }),
    );
    expect([at.looks.slice(0, 2), at.queries[0]]).toEqual([[150, 199], 200]);
    expect((await read(key)).holders).toMatchObject([{ holder: 'dead' }]);
  });

  it('a call that finds no room for the next waiter reads the line once with each look', async () => {
    const key = 'heavy';
    const asked = { key, limit: 2, ttlSeconds: 60 };
    const [x, y] = [await acquire({ ...asked, holder: 'x' }), await acquire({ ...asked, holder: 'y' })];
    // The mark of the heavy one lands late, so the record names the light one as the next.
    requests.faultsOf.UpdateItem = ['none', (send) => later(20, send)];
    requests.faultsOf.Query = [...Array(30).fill('none'), ...Array(30).fill({ name: 'Refused', status: 400 })];
    const [heavy, light] = await timeline.play(
      async () => {
        const grant = await acquire({ ...asked, holder: 'heavy', weight: 2, waitSeconds: 20 });
        await release(grant);
        return grant;
      },
      () => later(10, () => acquire({ ...asked, holder: 'light', waitSeconds: 20 })),
      () => later(100, () => release(x)),
      () => later(200, () => release(y)),
    );
    expect(heavy.fence).toBeLessThan(light.fence);
  });
});

describe('where as many as the quota allows wait for a permit', () => {
  const QUOTA = 2;
  const withQuota = acquirePermit({
    ...world.dependencies,
    quotas: { ...DEFAULT_QUOTAS, waitersPerKey: QUOTA },
  });

  it('a call whose request is granted a permit before it is in line itself has that', async () => {
    const key = 'granted before';
    const first = await acquire({ key, holder: 'x', limit: 1, ttlSeconds: 60 });
    await dieInLine(key, { holder: 'b', requestId: 'r' });
    for (let more = 0; more < QUOTA; more++) await park({ key, holder: `t${more}`, limit: 1 });
    requests.faultsOf.UpdateItem = ['none', precededBy(() => release(first))];
    const [granted] = await timeline.play(() => withQuota(asks({ key, holder: 'b', requestId: 'r' }), call()));
    expect(granted).toMatchObject({ holder: 'b', repeated: false, used: 1 });
    expect(await rows(key)).toHaveLength(QUOTA);
  });
});
