import { type ByEvent, byEvent, type LambdaContext, refuseDurable } from './handler-lease.ts';
import { isHeld, type Lease } from './index.ts';

/** The part that the wrappers use of a record from SQS, Kinesis or a DynamoDB stream. */
export interface BatchRecord {
  messageId?: string | undefined;
  eventSourceARN?: string | undefined;
  attributes?: { MessageGroupId?: string | undefined } | undefined;
  kinesis?: { sequenceNumber: string } | undefined;
  dynamodb?: { SequenceNumber?: string | undefined } | undefined;
}

/** The records of a batch that must be delivered again. In a stream, the first failed record and all records after it are delivered again. */
export interface BatchResponse {
  batchItemFailures: { itemIdentifier: string }[];
}

export interface RecordOptions<Message> {
  /** How many keys are handled at the same time. The default is 1, and a lower number counts as 1. */
  concurrency?: number | undefined;
  /**
   * Called for each record whose key is held, or whose start would be too late, so that you can shorten its visibility timeout in SQS to `retryAfterMs`.
   * Without `defer`, SQS delivers the record again after the whole timeout. The wrapper logs what `defer` and `onFailure` throw.
   */
  defer?: ((record: Message, retryAfterMs: number) => unknown) | undefined;
  /** Called for each error, with the records that fail because of it. The default logs the error to stderr. */
  onFailure?: ((error: unknown, records: Message[]) => unknown) | undefined;
}

/** What a wrapper does with the records of one key. */
type UnderKey<Message, Context> = (
  entries: Entry<Message>[],
  at: { context: Context; failures: Failures<Message> },
) => Promise<void>;

interface Batch<Message, Context> extends RecordOptions<Message> {
  key: ByEvent<Message>;
  /** Called for each batch. */
  start(context: Context): UnderKey<Message, Context>;
}

/**
 * Handles a batch: the records of a key or of a message group in order, and up to `concurrency` keys at the same time.
 * @throws the first failure if every record of the batch failed
 */
export const batchHandler =
  <Message extends BatchRecord, Context extends LambdaContext>({
    key,
    concurrency = 1,
    onFailure = log,
    start,
  }: Batch<Message, Context>) =>
  async ({ Records }: { Records: Message[] }, context: Context): Promise<BatchResponse> => {
    refuseDurable(context);
    const failures = failuresOf<Message>(onFailure);
    const underKey = start(context);
    const entries = Records.map((record) => entryOf(record, key));
    const chains = chainsOf(entries).values();
    const worker = async () => {
      for (const chain of chains)
        while (chain.length > 0) {
          const end = chain.findIndex((entry) => entry.key !== chain[0]?.key);
          const ofKey = chain.splice(0, end < 0 ? chain.length : end);
          await underKey(
            ofKey.filter((entry) => !failures.failIfBarred(entry)),
            { context, failures },
          );
        }
    };
    // Without a worker, the response would say that all records were handled.
    await Promise.all(Records.slice(0, concurrency > 1 ? concurrency : 1).map(worker));
    // If the event source lacks ReportBatchItemFailures, any response counts as a success of the whole batch, so this one throws.
    if (entries.length > 0 && entries.length === failures.entries.size) throw failures.cause;
    const again = entries.filter((entry) => failures.entries.has(entry));
    return { batchItemFailures: again.map(({ record }) => ({ itemIdentifier: idOf(record) })) };
  };

/** The records of a batch that have failed. */
export interface Failures<Message> {
  entries: Set<Entry<Message>>;
  /** The error of the first failure. */
  cause: unknown;
  add(error: unknown, entries: Entry<Message>[]): Promise<void>;
  /** Fails a record if an earlier record of its message group has failed, so that the group keeps its order. @returns whether it did */
  failIfBarred(entry: Entry<Message>): boolean;
}

