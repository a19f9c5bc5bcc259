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
import { deleteOver } from './waiting-calls.ts';

// What the repair does with the rows of a line, whatever it is for.

/** The call that wrote a grant notifies its task within moments, or never. */
const NOTIFIED_AFTER_MS = 10_000;

/**
 * A task with the documented timeout has ended this long after its deadline. Each try renews its grant, so a task that cannot be notified (Step
 * Functions may lack the use of a KMS key, for instance) would keep that grant permanently.
 */
const MAX_PAST_DEADLINE_MS = 180_000;

/** The repair of one key usually takes no longer. */
export const LAST_KEY_MS = 5000;

/** A run ends this many rows of one key unless its time is nearly up, and more rows only while it has time to spare for the other keys. */
const MIN_GOING = 100;

/** A partition of DynamoDB takes a thousand writes a second, and the callers of the key need some of those. */
const FAILURES_AT_ONCE = 5;

/** Whether the task of a grant, whose ticket is still there, should know of it by now. */
export const isTaskLate = ({ acquiredAt = 0 }: { acquiredAt?: number | undefined }, now: number): boolean =>
  acquiredAt + NOTIFIED_AFTER_MS <= now;

/** Whether the repair still notifies a task. If not, the grant ends at its expiry. A bound grant has no expiry, so its task is always notified. */
export const isStillNotified = (waiter: WaitingTask, now: number): boolean =>
  waiter.bound || waiter.deadline + MAX_PAST_DEADLINE_MS > now;

interface Overdue {
  /** Ends an overdue task, or notifies it of the grant that its request has. */
  fail(waiter: WaitingTask): Promise<NotifyOutcome | 'overtaken'>;
  /** With less time left than this, the rest of a long line is left to the next run. */
  spareMs: number;
}

interface OverdueRows {
  key: string;
  isGranted(waiter: Waiter): boolean;
}

/**
 * Whether the line needs its mark. Rows of callers that have left do not count, nor do overdue tasks, which can be granted nothing, nor rows of
 * requests that have their grant. Waiters may be behind too many expired rows.
 * @throws HoldfastError Throttled, Unavailable
 */
export async function isAnyWaiting(
  dependencies: LeaseDependencies,
  { key, isGranted }: OverdueRows,
  call: Call,
): Promise<boolean> {
  const reachesLimit = expiredRowLimit(dependencies.clock.now());
  for await (const waiter of readWaiters(dependencies, { key, firstPage: 10 }, call)) {
    const now = dependencies.clock.now();
    const isHere = isWaiting(waiter, now) && !isOverdue(waiter, now);
    const isAsleep = isPlace(waiter) && isLive(waiter, { now, clockSkewMs: dependencies.clockSkewMs });
    if ((isHere || isAsleep) && !isGranted(waiter)) return true;
    if (reachesLimit(waiter)) return true;
  }
  return false;
}

/**
 * Ends overdue tasks, also while the holder goes on. Otherwise TTL would delete such a ticket, and its task would never end. Deletes expired rows of
 * callers.
 * @returns how many tasks Step Functions gave no answer about
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
    if (!isTask(row)) await deleteOver(dependencies, row, call);
    else if ((await fail(row)) === 'unanswered') unanswered++;
  };
  const endAll = () => Promise.all(ending.splice(0).map(end));
  for await (const waiter of readWaiters(dependencies, overdue, call)) {
    const isKept = !isTask(waiter) && waiter.keepUntil > clock.now();
    if (isKept || isGranted(waiter)) continue;
    if (call.timeLeftMs() < (met++ < MIN_GOING ? LAST_KEY_MS : spareMs)) break;
    ending.push(waiter);
    if (ending.length === FAILURES_AT_ONCE) await endAll();
  }
  await endAll();
  return unanswered;
}
