import type { Call } from '../aws/call.ts';
import { isOwnOf } from '../line/acquisition.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import type { Ending as Ended } from '../line/ended.ts';
import { FIRST_PAGE, type GrantOfRequest, type Judging, judge } from '../line/judge.ts';
import type { Delivery } from '../line/message.ts';
import { failTask } from '../line/notify.ts';
import {
  deleteWaiter,
  expiredRowLimit,
  isInLine,
  isOverdue,
  isTask,
  isWaiting,
  MAX_EXPIRED_ROWS_IN_HAND_OFF,
  readWaiters,
  type Staying,
  stayingOf,
  type Waiter,
  type WaitingTask,
} from '../line/waiters.ts';
import { otherTerms } from './bound.ts';
import { notifyLease } from './deliver.ts';
import { readRecord } from './read-record.ts';
import type { Leased, LeaseRecord } from './record.ts';
import { endReason, isEnding, isLeased, isRepeatable } from './rules.ts';
import { leaseHeld, leaseLost } from './views.ts';

/**
 * How the grant on record ended, or is to end here. The task of an `expired` grant may never have been notified, so its ticket keeps its
 * place. In all other cases the ticket goes, and that of a caller always. The task of an `undelivered` grant was gone, and no other call has
 * notified it.
 */
export type Ending = Ended | 'free' | 'undelivered';

/** A grant on record that has ended, or is to end. */
export interface EndingGrant {
  /** The record as a conditional write or a consistent read has just shown it. Without a version it is free. */
  record: LeaseRecord;
  ending: Ending;
}

export interface Search extends EndingGrant {
  /** How many expired rows this hand-off still clears away. */
  budget: { over: number };
}

/** The next in line, and what was seen behind it. */
export interface Line {
  oldest: Waiter | undefined;
  /** The one after it, as far as it was looked for. */
  next: Waiter | undefined;
  /** Whether others are in line, or may be. */
  others: boolean;
  /** The tickets after the oldest that wait, as far as they were read. */
  following: readonly Waiter[];
  /** The rows that are in line beside the oldest: those that follow, and those of callers that may come back. */
  staying: Staying;
  /** Whether the line was read to its end. */
  isFull: boolean;
  /** How many rows were cleared away. */
  gone: number;
  /** Whether a task waits behind the oldest, as far as the line was read. */
  taskWaits: boolean;
  /** True if the grant on record has expired and its task was not notified of it: the task still waits. */
  expiredUnnotified: boolean;
}

/** Whether no call was answered with the expired grant in place of its task. */
const isUnanswered = ({ record, ending }: EndingGrant): boolean =>
  ending === 'expired' && record.answeredAt === undefined;

/** A line that is not empty. */
export type NextInLine = Line & { oldest: Waiter };

/**
 * Finds the oldest ticket, and whether others wait (docs/protocols/queue.md#hand-off, step 1). Deletes expired rows. Deletes the ticket of the ended
 * grant only if it meets it, because the call that notified its task, or claimed it, has usually done so.
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export async function look(dependencies: LeaseDependencies, search: Search, call: Call): Promise<Line> {
  const { clock, clockSkewMs } = dependencies;
  const waiting: Waiter[] = [];
  const inLine: Waiter[] = [];
  const line = judging(dependencies, search, call);
  let [undecided, isFull, expiredUnnotified] = [false, true, false];
  let [read, gone] = [0, 0];
  const found = () => firstOf(waiting, clock.now() + clockSkewMs);
  const reachesLimit = expiredRowLimit(clock.now(), MAX_EXPIRED_ROWS_IN_HAND_OFF);
  for await (const waiter of readWaiters(
    dependencies,
    { key: search.record.key, kind: 'lease', firstPage: FIRST_PAGE },
    call,
  )) {
    const judgement = await judge(dependencies, { waiter, line }, call);
    const isOwn = waiter.ticket === search.record.ticket;
    if (judgement === 'waits') waiting.push(waiter);
    if (judgement === 'waits' || (judgement === 'passed' && isInLine(waiter, clock.now()))) inLine.push(waiter);
    if (judgement === 'undecided') undecided = true;
    if (judgement === 'refused' && isOwn && isUnanswered(search)) expiredUnnotified = true;
    const wasServed = isOwn && (search.ending !== 'expired' || !isTask(waiter));
    if ((judgement === 'gone' || judgement === 'refused') && !wasServed) gone++;
    const stops = reachesLimit(waiter);
    if (stops) undecided = true; // another waiter may be behind it
    if (stops || (++read >= FIRST_PAGE && found()[1])) {
      isFull = false;
      break;
    }
  }
  const [oldest, next] = found();
  return {
    ...summarize(waiting, { oldest, next }),
    staying: stayingOf(inLine.filter((waiter) => waiter !== oldest)),
    others: undecided || next !== undefined,
    isFull,
    gone,
    expiredUnnotified,
  };
}

type First = Pick<Line, 'oldest' | 'next'>;

/** @param latest a caller that leaves before then does not come before a task: by a clock that is ahead it may have left, and a task does not look by itself */
function firstOf(waiting: readonly Waiter[], latest: number): [Waiter | undefined, Waiter | undefined] {
  if (waiting.every((waiter) => !isTask(waiter))) return [waiting[0], waiting[1]];
  const [oldest, next] = waiting.filter((waiter) => isTask(waiter) || waiter.deadline > latest);
  return [oldest, next];
}

