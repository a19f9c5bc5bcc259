import type { Call } from '../aws/call.ts';
import type { LeaseDependencies } from './dependencies.ts';
import { DEFAULT_QUOTAS } from './limits/quotas.ts';
import { type Notified, notifyFailed } from './notify.ts';
import { deleteTicket, queueFull, type TaskTicket } from './waiters.ts';

// What parking has in common, for a lease or for a permit.

/** `waits`: its ticket stays. `again`: the record has changed, and the call must look again. */
export type ParkOutcome = 'waits' | 'notified' | 'again';

/**
 * Takes the task out of a queue that is full. Ends the task itself first, as cancel does, so that a call that has just met its ticket cannot wake it
 * after this call has refused it.
 * @param isGranted whether the record shows that the ticket has been granted, by a consistent read
 * @throws HoldfastError QueueFull
 */
export async function refuseTask(
  dependencies: LeaseDependencies,
  { ticket, isGranted }: { ticket: TaskTicket; isGranted(): Promise<boolean> },
  call: Call,
): Promise<ParkOutcome> {
  const full = queueFull(ticket.key, (dependencies.quotas ?? DEFAULT_QUOTAS).waitersPerKey);
  const delivery = await notifyFailed(dependencies, { ticket, error: full }, call);
  if (delivery === 'unanswered') return 'waits'; // the task may still wait, so its ticket must stay
  if (delivery === 'gone' && (await isGranted())) return 'notified';
  await deleteTicket(dependencies, ticket, call);
  throw full;
}

/** The task was tried again: its new token gets the grant that the request has. @param outcome of the message about that */
export async function repeated(
  dependencies: LeaseDependencies,
  { ticket, outcome }: { ticket: TaskTicket; outcome: Notified<unknown>['outcome'] },
  call: Call,
): Promise<ParkOutcome> {
  if (outcome === 'overtaken') return 'again';
  if (outcome === 'unanswered') return 'waits'; // its row is left to the schedule
  await deleteTicket(dependencies, ticket, call);
  return 'notified';
}
