import type { DurableContext } from '@aws/durable-execution-sdk-js';
import { afterAll, expect, it } from 'vitest';
import { withLease } from '../../clients/typescript/src/durable.ts';
import { type Holdfast, HoldfastError, isHoldfastError, unreachable } from '../../clients/typescript/src/index.ts';
import { startDouble, type Work } from '../support/emulators/durable-functions.ts';
import { isFull } from '../support/time/rounds.ts';
import { durableWorld } from '../support/worlds/durable.ts';

// withLease of a durable function, if an answer is lost or refused. A second of a suspension takes 50 ms here.

const { functions, holdfast, waiting, stateOf, stop } = await durableWorld(startDouble);
afterAll(stop);

let keys = 0;
const newKey = () => `lost-answers/${++keys}`;
const refused = () => new HoldfastError({ code: 'Refused', detail: 'the gateway refused the call: 403' });

/** The client, with some calls replaced. */
const clientWith = (calls: Partial<Pick<Holdfast, 'park' | 'release'>>): Holdfast => {
  const park: Holdfast['park'] = (...asked) => holdfast.park(...asked);
  const release: Holdfast['release'] = (...asked) => holdfast.release(...asked);
  return Object.assign(Object.create(holdfast) as Holdfast, { park, release, ...calls });
};
/** Returns the code of the error in place of throwing it. */
const codeOf = (error: unknown): string => {
  if (!isHoldfastError(error)) throw error;
  return error.code;
};
const resultOf = async (arn: string) => JSON.parse((await functions.end(arn)).Result ?? 'null');

/** Runs the function while another caller holds the lease, until the function waits for its callback. */
async function waitingBehind(park: Holdfast['park']) {
  const key = newKey();
  const first = await holdfast.acquire(key, { holder: 'first' });
  let fails = true;
  const lost = clientWith({
    park: async (...asked) => {
      if (!fails) throw new Error('no further try was expected');
      return park(...asked);
    },
  });
  const warned: string[] = [];
  const work: Work = (_event, ctx) =>
    withLease(noting(ctx, warned), lost, key, { parkSeconds: 600 }, async () => 'worked').catch(codeOf);
  const arn = await functions.start(work);
  await expect
    .poll(() => warned, { timeout: 30_000 })
    .toContainEqual(expect.stringContaining('waiting for its callback'));
  fails = false;
  return { key, first, arn };
}

/** The context with a log that the test sees. */
function noting(ctx: DurableContext, warned: string[]) {
  const { executionContext } = ctx;
  return {
    executionContext,
    logger: { warn: (message: unknown) => void warned.push(String(message)) },
    createCallback: ctx.createCallback.bind(ctx),
    step: ctx.step.bind(ctx),
    wait: ctx.wait.bind(ctx),
  } as unknown as Parameters<typeof withLease>[0];
}

it('withLease works under its grant if all answers of its requests were lost', { timeout: 60_000 }, async () => {
  const { key, first, arn } = await waitingBehind(async (...asked) => {
    await holdfast.park(...asked);
    throw unreachable('no answer');
  });
  await first.release();
  expect(await resultOf(arn)).toBe('worked');
  await expect.poll(() => waiting(key)).toBe(0);
  await using next = await holdfast.acquire(key, { holder: 'next', waitMs: 1000 });
  expect(next.held).toBe(true);
});

it('withLease waits for its callback if a try is refused after one was lost', { timeout: 60_000 }, async () => {
  let tries = 0;
  const { key, first, arn } = await waitingBehind(async (...asked) => {
    if (++tries > 1) throw refused();
    await holdfast.park(...asked);
    throw unreachable('no answer');
  });
  await first.release();
  expect(await resultOf(arn)).toBe('worked');
  expect([tries, await stateOf(key)]).toEqual([2, 'released']);
});

it('withLease repeats a release that was refused, so the key is free again', { timeout: 60_000 }, async () => {
  const key = newKey();
  let releases = 0;
  const flaky = clientWith({
    release: async (...asked) => {
      if (++releases === 1) throw refused();
      return holdfast.release(...asked);
    },
  });
  const arn = await functions.start(async (_event, ctx) => {
    const round = (name: string) => withLease(ctx, flaky, key, { parkSeconds: 3 }, async () => name).catch(codeOf);
    return [await round('one'), await round('two')];
  });
  expect(await resultOf(arn)).toEqual(['one', 'two']);
  expect([releases, await stateOf(key)]).toEqual([3, 'released']);
});

it.runIf(isFull)('withLease returns the result and warns if every release fails', { timeout: 60_000 }, async () => {
  const key = newKey();
  const warned: string[] = [];
  let releases = 0;
  const broken = clientWith({
    release: async () => {
      releases++;
      throw refused();
    },
  });
  const arn = await functions.start((_event, ctx) =>
    withLease(noting(ctx, warned), broken, key, {}, async () => 'done'),
  );
  expect([await resultOf(arn), releases]).toEqual(['done', 6]);
  expect(warned).toContainEqual(expect.stringContaining(`the release of ${key} failed`));
});
