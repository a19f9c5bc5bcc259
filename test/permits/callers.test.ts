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
const { now, sleep, later } = timeline;
const world = await poolLineWorld({ clock: timeline });
const { acquire, release, cancel, read, rows, rawItem, requests, repairLine, park, steps } = world;
const { precededBy, answeredLate } = world;
afterAll(() => steps.stop());
beforeEach(() => {
  requests.faultsOf = {};
});

const WINDOW_MS = 2000;
const MARGIN_MS = 500;

let keys = 0;
const newKey = () => `pool ${keys++}`;
const waiting = (key: string, holder: string, more: object = {}) =>
  acquire({ key, holder, limit: 2, ttlSeconds: 10, waitSeconds: 20, ...more });
const withShortestPauses = acquirePermit({
  ...world.dependencies,
  ids: { ...world.dependencies.ids, random: () => 0 },
});
/** A call that looks each 25 milliseconds from its arrival on. */
const steady = (key: string, more: object = {}) =>
  withShortestPauses(
    acquireInput().parse({ key, holder: 'b', requestId: 'r', limit: 1, ttlSeconds: 10, waitSeconds: 20, ...more }),
    call(),
  );
/** The only permit is held for a second already, and for long. */
const held = async (key: string) => {
  const first = await waiting(key, 'x', { limit: 1, ttlSeconds: 60 });
  timeline.advance(1000);
  return first;
};
/** Acquires, holds for so long, and gives back. */
const turn = async (key: string, holder: string, holdMs: number, more: object = {}) => {
  const grant = await waiting(key, holder, more);
  const grantedAt = now();
  await sleep(holdMs);
  await release(grant);
  return { ...grant, grantedAt, releasedAt: now() };
};
type Turn = Awaited<ReturnType<typeof turn>>;

describe('callers that wait for a permit', () => {
  it('of a weight that does not fit yet keep the light ones behind them out', async () => {
    const key = newKey();
    const holders = [await waiting(key, 'x', { limit: 4, weight: 2 }), await waiting(key, 'y', { limit: 4 })];
    const heavy = () => turn(key, 'heavy', 100, { limit: 4, weight: 4 });
    const light = () => later(50, () => turn(key, 'light', 100, { limit: 4 }));
    const free = async () => {
      await later(2000, () => release(holders[0] as { key: string; leaseId: string }));
      const between = await read(key);
      await later(2000, () => release(holders[1] as { key: string; leaseId: string }));
      return between;
    };
    const [h, l, between] = await timeline.play(heavy, light, free);
    expect(between).toMatchObject({ used: 1, waiting: 2 });
    expect(h.fence).toBeLessThan(l.fence);
    expect(l.grantedAt).toBeGreaterThanOrEqual(h.releasedAt);
  });

  it('to write come in before readers that came later, and readers together after it', async () => {
    const key = newKey();
    const reading = { limit: undefined, mode: 'shared' };
    const readers = [await waiting(key, 'r1', reading), await waiting(key, 'r2', reading)];
    const writer = () => turn(key, 'writer', 500, { limit: undefined, mode: 'exclusive' });
    const late = ['r3', 'r4', 'r5'].map((name) => () => later(100, () => turn(key, name, 500, reading)));
    const free = readers.map((permit) => () => later(1000, () => release(permit)));
    const [w, ...others] = await timeline.play(writer, ...late, ...free);
    const after = others.slice(0, 3) as Turn[];
    for (const one of after) expect(one.grantedAt).toBeGreaterThanOrEqual((w as Turn).releasedAt);
    const [least, most] = [Math.min(...after.map((r) => r.releasedAt)), Math.max(...after.map((r) => r.grantedAt))];
    expect(most).toBeLessThan(least); // at one time
  });

  it.each([
    [{ limit: 1 }, { used: 1, limit: 1 }],
    [{ limit: undefined, mode: 'exclusive' }, { holders: [{ mode: 'exclusive' }] }],
  ])('that receive LeaseHeld at the end keep their place for a while: %o', async (terms, told) => {
    const key = newKey();
    const first = await waiting(key, 'x', { ...terms, ttlSeconds: 60 });
    const [held] = await timeline.play(() => failure(waiting(key, 'b', { ...terms, waitSeconds: 1, requestId: 'b' })));
    expect(held).toMatchObject({ code: 'LeaseHeld', context: { place: 1, waiting: 0, ...told } });
    const retryWith = held.context.retryWith as { requestId: string; ticket: string };
    const again = () => later(1000, () => turn(key, 'b', 100, { ...terms, ...retryWith }));
    const newcomer = () => turn(key, 'c', 100, terms);
    const [, b, c] = await timeline.play(() => later(3000, () => release(first)), again, newcomer);
    expect(b.fence).toBeLessThan(c.fence);
    expect(await rows(key)).toEqual([]);
  });

  it('take a new place where they ask again by other terms, which alone let them in', async () => {
    const key = newKey();
    const [first, second] = [await waiting(key, 'x'), await waiting(key, 'y')];
    const [held] = await timeline.play(() => failure(waiting(key, 'b', { waitSeconds: 1, requestId: 'b' })));
    const retryWith = held.context.retryWith as { requestId: string; ticket: string };
    const [, , grant] = await timeline.play(
      () => later(500, () => release(first)),
      () => later(1500, () => release(second)),
      () => waiting(key, 'b', { limit: 1, ...retryWith }),
    );
    expect(grant).toMatchObject({ limit: 1, used: 1 });
    expect(grant.waitedMs).toBeGreaterThanOrEqual(1500);
    await timeline.play(() => later(10_000, () => repairLine(key)));
    expect(await rows(key)).toEqual([]);
  });

  it('and are cancelled learn so, and those behind them come in', async () => {
    const key = newKey();
    const first = await waiting(key, 'x', { limit: 2 });
    const [lost, , next] = await timeline.play(
      () => failure(waiting(key, 'heavy', { limit: 2, weight: 2, requestId: 'h' })),
      async () => {
        await sleep(500);
        const { waiters = [] } = await read(key, { waiters: true });
        expect(waiters).toMatchObject([
          { kind: 'caller', holder: 'heavy' },
          { kind: 'caller', holder: 'light' },
        ]);
        expect(await cancel(key, waiters[0]?.ticket ?? '')).toMatchObject({ cancelled: true });
      },
      () => later(100, () => waiting(key, 'light', { limit: 2 })),
    );
    expect(lost).toMatchObject({ code: 'LeaseLost', context: { reason: 'cancelled' } });
    expect(next).toMatchObject({ holder: 'light', used: 2 });
    await release(first);
  });

  it('cost few requests for each grant', async () => {
    const key = newKey();
    requests.sent.length = 0;
    const [first, second] = await timeline.play(
      () => turn(key, 'a', 100, { limit: 1 }),
      () => later(10, () => turn(key, 'b', 100, { limit: 1 })),
    );
    expect(first.fence).toBeLessThan(second.fence);
    expect(requests.sent.length).toBeLessThan(16);
  });
});

