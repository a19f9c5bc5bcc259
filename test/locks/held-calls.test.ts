import { expect, it } from 'vitest';
import { acquireGrant } from '../../shared/locks/calls/acquire.ts';
import { acquireInput } from '../../shared/locks/calls/inputs.ts';
import { DEFAULT_QUOTAS } from '../../shared/locks/dependencies.ts';
import type { HoldReason } from '../../shared/locks/line/expected.ts';
import { inSeat } from '../../shared/locks/line/held-calls.ts';
import { call } from '../support/emulators/aws.ts';
import { aFew } from '../support/time/rounds.ts';
import { Timeline } from '../support/time/timeline.ts';
import { failure, leaseWorld } from '../support/worlds/leases.ts';
import { lineWorld } from '../support/worlds/line.ts';

/** A deployment with a limit of held calls. */
async function stage(maxHeldCalls: number) {
  const timeline = new Timeline();
  const world = await lineWorld({ clock: timeline, quotas: { ...DEFAULT_QUOTAS, maxHeldCalls } });
  const acquire = (input: object) => acquireGrant(world.dependencies)(acquireInput().parse(input), call());
  const seats = async () => {
    const records = await Promise.all([0, 1, 2, 3].map((nth) => world.rawItem(`holdfast:held:${nth}`)));
    return records.flatMap((record) => Object.keys(record ?? {}).filter((name) => /^s\d+$/.test(name)));
  };
  /** Tries to hold `tries` calls at once. @returns how many were held */
  const most = async (reason: HoldReason, tries: number) => {
    const wait = () => timeline.sleep(5000);
    const outcomes = await timeline.play(
      ...Array.from({ length: tries }, (_, at) => async () => {
        await timeline.sleep(at);
        return inSeat(world.dependencies, { reason, deadline: timeline.now() + 6000 }, { wait, call: call() });
      }),
    );
    return outcomes.filter((outcome) => outcome !== undefined).length;
  };
  return { ...world, timeline, acquire, seats, most };
}

it('no more calls are held at once than the deployment allows', async () => {
  const { most, seats } = await stage(8);
  const count = await most('front', 40);
  // A call tries only a few seats, so some may stay free.
  expect(count).toBeGreaterThanOrEqual(6);
  expect(count).toBeLessThanOrEqual(8);
  expect(await seats()).toEqual([]);
});

it.each(
  aFew<[HoldReason, number]>(1, [
    ['soon', 20],
    ['next', 20],
    ['cannotSleep', 32],
  ]),
)('a held call (%s) leaves the last seats to the front', async (reason, allowed) => {
  const { most, seats } = await stage(40);
  const count = await most(reason, 120);
  expect(await seats()).toEqual([]);
  expect(count).toBeLessThanOrEqual(allowed);
  expect(count).toBeGreaterThanOrEqual(allowed / 2);
});

it('a call takes a seat of a second record if the first is full', async () => {
  const { dependencies, timeline, rawItem } = await stage(8);
  const sure = { ...dependencies, ids: { ...dependencies.ids, random: () => 0 } };
  const holding = { reason: 'cannotSleep', deadline: timeline.now() + 6000 } as const;
  const held = () => inSeat(sure, holding, { wait: () => timeline.sleep(5000), call: call() });
  // A record has two seats, and one of them is left to the front.
  const after = (ms: number) => async () => {
    await timeline.sleep(ms);
    return held();
  };
  const outcomes = await timeline.play(after(0), after(100), after(200));
  expect(outcomes.map((outcome) => outcome !== undefined)).toEqual([true, true, false]);
  expect(await rawItem('holdfast:held:2')).toBeUndefined();
});

it('the seat of a call that exited is free a second after its deadline', async () => {
  const { dependencies, timeline, most } = await stage(1);
  const never = () => new Promise<never>(() => {});
  void inSeat(dependencies, { reason: 'front', deadline: timeline.now() + 20_000 }, { wait: never, call: call() });
  await expect.poll(() => most('front', 1)).toBe(0);
  timeline.advance(21_001);
  expect(await most('front', 1)).toBe(1);
});

it('a seat of a call that exited does not count for others', async () => {
  const { dependencies, timeline, seats, most } = await stage(8);
  const holding = { reason: 'front', deadline: timeline.now() + 20_000 } as const;
  const wait = () => new Promise<never>(() => {});
  for (let tries = 0; tries < 40; tries++) void inSeat(dependencies, holding, { wait, call: call() });
  await expect.poll(async () => (await seats()).length).toBeGreaterThanOrEqual(6);
  timeline.advance(21_001);
  expect(await most('soon', 1)).toBe(1);
});

it('a late call does not free a seat that another call has taken', async () => {
  const { dependencies, timeline, most } = await stage(1);
  const holds = (afterMs: number, waitMs: number) => async () => {
    await timeline.sleep(afterMs);
    const wait = () => timeline.sleep(waitMs);
    return inSeat(dependencies, { reason: 'front', deadline: timeline.now() + 1000 }, { wait, call: call() });
  };
  const outcomes = await timeline.play(holds(0, 5000), holds(4000, 1900), holds(5500, 10));
  expect(outcomes.map((outcome) => outcome !== undefined)).toEqual([true, true, false]);
  expect(await most('front', 1)).toBe(1);
});

