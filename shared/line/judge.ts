import type { Call } from '../aws/call.ts';
import type { HoldfastError } from '../errors.ts';
import type { LeaseDependencies } from './dependencies.ts';
import { canNotify, type Delivery } from './message.ts';
import { failTask } from './notify.ts';
import { deleteWaiter, isOverdue, isTask, type Waiter, type WaitingCall, type WaitingTask } from './waiters.ts';
import { deleteOver } from './waiting-calls.ts';

// The judgement of one row of a line, for leases and permits, and the bounds of one hand-off.

/** One read unit usually holds this many rows. */
export const FIRST_PAGE = 13;

/** One hand-off ends or deletes up to this many rows that no longer wait, and passes over further rows. */
export const MAX_OVER = 10;

/** One hand-off grants to up to this many tasks that turn out to be gone. Then the next call, or the schedule, continues. */
export const MAX_GONE = 10;

/**
 * What a record shows about the grant of a row's request.
 *
 * - `own`: the row's own grant has not ended, or the call that ends that grant deletes the row.
 * - `other`: a grant to another row of the request, or to a plain call, has not ended, and the row must wait for its end.
 * - `shared`: as `other`, and a task in this row must be notified of that grant.
 * - `lapsed`: the row's own grant has expired. A task may never have been notified of it.
 * - `spent`: the row's own grant has ended, and its task needs no message.
 * - `released`, `broken`: the request had a grant, and the record remembers how the grant ended. A request has one grant.
 * - `none`: the request may be granted.
 */
export type GrantOfRequest = 'none' | 'own' | 'other' | 'shared' | 'lapsed' | 'spent' | 'released' | 'broken';

/** A lease, or the permits of a pool, for one look at the line. */
export interface Judging {
  grantOf(waiter: Waiter): GrantOfRequest;
  /** The error for a waiter whose request had a grant that has ended. */
  lost(how: 'released' | 'broken'): HoldfastError;
  /** Ends an overdue task, after a new read of the record. `overtaken`: the task has received a grant since, and no message was sent. */
  failOverdue(waiter: WaitingTask): Promise<Delivery | 'overtaken'>;
  /** Notifies a task of a `shared` grant, and deletes its row if the task took the message or is gone. */
  repeat?(waiter: WaitingTask): Promise<Delivery | 'overtaken'>;
  /** How many more rows that no longer wait this hand-off ends or deletes. */
  budget: { over: number };
}

/**
 * - `waits`: the row can receive a grant.
 * - `passed`: the row cannot receive a grant now, and keeps no caller out.
 * - `granted`: as `passed`, because the row has a grant that has not ended.
 * - `refused`: the task accepted the message that its wait has ended. The row is deleted.
 * - `gone`: the row is deleted.
 * - `undecided`: its task or call may have a new grant or a new deadline, so the mark stays.
 */
export type Judgement = 'waits' | 'passed' | 'granted' | 'refused' | 'gone' | 'undecided';

interface Row<Waiter> {
  waiter: Waiter;
  line: Judging;
}

/**
 * Judges one row of the line (docs/protocols/queue.md#hand-off, step 1). A row that cannot receive a grant keeps no caller out, even if its task cannot
 * be notified: the schedule starts from the rows, and needs no mark.
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export const judge = (
  dependencies: LeaseDependencies,
  { waiter, line }: Row<Waiter>,
  call: Call,
): Promise<Judgement> =>
  isTask(waiter) ? judgeTask(dependencies, { waiter, line }, call) : judgeCall(dependencies, { waiter, line }, call);

async function judgeTask(
  dependencies: LeaseDependencies,
  { waiter, line }: Row<WaitingTask>,
  call: Call,
): Promise<Judgement> {
  const grant = line.grantOf(waiter);
  if (grant === 'own') return 'granted';
  if (grant === 'spent') {
    await deleteWaiter(dependencies, waiter, call);
    return 'gone';
  }
  const mayWait = grant === 'none' || grant === 'lapsed';
  if (mayWait && !isOverdue(waiter, dependencies.clock.now())) return 'waits';
  if (grant === 'other' || line.budget.over-- <= 0) return 'passed';
  if (!(await canNotify(dependencies, waiter))) return 'passed';
  const outcome = await send(dependencies, { waiter, line, grant }, call);
  if (outcome === 'overtaken') return 'undecided';
  if (outcome === 'unanswered') return 'passed';
  return outcome === 'delivered' && grant !== 'shared' ? 'refused' : 'gone';
}

async function send(
  dependencies: LeaseDependencies,
  { waiter, line, grant }: Row<WaitingTask> & { grant: GrantOfRequest },
  call: Call,
): Promise<Delivery | 'overtaken'> {
  if (grant === 'released' || grant === 'broken')
    return failTask(dependencies, { waiter, error: line.lost(grant) }, call);
  return grant === 'shared' && line.repeat ? line.repeat(waiter) : line.failOverdue(waiter);
}

/** The states in which a call in line can receive no grant. A call that did not claim its grant in time has lost its position too. */
const HAS_HAD_IT: ReadonlySet<GrantOfRequest> = new Set(['lapsed', 'spent', 'released', 'broken']);

async function judgeCall(
  dependencies: LeaseDependencies,
  { waiter, line }: Row<WaitingCall>,
  call: Call,
): Promise<Judgement> {
  const now = dependencies.clock.now();
  const grant = line.grantOf(waiter);
  const isCancelled = waiter.cancelledAt !== undefined; // its call must see that, until it is over
  if (HAS_HAD_IT.has(grant) && !isCancelled) {
    await deleteWaiter(dependencies, waiter, call);
    return 'gone';
  }
  if (waiter.keepUntil <= now && line.budget.over-- > 0)
    return (await deleteOver(dependencies, waiter, call)) ? 'gone' : 'undecided';
  if (isCancelled || isOverdue(waiter, now)) return 'passed';
  if (grant === 'own') return 'granted';
  return grant === 'none' ? 'waits' : 'passed';
}
