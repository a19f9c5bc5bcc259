import type { Call } from '../../aws/call.ts';
import type { LeaseDependencies } from '../dependencies.ts';
import type { Ending as Ended } from '../ended.ts';
import type { LeaseRecord } from '../record.ts';
import { leaseHeld } from '../views.ts';
import { deleteOver } from './caller-tickets.ts';
import { notifyFailed } from './delivery.ts';
import {
  type CallTicket,
  deleteTicket,
  isOverdue,
  isTask,
  type TaskTicket,
  type Ticket,
  ticketsOf,
} from './tickets.ts';

/**
 * How the grant on record ended, or is to end here. Nobody knows whether the task of an `expired` grant was ever notified, so its
 * ticket keeps its place. In all other cases the ticket goes, and that of a caller always. The task of an `undelivered` grant was gone, and no other call has
 * notified it: its request was never answered and is forgotten, so that a task that is tried again is not refused for it.
 */
export type Ending = Ended | 'free' | 'undelivered';

/** A grant on record that has ended, or is to end. */
export interface EndingGrant {
  /** As a conditional write or a consistent read has just shown it. Without a version it is free. */
  record: LeaseRecord;
  ending: Ending;
}

/** As many as one read unit holds, as a rule. */
const FIRST_PAGE = 10;

interface Search extends EndingGrant {
  /** How many rows that are over this hand-off still clears away. */
  budget: { over: number };
}

/** Who is next. */
export interface Line {
  oldest: Ticket | undefined;
  /** The one after it, as far as it was looked for. */
  next: Ticket | undefined;
  /** Whether anybody else is in line, or may be. */
  others: boolean;
  /** The first few after the oldest, for the hints of a transfer. */
  following: readonly Ticket[];
  /** Whether a task waits behind a caller. */
  taskWaits: boolean;
}

/**
 * Finds the oldest ticket, and whether others wait (docs/protocols/queue.md#hand-off, step 1). Clears away what is over. The ticket of the
 * ended grant is deleted only where it is met, because the call that notified its task, or claimed it, has usually done so.
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export async function look(dependencies: LeaseDependencies, search: Search, call: Call): Promise<Line> {
  const { clock, clockSkewMs } = dependencies;
  const waiting: Ticket[] = [];
  let undecided = false;
  let read = 0;
  const found = (): (Ticket | undefined)[] => {
    if (waiting.every((ticket) => !isTask(ticket))) return [waiting[0], waiting[1]];
    // Nobody looks for a task: in front of one, a caller that has left by a clock that is ahead would cost its turn.
    const latest = clock.now() + clockSkewMs;
    const [oldest, next] = waiting.filter((ticket) => isTask(ticket) || ticket.deadline > latest);
    return [oldest, next];
  };
  for await (const ticket of ticketsOf(dependencies, { key: search.record.key, firstPage: FIRST_PAGE }, call)) {
    const place = isTask(ticket)
      ? await judgeTask(dependencies, { ticket, search }, call)
      : await judgeCall(dependencies, { ticket, search }, call);
    if (place === 'waits') waiting.push(ticket);
    if (place === 'undecided') undecided = true;
    if (++read >= FIRST_PAGE && found()[1]) break;
  }
  const [oldest, next] = found();
  const taskWaits = oldest !== undefined && !isTask(oldest) && waiting.some(isTask);
  const following = waiting.filter((ticket) => ticket !== oldest);
  return { oldest, next, others: undecided || next !== undefined, following, taskWaits };
}

/** `undecided`: its task may still wait, and cannot be granted the lease now. */
type Standing = 'waits' | 'passed' | 'undecided';

async function judgeTask(
  dependencies: LeaseDependencies,
  { ticket, search: { record, ending, budget } }: { ticket: TaskTicket; search: Search },
  call: Call,
): Promise<Standing> {
  if (ending !== 'expired' && ticket.ticket === record.ticket) {
    await deleteTicket(dependencies, ticket, call);
    return 'passed';
  }
  if (!isOverdue(ticket, dependencies.clock.now())) return 'waits';
  return budget.over-- > 0 && (await failOverdue(dependencies, { ticket, record }, call)) ? 'passed' : 'undecided';
}

async function judgeCall(
  dependencies: LeaseDependencies,
  { ticket, search: { record, ending, budget } }: { ticket: CallTicket; search: Search },
  call: Call,
): Promise<Standing> {
  const now = dependencies.clock.now();
  const isCancelled = ticket.cancelledAt !== undefined; // its call is to see that, until it is over
  if (!isCancelled && (ticket.ticket === record.ticket || (ending !== 'expired' && isOfRequest(ticket, record)))) {
    await deleteTicket(dependencies, ticket, call);
    return 'passed';
  }
  if (ticket.keepUntil <= now && budget.over-- > 0) await deleteOver(dependencies, ticket, call);
  return isCancelled || isOverdue(ticket, now) ? 'passed' : 'waits';
}

/** A request has one grant: another row of the one whose grant has ended is not granted again. */
const isOfRequest = ({ requestId, holder, principal }: Ticket, record: LeaseRecord): boolean =>
  record.requestId === requestId && record.holder === holder && record.principal === principal;

/** A parked task, and the record of the lease that it waits for or was granted. */
export interface TaskOfLease {
  ticket: TaskTicket;
  record: LeaseRecord;
}

/** @returns whether the task has ended. Without an answer its ticket stays, or the task might wait for ever. */
export async function failOverdue(
  dependencies: LeaseDependencies,
  { ticket, record }: TaskOfLease,
  call: Call,
): Promise<boolean> {
  const error = leaseHeld(record, dependencies.clock.now(), dependencies.clockSkewMs);
  if ((await notifyFailed(dependencies, { ticket, error }, call)) === 'unanswered') return false;
  await deleteTicket(dependencies, ticket, call);
  return true;
}
