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

// Middy needs an index signature, which only a type alias has, and not an interface.
type Internal = { lease?: Lease | undefined };

/** The part of middy's request that the middleware uses. With it, the package does not depend on the types of middy. */
interface MiddyRequest<Event> {
  event: Event;
  context: object;
  internal: Internal;
  error?: unknown;
  response?: unknown;
  earlyResponse?: unknown;
}

/** A middleware for middy 6 and 7. */
export interface MiddyLease<Event> {
  before(request: MiddyRequest<Event>): Promise<void>;
  after(request: MiddyRequest<Event>): Promise<void>;
  onError(request: MiddyRequest<Event>): Promise<void>;
}

/** The property of the context that carries the lease. The symbol is global, because a program may load both the ES module and the CommonJS module. */
const LEASE = Symbol.for('holdfast.lease');

/** Returns the lease that `middyLease` acquired for an invocation. Undefined if the handler runs without a lease. */
export const leaseOf = (context: object): Lease | undefined => Reflect.get(context, LEASE);

/**
 * A middleware that acquires a lease or a permit before the handler, and releases it after the handler, even if the handler fails. The handler reads the lease
 * with `leaseOf(context)`, and other middlewares find it in `request.internal.lease`.
 *
 * Register `middyLease` after the middlewares that parse the event or may answer early, and before those that must run under the lease. If a later
 * middleware answers early, middy calls neither `after` nor `onError`, so the lease would stay until it expires.
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
        // If a later middleware answers early, middy calls neither `after` nor `onError`, and the process must still be able to end.
        held.lease.signal.addEventListener('abort', held.stop);
        Object.defineProperty(context, LEASE, { value: held.lease, configurable: true });
        internal.lease = held.lease;
      } catch (error) {
        // Setting `earlyResponse` ends the chain of middlewares, even if the value is undefined.
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
      // After middy's own timeout the handler still runs, so the lease must not be released. It expires.
      if (isMiddyTimeout(request.error)) return;
      const held = holding.get(request);
      await held?.end();
      // Not undefined, because middy would then throw the error.
      if (isSkipped(options, held?.lease.lost)) request.response = null;
    },
  };
}

function isMiddyTimeout(error: unknown): boolean {
  const { name, cause } = (error ?? {}) as { name?: string; cause?: { package?: string } };
  return name === 'TimeoutError' && cause?.package === '@middy/core';
}
