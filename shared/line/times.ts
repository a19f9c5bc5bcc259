import type { Call } from '../aws/call.ts';
import type { LeaseDependencies } from './dependencies.ts';

/** How long a caller has to claim its grant: the grant window. */
export const WINDOW_SECONDS = 2;
export const WINDOW_MS = WINDOW_SECONDS * 1000;

/** How often a call in line looks at its own ticket. */
export const ROW_EVERY_MS = 1000;

/** How long a task without `parkSeconds` waits. */
export const DEFAULT_PARK_SECONDS = 86_400;

/** The ttl of a grant without `ttlSeconds`. */
export const DEFAULT_TTL_SECONDS = 60;

/**
 * The ttl of a grant that lasts as long as its execution (docs/protocols/bound.md): no execution lasts longer than 366 days. The look at the execution
 * ends the grant, and not this time.
 */
export const BOUND_SECONDS = 400 * 86_400;

/** Calls ask about the execution of one bound grant no more often. */
export const ASK_EVERY_MS = 30_000;

/** A call with less time left than this does not hand off. It ends the grant, and leaves the hand-off to other calls. */
export const TRANSFER_MS = 2000;

/** The part of the invocation that waiting leaves for a last write. */
const LAST_WRITE_MS = 500;

/**
 * The deadline of a call whose first try received no grant. All instants are epoch milliseconds. If the clock was set back during that try, the wait
 * counts from now: otherwise the call would wait longer, by as much as the clock was set back.
 */
export function deadlineOf(
  { maxWaitSeconds }: Pick<LeaseDependencies, 'maxWaitSeconds'>,
  { waitSeconds, arrivedAt, now }: { waitSeconds: number; arrivedAt: number; now: number },
  call: Call,
): number {
  const asked = Math.min(arrivedAt, now) + Math.min(waitSeconds, maxWaitSeconds) * 1000;
  return Math.min(asked, now + call.timeLeftMs() - LAST_WRITE_MS);
}

/**
 * True if a call names the ticket of an earlier call. Such a call keeps its position even if its first try took longer than `waitSeconds`: the call
 * looks once, and is answered with its position.
 */
export const isBackInLine = (
  { maxWaitSeconds }: Pick<LeaseDependencies, 'maxWaitSeconds'>,
  { waitSeconds, fair, ticket }: { waitSeconds: number; fair: boolean; ticket: string | undefined },
): boolean => fair && ticket !== undefined && Math.min(waitSeconds, maxWaitSeconds) > 0;
