import {
  type HandlerLeaseOptions,
  type Held,
  isSkipped,
  type LambdaContext,
  type LeaseOf,
  maxWaitMs,
  take,
} from './handler-lease.ts';
import { isHeld, type Lease } from './index.ts';
import { batchHandler, hook, inOrder, type RecordOptions } from './record-batches.ts';

/** The part of an SQS record that `leasedRecords` uses. */
export interface SqsRecord {
  messageId: string;
  receiptHandle: string;
  body: string;
  eventSourceARN: string;
  attributes: { MessageGroupId?: string | undefined };
}

/**
 * Runs a handler for each record of an SQS batch, under the lease or permit of the record's key. The event source needs `ReportBatchItemFailures`.
 *
 * Records with the same key run in order under one lease. With `rates`, each record waits for a start of its own. Keys are handled one after the other,
 * unless `concurrency` allows more. `waitMs` is the limit for all keys together.
 *
 * A record is delivered again if its key is held, or if its handler fails. In a FIFO queue, all later records of the same message group come with it.
 * @throws the first failure if every record of the batch failed
 * @example
 * export const handler = leasedRecords({ holdfast, key: (record: SQSRecord) => `account/${JSON.parse(record.body).account}` })(
 *   async (record, context, lease) => book(JSON.parse(record.body), { signal: lease.signal, fence: lease.fence }),
 * );
 */
export const leasedRecords =
  <Message extends SqsRecord, Key extends string | undefined = string>({
    concurrency,
    defer,
    onFailure,
    rates,
    settle,
    ...options
  }: HandlerLeaseOptions<Message, Key> & RecordOptions<Message>) =>
  <Context extends LambdaContext>(handler: (record: Message, context: Context, lease: LeaseOf<Key>) => unknown) =>
    batchHandler<Message, Context>({
      ...{ key: options.key, concurrency, onFailure },
      start: (context) => {
        const left = () => context.getRemainingTimeInMillis();
        /** Records stop waiting when this much time of the invocation is left, in milliseconds. */
        const stopWaitingAtLeftMs = left() - maxWaitMs({ ...options, rates }, left());
        // A request may replace others only if it can wait, even for a moment.
        const waitLeftMs = () => Math.max(options.replace ? 1 : 0, left() - stopWaitingAtLeftMs);

        /** Waits for the start of a record. @throws HoldfastError RateExceeded, after the record was deferred */
        const start = async (record: Message, lease: Lease): Promise<void> => {
          if (!rates) return;
          const { key, holder, signal } = lease;
          const timeoutMs = Math.max(0, Math.min(options.timeoutMs ?? 30_000, left() / 3));
          const rateOptions = { rates, settle, holder, signal, timeoutMs, waitMs: waitLeftMs() };
          try {
            Object.assign(lease, { settle: (await options.holdfast.rate(key, rateOptions)).settle });
          } catch (error) {
            if (isHeld(error)) await hook(defer, record, error.retryAfterMs);
            throw error;
          }
        };

        return async (open, { failures }) => {
          const [{ key, record: event } = {}] = open;
          let held: Held | undefined;
          try {
            if (key !== undefined) held = await take({ ...options, waitMs: waitLeftMs() }, { key, event, context });
          } catch (error) {
            if (isSkipped(options, error)) return;
            await failures.add(error, open);
            if (isHeld(error)) await Promise.all(open.map(({ record }) => hook(defer, record, error.retryAfterMs)));
            return;
          }
          const lease = held?.lease;
          try {
            const handle = async (record: Message) => {
              if (lease) await start(record, lease);
              await handler(record, context, lease as LeaseOf<Key>);
            };
            await inOrder(open, { failures, lease, handle, isOver: () => isSkipped(options, lease?.lost) });
          } finally {
            await held?.end();
          }
        };
      },
    });
