import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { dyingAfter } from '../support/faults/mortal.ts';
import { failure } from '../support/worlds/leases.ts';
import { steadyLineWorld } from '../support/worlds/steady-line.ts';

const world = await steadyLineWorld();
const { now, later } = world.timeline;
const { acquire, release, cancel, executionEnded, rows, rawItem, park, requests, steps } = world;
const { timeline, steady, refusedAfter, answeredLate } = world;
afterAll(() => steps.stop());
beforeEach(() => {
  requests.faultsOf = {};
  requests.sent = [];
  steps.faults = {};
});

type Send = () => Promise<unknown>;

const WINDOW_MS = 2000;
const MARGIN_MS = 500;
/** The first look of a steady call, and the time between its looks. */
const LOOK_MS = 25;

let keys = 0;
const newKey = () => `looks ${keys++}`;
const asked = (key: string) => ({ key, holder: 'b', requestId: 'r', ttlSeconds: 10 });
/** The lease is held for a second already. */
const held = async (key: string, ttlSeconds = 60) => {
  const first = await acquire({ key, holder: 'first', ttlSeconds });
  timeline.advance(1000);
  return first;
};
const cancelFirst = async (key: string) => cancel(key, (await rows(key))[0]?.ticket?.S ?? '');
let executions = 0;
const endedExecution = () => {
  const execution = `arn:aws:states:us-east-1:123456789012:execution:machine:looks-${executions++}`;
  steps.executions.set(execution, 'FAILED');
  return execution;
};
/** The next look takes so long. Meanwhile something happens, of which it sees nothing. */
const standsStill = (ms: number, meanwhile: () => Promise<unknown> = async () => {}) => {
  const stands = async (send: Send) => {
    const answer = await send();
    const until = now() + ms;
    await meanwhile();
    timeline.advance(until - now());
    requests.sent = [];
    // A call that went on to look without a pause would never end.
    requests.faultsOf.GetItem = [...Array(20).fill('none'), { name: 'AccessDeniedException', status: 400 }];
    return answer;
  };
  requests.faultsOf.GetItem = [stands];
};

describe('a call in line that stood still for longer than the window', () => {
  const STANDS_MS = WINDOW_MS + 1;
  const AT = LOOK_MS + STANDS_MS;

  it.each([
    [WINDOW_MS, LOOK_MS + WINDOW_MS + LOOK_MS],
    [STANDS_MS, AT],
  ])(
    'and whose ticket is gone learns that at once, and after the window exactly by its next look (%i ms)',
    async (ms, at) => {
      const key = newKey();
      const execution = endedExecution();
      await held(key);
      standsStill(ms, async () => {
        await park({ key, holder: 'behind' });
        await executionEnded(execution);
      });
      const [refused] = await timeline.play(() => refusedAfter(key, { execution }));
      expect(refused).toMatchObject({
        code: 'LeaseHeld',
        afterMs: at,
        context: { holder: 'first', retryWith: { requestId: 'r' } },
      });
      expect(refused.context.retryWith).not.toHaveProperty('ticket');
    },
  );

  it('and whose ticket is there waits on', async () => {
    const key = newKey();
    const first = await held(key);
    standsStill(STANDS_MS);
    const [granted] = await timeline.play(
      () => steady(key),
      () => later(AT + 10, () => release(first)),
    );
    expect(granted).toMatchObject({ holder: 'b', repeated: false, waitedMs: AT + LOOK_MS });
  });

  it('and was cancelled learns so, and takes its ticket along', async () => {
    const key = newKey();
    await held(key);
    standsStill(STANDS_MS, async () => {
      await park({ key, holder: 'behind' });
      await cancelFirst(key);
    });
    const [refused] = await timeline.play(() => refusedAfter(key));
    expect(refused).toMatchObject({ code: 'LeaseLost', context: { reason: 'cancelled' }, afterMs: AT });
    expect(requests.sent).toEqual(['GetItem', 'GetItem', 'DeleteItem']); // its ticket, the record, its ticket
    expect((await rows(key)).map(({ holder }) => holder?.S)).toEqual(['behind']);
  });

  it.each([
    ['that it has not claimed, and that is over', async () => {}],
    // The first try, and the claim.
    [
      'that another call of its request has claimed, and died',
      (key: string) => dyingAfter(2, () => acquire(asked(key))),
    ],
  ])('and was cancelled with a grant %s, gives it to the next at once', async (_, claim) => {
    const key = newKey();
    const first = await held(key);
    const behind = steps.newTask();
    standsStill(STANDS_MS, async () => {
      await park({ key, holder: 'behind' }, behind);
      await release(first);
      await cancelFirst(key);
      await claim(key);
    });
    const [refused] = await timeline.play(() => refusedAfter(key));
    expect(refused).toMatchObject({ code: 'LeaseLost', context: { reason: 'cancelled' }, afterMs: AT });
    expect(behind.output).toMatchObject({ holder: 'behind' });
  });

  it('has at once the lease that another call of its request was answered with meanwhile', async () => {
    const key = newKey();
    const first = await held(key);
    const others: { leaseId: string }[] = [];
    standsStill(STANDS_MS, async () => {
      await release(first);
      others.push(await acquire(asked(key)));
    });
    const [granted] = await timeline.play(() => steady(key));
    expect(granted).toMatchObject({ repeated: true, leaseId: others[0]?.leaseId, waitedMs: AT });
    // Its ticket, the record, the answer, its ticket.
    expect(requests.sent).toEqual(['GetItem', 'GetItem', 'UpdateItem', 'DeleteItem']);
  });

  it('learns at once that another call of its request has had the lease, and given it back', async () => {
    const key = newKey();
    const first = await held(key);
    standsStill(STANDS_MS, async () => {
      await release(first);
      await release(await acquire(asked(key)));
    });
    const [refused] = await timeline.play(() => refusedAfter(key));
    expect(refused).toMatchObject({ code: 'LeaseLost', context: { reason: 'released' }, afterMs: AT });
  });

  it('and whose request has had the lease, which is over in this very moment, gets no second one', async () => {
    const key = newKey();
    const first = await held(key);
    standsStill(STANDS_MS, async () => {
      await release(first);
      timeline.advance(STANDS_MS - WINDOW_MS);
      await acquire({ ...asked(key), ttlSeconds: WINDOW_MS / 1000 });
    });
    const [refused] = await timeline.play(() => refusedAfter(key, { ttlSeconds: WINDOW_MS / 1000 }));
    expect(refused).toMatchObject({ code: 'LeaseHeld', context: { retryWith: { requestId: 'r' } }, afterMs: AT });
    expect(refused.context.retryWith).not.toHaveProperty('ticket');
  });
});

