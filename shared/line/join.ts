import type { Call } from '../aws/call.ts';
import type { LeaseDependencies } from './dependencies.ts';
import { countInLine } from './limits/full-lines.ts';
import { refuseWhereFull } from './limits/full-namespaces.ts';
import { DEFAULT_QUOTAS } from './limits/quotas.ts';
import { type CallTicket, deleteTicket, putTicket, queueFull, ticketName, withdrawn } from './waiters.ts';
import { KEEP_MS, keepPlace } from './waiting-calls.ts';

/** The record only hints at how many have left the line. The hint may be wrong, so some arrivals count the line whatever it says. */
export const countedEvery = (waitersPerKey: number): number => Math.max(1, Math.ceil(waitersPerKey / 32));

interface Arrived extends Pick<CallTicket, 'key' | 'ticket'> {
  /** How many have joined so far. */
  arrivals: number;
  /** How many of those have left the line, as far as the record tells. Undefined if it does not. */
  lineOut?: number;
  /** Corrects the record after a count that differs from it. */
  correct?(inLine: number): Promise<unknown>;
}

/**
 * Takes a call that has just joined out of a line that is too long. Counts the line only if, by the record, more than the quota may be in it:
 * a crowd that comes back raises the mark quickly, and that alone is no reason to count. A count that differs corrects the record.
 * @throws HoldfastError QueueFull, Throttled, Unavailable, OutcomeUnknown
 */
export async function refuseWhereLong(
  dependencies: LeaseDependencies,
  { arrivals, lineOut, correct, ...name }: Arrived,
  call: Call,
): Promise<void> {
  const { waitersPerKey } = dependencies.quotas ?? DEFAULT_QUOTAS;
  const seemsFull = lineOut !== undefined && arrivals - lineOut > waitersPerKey;
  const isSample = arrivals > waitersPerKey && arrivals % countedEvery(waitersPerKey) === 0;
  if (!seemsFull && !isSample) return;
  const inLine = await countInLine(dependencies, name.key, call);
  const isFull = inLine > waitersPerKey;
  if (lineOut !== undefined && isFull !== seemsFull) await correct?.(inLine);
  if (!isFull) return;
  await deleteTicket(dependencies, name, call);
  throw queueFull(name.key, waitersPerKey);
}

/** A call that takes a place in a line, under the key of the line. */
interface Placing {
  /** The place of an earlier call of the request, if it asks again. */
  ticket?: string | undefined;
  /** When it stops waiting, in epoch milliseconds. */
  deadline: number;
  asked: Omit<CallTicket, 'ticket' | 'parkedAt' | 'deadline' | 'keepUntil'>;
}

/**
 * Keeps the place of a call that asks again in time, or takes a new one.
 * @throws HoldfastError LeaseLost (`cancelled`), QueueFull, Throttled, Unavailable, OutcomeUnknown
 */
export async function takePlace(
  dependencies: LeaseDependencies,
  { asked, ticket, deadline }: Placing,
  call: Call,
): Promise<{ ticket: string; again: boolean }> {
  const kept = ticket && (await keepPlace(dependencies, { asker: asked, ticket, deadline }, call));
  if (kept === 'cancelled') throw withdrawn(asked.key);
  if (kept) return { ticket: kept.ticket, again: true };
  await refuseWhereFull(dependencies, asked.key, call);
  const now = dependencies.clock.now();
  const name = ticketName(now, dependencies.ids.uuid());
  const row: CallTicket = { ...asked, ticket: name, parkedAt: now, deadline, keepUntil: deadline + KEEP_MS };
  await putTicket(dependencies, row, call);
  return { ticket: name, again: false };
}
