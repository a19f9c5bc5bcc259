import {
  type ByEvent,
  byEvent,
  type HandlerLeaseOptions,
  type Held,
  isHeld,
  isSkipped,
  type LambdaContext,
  type LeaseOf,
  patienceMs,
  refuseDurable,
  take,
} from './handler-lease.ts';
import type { Lease } from './index.ts';

/** The part of an SQS record that `leasedRecords` uses. */
export interface SqsRecord {
  messageId: string;
  receiptHandle: string;
  body: string;
  eventSourceARN: string;
  attributes: { MessageGroupId?: string | undefined };
}

/** The records of a batch that SQS must deliver again. */
export interface SqsBatchResponse {
  batchItemFailures: { itemIdentifier: string }[];
}

export interface RecordOptions<Message> {
  /** How many keys are handled at once. The default is 1, and a value below 1 counts as 1. */
  concurrency?: number | undefined;
  /**
   * Called for each record whose key is held, or whose start would be too late, to change its visibility. Without `defer`, SQS delivers the record again after the visibility timeout. The
   * wrapper logs what `defer` and `onFailure` throw.
   */
  defer?: ((record: Message, retryAfterMs: number) => unknown) | undefined;
  /** Called once for each cause of a failure, with the records that fail for this cause; the default logs the error to stderr. */
  onFailure?: ((error: unknown, records: Message[]) => unknown) | undefined;
}

/**
 * Runs a handler for each record of an SQS batch, under the lease or permit of the record's key. The event source needs `ReportBatchItemFailures`.
 *
 * Records with the same key run in order under one lease; with `rates`, each record waits for a start of its own. Keys are handled one after the other, unless `concurrency` allows more. `waitMs` is the limit
 * for all keys together. SQS delivers again the records of a held key, and each record whose handler fails; in a FIFO queue also all later records of
 * the same message group.
 * @throws the first failure if every record of the batch failed
 * @example
 * export const handler = leasedRecords({ holdfast, key: (record: SQSRecord) => `account/${JSON.parse(record.body).account}` })(
 *   async (record, context, lease) => book(JSON.parse(record.body), { signal: lease.signal, fence: lease.fence }),
 * );
 */
export const leasedRecords =
  <Message extends SqsRecord, Key extends string | undefined = string>({
    concurrency = 1,
    defer,
    onFailure = logged,
    rates,
    settle,
    ...options
  }: HandlerLeaseOptions<Message, Key> & RecordOptions<Message>) =>
  <Context extends LambdaContext>(handler: (record: Message, context: Context, lease: LeaseOf<Key>) => unknown) =>
  async ({ Records }: { Records: Message[] }, context: Context): Promise<SqsBatchResponse> => {
    refuseDurable(context);
    const left = () => context.getRemainingTimeInMillis();
    /** The remaining time of the invocation when all waits have ended, in milliseconds. */
    const waitedOutMs = left() - patienceMs({ ...options, rates }, left());
    // A request that replaces others must be able to wait.
    const waitLeftMs = () => Math.max(options.replace ? 1 : 0, left() - waitedOutMs);
    const failures = failuresOf<Message>(onFailure);

    /** Waits for the start of a record. @throws HoldfastError RateExceeded, after the record was deferred */
    const start = async (record: Message, lease: Lease): Promise<void> => {
      if (!rates) return;
      const { key, holder, signal } = lease;
      const timeoutMs = Math.min(options.timeoutMs ?? 30_000, left() / 3);
      const asked = { rates, settle, holder, signal, timeoutMs, waitMs: waitLeftMs() };
      try {
        Object.assign(lease, { settle: (await options.holdfast.rate(key, asked)).settle });
      } catch (error) {
        if (isHeld(error)) await hook(defer, record, error.retryAfterMs);
        throw error;
      }
    };

    /** Handles the records of one key. */
    const underKey = async (entries: Entry<Message>[]): Promise<void> => {
      const open = entries.filter((entry) => !failures.isBarred(entry));
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

    const entries = Records.map((record) => entryOf(record, options.key));
    const chains = chainsOf(entries).values();
    const worker = async () => {
      for (const chain of chains)
        while (chain.length > 0) {
          const end = chain.findIndex(({ key }) => key !== chain[0]?.key);
          await underKey(chain.splice(0, end < 0 ? chain.length : end));
        }
    };
    // Without a worker, the response would say that all records were handled.
    await Promise.all(Records.slice(0, concurrency > 1 ? concurrency : 1).map(worker));
    // Without ReportBatchItemFailures, any response counts as success of the whole batch.
    if (entries.length > 0 && entries.length === failures.entries.size) throw failures.cause;
    const again = entries.filter((entry) => failures.entries.has(entry));
    return { batchItemFailures: again.map(({ record }) => ({ itemIdentifier: record.messageId })) };
  };

/** The records of a batch that have failed. */
interface Failures<Message> {
  entries: Set<Entry<Message>>;
  /** The error of the first failure. */
  cause: unknown;
  add(error: unknown, entries: Entry<Message>[]): Promise<void>;
  /** True if an earlier record of the message group has failed. The record then fails too, so that the group keeps its order. */
  isBarred(entry: Entry<Message>): boolean;
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
    isBarred(entry) {
      const isBarred = [...failed].some(({ group }) => isSame(group, entry.group));
      if (isBarred) failed.add(entry);
      return isBarred;
    },
  };
  return failures;
}

interface UnderLease<Message> {
  failures: Failures<Message>;
  lease: Lease | undefined;
  handle(record: Message): unknown;
  /** True if a newer request has replaced these records, so that they count as done. */
  isOver(): boolean;
}

/** Handles the records of one key one after the other, until their lease is lost. */
async function inOrder<Message>(entries: Entry<Message>[], { failures, lease, handle, isOver }: UnderLease<Message>) {
  for (const [at, entry] of entries.entries())
    try {
      if (isOver()) return;
      if (lease?.lost) return await failures.add(lease.lost, entries.slice(at));
      if (failures.isBarred(entry)) continue;
      if ('fault' in entry) throw entry.fault;
      await handle(entry.record);
      if (lease?.lost) throw lease.lost;
    } catch (error) {
      if (isOver()) return;
      await failures.add(error, [entry]);
    }
}

interface Entry<Message> {
  record: Message;
  key?: string | undefined;
  /** The message group of a FIFO queue. */
  group: string | undefined;
  /** What the function threw that was to name the key. */
  fault?: unknown;
}

function entryOf<Message extends SqsRecord>(record: Message, key: ByEvent<Message>): Entry<Message> {
  const group = record.eventSourceARN.endsWith('.fifo') ? record.attributes.MessageGroupId : undefined;
  try {
    return { record, group, key: byEvent(key, record) };
  } catch (fault) {
    return { record, group, fault };
  }
}

const logged = (error: unknown, records: SqsRecord[]): void =>
  console.error(`failed: ${records.map(({ messageId }) => messageId)}:`, error);

/** Calls a function of the user. If the function throws, the records still fail or succeed by their own result. */
const hook = <Args extends unknown[]>(
  call: ((...args: Args) => unknown) | undefined,
  ...args: Args
): Promise<unknown> =>
  Promise.resolve()
    .then(() => call?.(...args))
    .catch(console.error);

const isSame = (one: unknown, other: unknown): boolean => one !== undefined && one === other;

/**
 * Splits a batch into chains that share neither a key nor a message group, so that no chain need wait for another. In a chain, records of one key or
 * one group have the order of the batch.
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
