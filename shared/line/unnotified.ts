import type { Call } from '../aws/call.ts';
import type { HoldfastError } from '../errors.ts';
import type { LeaseDependencies } from './dependencies.ts';
import { endTask } from './notify.ts';
import { getWaiter, isTask, type Waiter } from './waiters.ts';

/**
 * Fails the task of a grant that an operator has marked as ending, if its ticket is still there: that task may not have been notified
 * (docs/protocols/leases.md#break).
 * @param waiter the ticket of the grant, under the key of its line
 * @param error the error that the task receives
 * @returns true if the task accepted this message. Then no holder works under the grant, so the grant can end at once. A task that does not accept
 * the message was notified before, or has ended
 * @throws HoldfastError Throttled, OutcomeUnknown, Unavailable also if Step Functions gave no answer
 */
export async function endUnnotified(
  dependencies: LeaseDependencies,
  { waiter: ticket, error }: { waiter: Pick<Waiter, 'key' | 'ticket'>; error: HoldfastError },
  call: Call,
): Promise<boolean> {
  const row = await getWaiter(dependencies, ticket, call);
  if (!row || !isTask(row)) return false;
  return (await endTask(dependencies, { waiter: row, error }, call)) === 'delivered';
}
