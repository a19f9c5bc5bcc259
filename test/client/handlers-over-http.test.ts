import middy from '@middy/core';
import type { Context } from 'aws-lambda';
import { afterAll, describe, expect, it } from 'vitest';
import { conflict, leased, leasedRecords, leaseOf, middyLease, type SqsRecord } from '../../client/src/handlers.ts';
import { Holdfast, type Lease } from '../../client/src/index.ts';
import { systemClock } from '../../shared/surroundings/clock.ts';
import { lambdaContext } from '../support/stack/adapters.ts';
import { startApi } from '../support/stack/api.ts';
import { leaseWorld } from '../support/worlds/leases.ts';
import { untilAborted } from './fake-lambda.ts';

const api = await startApi((await leaseWorld({ clock: systemClock })).handlers);
afterAll(() => api.stop());

const client = (holder: string) => new Holdfast({ endpoint: api.url, holder });
const [holdfast, other] = [client('function'), client('other')];
const stateOf = async (key: string) => {
  const read = await other.readLease(key);
  return read.kind === 'lease' ? read.state : read.kind;
};

interface Event {
  key: string;
}
type Work = (lease: Lease | undefined) => unknown;

describe.each<[string, (work: Work) => (event: Event, context: Context) => unknown]>([
  [
    'leased',
    (work) =>
      leased({ holdfast, key: ({ key }: Event) => key, onHeld: conflict() })((_event, _context: Context, lease) =>
        work(lease),
      ),
  ],
  [
    'middyLease',
    (work) =>
      middy<Event>()
        .use(middyLease({ holdfast, key: ({ key }: Event) => key, onHeld: conflict() }))
        .handler(async (_event, context) => work(leaseOf(context))) as never,
  ],
])('%s over HTTP', (name, way) => {
  it('a handler over HTTP holds the lease while it works, and answers 409 to a second invocation', async () => {
    const key = `${name}/held`;
    const second = way(() => 'never');
    const first = way(async (lease) => [lease?.held, await stateOf(key), await second({ key }, lambdaContext())]);
    expect(await first({ key }, lambdaContext())).toMatchObject([true, 'held', { statusCode: 409 }]);
    expect(await stateOf(key)).toBe('released');
  });

  it('a handler over HTTP throws LeaseLost if an operator breaks the lease', { timeout: 60_000 }, async () => {
    const key = `${name}/broken`;
    const handler = way(async (lease) => {
      await other.breakLease({ key, fence: lease?.fence ?? 0 });
      await untilAborted(lease?.signal as AbortSignal).catch(() => {});
    });
    const context = { ...lambdaContext(), getRemainingTimeInMillis: () => 12_000 };
    await expect(handler({ key }, context)).rejects.toMatchObject({ code: 'LeaseLost', reason: 'broken' });
    expect(await stateOf(key)).not.toBe('held');
  });
});

it('A handler waits for a lease that another caller releases', async () => {
  const key = 'waits';
  const before = await other.acquire(key);
  const handler = leased({ holdfast, key, waitMs: 20_000 })((_event: Event, _context: Context, { fence }) => fence);
  const invoked = handler({ key }, lambdaContext());
  await expect.poll(async () => (await other.readLease(key)).waiting).toBe(1);
  await before.release();
  expect(await invoked).toBeGreaterThan(before.fence);
});

describe('leasedRecords over HTTP', () => {
  const recordOf = (key: string): SqsRecord => ({
    ...{ messageId: key, receiptHandle: '', body: key, eventSourceARN: 'arn:aws:sqs:us-east-1:000000000000:queue' },
    attributes: {},
  });

  it('leasedRecords over HTTP handles the records whose lease it receives, and lets the records of a held key come again', async () => {
    await other.acquire('records/held');
    const seen: unknown[] = [];
    const handler = leasedRecords({ holdfast, key: ({ body }: SqsRecord) => body, onFailure: () => {} })(
      async ({ body }, _context: Context, lease) => seen.push([lease.key, await stateOf(body)]),
    );
    const Records = ['records/free', 'records/held'].map(recordOf);
    expect(await handler({ Records }, lambdaContext())).toEqual({
      batchItemFailures: [{ itemIdentifier: 'records/held' }],
    });
    expect(seen).toEqual([['records/free', 'held']]);
    expect(await stateOf('records/free')).toBe('released');
  });

  it('leasedRecords over HTTP keeps the limit of a pool over several invocations at once', async () => {
    let [atWork, most] = [0, 0];
    const handler = leasedRecords({ holdfast, key: 'records/pool', limit: 2, waitMs: 15_000 })(
      async (_record, _context: Context) => {
        most = Math.max(most, ++atWork);
        await new Promise((resolve) => setTimeout(resolve, 50));
        atWork--;
      },
    );
    const invoke = (at: number) => handler({ Records: [recordOf(`${at}`)] }, lambdaContext());
    const answers = await Promise.all([1, 2, 3, 4, 5].map(invoke));
    expect(answers).toEqual(Array(5).fill({ batchItemFailures: [] }));
    expect(most).toBe(2);
  });
});
