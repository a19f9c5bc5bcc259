import { integer } from '../../aws/attributes.ts';
import type { Call } from '../../aws/call.ts';
import type { LeaseDependencies } from '../dependencies.ts';
import type { Delivery } from '../notify.ts';
import { isOverdue, isTask, isWaiting, pileMet, type TaskTicket, type Ticket, ticketsOf } from '../waiters.ts';
import { deleteOver } from '../waiting-calls.ts';

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

/** So many rows of one key go in any case, and more only while the run has time to spare: a long line must not cost the other keys their turn. */
const MIN_GOING = 100;

/** A partition of DynamoDB takes a thousand writes a second, and the callers of the key need some of those. */
const AT_ONCE = 5;

/** Whether the task of a grant, whose ticket is still there, should know of it by now. */
export const isLate = ({ acquiredAt = 0 }: { acquiredAt?: number | undefined }, now: number): boolean =>
  acquiredAt + NOTIFIED_AFTER_MS <= now;

/** Whether the repair still notifies a task. If not, its grant ends at its expiry. */
export const isStillTold = (ticket: TaskTicket, now: number): boolean => ticket.deadline + MAX_PAST_DEADLINE_MS > now;

interface Overdue {
  fail(ticket: TaskTicket): Promise<Delivery | 'overtaken'>;
  /** With less time left than this, the rest of a long line is left to the next run. */
  spareMs: number;
}

interface Rows {
  /** The key of the line. */
  key: string;
  isGranted(ticket: Ticket): boolean;
}

/**
 * Whether the line needs its mark. Rows of callers that have left do not count, nor do overdue tasks, which can be granted nothing, nor rows of
 * requests that have their grant. Waiters may be behind a pile of rows that are over.
 * @throws HoldfastError Throttled, Unavailable
 */
export async function isSomebodyWaiting(
  dependencies: LeaseDependencies,
  { key, isGranted }: Rows,
  call: Call,
): Promise<boolean> {
  const isPile = pileMet(dependencies.clock.now());
  for await (const ticket of ticketsOf(dependencies, { key, firstPage: 10 }, call)) {
    const now = dependencies.clock.now();
    if (isWaiting(ticket, now) && !isOverdue(ticket, now) && !isGranted(ticket)) return true;
    if (isPile(ticket)) return true;
  }
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
  { key, isGranted, fail, spareMs }: Rows & Overdue,
  call: Call,
): Promise<number> {
  const { clock } = dependencies;
  const overdue = {
    key,
    FilterExpression: 'deadline <= :now',
    ExpressionAttributeValues: { ':now': integer(clock.now()) },
  };
  let [met, unanswered] = [0, 0];
  const going: Ticket[] = [];
  const end = async (row: Ticket) => {
    if (!isTask(row)) await deleteOver(dependencies, row, call);
    else if ((await fail(row)) === 'unanswered') unanswered++;
  };
  const endAll = () => Promise.all(going.splice(0).map(end));
  for await (const ticket of ticketsOf(dependencies, overdue, call)) {
    const isKept = !isTask(ticket) && ticket.keepUntil > clock.now();
    if (isKept || isGranted(ticket)) continue;
    if (met++ >= MIN_GOING && call.timeLeftMs() < spareMs) break;
    going.push(ticket);
    if (going.length === AT_ONCE) await endAll();
  }
  await endAll();
  return unanswered;
}