const summarize = (waiting: readonly Waiter[], { oldest, next }: First) => ({
  oldest,
  next,
  taskWaits: waiting.some((waiter) => isTask(waiter) && waiter !== oldest),
  following: waiting.filter((waiter) => waiter !== oldest),
});

/**
 * Finds the next waiter for a release, before the release has proved that it holds the lease (docs/protocols/queue.md#quick-release). Reads one page,
 * and changes nothing.
 * @param own the ticket of its grant
 * @returns undefined if only the record can decide: the line is empty, a task is overdue, or the ticket of the grant is still there
 * @throws HoldfastError Throttled, Unavailable
 */
export async function peek(
  dependencies: LeaseDependencies,
  { key, ticket: own }: Pick<Waiter, 'key' | 'ticket'>,
  call: Call,
): Promise<NextInLine | undefined> {
  const { clock, clockSkewMs } = dependencies;
  const waiting: Waiter[] = [];
  let read = 0;
  for await (const waiter of readWaiters(dependencies, { key, kind: 'lease', firstPage: FIRST_PAGE }, call)) {
    if (waiter.ticket === own || (isTask(waiter) && isOverdue(waiter, clock.now()))) return undefined;
    if (isWaiting(waiter, clock.now())) waiting.push(waiter);
    if (++read === FIRST_PAGE) break;
  }
  const [oldest, next] = firstOf(waiting, clock.now() + clockSkewMs);
  const isFull = read < FIRST_PAGE;
  const others = next !== undefined || !isFull;
  return (
    oldest && {
      ...summarize(waiting, { oldest, next }),
      ...{ oldest, others, staying: stayingOf([]), isFull, gone: 0, expiredUnnotified: false },
    }
  );
}

/** What the record of a lease shows about the request of each row, while the grant on record ends. */
const judging = (dependencies: LeaseDependencies, { record, ending, budget }: Search, call: Call): Judging => ({
  budget,
  grantOf: (waiter) => grantOf({ record, ending }, waiter),
  lost: (how) => leaseLost(record.key, how, undefined),
  failOverdue: (waiter) => failOverdue(dependencies, { waiter, record }, call),
});

/** The request of such a grant is forgotten, so it may ask again: it never had an answer, or its execution has ended and may be redriven. */
export const FORGOTTEN: ReadonlySet<Ending> = new Set(['undelivered', 'executionEnded']);

function grantOf({ record, ending }: EndingGrant, waiter: Waiter): GrantOfRequest {
  const isOwn = waiter.ticket === record.ticket;
  if (ending === 'expired') return isOwn ? 'lapsed' : 'none';
  if (FORGOTTEN.has(ending)) return isOwn ? 'spent' : 'none';
  // A call that knows the request may have ended the grant before its task was notified.
  if (isOwn || isOwnOf(record, waiter)) return ending === 'broken' ? 'broken' : endReason(record);
  return 'none';
}

/** A parked task, and the record of the lease that it waits for or received. */
export interface TaskOfLease {
  waiter: WaitingTask;
  record: LeaseRecord;
}

/**
 * Ends an overdue task, or a task whose request holds the lease by another row. Without an answer its ticket stays, or the task might never end. The record that was passed may be older than the ticket: a
 * call that was paused in between would name a holder from before the task came. So this reads the record again. A task whose request holds the lease
 * by another ticket is notified of that lease instead.
 * @returns `overtaken`: the task has a grant that the record did not show, and nothing was sent
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export async function failOverdue(
  dependencies: LeaseDependencies,
  { waiter, record: seen }: TaskOfLease,
  call: Call,
): Promise<Delivery | 'overtaken'> {
  const { clock, clockSkewMs } = dependencies;
  const record = await readRecord(dependencies, seen.key, call);
  if (isLeased(record) && record.ticket === waiter.ticket && record.fence !== seen.fence) return 'overtaken';
  if (isShared(record, waiter, clock.now())) return notifyShared(dependencies, { waiter, record }, call);
  if (!isOverdue(waiter, clock.now())) return 'overtaken';
  return failTask(dependencies, { waiter, error: leaseHeld(record, clock.now(), clockSkewMs) }, call);
}

/** Sends a task the grant of the request, or InvalidRequest if the task expects another end of the grant. */
async function notifyShared(
  dependencies: LeaseDependencies,
  { waiter, record }: { waiter: WaitingTask; record: Leased },
  call: Call,
): Promise<Delivery | 'overtaken'> {
  const error = otherTerms(record, waiter);
  if (error) return failTask(dependencies, { waiter, error }, call);
  const { outcome } = await notifyLease(dependencies, { waiter, record, repeated: true, isOurs: false }, call);
  if (outcome === 'delivered' || outcome === 'gone') await deleteWaiter(dependencies, waiter, call);
  return outcome;
}

/** Whether the request of a row has the lease by another row, or by a plain call, and that grant is claimed. */
const isShared = (record: LeaseRecord, waiter: WaitingTask, now: number): record is Leased =>
  isRepeatable(record, waiter, now) &&
  record.ticket !== waiter.ticket &&
  record.claimTtlMs === undefined &&
  !isEnding(record);