describe('callers that race', () => {
  const own = { holder: 'R', requestId: 'r', limit: 1, fair: false };
  const writes = () => requests.sent.filter((command) => command === 'UpdateItem').length;

  it('have no place in line, and do not write where they see no room', async () => {
    const key = newKey();
    await waiting(key, 'x', { limit: 1, ttlSeconds: 60 });
    requests.sent.length = 0;
    const [refused] = await timeline.play(() => failure(acquire({ key, ...own, waitSeconds: 2 })));
    expect(refused.code).toBe('LeaseHeld');
    expect(refused.context).not.toHaveProperty('place');
    expect([writes(), await rows(key)]).toEqual([1, []]);
  });

  it('are answered with the permit that another call of the request gets', async () => {
    const key = newKey();
    await waiting(key, 'x', { limit: 1, ttlSeconds: 60 });
    const [answer, { leaseId }] = await timeline.play(
      () => acquire({ key, ...own, waitSeconds: 4 }),
      () => later(1000, () => acquire({ key, ...own, limit: 2 })),
    );
    expect(answer).toMatchObject({ leaseId, repeated: true });
    expect(answer.waitedMs).toBeLessThan(1300);
  });

  it('do not write for one that is over by then, where others leave no room', async () => {
    const key = newKey();
    await waiting(key, 'x', { limit: 1, ttlSeconds: 60 });
    requests.sent.length = 0;
    requests.faultsOf.GetItem = [
      async (send: () => Promise<unknown>) => {
        await acquire({ key, ...own, limit: 2, ttlSeconds: 2 });
        const seen = await send();
        timeline.advance(2000); // to its very end
        return seen;
      },
    ];
    const [refused] = await timeline.play(() => failure(acquire({ key, ...own, waitSeconds: 4 })));
    expect(refused).toMatchObject({ code: 'LeaseHeld', context: { used: 2 } });
    expect(writes()).toBe(2);
  });
});

it('where the concurrency of acquire is reserved, callers that come back to their places go before others', async () => {
  const key = newKey();
  const quotas = { ...DEFAULT_QUOTAS, acquireConcurrency: 3 }; // one may wait, and one more in its place
  const asking = (more: object) =>
    acquirePermit({ ...world.dependencies, quotas })(
      acquireInput().parse({ key, holder: 'b', limit: 1, waitSeconds: 2, ...more }),
      call(),
    );
  await waiting(key, 'x', { limit: 1, ttlSeconds: 60 });
  const [left] = await timeline.play(() => failure(asking({ requestId: 'r', waitSeconds: 1 })));
  const again = left.context.retryWith as { requestId: string; ticket: string };
  const from = now();
  const ends = [{ fair: false }, {}, { ...again, fair: false }, again].map((more, at) => async () => {
    await sleep(10 * at);
    const { code, context } = await failure(asking(more));
    return { code, used: context.used, waited: now() - from >= 2000 };
  });
  expect(await timeline.play(...ends)).toEqual(
    [true, false, false, true].map((waited) => ({ code: 'LeaseHeld', used: 1, waited })),
  );
});

