import middy7 from '@middy/core';
import type { APIGatewayProxyEventV2, APIGatewayProxyResultV2, Context } from 'aws-lambda';
import middy6 from 'middy-6';
import { describe, expect, it } from 'vitest';
import { conflict, leased, leaseOf, middyLease, type OnHeld } from '../../clients/typescript/src/handlers.ts';
import type { Lease, Rate } from '../../clients/typescript/src/index.ts';
import { aFew } from '../support/time/rounds.ts';
import { FakeLambda, type Fault, type LambdaContext, untilAborted } from './fake-lambda.ts';

/** Loads the module that the client imports at its first rate: a manual clock does not wait for an import. */
await import('../../clients/typescript/src/rate.ts');

type Work = (event: Event, context: LambdaContext, lease: Lease | undefined) => unknown;
interface Event {
  id?: string;
}
interface Options {
  key?: string | ((event: Event) => string | undefined);
  onHeld?: OnHeld<Event>;
  waitMs?: number;
  ttlSeconds?: number;
  timeoutMs?: number;
  limit?: number;
  rates?: Rate[];
  execution?: (event: Event) => string | undefined;
}

/** The ways to run a handler under a lease. All of them behave alike. */
const WAYS: Record<
  string,
  (lambda: FakeLambda, options: Options, work: Work) => (event: Event, context: LambdaContext) => unknown
> = {
  leased: ({ holdfast }, options, work) =>
    leased({ key: 'nightly', ...options, holdfast })((event: Event, context: LambdaContext, lease) =>
      work(event, context, lease),
    ),
  'middyLease of middy 6': ({ holdfast }, options, work) =>
    middy6<Event>()
      .use(middyLease<Event>({ key: 'nightly', ...options, holdfast }))
      .handler(async (event, context) => work(event, context, leaseOf(context))) as never,
  'middyLease of middy 7': ({ holdfast }, options, work) =>
    middy7<Event>()
      .use(middyLease<Event>({ key: 'nightly', ...options, holdfast }))
      .handler(async (event, context) => work(event, context, leaseOf(context))) as never,
};