it.each(['throttle', 'lostReply'] as const)('a call is not held if its seat is not counted (%s)', async (fault) => {
  const { dependencies, requests, timeline, seats } = await stage(4);
  requests.faultsOf.UpdateItem = Array(20).fill(fault);
  const wait = async () => 'it waited';
  const holding = { reason: 'front', deadline: timeline.now() + 1000 } as const;
  const [outcome] = await timeline.play(() => inSeat(dependencies, holding, { wait, call: call() }));
  expect(outcome).toBeUndefined();
  expect((await seats()).length).toBe(fault === 'lostReply' ? 1 : 0);
});

it('a call that fails frees its seat', async () => {
  const { dependencies, timeline, seats } = await stage(4);
  const wait = () => Promise.reject(new Error('it failed'));
  const holding = { reason: 'front', deadline: timeline.now() + 20_000 } as const;
  await expect(inSeat(dependencies, holding, { wait, call: call() })).rejects.toThrow('it failed');
  expect(await seats()).toEqual([]);
});

it('a caller whose call is not held keeps its place for a minute', async () => {
  const { acquire, timeline, rows } = await stage(0);
  const first = await acquire({ key: 'k', holder: 'first', ttlSeconds: 600 });
  const asked = { key: 'k', holder: 'second', requestId: 'r', waitSeconds: 20 };
  const refused = await failure(acquire(asked));
  const { comeBackMs, retryAfterMs, keptMs, place, retryWith } = refused.context;
  expect(refused.code).toBe('LeaseHeld');
  expect(comeBackMs).toBe(retryAfterMs);
  expect(comeBackMs).toBeGreaterThanOrEqual(1000);
  expect(comeBackMs).toBeLessThanOrEqual(3000);
  expect([keptMs, place]).toEqual([Number(comeBackMs) + 60_000, 1]);
  expect((await rows('k')).map(({ ticket }) => ticket?.S?.[0])).toEqual(['p']);
  timeline.advance(30_000);
  const again = await failure(acquire({ ...asked, ...(retryWith as object) }));
  expect(again.context).toMatchObject({ place: 1, retryWith });
  expect(first.fence).toBeGreaterThan(0);
});

it('a call that races is refused if too many calls are held', async () => {
  const { acquire } = await stage(0);
  await acquire({ key: 'k', holder: 'first', ttlSeconds: 600 });
  const racing = acquire({ key: 'k', holder: 'second', waitSeconds: 20, fair: false });
  expect(await failure(racing)).toMatchObject({ code: 'LeaseHeld' });
});

it('direct use of the domain holds each call, and does not take a seat', async () => {
  const timeline = new Timeline();
  const world = await leaseWorld({ clock: timeline });
  await world.acquire({ key: 'k', holder: 'first', ttlSeconds: 600 });
  const beganAt = timeline.now();
  const waiting = () => failure(world.acquire({ key: 'k', holder: 'b', waitSeconds: 2, sleepMs: 300_000 }));
  const [refused] = await timeline.play(waiting);
  expect(refused).toMatchObject({ code: 'LeaseHeld', context: { comeBackMs: 0, keptMs: 5000 } });
  expect(timeline.now() - beganAt).toBeGreaterThanOrEqual(2000);
  expect(await world.rawItem('holdfast:held:0')).toBeUndefined();
});

it('a caller that names the ticket of another takes neither row nor place', async () => {
  const { acquire, timeline, rows, dependencies } = await stage(8);
  const holdsNone = { ...dependencies, quotas: { ...DEFAULT_QUOTAS, maxHeldCalls: 0 } };
  await acquire({ key: 'k', holder: 'first', ttlSeconds: 600 });
  const asleep = { key: 'k', holder: 'asleep', requestId: 'a', waitSeconds: 20, sleepMs: 300_000 };
  const awake = () => acquire({ key: 'k', holder: 'awake', requestId: 'b', waitSeconds: 20 }).catch(() => undefined);
  const thief = async () => {
    await timeline.sleep(1000);
    await failure(acquireGrant(holdsNone)(acquireInput().parse(asleep), call()));
    const before = (await rows('k')).map(({ ticket }) => String(ticket?.S));
    for (const named of before)
      await acquire({
        key: 'k',
        holder: 'thief',
        requestId: 't',
        waitSeconds: 1,
        ticket: named.replace(/^p/, ''),
      }).catch(() => undefined);
    return { before, after: (await rows('k')).map(({ ticket }) => ticket?.S) };
  };
  const [, { before, after }] = await timeline.play(awake, thief);
  expect(before.map((ticket) => ticket[0])).toEqual(['0', 'p']);
  expect(after).toEqual(expect.arrayContaining(before));
});

it('a caller that does not sleep keeps its arrival number when held later', async () => {
  const { acquire, timeline, rows, dependencies } = await stage(8);
  const holdsNone = { ...dependencies, quotas: { ...DEFAULT_QUOTAS, maxHeldCalls: 0 } };
  const notHeld = (input: object) => failure(acquireGrant(holdsNone)(acquireInput().parse(input), call()));
  await acquire({ key: 'k', holder: 'first', ttlSeconds: 600 });
  const asked = { key: 'k', holder: 'early', requestId: 'e', waitSeconds: 5 };
  const { context } = await notHeld(asked);
  for (const holder of ['b', 'c', 'd']) await notHeld({ key: 'k', holder, waitSeconds: 5 });
  const back = () => failure(acquire({ ...asked, ...(context.retryWith as object) }));
  const numbers = async () => {
    await timeline.sleep(1000);
    const own = (await rows('k')).filter(({ holder }) => holder?.S === 'early');
    return own.map(({ number }) => number?.N);
  };
  const [, seen] = await timeline.play(back, numbers);
  expect(seen).toEqual(['1', '1']);
});