function failuresOf<Message>(onFailure: (error: unknown, records: Message[]) => unknown): Failures<Message> {
  const failed = new Set<Entry<Message>>();
  const failures: Failures<Message> = {
    entries: failed,
    cause: undefined,
    async add(error, entries) {
      if (failed.size === 0) failures.cause = error;
      for (const entry of entries) failed.add(entry);
      const records = entries.map(({ record }) => record);
      await hook(onFailure, error, records);
    },
    failIfBarred(entry) {
      const isBarred = [...failed].some(({ group }) => isSame(group, entry.group));
      if (isBarred) failed.add(entry);
      return isBarred;
    },
  };
  return failures;
}

interface InOrder<Message> {
  failures: Failures<Message>;
  lease?: Lease | undefined;
  handle(record: Message): unknown;
  /** True if a newer request has replaced these records, so that they count as done. */
  isOver?(): boolean;
}

/** Handles the records of one key one after the other. If their lease is lost, the rest fails. */
export async function inOrder<Message>(
  entries: Entry<Message>[],
  { failures, lease, handle, isOver = () => false }: InOrder<Message>,
): Promise<void> {
  for (const [at, entry] of entries.entries())
    try {
      if (isOver()) return;
      if (lease?.lost) return await failures.add(lease.lost, entries.slice(at));
      if (failures.failIfBarred(entry)) continue;
      if ('fault' in entry) throw entry.fault;
      await handle(entry.record);
      if (lease?.lost) throw lease.lost;
    } catch (error) {
      if (isOver()) return;
      await failures.add(error, [entry]);
    }
}

export interface Entry<Message> {
  record: Message;
  key?: string | undefined;
  /** The message group of a FIFO queue. All records of a stream are one group, because all records after a failure are delivered again. */
  group: string | undefined;
  /** What the user's function threw instead of returning a key. */
  fault?: unknown;
}

function entryOf<Message extends BatchRecord>(record: Message, key: ByEvent<Message>): Entry<Message> {
  const { eventSourceARN, attributes, messageId } = record;
  const isFifo = eventSourceARN?.endsWith('.fifo');
  const group = messageId === undefined ? 'stream' : isFifo ? attributes?.MessageGroupId : undefined;
  try {
    return { record, group, key: byEvent(key, record) };
  } catch (fault) {
    return { record, group, fault };
  }
}

const idOf = ({ messageId, kinesis, dynamodb }: BatchRecord): string =>
  messageId ?? kinesis?.sequenceNumber ?? dynamodb?.SequenceNumber ?? '';

/** A held key is not a fault, so it is logged in one line, without a stack. */
function log(error: unknown, records: BatchRecord[]): void {
  const ids = records.map(idOf);
  if (isHeld(error)) console.error(`held: ${ids}: ${error.message}`);
  else console.error(`failed: ${ids}:`, error);
}

/** Calls a function of the user. If the function throws, the records still fail or succeed by their own result. */
export const hook = <Args extends unknown[]>(
  call: ((...args: Args) => unknown) | undefined,
  ...args: Args
): Promise<unknown> =>
  Promise.resolve()
    .then(() => call?.(...args))
    .catch(console.error);

const isSame = (one: unknown, other: unknown): boolean => one !== undefined && one === other;

/**
 * Splits a batch into chains that share neither a key nor a message group, so that no chain has to wait for another. A chain keeps the order of the batch for
 * records of one key or one group.
 */
function chainsOf<Message>(entries: Entry<Message>[]): Entry<Message>[][] {
  let chains: Entry<Message>[][] = [];
  for (const entry of entries) {
    const isLinked = (other: Entry<Message>) => isSame(entry.key, other.key) || isSame(entry.group, other.group);
    const [first, ...others] = chains.filter((chain) => chain.some(isLinked));
    if (first) first.push(...others.flat(), entry);
    else chains.push([entry]);
    chains = chains.filter((chain) => !others.includes(chain));
  }
  return chains;
}
