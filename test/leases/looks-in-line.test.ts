import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { dyingAfter } from '../support/faults/mortal.ts';
import { failure } from '../support/worlds/leases.ts';
import { steadyLineWorld } from '../support/worlds/steady-line.ts';

const world = await steadyLineWorld();
const { now, later } = world.timeline;
const { acquire, release, cancel, executionEnded, rows, rawItem, park, requests, steps } = world;
const { timeline, steady, refusedAfter } = world;
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
