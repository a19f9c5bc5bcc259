import type { LambdaContext } from './handler-lease.ts';
import { isHeld } from './index.ts';
import { type OnceHandlerOptions, onceHandler, type RunOf } from './once-handler.ts';
import { type BatchRecord, batchHandler, hook, inOrder, type RecordOptions } from './record-batches.ts';

/**
 * Runs a handler once for the key of each record in an SQS, Kinesis or DynamoDB stream batch, even if a record is delivered twice. The event source needs
 * `ReportBatchItemFailures`.
 *
 * A record whose key is done counts as handled. A record is delivered again if its handler fails, or if another invocation works for its key. With it come all
 * later records of the same message group in a FIFO queue, and all later records of a stream.
 *
 * Records of a stream are handled in order. Records of a queue are handled one after the other, unless `concurrency` allows more. `waitMs` is the limit for
 * each record.
 * @throws the first failure if every record of the batch failed
 * @example
 * export const handler = onceRecords({ holdfast, key: (record: SQSRecord) => `order/${JSON.parse(record.body).id}` })(
 *   async (record, context: Context, run) => charge(JSON.parse(record.body), { signal: run.signal, fence: run.fence }),
 * );
 */
export const onceRecords =
  <Message extends BatchRecord, Key extends string | undefined = string>({
    concurrency,
    defer,
    onFailure,
    ...options
  }: OnceHandlerOptions<Message, Key> & RecordOptions<Message>) =>
  <Context extends LambdaContext>(handler: (record: Message, context: Context, run: RunOf<Key>) => unknown) => {
    const once = onceHandler<Message, Key>(options)(handler);
    return batchHandler<Message, Context>({
      ...{ key: options.key, concurrency, onFailure },
      start:
        (context) =>
        (entries, { failures }) => {
          const handle = (record: Message) =>
            once(record, context).catch(async (error) => {
              if (isHeld(error)) await hook(defer, record, error.retryAfterMs);
              throw error;
            });
          return inOrder(entries, { failures, handle });
        },
    });
  };