describe.each(aFew(1, Object.entries(WAYS)))('a handler by %s', (_, way) => {
  const run = (lambda: FakeLambda, options: Options, work: Work, timeoutMs?: number) =>
    lambda.invoke(way(lambda, options, work), {}, timeoutMs);

  it('a wrapper runs the handler under the lease, and releases it before the answer', async () => {
    const lambda = new FakeLambda();
    const seen: unknown[] = [];
    const handler = way(lambda, {}, async (event, context, lease) => {
      seen.push(event, context.functionName, lease?.key, lease?.held, lease?.fence, await lambda.holds('nightly'));
      return 'done';
    });
    expect(await lambda.invoke(handler, { id: 'a' })).toEqual({ value: 'done' });
    expect(seen).toEqual([{ id: 'a' }, 'test', 'nightly', true, 1, true]);
    expect(await lambda.holds('nightly')).toBe(false);
    expect(lambda.operations).toEqual(['acquire', 'release']);
    expect(lambda.clock.timers).toEqual([]);
  });

  it('a wrapper runs the handler without a lease if the event has no key', async () => {
    const lambda = new FakeLambda();
    const handler = way(
      lambda,
      { key: ({ id }) => id && `order/${id}` },
      (_event, _context, lease) => `under ${lease?.key}`,
    );
    expect(await lambda.invoke(handler, { id: '7' })).toEqual({ value: 'under order/7' });
    lambda.sent.length = 0;
    expect(await lambda.invoke(handler, {})).toEqual({ value: 'under undefined' });
    expect(lambda.sent).toEqual([]);
  });

  it('a wrapper makes one request per invocation, and keeps its id in retries', async () => {
    const lambda = new FakeLambda();
    lambda.faultOf = (at) => (at < 2 ? 'answer lost' : undefined);
    const handler = way(lambda, {}, () => 'done');
    expect(await lambda.invoke(handler, {})).toEqual({ value: 'done' });
    expect(await lambda.invoke(handler, {})).toEqual({ value: 'done' });
    const ids = lambda.sent.filter(({ operation }) => operation === 'acquire').map(({ payload }) => payload.requestId);
    expect(ids.length).toBe(4);
    expect(new Set(ids.slice(0, 3)).size).toBe(1);
    expect(ids[3]).not.toBe(ids[0]);
  });

  it.each([
    [60_000, 30_000, 10_000],
    [5000, 30_000, 5000],
    [0, 30_000, 0],
    [60_000, 900_000, 60_000],
  ])('a wrapper asked to wait %d ms within %d ms waits %d ms', async (waitMs, timeoutMs, waited) => {
    const lambda = new FakeLambda();
    lambda.service.hold('nightly', { holder: 'other' });
    const startedAt = lambda.clock.monotonicMs;
    const outcome = await run(lambda, { waitMs }, () => 'never', timeoutMs);
    expect(outcome).toMatchObject({ error: { code: 'LeaseHeld', holder: 'other' } });
    expect(lambda.clock.monotonicMs - startedAt).toBe(waited);
  });

  it.each([
    [30_000, { value: 6000 }],
    [15_000, { value: undefined }],
  ])('a wrapper with rates waits for a third of %d ms, then applies onHeld', async (timeoutMs, outcome) => {
    const lambda = new FakeLambda();
    const rates = [{ limit: 10, per: '1m' }];
    await lambda.holdfast.rate('nightly', { rates });
    const startedAt = lambda.clock.monotonicMs;
    const work = () => lambda.clock.monotonicMs - startedAt;
    expect(await run(lambda, { rates, onHeld: 'skip' }, work, timeoutMs)).toEqual(outcome);
    expect(await lambda.holds('nightly')).toBe(false);
    expect(lambda.clock.timers).toEqual([]);
  });

  it.each([
    [900_000, 60],
    [60_000, 59],
    [30_000, 29],
    [5000, 10],
  ])('a wrapper acquires in an invocation of %d ms a lease of %d seconds', async (timeoutMs, ttlSeconds) => {
    const lambda = new FakeLambda();
    await run(lambda, {}, () => 'done', timeoutMs);
    expect(lambda.sent[0]?.payload).toMatchObject({ ttlSeconds });
  });

  it('a wrapper passes on the other acquire options, and the execution of the event', async () => {
    const lambda = new FakeLambda();
    const options = { ttlSeconds: 20, limit: 5, execution: ({ id }: Event) => id };
    await lambda.invoke(
      way(lambda, options, () => 'done'),
      { id: 'arn' },
    );
    expect(lambda.sent[0]?.payload).toEqual({
      ...{ key: 'nightly', holder: 'lambda', ttlSeconds: 20, limit: 5, execution: 'arn', waitSeconds: 0 },
      requestId: expect.any(String),
    });
  });

  it('a wrapper keeps the lease by heartbeats while the handler works', async () => {
    const lambda = new FakeLambda();
    const handler = way(lambda, {}, async (_event, _context, lease) => {
      await lambda.sleep(200_000);
      return lease?.held;
    });
    expect(await lambda.invoke(handler, {}, 300_000)).toEqual({ value: true });
    expect(lambda.operations.filter((operation) => operation === 'heartbeat').length).toBeGreaterThan(9);
  });

  it.each([0, 8000])('a wrapper cuts the work a second before the end, after waiting %d ms', async (heldMs) => {
    const lambda = new FakeLambda();
    const release = heldMs ? lambda.service.hold('nightly') : () => {};
    lambda.clock.after(heldMs, release);
    let abortedWith = 0;
    const handler = way(lambda, { waitMs: 20_000 }, async (_event, context, lease) => {
      await untilAborted(lease?.signal as AbortSignal).catch(() => {});
      abortedWith = context.getRemainingTimeInMillis();
      return 'late';
    });
    const outcome = await lambda.invoke(handler, {}, 30_000);
    expect(outcome).toMatchObject({ error: { code: 'LeaseLost', reason: 'maxHold', key: 'nightly' } });
    expect(abortedWith).toBeGreaterThan(900);
    expect(abortedWith).toBeLessThanOrEqual(1000);
    expect(await lambda.holds('nightly')).toBe(false);
  });

  it('a wrapper releases the lease if the handler fails, and throws its error', async () => {
    const lambda = new FakeLambda();
    const mine = new Error('mine');
    const outcome = await run(lambda, {}, () => Promise.reject(mine));
    expect(outcome).toEqual({ error: mine });
    expect(await lambda.holds('nightly')).toBe(false);
  });

  it('a wrapper throws a LeaseHeld of the handler itself, whatever onHeld says', async () => {
    const lambda = new FakeLambda();
    lambda.service.hold('other', { holder: 'someone' });
    const handler = way(lambda, { onHeld: 'skip' }, () => lambda.holdfast.acquire('other'));
    expect(await lambda.invoke(handler, {})).toMatchObject({ error: { code: 'LeaseHeld', key: 'other' } });
    expect(await lambda.holds('nightly')).toBe(false);
  });

  it.each(['taken', 'broken'] as const)(
    'a wrapper whose lease is lost (%s) aborts the signal, and throws LeaseLost',
    async (reason) => {
      const lambda = new FakeLambda();
      const handler = way(lambda, {}, async (_event, _context, lease) => {
        lambda.service.lose('nightly', reason);
        await untilAborted(lease?.signal as AbortSignal).catch(() => {});
        return 'late';
      });
      expect(await lambda.invoke(handler, {})).toMatchObject({ error: { code: 'LeaseLost', reason } });
      expect(await lambda.holds('nightly')).toBe(false);
    },
  );

  describe('if the key is held', () => {
    const held = () => {
      const lambda = new FakeLambda();
      lambda.service.hold('nightly', { holder: 'other', ttlSeconds: 42 });
      return lambda;
    };

    it('a wrapper throws LeaseHeld by default, after a single call', async () => {
      for (const onHeld of [{}, { onHeld: 'throw' as const }]) {
        const lambda = held();
        const outcome = await run(lambda, onHeld, () => 'never');
        expect(outcome).toMatchObject({ error: { code: 'LeaseHeld', holder: 'other' } });
        expect(lambda.operations).toEqual(['acquire']);
      }
    });

    it('a wrapper answers with the result of the function onHeld', async () => {
      const lambda = held();
      const onHeld: OnHeld<Event> = async ({ key, holder }, event, context: LambdaContext) => [
        key,
        holder,
        event,
        context.functionName,
      ];
      const outcome = await lambda.invoke(
        way(lambda, { onHeld }, () => 'never'),
        { id: 'a' },
      );
      expect(outcome).toEqual({ value: ['nightly', 'other', { id: 'a' }, 'test'] });
    });

    it('conflict() answers 409 with retry-after in seconds, and does not name the holder', async () => {
      const lambda = held();
      const outcome = await run(lambda, { onHeld: conflict() }, () => 'never');
      expect(outcome).toEqual({
        value: {
          statusCode: 409,
          headers: { 'content-type': 'application/problem+json', 'retry-after': '42' },
          body: '{"title":"Conflict","status":409}',
        },
      });
    });
  });

  it('a wrapper with less than three seconds left does not acquire, and asks onHeld', async () => {
    const lambda = new FakeLambda();
    const thrown = await run(lambda, {}, () => 'never', 2999);
    expect(thrown).toMatchObject({
      error: {
        code: 'LeaseHeld',
        key: 'nightly',
        holder: null,
        message: '2999 ms are too little time for nightly',
      },
    });
    expect(await run(lambda, { onHeld: 'skip' }, () => 'never', 2999)).toEqual({ value: undefined });
    const answered = await run(lambda, { onHeld: conflict() }, () => 'never', 2999);
    expect(answered).toMatchObject({ value: { statusCode: 409, headers: { 'retry-after': '1' } } });
    expect(lambda.sent).toEqual([]);
    expect(await run(lambda, {}, () => 'done', 3000)).toEqual({ value: 'done' });
  });

  it('a wrapper throws the other errors of an acquire, whatever onHeld says', async () => {
    const lambda = new FakeLambda();
    lambda.faultOf = () => 'refused';
    const outcome = await run(lambda, { onHeld: 'skip' }, () => 'never');
    expect(outcome).toMatchObject({ error: { code: 'Unreachable' } });
  });

  it('a wrapper ends an acquire without an answer in time to withdraw its request', async () => {
    const lambda = new FakeLambda();
    lambda.faultOf = (at) => (at === 0 ? 'hangs' : 'late');
    const outcome = await run(lambda, {}, () => 'never', 6000);
    expect(outcome).toMatchObject({ error: { code: 'Unreachable' } });
    expect(lambda.operations).toEqual(['acquire', 'withdraw']);
    expect(await lambda.holds('nightly')).toBe(false);
  });

  it('a wrapper refuses a durable function, whose suspensions no heartbeat outlives', async () => {
    const lambda = new FakeLambda();
    const handler = way(lambda, {}, () => 'never');
    const durable = (event: Event, context: LambdaContext) =>
      handler(event, Object.assign(context, { executionContext: {} }));
    expect(await lambda.invoke(async (event, context) => durable(event, context), {})).toMatchObject({
      error: expect.any(TypeError),
    });
    expect(lambda.sent).toEqual([]);
  });

  const FAULTS: Fault[] = ['refused', 'answer lost', 'hangs', 'late'];
  it.each(FAULTS)(
    'a lease is released before the handler answers, whichever request meets a fault: %s',
    async (fault) => {
      let most = 0;
      for (const onHeld of ['throw', 'skip'] as const)
        for (const heldMs of [0, 5000, 30_000])
          for (const timeoutMs of [4000, 15_000, 60_000])
            for (let at = 0; at <= most; at++) {
              const lambda = new FakeLambda();
              if (heldMs) lambda.clock.after(heldMs, lambda.service.hold('nightly'));
              lambda.faultOf = (number) => (number === at ? fault : undefined);
              const work: Work = (_event, _context, lease) =>
                Promise.race([lambda.sleep(30_000), untilAborted(lease?.signal as AbortSignal)]);
              const outcome = await lambda.invoke(way(lambda, { onHeld, waitMs: 10_000 }, work), {}, timeoutMs);
              const context = { fault, at, heldMs, timeoutMs, outcome, sent: lambda.operations };
              expect('killed' in outcome, JSON.stringify(context)).toBe(false);
              expect(await lambda.holds('nightly'), JSON.stringify(context)).toBe(false);
              most = Math.max(most, lambda.sent.length - 1);
            }
      expect(most).toBeGreaterThan(3);
    },
  );

  it('a wrapper answers in time even if the service is gone', async () => {
    for (const fault of FAULTS)
      for (let from = 0; from < 6; from++) {
        const lambda = new FakeLambda();
        lambda.faultOf = (at) => (at >= from ? fault : undefined);
        const work: Work = (_event, _context, lease) =>
          Promise.race([lambda.sleep(30_000), untilAborted(lease?.signal as AbortSignal)]);
        const outcome = await lambda.invoke(way(lambda, {}, work), {});
        expect('killed' in outcome).toBe(false);
        lambda.clock.block(60_000);
        expect(await lambda.holds('nightly')).toBe(false);
      }
  });
});

