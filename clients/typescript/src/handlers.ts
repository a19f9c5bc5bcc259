import {
  byEvent,
  type HandlerLeaseOptions,
  type Held,
  isSkipped,
  type LambdaContext,
  type LeaseOf,
  refuseDurable,
  take,
} from './handler-lease.ts';
import { assertOnHeld, notGranted, type OnHeld, type Skipped } from './on-held.ts';

export type { ByEvent, HandlerLeaseOptions, HeldError, LambdaContext, LeaseOf } from './handler-lease.ts';
export { leaseOf, type MiddyLease, middyLease } from './middy-lease.ts';
export { conflict, type OnHeld, type Skipped } from './on-held.ts';
export { type OnceHandlerOptions, onceHandler, type RunOf } from './once-handler.ts';
export { onceRecords } from './once-records.ts';
export type { BatchRecord, BatchResponse, RecordOptions } from './record-batches.ts';
export { leasedRecords, type SqsRecord } from './record-leases.ts';

/**
 * Wraps a Lambda handler so that it runs under a lease or a permit, which is released before the response is sent.
 *
 * A second before the invocation times out, `lease.signal` aborts. If the handler then ends, the wrapper drops the result and throws LeaseLost (`maxHold`). If
 * the handler does not end, Lambda stops it, and the lease expires.
 * @throws the errors of the handler; HoldfastError LeaseHeld or RateExceeded, unless `onHeld` handles them; LeaseLost; the errors of `acquire`; TypeError in
 * a durable function. The wrapper itself throws TypeError if `onHeld` is not valid
 * @example
 * export const handler = leased({ holdfast, key: 'nightly-report', onHeld: 'skip' })(
 *   async (event: ScheduledEvent, context: Context, lease) => buildReport({ signal: lease.signal, fence: lease.fence }),
 * );
 */
export const leased = <
  Event,
  Key extends string | undefined = string,
  Hold extends OnHeld<Event> = 'throw',
  Replace extends HandlerLeaseOptions<Event, Key>['replace'] = undefined,
>({
  onHeld,
  ...options
}: HandlerLeaseOptions<Event, Key> & { onHeld?: Hold | undefined; replace?: Replace }) => {
  assertOnHeld(onHeld);
  const { onSuperseded } = options;
  return <Own extends Event, Context extends LambdaContext, Result>(
    handler: (event: Own, context: Context, lease: LeaseOf<Key>) => Result | Promise<Result>,
  ) =>
    // Lambda refuses a handler that declares a third parameter, which older runtimes used for a callback.
    async (
      event: Own,
      context: Context,
    ): Promise<Result | Skipped<Hold> | (Replace extends string ? undefined : never)> => {
      refuseDurable(context);
      const key = byEvent(options.key, event);
      if (key === undefined) return handler(event, context, undefined as LeaseOf<Key>);
      let held: Held;
      try {
        held = await take(options, { key, event, context });
      } catch (error) {
        return (await notGranted({ onHeld, onSuperseded }, error, [event, context])) as Skipped<Hold>;
      }
      try {
        const result = await handler(event, context, held.lease as LeaseOf<Key>);
        if (held.lease.lost) throw held.lease.lost;
        return result;
      } catch (error) {
        if (isSkipped(options, held.lease.lost)) return undefined as never;
        throw error;
      } finally {
        await held.end();
      }
    };
};