describe('a call in line looks at its own ticket', () => {
  it('once a second, and learns that it was cancelled, though others wait behind it', async () => {
    const key = newKey();
    await held(key);
    const from = now();
    requests.faultsOf.GetItem = [answeredLate(950)];
    const [refused] = await timeline.play(
      async () => ({ ...(await failure(steady(key))), at: now() }),
      () =>
        later(500, async () => {
          await park({ key, holder: 'behind', limit: 1 });
          await cancel(key, (await rows(key))[0]?.ticket?.S ?? '');
        }),
    );
    expect(refused).toMatchObject({ code: 'LeaseLost', context: { reason: 'cancelled' } });
    expect(refused.at - from).toBe(1000);
  });
});

describe('a call whose time in line is over', () => {
  it('gives room that nobody gave to the line to the next', async () => {
    const key = newKey();
    const first = await held(key);
    const [refused, , { task }] = await timeline.play(
      async () => ({ ...(await failure(steady(key, { waitSeconds: 1 }))), at: now() }),
      () => later(990, () => dyingAfter(1, () => release(first))),
      () => later(10, () => park({ key, holder: 'behind', limit: 1 })),
    );
    expect(refused).toMatchObject({ code: 'LeaseHeld', context: { used: 1, holders: [{ holder: 'behind' }] } });
    expect(task.output).toMatchObject({ holder: 'behind', used: 1 });
  });

  it('claims its permit, also after the window, though another waits behind it', async () => {
    const key = newKey();
    const first = await held(key);
    const stands = async (send: () => Promise<unknown>) => {
      const answer = await send();
      await park({ key, holder: 'behind', limit: 1 });
      await release(first);
      timeline.advance(WINDOW_MS + MARGIN_MS + 1);
      return answer;
    };
    requests.faultsOf.GetItem = [stands];
    const [granted] = await timeline.play(() => steady(key, { waitSeconds: 1 }));
    expect(granted).toMatchObject({ holder: 'b', repeated: false, remainingMs: 10_000 });
    expect(await read(key)).toMatchObject({ used: 1, waiting: 1, holders: [{ holder: 'b' }] });
  });
});

it.each(['look at the record', 'look at the line'])(
  'a call in line that cannot %s names its place, for the call that asks again',
  async (look) => {
    const key = newKey();
    const first = await held(key);
    const denied = { name: 'AccessDeniedException', status: 400 };
    requests.faultsOf = look.endsWith('record')
      ? { GetItem: [denied] }
      : { UpdateItem: ['none', precededBy(() => release(first))], Query: [denied] }; // the second marks the record
    const [failed] = await timeline.play(() => failure(steady(key)));
    const [{ ticket } = {}] = await rows(key);
    expect(failed).toMatchObject({
      code: 'Unavailable',
      context: { retryWith: { requestId: 'r', ticket: ticket?.S } },
    });
  },
);

it('a call that claims its permit after a plain call has taken the permit over keeps its position and waits on', async () => {
  const key = newKey();
  const first = await held(key);
  const others: { key: string; leaseId: string }[] = [];
  const [, grant] = await timeline.play(
    () =>
      later(100, async () => {
        const takesOver = precededBy(async () => {
          timeline.advance(WINDOW_MS + MARGIN_MS + 1);
          requests.faultsOf.UpdateItem = [];
          others.push(await acquire({ key, holder: 'other', limit: 1 }));
        });
        await release(first);
        requests.faultsOf.UpdateItem = [takesOver]; // the claim
      }),
    () => waiting(key, 'second', { limit: 1 }),
    () => later(5000, async () => Promise.all(others.map((other) => release(other)))),
  );
  expect(others).toHaveLength(1);
  expect(grant).toMatchObject({ holder: 'second', repeated: false, remainingMs: 10_000 });
  expect(await rows(key)).toEqual([]);
});

describe('what becomes of the mark', () => {
  it('one that is put back shows the call at once what came free meanwhile', async () => {
    const key = newKey();
    const first = await held(key);
    const [granted] = await timeline.play(
      () => steady(key),
      () =>
        later(510, async () => {
          await world.removeMark(key);
          await release(first);
        }),
    );
    expect(granted).toMatchObject({ holder: 'b', waitedMs: 525 }); // when it saw that the mark is gone
  });

  it('never has a value twice, though the line is empty in between', async () => {
    const key = newKey();
    const seen: (string | undefined)[] = [];
    for (const name of ['b', 'c', 'd']) {
      const first = await waiting(key, 'x', { limit: 1 });
      await timeline.play(
        () => turn(key, name, 10, { limit: 1 }),
        async () => {
          await sleep(500);
          seen.push((await rawItem(key))?.waiters?.N);
          await release(first);
        },
      );
    }
    expect(new Set(seen).size).toBe(3);
    expect(seen).not.toContain(undefined);
  });
});
