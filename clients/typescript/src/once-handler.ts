import {
  ANSWER_MS,
  type ByEvent,
  byEvent,
  type HandlerLeaseOptions,
  type LambdaContext,
  refuseDurable,
  take,
} from './handler-lease.ts';
import type { Holdfast, OnceOptions, OnceRun } from './index.ts';
import type { Begun } from './once.ts';

/** How `onceHandler` asks for a slot: the options of `once`, except those that the wrapper computes from the invocation. */
export type OnceHandlerOptions<Event, Key extends string | undefined> = Omit<
  OnceOptions,
  'signal' | 'maxHoldMs' | 'waitUntil' | 'releaseTimeoutMs' | 'execution' | 'inputHash'
> &
  Pick<HandlerLeaseOptions<Event, Key>, 'execution'> & {
    holdfast: Holdfast;
    /** The key, such as the id of the message. If the function returns `undefined` for an event, the handler runs for each delivery. */
    key: ByEvent<Event, Key>;
    /** Runs the handler once in each period, such as `1d` or `1w`. Without `per` and `slot`, a key is done until `keepSeconds` are over. */
    per?: string | undefined;
    /**
     * The time zone in which days and weeks begin, as an IANA name. The default is UTC.
     * @example
     * export const handler = onceHandler({ holdfast, key: 'backup', per: '1d', zone: 'Europe/Berlin' })(backup);
     */
    zone?: string | undefined;
    /** A name of your own for the slot, such as the day of a report. */
    slot?: ByEvent<Event> | undefined;
    /** A hash of the input. If the key is done with another hash, the wrapper throws Conflict instead of answering with the wrong result. */
    inputHash?: ByEvent<Event> | undefined;
    /** False if the result must not be stored: every caller that may begin a slot can read it. The default is true, for the answers to later deliveries. */
    result?: boolean | undefined;
  };

/** The run that a handler receives. It can be undefined only if `key` may return undefined. */
export type RunOf<Key> = undefined extends Key ? OnceRun | undefined : OnceRun;

/**
 * Wraps a Lambda handler so that it runs once for a key and a slot, even if the event is delivered twice. A later delivery receives the stored result, or
 * `undefined` if no result was stored or a later slot is done. If the handler throws, the next delivery runs the handler again.
 *
 * A result above 4 KiB of JSON is not stored, and the wrapper warns on stderr. A second before the invocation times out, `run.signal` aborts. If the handler
 * has read `run.signal` and ends after that, it may have stopped half way: the wrapper drops the result and throws LeaseLost (`maxHold`).
 * @throws the errors of the handler; HoldfastError LeaseHeld if another invocation works, so that the event is delivered again; LeaseLost; the errors of
 * `once`; TypeError in a durable function
 * @example
 * export const handler = onceHandler({ holdfast, key: ({ id }: OrderEvent) => `order/${id}` })(
 *   async (event, context: Context, run) => charge(event, { signal: run.signal, fence: run.fence }),
 * );
 */
export const onceHandler =
  <Event, Key extends string | undefined = string>({
    holdfast,
    result: stores = true,
    slot,
    inputHash,
    ...options
  }: OnceHandlerOptions<Event, Key>) =>
  <Own extends Event, Context extends LambdaContext, Result>(
    handler: (event: Own, context: Context, run: RunOf<Key>) => Result | Promise<Result>,
  ) =>
  async (event: Own, context: Context): Promise<Result | undefined> => {
    refuseDurable(context);
    const key = byEvent(options.key, event);
    if (key === undefined) return handler(event, context, undefined as RunOf<Key>);
    const beginOptions = { ...options, holdfast, slot: byEvent(slot, event), inputHash: byEvent(inputHash, event) };
    const held = await take<Begun>(beginOptions, { key, event, context }, 'beginRun');
    const begun = held.lease;
    if (begun.outcome !== 'run') {
      held.stop();
      return (begun.result ?? undefined) as Result | undefined;
    }
    try {
      const result = await begun.work((run) => handler(event, context, run as RunOf<Key>));
      const leftMs = context.getRemainingTimeInMillis() - ANSWER_MS;
      const isStored = await begun.complete(
        stores ? result : undefined,
        Math.max(ANSWER_MS, Math.min(COMPLETE_MS, leftMs)),
      );
      if (stores && result !== undefined && !isStored)
        console.warn(`the result for ${key} is not stored: ${NOT_STORED}`);
      return result;
    } finally {
      await held.end();
    }
  };

/** How long to try to store a result if there is time, in milliseconds. */
const COMPLETE_MS = 30_000;

const NOT_STORED = 'it is not JSON, or more than 4 KiB of JSON';