it('a call in line that may take an expired lease over, and finds its own place gone, learns so at once', async () => {
  const key = newKey();
  const execution = endedExecution();
  await held(key, 2);
  const canBeHadMs = 1000 + MARGIN_MS + 1;
  const [refused] = await timeline.play(
    () => refusedAfter(key, { execution }),
    () => later(canBeHadMs - 10, () => executionEnded(execution)),
  );
  expect(refused).toMatchObject({ code: 'LeaseHeld', context: { retryWith: { requestId: 'r' } }, afterMs: canBeHadMs });
  expect(refused.context.retryWith).not.toHaveProperty('ticket');
});

it('a call behind the next one looks at an expired lease before it waits for that one', async () => {
  const key = newKey();
  await held(key, 2);
  const canBeHadMs = 1000 + MARGIN_MS + 1;
  const turn = async () => {
    const grant = await steady(key, { holder: 'next', requestId: 'n' });
    const grantedAt = now();
    await later(10, () => release(grant));
    return grantedAt;
  };
  const from = now();
  const [grantedAt, behind] = await timeline.play(turn, () => later(60, () => steady(key)));
  expect(grantedAt - from).toBe(canBeHadMs);
  // The second in line looks forty milliseconds after the lease can be had.
  expect(behind).toMatchObject({ holder: 'b', waitedMs: canBeHadMs + 40 - 60, previous: { holder: 'next' } });
});

describe('a call in line', () => {
  it('looks at its own ticket once a second, and learns that it was cancelled', async () => {
    const key = newKey();
    await held(key);
    const [refused] = await timeline.play(
      () => refusedAfter(key),
      () =>
        later(510, async () => {
          await park({ key, holder: 'behind' });
          await cancelFirst(key);
          requests.sent = [];
        }),
    );
    expect(refused).toMatchObject({ code: 'LeaseLost', context: { reason: 'cancelled' }, afterMs: 1000 });
    // Its looks, its ticket with the last of them, the record, its ticket.
    const kinds = requests.sent.filter((name, at, all) => name !== all[at - 1]);
    expect(kinds).toEqual(['GetItem', 'BatchGetItem', 'GetItem', 'DeleteItem']);
  });

  it('whose ticket DynamoDB leaves out of an answer stays in line', async () => {
    const key = newKey();
    const first = await held(key);
    const { result, asked: looks } = await world.leavingOut(world.dependencies.waitersTable, () =>
      timeline.play(
        () => steady(key),
        () => later(1010, () => release(first)),
      ),
    );
    expect(result[0]).toMatchObject({ holder: 'b', waitedMs: 1025 });
    expect(looks).toHaveLength(1);
  });

  it('leaves between two looks where its time is over then', async () => {
    const key = newKey();
    await held(key);
    requests.faultsOf.GetItem = [answeredLate(10)];
    const [refused] = await timeline.play(() => refusedAfter(key, { waitSeconds: 1 }));
    expect(refused).toMatchObject({ code: 'LeaseHeld', context: { holder: 'first', place: 1 }, afterMs: 1000 });
  });

  it('waits for the turn of one before it that has just been granted the lease, and for a quick hand-off', async () => {
    const key = newKey();
    const first = await held(key);
    const looks: number[] = [];
    const from = now();
    await timeline.play(
      () => dyingAfter(3, () => acquire({ key, holder: 'before', waitSeconds: 20 })),
      () => later(10, () => failure(steady(key, { waitSeconds: 1 }))),
      () =>
        later(455, async () => {
          await release(first);
          const look = async (send: Send) => {
            looks.push(now() - from);
            return send();
          };
          requests.faultsOf.GetItem = Array(3).fill(look);
        }),
    );
    expect(await rawItem(key)).toMatchObject({ holder: { S: 'before' }, turn_ms: { N: '1455' } });
    // A first turn counts as a hundred milliseconds, and a hand-off as twelve.
    expect(looks.slice(0, 2)).toEqual([460, 455 + 100 + 12]);
  });
});
