import type { Call } from '../../aws/call.ts';
import type { LeaseDependencies } from '../../line/dependencies.ts';
import { getTicket, isTask, type Ticket } from '../../line/waiters.ts';
import { endTask } from './hand-off.ts';

/**
 * Ends the task of a grant that an operator has marked as ending, if its ticket is still there: that task may not have been notified
 * (docs/protocols/leases.md#break).
 * @param ticket of the grant, under the key of its line
 * @returns true if the task took this message. Then no holder works under the grant, so the grant can end at once. A task that takes none was
 * notified before, or has ended
 * @throws HoldfastError Throttled, OutcomeUnknown, Unavailable also if Step Functions gave no answer
 */
export async function endUnnotified(
  dependencies: LeaseDependencies,
  ticket: Pick<Ticket, 'key' | 'ticket'>,
  call: Call,
): Promise<boolean> {
  const row = await getTicket(dependencies, ticket, call);
  if (!row || !isTask(row)) return false;
  return (await endTask(dependencies, { ticket: row, reason: 'broken' }, call)) === 'delivered';
}
