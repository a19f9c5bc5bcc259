import {
  byEvent,
  type HandlerLeaseOptions,
  type Held,
  isSkipped,
  type LambdaContext,
  refuseDurable,
  take,
} from './handler-lease.ts';
import type { Lease } from './index.ts';
import { assertOnHeld, notGranted, type OnHeld } from './on-held.ts';

// A type, not an interface, because middy needs an index signature.
type Internal = { lease?: Lease | undefined };

/** The part of middy's request that the middleware uses, so that users need no types of middy. */
interface MiddyRequest<Event> {
  event: Event;
  context: object;
  internal: Internal;
  error?: unknown;
  response?: unknown;
  earlyResponse?: unknown;
}

/** A middleware of middy 6 and 7. */
export interface MiddyLease<Event> {
  before(request: MiddyRequest<Event>): Promise<void>;
  after(request: MiddyRequest<Event>): Promise<void>;
  onError(request: MiddyRequest<Event>): Promise<void>;
}

/** Keeps the lease on the context of the invocation, because a program may load this module twice, as an ES module and as a CommonJS module. */
const LEASE = Symbol.for('holdfast.lease');

/** The lease that `middyLease` acquired for the invocation of this context. Undefined if the handler runs without a lease. */
export const leaseOf = (context: object): Lease | undefined => Reflect.get(context, LEASE);

/**
 * Acquires a lease or a permit before a handler of middy, and releases it after the handler, or after its error. The handler gets the lease by
 * `leaseOf(context)`; a middleware reads `request.internal.lease`.
 *
 * Register `middyLease` after the middlewares that parse the event or may answer early, and before the middlewares that must run under the lease. Middy
 * calls `after` and `onError` in reverse order, and calls neither if a middleware answers early.
 * @throws TypeError if `onHeld` is not valid
 * @example
 * export const handler = middy()
 *   .use(httpJsonBodyParser())
 *   .use(middyLease({ holdfast, key: (event: OrderEvent) => `order/${event.body.id}`, onHeld: conflict() }))
 *   .handler(async (event, context) => ship(event.body, { signal: leaseOf(context)?.signal }));
 */
export function middyLease<Event>({
  onHeld,
  ...options
}: HandlerLeaseOptions<Event, string | undefined> & { onHeld?: OnHeld<Event> | undefined }): MiddyLease<Event> {
  assertOnHeld(onHeld);
  const { onSuperseded } = options;
  const holding = new WeakMap<object, Held>();
  return {
    async before(request) {
      const { event, internal } = request;
      refuseDurable(request.context);
      const context = request.context as LambdaContext;
      const key = byEvent(options.key, event);
      if (key === undefined) return;
      try {
        const held = await take(options, { key, event, context });
        holding.set(request, held);
        // Middy may call neither `after` nor `onError`.
        held.lease.signal.addEventListener('abort', held.stop);
        Object.defineProperty(context, LEASE, { value: held.lease, configurable: true });
        internal.lease = held.lease;
      } catch (error) {
        // The presence of `earlyResponse` ends the chain, even if the value is undefined.
        request.earlyResponse = await notGranted({ onHeld, onSuperseded }, error, [event, context]);
      }
    },
    async after(request) {
      const held = holding.get(request);
      const lost = held?.lease.lost;
      await held?.end();
      if (isSkipped(options, lost)) request.response = null;
      else if (lost) throw lost;
    },
    async onError(request) {
      // At middy's own timeout the handler still runs, so the lease is not released and expires.
      if (isMiddyTimeout(request.error)) return;
      const held = holding.get(request);
      await held?.end();
      // Middy takes undefined for no answer, and throws the error.
      if (isSkipped(options, held?.lease.lost)) request.response = null;
    },
  };
}

function isMiddyTimeout(error: unknown): boolean {
  const { name, cause } = (error ?? {}) as { name?: string; cause?: { package?: string } };
  return name === 'TimeoutError' && cause?.package === '@middy/core';
}
