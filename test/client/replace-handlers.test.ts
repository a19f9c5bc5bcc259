import middy from '@middy/core';
import { describe, expect, expectTypeOf, it } from 'vitest';
import { leased, leasedRecords, leaseOf, middyLease, type SqsRecord } from '../../clients/typescript/src/handlers.ts';
import { Holdfast, type Lease } from '../../clients/typescript/src/index.ts';
import { FakeLambda, type LambdaContext, untilAborted } from './fake-lambda.ts';

interface Options {
  replace?: 'waiting' | 'running';
  onSuperseded?: 'skip' | 'throw';
  waitMs?: number;
  ttlSeconds?: number;
}
type Work = (lease: Lease | undefined) => unknown;

const WAYS: Record<
  string,
  (lambda: FakeLambda, options: Options, work: Work) => (event: object, context: LambdaContext) => unknown
> = {
  leased: ({ holdfast }, options, work) =>
    leased({ key: 'preview', ...options, holdfast })((_event: object, _context: LambdaContext, lease) => work(lease)),
  middyLease: ({ holdfast }, options, work) =>
    middy<object>()
      .use(middyLease<object>({ key: 'preview', ...options, holdfast }))
      .handler(async (_event, context) => work(leaseOf(context))) as never,
};

/** A newer request, which joins after `afterMs`, and works for a second. */
function newer(lambda: FakeLambda, afterMs: number, replace: 'waiting' | 'running' = 'running') {
  const { clock, service } = lambda;
  const holdfast = new Holdfast({ transport: service.transport, surroundings: clock, holder: 'newer' });
  clock.after(afterMs, () => {
    const work = () => lambda.sleep(1000);
    void holdfast.withLease('preview', { replace, waitMs: 600_000 }, work).catch(() => {});
  });
}

describe.each(Object.entries(WAYS))('a handler with replace by %s', (_, way) => {
  it('a handler that is superseded in line counts as done', async () => {
    const lambda = new FakeLambda();
    lambda.service.hold('preview');
    newer(lambda, 3000);
    const handler = way(lambda, { replace: 'waiting' }, () => 'never');
    expect(await lambda.invoke(handler, {})).toEqual({ value: undefined });
  });

  it.each([
    ['fails', (lease: Lease | undefined) => untilAborted(lease?.signal as AbortSignal)],
    ['returns', (lease: Lease | undefined) => untilAborted(lease?.signal as AbortSignal).catch(() => 'late')],
  ])('a handler that %s after the request to stop counts as done', async (_how, work) => {
    const lambda = new FakeLambda();
    newer(lambda, 1000);
    const handler = way(lambda, { replace: 'running', ttlSeconds: 15 }, work);
    const { value } = (await lambda.invoke(handler, {})) as { value: unknown };
    expect(value ?? undefined).toBeUndefined();
    expect(lambda.operations.at(-1)).toBe('release');
    expect(await lambda.holds('preview')).toBe(false);
  });

  it('a handler throws the error with onSuperseded throw', async () => {
    const lambda = new FakeLambda();
    newer(lambda, 1000);
    const options = { replace: 'running', onSuperseded: 'throw', ttlSeconds: 15 } as const;
    const handler = way(lambda, options, (lease) => untilAborted(lease?.signal as AbortSignal));
    expect(await lambda.invoke(handler, {})).toMatchObject({ error: { code: 'LeaseLost', reason: 'superseded' } });
    const waiting = new FakeLambda();
    waiting.service.hold('preview');
    newer(waiting, 1000);
    expect(
      await waiting.invoke(
        way(waiting, options, () => 'never'),
        {},
      ),
    ).toMatchObject({
      error: { code: 'Superseded', by: 'newer' },
    });
  });

  it('a handler with replace fails with its own error if no newer request came', async () => {
    const lambda = new FakeLambda();
    const mine = new Error('mine');
    const handler = way(lambda, { replace: 'running' }, () => Promise.reject(mine));
    expect(await lambda.invoke(handler, {})).toEqual({ error: mine });
  });
});

it('the types of leased say that a handler with replace may resolve to undefined', () => {
  const { holdfast } = new FakeLambda();
  const work = async (_event: object, _context: LambdaContext) => 7;
  expectTypeOf(leased({ holdfast, key: 'a' })(work)).returns.resolves.toEqualTypeOf<number>();
  expectTypeOf(leased({ holdfast, key: 'a', replace: 'running' })(work)).returns.resolves.toEqualTypeOf<
    number | undefined
  >();
});

describe('leasedRecords with replace', () => {
  const recordOf = (messageId: string): SqsRecord => ({
    ...{ messageId, receiptHandle: messageId, body: '', attributes: {} },
    eventSourceARN: 'arn:aws:sqs:us-east-1:000000000000:orders',
  });
  const batch = { Records: ['1', '2', '3'].map(recordOf) };
  const handlerOf = ({ holdfast }: FakeLambda, options: Options, work: (record: SqsRecord, lease: Lease) => unknown) =>
    leasedRecords({ holdfast, key: 'preview', onFailure: () => {}, ...options })(
      (record: SqsRecord, _context: LambdaContext, lease) => work(record, lease),
    );

  it('records that are superseded in line do not come again', async () => {
    const lambda = new FakeLambda();
    lambda.service.hold('preview');
    newer(lambda, 3000);
    const handler = handlerOf(lambda, { replace: 'waiting' }, () => {});
    expect(await lambda.invoke(handler, batch)).toEqual({ value: { batchItemFailures: [] } });
  });

  it.each([
    ['skip', []],
    ['throw', ['2', '3']],
  ] as const)('after a stop in the second of three records, onSuperseded %s leaves %j', async (onSuperseded, ids) => {
    const lambda = new FakeLambda();
    newer(lambda, 1000);
    const seen: string[] = [];
    const options = { replace: 'running', onSuperseded, ttlSeconds: 15 } as const;
    const handler = handlerOf(lambda, options, ({ messageId }, lease) => {
      seen.push(messageId);
      return messageId === '2' ? untilAborted(lease.signal) : undefined;
    });
    expect(await lambda.invoke(handler, batch)).toEqual({
      value: { batchItemFailures: ids.map((itemIdentifier) => ({ itemIdentifier })) },
    });
    expect(seen).toEqual(['1', '2']);
  });
});