it('the types give the handler a lease only if every event has a key', () => {
  const { holdfast } = new FakeLambda();
  const context: LambdaContext = { functionName: '', awsRequestId: '', getRemainingTimeInMillis: () => 0 };
  const fences = [
    () => leased({ holdfast, key: 'a' })((event: Event, _: LambdaContext, lease) => [event.id, lease.fence]),
    () =>
      leased({ holdfast, key: ({ id }: { id: string }) => id })(
        (_event, _context: LambdaContext, lease) => lease.fence,
      ),
    // @ts-expect-error An event may have no key, and its handler no lease.
    () => leased({ holdfast, key: ({ id }: Event) => id })((_event, _context: LambdaContext, lease) => lease.fence),
    // @ts-expect-error The handler takes other events than the function of the key.
    () => leased({ holdfast, key: ({ id }: { id: string }) => id })((event: Date) => event.getTime()),
    // @ts-expect-error A permit of the mode exclusive has no limit.
    () => leased({ holdfast, key: 'a', limit: 5, mode: 'exclusive' })(() => {}),
  ];
  const results = [
    (): Promise<string> => leased({ holdfast, key: 'a' })(() => 'x')({}, context),
    (): Promise<string | undefined> => leased({ holdfast, key: 'a', onHeld: 'skip' })(() => 'x')({}, context),
    (): Promise<string | number> => leased({ holdfast, key: 'a', onHeld: async () => 5 })(() => 'x')({}, context),
    // @ts-expect-error A skipped handler resolves to undefined.
    (): Promise<string> => leased({ holdfast, key: 'a', onHeld: 'skip' })(() => 'x')({}, context),
  ];
  expect([fences.length, results.length]).toEqual([5, 4]);
});

