import type { Call } from '../aws/call.ts';
import type { HoldfastError } from '../errors.ts';
import type { LeaseDependencies } from './dependencies.ts';
import { canNotifyTasks, type Delivery, failTask } from './notify.ts';
import { deleteWaiter, isOverdue, isTask, type Waiter, type WaitingCall, type WaitingTask } from './waiters.ts';
import { deleteOver } from './waiting-calls.ts';

// Who is next in line, for a lease or for a permit: the judgement of one row, and the bounds of one hand-off.

/** One read unit usually holds this many rows. */
export const FIRST_PAGE = 13;

/** One hand-off ends or deletes this many rows that wait for nothing any more, and passes further ones over. */
export const MAX_OVER = 10;

/** One hand-off grants to this many tasks that turn out to be gone. The next call, or the schedule, goes on. */
export const MAX_GONE = 10;

/**
 * What a record shows about the grant of a row's request.
 *
 * - `own`: the row's own grant stands, or the call that ends that grant deletes the row.
 * - `other`: a grant to another row of the request, or to a plain call, stands, and the row must wait for its end.
 * - `shared`: the same, and a task in this row is to be notified of that grant.
 * - `lapsed`: the row's own grant has expired. A task may never have been notified of it.
 * - `spent`: the row's own grant has ended, and its task needs no message.
 * - `released`, `broken`: the request had its grant, and the record remembers that. A request has one grant.
 * - `none`: the request may be granted.
 */
export type GrantOfRequest = 'none' | 'own' | 'other' | 'shared' | 'lapsed' | 'spent' | 'released' | 'broken';

/** A lease, or the permits of a pool, as one look at the line sees them. */
export interface Judging {
  grantOf(waiter: Waiter): GrantOfRequest;
  /** What a waiter of a request receives that had its grant. */
  lost(how: 'released' | 'broken'): HoldfastError;
  /** Ends a task whose patience is over, by a new read of the record. `overtaken`: the task has been granted since, and nothing was sent. */
  failOverdue(waiter: WaitingTask): Promise<Delivery | 'overtaken'>;
  /** Notifies a task of a `shared` grant, and deletes its row if the task took the message or is gone. */
  repeat?(waiter: WaitingTask): Promise<Delivery | 'overtaken'>;
  /** How many rows that wait for nothing any more this hand-off still ends or deletes. */
  budget: { over: number };
}

/**
 * - `waits`: the row can be granted.
 * - `passed`: the row can be granted nothing now, and keeps nobody out.
 * - `granted`: the same, because its grant stands.
 * - `refused`: its task took the message that it no longer waits. The row is deleted.
 * - `gone`: the row is deleted.
 * - `undecided`: its task or call may have a new grant or a new deadline, so the mark stays.
 */
export type Judgement = 'waits' | 'passed' | 'granted' | 'refused' | 'gone' | 'undecided';

interface Row<Waiter> {
  waiter: Waiter;
  line: Judging;
}

/**
 * Judges one row of the line (docs/protocols/queue.md#hand-off, step 1). A row that cannot be granted keeps nobody out, even if its task cannot be
 * notified: the schedule starts from the rows, and needs no mark.
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
  if (!(await canNotifyTasks(dependencies))) return 'passed';
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

/** A call that did not claim its grant in time has lost its place too. */
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
