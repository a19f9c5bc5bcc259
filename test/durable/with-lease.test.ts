import type { DurableContext } from '@aws/durable-execution-sdk-js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { rate, withLease, withLeases } from '../../clients/typescript/src/durable.ts';
import { Holdfast, isHoldfastError } from '../../clients/typescript/src/index.ts';
import {
  hasRunner,
  type StartBackend,
  startDouble,
  startRunner,
  type Work,
} from '../support/emulators/durable-functions.ts';
import { lambdaContext } from '../support/stack/adapters.ts';
import { isFull } from '../support/time/rounds.ts';
import { durableWorld } from '../support/worlds/durable.ts';

/** `withLease` in the handler of the real SDK, over a backend of durable functions and the service. */
function durableLeases(startBackend: StartBackend): void {
  let durable: Awaited<ReturnType<typeof durableWorld>>;
  let functions: typeof durable.functions;
  let holdfast: Holdfast;
  let keys = 0;
  const newKey = () => `durable/${++keys}`;

  beforeAll(async () => {
    durable = await durableWorld(startBackend, { waitersPerKey: 2, waitersPerNamespace: 1000 });
    ({ functions, holdfast } = durable);
  }, 60_000);
  afterAll(() => durable?.stop());

  const waiting = (key: string) => durable.waiting(key);
  const stateOf = (key: string) => durable.stateOf(key);
  const resultOf = async (arn: string) => {
    const { Status, Result, Error: error } = await functions.end(arn);
    expect([Status, error]).toEqual(['SUCCEEDED', undefined]);
    return JSON.parse(Result ?? 'null');
  };
  /** Catches the error of a lease as a handler does, so that the test sees its fields. */
  const caught =
    (work: Work): Work =>
    (event, ctx) =>
      work(event, ctx).catch((error) => {
        if (!isHoldfastError(error)) throw error;
        return { ...error };
      });
  /** Tests that AWS's runner plays only in a full run: each takes it seconds, and the local stack plays all of them. */
  const rare = startBackend === startRunner && !isFull ? it.skip : it;
  const pause = (ctx: DurableContext) => ctx.wait('pause', { seconds: 1 });

  it('An execution waits in line while it is suspended, and runs each step once', async () => {
    const key = newKey();
    const first = await holdfast.acquire(key);
    const ran: string[] = [];
    let replays = 0;
    const arn = await functions.start((_event, ctx) => {
      replays++;
      return withLease(ctx, holdfast, key, {}, async (lease) => {
        await ctx.step('one', async () => void ran.push(`one ${lease.fence}`));
        await pause(ctx);
        await ctx.step('two', async () => void ran.push(`two ${lease.fence}`));
        return lease;
      });
    });
    await expect.poll(() => waiting(key)).toBe(1);
    expect(ran).toEqual([]);
    await first.release();
    const { fence, ...rest } = await resultOf(arn);
    expect([rest, fence > first.fence]).toEqual([{ key }, true]);
    expect(ran).toEqual([`one ${fence}`, `two ${fence}`]);
    expect(replays).toBeGreaterThan(1);
    expect(await stateOf(key)).toBe('released');
  });

  rare('An execution holds the lease under its own name, beside that of the client', async () => {
    const key = newKey();
    const holder = async () => (await holdfast.readLease(key)).holder;
    const arn = await functions.start((_event, ctx) =>
      withLease(ctx, holdfast, key, {}, () => ctx.step('who', holder)),
    );
    expect(await resultOf(arn)).toBe(`durable/${arn.split('/').at(-2)}`);
  });

  rare('An execution is suspended until the start of a rate, which its replays do not pay again', async () => {
    const key = newKey();
    const terms = { limit: 1, per: '2s', units: 1, settle: true };
    await holdfast.rate(key, terms);
    const starts: string[] = [];
    let replays = 0;
    const arn = await functions.start(async (_event, ctx) => {
      replays++;
      const { startAt, settle } = await rate(ctx, holdfast, key, terms);
      await ctx.step('work', async () => void starts.push(startAt));
      await pause(ctx);
      return settle({ requests: 1 });
    });
    expect(await resultOf(arn)).toBe(true);
    expect(replays).toBeGreaterThan(2);
    // The start is one period after the start of the first caller, and the reservation is settled. A waited second may take less.
    const { paidUntil, open } = (await holdfast.readRates({ key })) as { paidUntil: string; open: number };
    expect([starts.map(Date.parse), open]).toEqual([[Date.parse(paidUntil) - 2000], 1]);
  });

  rare('A submitter that runs twice gets one grant, and leaves no waiter behind', async () => {
    const key = newKey();
    const first = await holdfast.acquire(key);
    let runs = 0;
    const twice = Object.assign(Object.create(holdfast) as Holdfast, {
      park: async (...asked: Parameters<Holdfast['park']>) => {
        const answer = await holdfast.park(...asked);
        if (++runs === 1) throw new Error('the invocation ends before the checkpoint of the step');
        return answer;
      },
      release: (...asked: Parameters<Holdfast['release']>) => holdfast.release(...asked),
    });
    const fences: number[] = [];
    const arn = await functions.start((_event, ctx) =>
      withLease(ctx, twice, key, {}, ({ fence }) => ctx.step('work', async () => void fences.push(fence))),
    );
    await expect.poll(() => runs, { timeout: 30_000 }).toBe(2);
    await first.release();
    await resultOf(arn);
    expect(fences).toHaveLength(1);
    await expect.poll(() => stateOf(key)).toBe('released');
    await expect.poll(() => waiting(key)).toBe(0);
  });

  rare('The newest execution runs, and an older one that waits fails with Superseded', async () => {
    const key = newKey();
    const first = await holdfast.acquire(key);
    const work = (name: string): Work =>
      caught((_event, ctx) => withLease(ctx, holdfast, key, { replace: 'waiting', holder: name }, async () => name));
    const older = await functions.start(work('older'));
    await expect.poll(() => waiting(key)).toBe(1);
    const newer = await functions.start(work('newer'));
    expect(await resultOf(older)).toMatchObject({ code: 'Superseded', by: 'newer', status: 409 });
    await first.release();
    expect(await resultOf(newer)).toBe('newer');
  });

  rare('A body that checks its lease learns that it is to stop', async () => {
    const key = newKey();
    const running = { replace: 'running', graceSeconds: 0 } as const;
    const seen: string[] = [];
    const arn = await functions.start(
      caught((_event, ctx) =>
        withLease(ctx, holdfast, key, running, async (lease) => {
          for (;;) {
            await lease.check();
            await ctx.step('part', async () => void seen.push('part'));
            await pause(ctx);
          }
        }),
      ),
    );
    await expect.poll(() => seen.length).toBeGreaterThan(0);
    const next = await holdfast.acquire(key, { replace: 'running', waitMs: 60_000 });
    expect(await resultOf(arn)).toMatchObject({ code: 'LeaseLost', reason: 'superseded' });
    expect(next.previous).toMatchObject({ ended: 'superseded', by: 'durable' });
    await next.release();
  });

  rare('A body that fails releases its lease, and its error reaches the caller', async () => {
    const key = newKey();
    const arn = await functions.start((_event, ctx) =>
      withLease(ctx, holdfast, key, {}, async () => {
        await pause(ctx);
        throw new RangeError('no such order');
      }),
    );
    const { Status, Error: error } = await functions.end(arn);
    expect([Status, error?.ErrorType, error?.ErrorMessage]).toEqual(['FAILED', 'RangeError', 'no such order']);
    expect(await stateOf(key)).toBe('released');
  });

  it('An execution that is killed while it holds frees its lease for the next', async () => {
    const key = newKey();
    const hold: Work = (_event, ctx) =>
      withLease(ctx, holdfast, key, { graceSeconds: 0 }, async ({ fence }) => {
        await ctx.wait('work', { hours: 1 });
        return fence;
      });
    const first = await functions.start(hold);
    await expect.poll(() => stateOf(key)).toBe('held');
    const second = await functions.start((_event, ctx) => withLease(ctx, holdfast, key, {}, async () => 'next'));
    await expect.poll(() => waiting(key)).toBe(1);
    await functions.kill(first);
    expect(await resultOf(second)).toBe('next');
  });

  rare(
    'The lease of an execution that is killed stays for the longest timeout of a function, unless graceSeconds is lower',
    async () => {
      const key = newKey();
      // The grant is on record before the callback completes. A kill between the two frees the lease at once, because no work has begun.
      let hasBegun = false;
      const arn = await functions.start((_event, ctx) =>
        withLease(ctx, holdfast, key, {}, () => {
          hasBegun = true;
          return ctx.wait('work', { hours: 1 });
        }),
      );
      await expect.poll(() => hasBegun).toBe(true);
      await functions.kill(arn);
      const remainingMs = async () => ((await holdfast.readLease(key)) as { remainingMs?: number }).remainingMs ?? 0;
      await expect.poll(remainingMs).toBeLessThanOrEqual(900_000);
      expect(await remainingMs()).toBeGreaterThan(800_000);
      expect(await stateOf(key)).toBe('held');
    },
  );

  rare('An execution that is killed while it waits leaves the line', async () => {
    const key = newKey();
    const first = await holdfast.acquire(key);
    const arn = await functions.start((_event, ctx) => withLease(ctx, holdfast, key, {}, async () => {}));
    await expect.poll(() => waiting(key)).toBe(1);
    await functions.kill(arn);
    await expect.poll(() => waiting(key)).toBe(0);
    await first.release();
    expect(await stateOf(key)).toBe('released');
  });

  rare('QueueFull reaches the handler at once, and with a new callback the same execution waits in line', async () => {
    const key = newKey();
    const first = await holdfast.acquire(key);
    const work: Work = (_event, ctx) => withLease(ctx, holdfast, key, {}, async () => 'worked');
    const others = [await functions.start(work), await functions.start(work)];
    await expect.poll(() => waiting(key)).toBe(2);
    let requests = 0;
    const counting = new Holdfast({
      ...{ endpoint: durable.api.url, holder: 'late' },
      fetch: (...request) => {
        requests++;
        return fetch(...request);
      },
    });
    const full = await functions.start(async (event, ctx) => {
      const late: Work = () => withLease(ctx, counting, key, {}, async () => 'worked later');
      const refused = (await caught(late)(event, ctx)) as { code: string };
      const [requestsOfRefusal] = await ctx.step('count', async () => [requests]);
      await ctx.step('make room', () => first.release());
      await ctx.wait('room', { seconds: 3 });
      return [refused.code, requestsOfRefusal, await late(event, ctx)];
    });
    expect(await resultOf(full)).toEqual(['QueueFull', 1, 'worked later']);
    for (const arn of others) expect(await resultOf(arn)).toBe('worked');
    expect(await stateOf(key)).toBe('released');
    expect(await waiting(key)).toBe(0);
  });

  it.each([
    ['has characters outside ASCII', () => `${newKey()}/größe/\u{1f512}`],
    ['has 1,024 bytes', () => newKey().padEnd(1024, 'k')],
  ])('An execution holds the lease of a key that %s', async (_, keyOf) => {
    const key = keyOf();
    const arn = await functions.start((_event, ctx) =>
      withLease(ctx, holdfast, key, {}, async () => {
        await pause(ctx);
        return ctx.step('look', () => stateOf(key));
      }),
    );
    expect(await resultOf(arn)).toBe('held');
    expect(await stateOf(key)).toBe('released');
  });

  it('LeaseHeld reaches the handler as HoldfastError with its fields, after parkSeconds', async () => {
    const key = newKey();
    const first = await holdfast.acquire(key);
    const work = caught((_event, ctx) => withLease(ctx, holdfast, key, { parkSeconds: 1 }, async () => {}));
    const arn = await functions.start(work);
    await expect.poll(() => waiting(key)).toBe(1);
    await new Promise((resolve) => setTimeout(resolve, 1100));
    await durable.world.handlers.repairQueues({ key }, lambdaContext());
    expect(await resultOf(arn)).toMatchObject({ code: 'LeaseHeld', key, holder: 'durable', name: 'HoldfastError' });
    await first.release();
  });

  rare('Several keys are acquired in the order of all callers, and released', async () => {
    const [narrow, wide] = [`${newKey()}/tenant`, newKey()];
    const states: unknown[] = [];
    const entries = [{ key: wide, limit: 2 }, { key: narrow }];
    const arn = await functions.start((_event, ctx) =>
      withLeases(ctx, holdfast, entries, {}, async ({ leases, fences }) => {
        await pause(ctx);
        await ctx.step('look', async () => states.push(await stateOf(narrow), await stateOf(wide)));
        return [leases.map(({ key }) => key), Object.keys(fences)];
      }),
    );
    expect(await resultOf(arn)).toEqual([
      [wide, narrow],
      [wide, narrow],
    ]);
    expect(states).toEqual(['held', 1]);
    expect([await stateOf(narrow), await stateOf(wide)]).toEqual(['released', 0]);
  });

  rare('The branches of one execution wait in line at the same time', async () => {
    const keys = [newKey(), newKey()];
    const before = await Promise.all(keys.map((key) => holdfast.acquire(key)));
    const arn = await functions.start(async (_event, ctx) => {
      const branches = keys.map(
        (key) => (own: DurableContext) =>
          withLease(own, holdfast, key, {}, async () => {
            await pause(own);
            return own.step('work', async () => key);
          }),
      );
      return (await ctx.parallel('both', branches)).getResults();
    });
    for (const key of keys) await expect.poll(() => waiting(key)).toBe(1);
    for (const lease of before.toReversed()) await lease.release();
    expect(await resultOf(arn)).toEqual(keys);
    for (const key of keys) expect(await stateOf(key)).toBe('released');
  });
}

describe('withLease of holdfast-client/durable, over the local stack', { timeout: 60_000 }, () =>
  durableLeases(startDouble),
);

const whySkipped = hasRunner ? '' : ' (skipped: .ci/run installs it into .venv)';
describe.skipIf(!hasRunner)(
  `withLease of holdfast-client/durable, over AWS's local runner${whySkipped}`,
  { timeout: 120_000 },
  () => durableLeases(startRunner),
);