it('leased and middyLease throw a TypeError at once if onHeld is an unknown word', () => {
  const options = { holdfast: new FakeLambda().holdfast, key: 'a', onHeld: 'skipp' as 'skip' };
  const refusal = new TypeError('onHeld must be throw, skip or a function, not skipp');
  for (const wrap of [() => leased(options), () => middyLease(options)]) expect(wrap).toThrow(refusal);
});

it('onHeld: conflict without parentheses does not compile, and throws in a program without types', () => {
  const { holdfast } = new FakeLambda();
  // @ts-expect-error `conflict` must be called.
  leased({ holdfast, key: 'a', onHeld: conflict });
  // @ts-expect-error `conflict` must be called.
  middyLease({ holdfast, key: 'a', onHeld: conflict });
  const untyped: (error: object) => unknown = conflict as never;
  expect(() => untyped({ retryAfterMs: 42 })).toThrow(new TypeError('onHeld must be conflict(), not conflict'));
});

/** The types of middy 6 are those of middy 7 for what is used here. */
const VERSIONS: [string, typeof middy7][] = [
  ['middy 6', middy6 as unknown as typeof middy7],
  ['middy 7', middy7],
];

describe.each(VERSIONS)('middyLease in %s', (_, middy) => {
  /** A middleware that notes its steps, and whether the function has the key then. */
  const noting = (lambda: FakeLambda, name: string, steps: unknown[]) => {
    const note = (step: string) => async () => void steps.push(`${name} ${step} ${await lambda.holds('nightly')}`);
    return { before: note('before'), after: note('after'), onError: note('onError') };
  };
  /** The lease, with a middleware before it and another behind it. */
  const between = (lambda: FakeLambda, steps: unknown[]) =>
    middy()
      .use(noting(lambda, 'outer', steps))
      .use(middyLease({ holdfast: lambda.holdfast, key: 'nightly' }))
      .use(noting(lambda, 'inner', steps));

  it('middyLease acquires after the middlewares before it, and releases after those behind it', async () => {
    const lambda = new FakeLambda();
    const steps: unknown[] = [];
    const handler = between(lambda, steps).handler(async () => 'done');
    expect(await lambda.invoke(handler as never, {})).toEqual({ value: 'done' });
    expect(steps).toEqual(['outer before false', 'inner before true', 'inner after true', 'outer after false']);
  });

  it('middyLease releases after onError of the middlewares behind it, and the error goes on', async () => {
    const lambda = new FakeLambda();
    const steps: unknown[] = [];
    const handler = between(lambda, steps).handler(async () => {
      throw new Error('mine');
    });
    expect(await lambda.invoke(handler as never, {})).toMatchObject({ error: { message: 'mine' } });
    expect(steps).toEqual(['outer before false', 'inner before true', 'inner onError true', 'outer onError false']);
  });

  it('middyLease does not leave a timer behind if a later middleware answers early', async () => {
    const lambda = new FakeLambda();
    const handler = middy()
      .use(middyLease({ holdfast: lambda.holdfast, key: 'nightly' }))
      .use({
        before: (request) => {
          request.earlyResponse = 'early';
        },
      })
      .handler(async () => 'never');
    expect(await lambda.invoke(handler as never, {}, 30_000)).toEqual({ value: 'early' });
    await lambda.clock.advance(60_000);
    expect(lambda.clock.timers).toEqual([]);
  });

  it('middyLease ends the chain before any after or onError if the key is held', async () => {
    for (const onHeld of ['skip', conflict()] as const) {
      const lambda = new FakeLambda();
      lambda.service.hold('nightly');
      const steps: unknown[] = [];
      const handler = middy()
        .use(noting(lambda, 'outer', steps))
        .use(middyLease({ holdfast: lambda.holdfast, key: 'nightly', onHeld }))
        .use(noting(lambda, 'inner', steps))
        .handler(async () => 'never');
      await lambda.invoke(handler as never, {});
      expect(steps).toEqual(['outer before false']);
    }
  });

  it('middyLease passes LeaseHeld and LeaseLost to onError of the others, which may answer', async () => {
    const lambda = new FakeLambda();
    const answering = {
      onError: (request: { error?: unknown; response?: unknown }) => {
        request.response = String((request.error as { code?: string }).code);
      },
    };
    const handler = middy()
      .use(answering)
      .use(middyLease({ holdfast: lambda.holdfast, key: 'nightly' }))
      .handler(async (_event, context) => {
        lambda.service.lose('nightly');
        await untilAborted(leaseOf(context)?.signal as AbortSignal).catch(() => {});
      });
    expect(await lambda.invoke(handler as never, {})).toEqual({ value: 'LeaseLost' });
    expect(await lambda.invoke(handler as never, {})).toEqual({ value: 'LeaseHeld' });
  });

  it('middyLease shows the lease to the other middlewares and to the handler', async () => {
    const lambda = new FakeLambda();
    const seen: unknown[] = [];
    const handler = middy()
      .use(middyLease({ holdfast: lambda.holdfast, key: 'nightly' }))
      .before((request) => void seen.push(request.internal.lease?.key))
      .handler(async (_event, context) => leaseOf(context)?.key);
    expect(await lambda.invoke(handler as never, {})).toEqual({ value: 'nightly' });
    expect(seen).toEqual(['nightly']);
    expect(leaseOf({})).toBeUndefined();
  });

  it('middyLease refuses a durable handler of middy, which has both contexts', async () => {
    const lambda = new FakeLambda();
    const handler = middy()
      .use(middyLease({ holdfast: lambda.holdfast, key: 'nightly' }))
      .handler(async () => 'never');
    const durable = (event: object, context: LambdaContext) =>
      handler(event, { lambdaContext: context, executionContext: {} } as never, {} as never);
    expect(await lambda.invoke(durable, {})).toMatchObject({ error: expect.any(TypeError) });
  });
});

it('the types of middyLease fit a typed handler of middy', () => {
  const { holdfast } = new FakeLambda();
  const typed: (event: APIGatewayProxyEventV2, context: Context) => Promise<APIGatewayProxyResultV2> = middy7<
    APIGatewayProxyEventV2,
    APIGatewayProxyResultV2
  >()
    .use(middyLease({ holdfast, key: (event: APIGatewayProxyEventV2) => event.pathParameters?.id, onHeld: conflict() }))
    .handler(async (event, context) => ({ body: `${event.rawPath} ${leaseOf(context)?.fence}` }));
  expect(typeof typed).toBe('function');
});
