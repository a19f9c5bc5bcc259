import { integer } from '../../aws/attributes.ts';
import type { Call } from '../../aws/call.ts';
import type { LeaseDependencies } from '../dependencies.ts';
import { deleteOver } from './caller-tickets.ts';
import type { Delivery } from './delivery.ts';
import { isTask, isWaiting, type TaskTicket, type Ticket, ticketsOf } from './tickets.ts';

// What the repair does with the rows of a line, whatever it is for.

/** The call that wrote a grant notifies its task within moments, or never. */
const NOTIFIED_AFTER_MS = 10_000;

/**
 * A task with the documented timeout has ended this long after its deadline. Each try renews its grant, so a task that nobody can ever notify
 * (Step Functions may lack the use of a KMS key, for instance) would keep that grant for ever.
 */
const MAX_PAST_DEADLINE_MS = 180_000;

/** As a rule, one key takes no longer. */
export const LAST_KEY_MS = 5000;

/** The most that one run ends for one key: a queue of dead tickets must not cost the other keys their turn. */
const MAX_OVERDUE = 100;

/** Whether the task of a grant, whose ticket is still there, should know of it by now. */
export const isLate = ({ acquiredAt = 0 }: { acquiredAt?: number | undefined }, now: number): boolean =>
  acquiredAt + NOTIFIED_AFTER_MS <= now;

/** Whether the repair still notifies a task. If not, its grant ends at its expiry. */
export const isStillTold = (ticket: TaskTicket, now: number): boolean => ticket.deadline + MAX_PAST_DEADLINE_MS > now;

interface Rows {
  /** The key of the line. */
  key: string;
  isGranted(ticket: Ticket): boolean;
}

/** Rows of callers that have left do not count, nor do those of grants. @throws HoldfastError Throttled, Unavailable */
export async function isSomebodyWaiting(
  dependencies: LeaseDependencies,
  { key, isGranted }: Rows,
  call: Call,
): Promise<boolean> {
  for await (const ticket of ticketsOf(dependencies, { key, firstPage: 10 }, call))
    if (isWaiting(ticket, dependencies.clock.now()) && !isGranted(ticket)) return true;
  return false;
}

/**
 * Ends overdue tasks behind holders that go on, too. Otherwise TTL would delete such a ticket, and its task would wait for ever. Rows of callers
 * go once they are over.
 * @returns how many tasks Step Functions gave no answer about
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export async function failAllOverdue(
  dependencies: LeaseDependencies,
  { key, isGranted, fail }: Rows & { fail(ticket: TaskTicket): Promise<Delivery | 'overtaken'> },
  call: Call,
): Promise<number> {
  const { clock } = dependencies;
  const overdue = {
    key,
    FilterExpression: 'deadline <= :now',
    ExpressionAttributeValues: { ':now': integer(clock.now()) },
  };
  let [tries, unanswered] = [0, 0];
  for await (const ticket of ticketsOf(dependencies, overdue, call)) {
    const isKept = !isTask(ticket) && ticket.keepUntil > clock.now();
    if (isKept || isGranted(ticket)) continue;
    if (tries++ === MAX_OVERDUE) break;
    if (!isTask(ticket)) await deleteOver(dependencies, ticket, call);
    else if ((await fail(ticket)) === 'unanswered') unanswered++;
  }
  return unanswered;
}
