import middy7 from '@middy/core';
import type { APIGatewayProxyEventV2, APIGatewayProxyResultV2, Context } from 'aws-lambda';
import middy6 from 'middy-6';
import { describe, expect, it } from 'vitest';
import { conflict, leaseOf, middyLease } from '../../client/src/handlers.ts';
import { FakeLambda, type LambdaContext, untilAborted } from './fake-lambda.ts';

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

  it('middyLease acquires after the middlewares before it, and releases after those behind it', async () => {
    const lambda = new FakeLambda();
    const steps: unknown[] = [];
    const handler = middy()
      .use(noting(lambda, 'outer', steps))
      .use(middyLease({ holdfast: lambda.holdfast, key: 'nightly' }))
      .use(noting(lambda, 'inner', steps))
      .handler(async () => 'done');
    expect(await lambda.invoke(handler as never, {})).toEqual({ value: 'done' });
    expect(steps).toEqual(['outer before false', 'inner before true', 'inner after true', 'outer after false']);
  });

  it('middyLease releases after onError of the middlewares behind it, and the error goes on', async () => {
    const lambda = new FakeLambda();
    const steps: unknown[] = [];
    const handler = middy()
      .use(noting(lambda, 'outer', steps))
      .use(middyLease({ holdfast: lambda.holdfast, key: 'nightly' }))
      .use(noting(lambda, 'inner', steps))
      .handler(async () => {
        throw new Error('mine');
      });
    expect(await lambda.invoke(handler as never, {})).toMatchObject({ error: { message: 'mine' } });
    expect(steps).toEqual(['outer before false', 'inner before true', 'inner onError true', 'outer onError false']);
  });

  it('middyLease leaves no timer after the end of the invocation if a middleware behind it answers early', async () => {
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

  it('middyLease ends the chain if the key is held and the handler is skipped, and runs no after and no onError', async () => {
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

  it('middyLease passes LeaseHeld and LeaseLost to the onError of the other middlewares, which may answer', async () => {
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

  it('middyLease shows the lease to other middlewares in request.internal, and to the handler by its context', async () => {
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

it('The types of middyLease fit a typed handler of middy', () => {
  const { holdfast } = new FakeLambda();
  const typed: (event: APIGatewayProxyEventV2, context: Context) => Promise<APIGatewayProxyResultV2> = middy7<
    APIGatewayProxyEventV2,
    APIGatewayProxyResultV2
  >()
    .use(middyLease({ holdfast, key: (event: APIGatewayProxyEventV2) => event.pathParameters?.id, onHeld: conflict() }))
    .handler(async (event, context) => ({ body: `${event.rawPath} ${leaseOf(context)?.fence}` }));
  expect(typeof typed).toBe('function');
});
