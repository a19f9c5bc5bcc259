import { integer } from '../../aws/attributes.ts';
import type { Call } from '../../aws/call.ts';
import type { LeaseDependencies } from '../dependencies.ts';
import type { NotifyOutcome } from './notify.ts';
import { isLive } from './place.ts';
import {
  BELOW_PLACES,
  expiredRowLimit,
  isOverdue,
  isPlace,
  isTask,
  isWaiting,
  readWaiters,
  type Waiter,
  type WaitingTask,
} from './waiters.ts';
import { deleteExpiredRow } from './waiting-calls.ts';

// Which rows of a line the repair ends, and when it notifies a task that the granting call has not notified.
//
//   granted        + NOTIFIED_AFTER_MS              deadline of the task        + MAX_PAST_DEADLINE_MS
//      |- granting call -|------ the repair notifies the task ----------------------------|- no message: the grant expires

/** How long after a grant its task has been notified, unless the call that wrote the grant has crashed. */
const NOTIFIED_AFTER_MS = 10_000;

/**
 * How long after its deadline a task with the documented timeout has ended. Without this bound, a task that cannot be
 * notified (for example because Step Functions may not use a KMS key) would keep its grant forever, because each try
 * renews the grant.
 */
const MAX_PAST_DEADLINE_MS = 180_000;

/** A run that has less time left does not begin with another key: its repair rarely takes longer. */
export const MIN_KEY_TIME_MS = 5000;

/** How many rows of one key a run ends even if other keys need its time. */
const MIN_ROWS = 100;

/**
 * The number of rows that end at once. More would take writes from the callers: a partition of DynamoDB takes a
 * thousand a second.
 */
const FAILURES_AT_ONCE = 5;

/** Whether the task of a grant should have been notified by now. If its row is still there, perhaps it was not. */
export const isTaskLate = ({ acquiredAt = 0 }: { acquiredAt?: number | undefined }, now: number): boolean =>
  acquiredAt + NOTIFIED_AFTER_MS <= now;

/**
 * Whether the repair still notifies a task. If not, its grant ends at the expiry. A bound grant has no expiry, so its
 * task is always notified.
 */
export const isStillNotified = (waiter: WaitingTask, now: number): boolean =>
  waiter.bound || waiter.deadline + MAX_PAST_DEADLINE_MS > now;

interface Overdue {
  /** Ends an overdue task, or notifies it of the grant that its request has. */
  fail(waiter: WaitingTask): Promise<NotifyOutcome | 'overtaken'>;
  /** How much time a run must have left to go on with a long line. With less, it leaves the rest to the next run. */
  spareMs: number;
}

interface OverdueRows {
  key: string;
  isGranted(waiter: Waiter): boolean;
}

/**
 * Whether the line needs its mark, because it has a waiter that may receive a grant. If there are too many expired
 * rows, such a waiter may be behind them.
 * @throws HoldfastError Throttled, Unavailable
 */
export async function needsMark(
  dependencies: LeaseDependencies,
  { key, isGranted }: OverdueRows,
  call: Call,
): Promise<boolean> {
  const reachesLimit = expiredRowLimit(dependencies.clock.now());
  for await (const waiter of readWaiters(dependencies, { key, firstPage: 10 }, call)) {
    const now = dependencies.clock.now();
    const isAwake = isWaiting(waiter, now) && !isOverdue(waiter, now);
    const isAsleep = isPlace(waiter) && isLive(waiter, { now, clockSkewMs: dependencies.clockSkewMs });
    if ((isAwake || isAsleep) && !isGranted(waiter)) return true;
    if (reachesLimit(waiter)) return true;
  }
  return false;
}

/**
 * Ends overdue tasks, even while the holder goes on: otherwise TTL would delete their rows, and the tasks would never
 * end. Deletes expired rows of callers.
 * @returns for how many tasks the message is unanswered
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export async function failAllOverdue(
  dependencies: LeaseDependencies,
  { key, isGranted, fail, spareMs }: OverdueRows & Overdue,
  call: Call,
): Promise<number> {
  const { clock } = dependencies;
  const overdue = {
    key,
    FilterExpression: 'deadline <= :now',
    ExpressionAttributeValues: { ':now': integer(clock.now()), ...BELOW_PLACES },
  };
  let [met, unanswered] = [0, 0];
  const ending: Waiter[] = [];
  const end = async (row: Waiter) => {
    if (!isTask(row)) await deleteExpiredRow(dependencies, row, call);
    else if ((await fail(row)) === 'unanswered') unanswered++;
  };
  const endAll = () => Promise.all(ending.splice(0).map(end));
  for await (const waiter of readWaiters(dependencies, overdue, call)) {
    const isKept = !isTask(waiter) && waiter.keepUntil > clock.now();
    if (isKept || isGranted(waiter)) continue;
    if (call.timeLeftMs() < (met++ < MIN_ROWS ? MIN_KEY_TIME_MS : spareMs)) break;
    ending.push(waiter);
    if (ending.length === FAILURES_AT_ONCE) await endAll();
  }
  await endAll();
  return unanswered;
}
