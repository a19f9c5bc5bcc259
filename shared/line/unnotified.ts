import type { Call } from '../aws/call.ts';
import type { HoldfastError } from '../errors.ts';
import type { LeaseDependencies } from './dependencies.ts';
import { canNotifyTasks, type Delivery, failTask } from './notify.ts';
import { getWaiter, isTask, type Waiter, type WaitingTask } from './waiters.ts';

interface Unnotified {
  /** That of the grant, under the key of its line. */
  waiter: Pick<Waiter, 'key' | 'ticket'>;
  /** What the task receives. */
  error: HoldfastError;
}

/** Sends that message to the task, if this process can. @returns as `endUnnotified`. @throws as `endUnnotified` */
export const tellBroken = async (
  dependencies: LeaseDependencies,
  broken: { waiter: WaitingTask; error: HoldfastError },
  call: Call,
): Promise<Delivery> => ((await canNotifyTasks(dependencies)) ? failTask(dependencies, broken, call) : 'unanswered');

/**
 * Ends the task of a grant that an operator breaks, if its ticket is still there: that task may not have been notified
 * (docs/protocols/leases.md#break). The operator's call does not fail if the task cannot be notified.
 * @returns `delivered`: the task took this message. Then no holder works under the grant, so the grant can end at once. `gone`: it was notified before,
 * or has ended. `unanswered`: its ticket stays, and the next call or the schedule sends again. Undefined if the grant has no task to notify
 * @throws HoldfastError Throttled, OutcomeUnknown, Unavailable by DynamoDB
 */
export async function endUnnotified(
  dependencies: LeaseDependencies,
  { waiter: ticket, error }: Unnotified,
  call: Call,
): Promise<Delivery | undefined> {
  const row = await getWaiter(dependencies, ticket, call);
  if (!row || !isTask(row)) return undefined;
  return tellBroken(dependencies, { waiter: row, error }, call);
}
