import { Holdfast } from 'holdfast-client';
import {
  conflict,
  leased,
  leasedRecords,
  leaseOf,
  middyLease,
  onceHandler,
  onceRecords,
  type SqsRecord,
} from 'holdfast-client/handlers';
import { nodeCronCoordinator } from 'holdfast-client/node-cron';
import { ManualClock, MemoryService } from 'holdfast-client/testing';

/** Compiles without the Lambda, middy and Node types. */
const clock = new ManualClock();
const service = new MemoryService({ surroundings: clock });
const holdfast = new Holdfast({ transport: service.transport, surroundings: clock, holder: 'consumer' });
const context = { getRemainingTimeInMillis: () => 60_000, functionName: 'f' };

interface Order {
  id: string;
}

export const order: (event: Order, own: typeof context) => Promise<{ statusCode: number } | string> = leased({
  holdfast,
  key: ({ id }: Order) => `order/${id}`,
  onHeld: conflict(),
})(({ id }, { functionName }, lease) => `${id} ${functionName} ${lease.fence}`);

// @ts-expect-error `conflict` must be called.
leased({ holdfast, key: 'order', onHeld: conflict });
// @ts-expect-error `conflict` must be called.
middyLease({ holdfast, key: 'order', onHeld: conflict });

export const queue: (event: { Records: SqsRecord[] }, own: typeof context) => Promise<{ batchItemFailures: object[] }> =
  leasedRecords({
    holdfast,
    key: ({ body }: SqsRecord) => body || undefined,
    defer: (record, ms) => [record.body, ms],
  })(({ messageId }, _context: typeof context, lease) => lease?.assertHeld() ?? messageId);

export const middleware = middyLease({ holdfast, key: ({ id }: Order) => id, limit: 5, onHeld: 'skip' });
export const fence: number | undefined = leaseOf(context)?.fence;

export const charged: (event: Order, own: typeof context) => Promise<{ paid: number } | undefined> = onceHandler({
  holdfast,
  key: ({ id }: Order) => `order/${id}`,
  inputHash: ({ id }) => id,
})((_event, _context: typeof context, run) => ({ paid: run.fence }));

export const stream: (
  event: { Records: { kinesis: { sequenceNumber: string } }[] },
  own: typeof context,
) => Promise<object> = onceRecords({
  holdfast,
  key: ({ kinesis }: { kinesis: { sequenceNumber: string } }) => kinesis.sequenceNumber,
})((_record, _context: typeof context, run) => run.assertHeld());

export const coordinator: { shouldRun(key: string, ttlMs: number): boolean | Promise<boolean> } =
  nodeCronCoordinator(holdfast);

export async function backup(): Promise<number | null | undefined> {
  const answer = await holdfast.once(
    'backup',
    { per: '1d', waitMs: 1000 },
    ({ slot, signal }) => slot.length + Number(signal.aborted),
  );
  // @ts-expect-error A slot has a name or a period.
  await holdfast.once('backup', { per: '1d', slot: 'a' }, () => {});
  return answer.outcome === 'ran' ? answer.fence : answer.result;
}

export const several: Promise<number | undefined> = holdfast.withLeases(
  [{ key: 'a', limit: 5 }, { key: 'b' }],
  { waitMs: 1000 },
  ({ fences, signal }) => (signal.aborted ? undefined : fences.a),
);
