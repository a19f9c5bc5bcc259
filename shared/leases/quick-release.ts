import type { Call } from '../aws/call.ts';
import { HoldfastError } from '../errors.ts';
import type { ReleaseInput } from '../line/calls.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import { canNotify } from '../line/message.ts';
import { TRANSFER_MS } from '../line/times.ts';
import { isTask } from '../line/waiters.ts';
import { handOff } from './hand-off.ts';
import { peek } from './next.ts';
import { quickTransfer, ticketOfLeaseId } from './transfer.ts';

/**
 * Releases a lease that was granted while others were in line. Looks at the line at once, and hands the lease off by its lease id, in place of a
 * write that is bound to lose (docs/protocols/queue.md#quick-release).
 * @returns undefined if the plain release must decide. With `unanswered` it must too, but the lease may have been handed off already
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown of the write
 */
export async function releaseInLine(
  dependencies: LeaseDependencies,
  { key, leaseId }: ReleaseInput,
  call: Call,
): Promise<'handedOn' | 'unanswered' | undefined> {
  const ticket = ticketOfLeaseId(leaseId);
  if (ticket === undefined || call.timeLeftMs() < TRANSFER_MS) return undefined;
  const line = await peek(dependencies, { key, ticket }, call).catch(ifUnread);
  if (!line || (isTask(line.oldest) && !(await canNotify(dependencies, line.oldest)))) return undefined;
  const { won, record, unanswered, hasGoneOn } = await quickTransfer(dependencies, { key, leaseId, line }, call);
  if (hasGoneOn) return 'handedOn';
  if (!won) return unanswered ? 'unanswered' : undefined;
  await handOff(dependencies, { record, ending: 'released', transferred: line }, call);
  return 'handedOn';
}

/** The plain release can end the lease without the line. */
function ifUnread(error: unknown): undefined {
  if (!(error instanceof HoldfastError)) throw error;
}
