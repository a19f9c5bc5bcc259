import type { Call } from '../../aws/call.ts';
import { all } from '../../aws/condition.ts';
import { HoldfastError } from '../../errors.ts';
import { grantUnchanged, queueUnchanged } from '../conditions.ts';
import type { LeaseDependencies } from '../dependencies.ts';
import { endLease } from '../end.ts';
import { type LeaseRecord, parseRecord, unusable } from '../record.ts';
import { endsAt, isLeased } from '../rules.ts';
import { leaseHeld, leaseLost } from '../views.ts';
import type { Written } from '../write.ts';
import { notifyFailed, notifyGranted } from './delivery.ts';
import { clearMark } from './marks.ts';
import { deleteTicket, getTicket, isOverdue, type Ticket, ticketsOf } from './tickets.ts';
import { transfer } from './transfer.ts';

/**
 * How the grant on record ended, or is to end here. Of an expired one nobody knows whether its task was ever told, so
 * its ticket keeps its place; with all others the ticket goes. An `undelivered` one went to a task that was gone and that nobody
 * else has told: its request was never answered, and is forgotten, so that a task that is tried again is not refused for it.
 */
export type Ending = 'released' | 'broken' | 'expired' | 'free' | 'undelivered';

export interface HandedOff {
  /** The tickets that the lease was given to; all but the last had gone. The grant before has ended if there is any. */
  moved: string[];
  /**
   * `empty`: nobody was parked any more, and the grant before has ended. `left`: it has ended too, and tasks are still parked: too many
   * of those before them were gone, or the time of this call was. The lease is free and has its mark, so that only the queue
   * grants it, at the next call or by the schedule. `overtaken`: the record is another's by now.
   */
  end: 'granted' | 'empty' | 'left' | 'overtaken';
  /** The record as it was last seen. */
  standing: LeaseRecord;
}

/** A caller who meets a long queue of dead tickets does not end them all: this many that are overdue, and as many that are gone. */
const MAX_OVERDUE = 10;
const MAX_GONE = 10;

/** What is left of the invocation when the lease is not given to the next one any more, or not announced: its end is written instead. */
const TRANSFER_MS = 2000;
const NOTIFY_MS = 500;

/**
 * Gives the lease on record to the oldest who is parked, and tells its task; skips those whose task is gone. Where
 * nobody is parked, ends the grant and takes the mark away.
 *
 * What fails after the lease has moved fails nobody: the schedule tells the new holder (repair.ts).
 * @param record as a conditional write or a consistent read has just shown it; without a version it is free
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown, while nothing has moved
 */
export async function handOff(
  dependencies: LeaseDependencies,
  record: LeaseRecord,
  ending: Ending,
  call: Call,
): Promise<HandedOff> {
  const moved: string[] = [];
  let from = record;
  let how = ending;
  /** A grant that was written here, and that nobody will ever hear of. */
  let undelivered: LeaseRecord | undefined;
  const budget = { overdue: MAX_OVERDUE };
  await settleTicket(dependencies, record, ending, call);
  try {
    for (;;) {
      const isSpent = moved.length >= MAX_GONE || call.timeLeftMs() < TRANSFER_MS;
      const { oldest, others } = isSpent
        ? { oldest: undefined, others: true }
        : await look(dependencies, { record: from, ending: how, budget }, call);
      const written = oldest
        ? await transfer(dependencies, from, oldest, others, call)
        : await releaseUnclaimed(dependencies, from, how, others, call);
      if (!written.won) {
        if (written.standing.version !== from.version) return { moved, end: 'overtaken', standing: written.standing };
        if (written.standing.malformed !== undefined) throw unusable(written.standing);
        from = written.standing; // the same grant: somebody came or went
        continue;
      }
      from = written.standing;
      undelivered = undefined;
      if (!oldest) return { moved, end: isSpent ? 'left' : 'empty', standing: from };
      const sent = call.timeLeftMs() >= NOTIFY_MS;
      if (sent) moved.push(oldest.ticket);
      const { outcome, standing } = sent
        ? await notifyNewHolder(dependencies, oldest, from, call)
        : { outcome: 'gone', standing: from };
      from = standing;
      if (outcome !== 'gone') return { moved, end: 'granted', standing: from };
      // Sent once, and first by the call that wrote the grant: the task was never notified while the version is the one written here.
      undelivered = from;
      how = 'undelivered';
      if (sent) await deleteTicket(dependencies, oldest, call);
    }
  } catch (error) {
    if (!(error instanceof HoldfastError) || (moved.length === 0 && !undelivered)) throw error;
    if (undelivered) await endUndelivered(dependencies, undelivered, call);
    return { moved, end: 'granted', standing: from };
  }
}

/** Without this the key would stay with a task that is gone, for the whole ttl where that names no execution. */
async function endUndelivered(dependencies: LeaseDependencies, record: LeaseRecord, call: Call): Promise<void> {
  try {
    await releaseUnclaimed(dependencies, record, 'undelivered', true, call);
  } catch (error) {
    // What went wrong before may go wrong again, and the lease has moved: then it ends at its expiry.
    if (!(error instanceof HoldfastError)) throw error;
  }
}

/**
 * What is left of the ticket that the ended grant was given to. Whoever released it had been told; whoever was broken may
 * still wait for word.
 * @throws HoldfastError Unavailable where that task could not be told: it would wait for ever
 */
export async function settleTicket(
  dependencies: LeaseDependencies,
  { key, ticket, brokenAt }: LeaseRecord,
  ending: Ending,
  call: Call,
): Promise<void> {
  if (ticket === undefined || ending === 'expired' || !(ending === 'broken' || brokenAt !== undefined)) return;
  const row = await getTicket(dependencies, { key, ticket }, call);
  if (!row) return;
  if ((await notifyFailed(dependencies, row, leaseLost(key, 'broken', undefined), call)) === 'unanswered')
    throw new HoldfastError('Unavailable', 'Step Functions cannot be told of the end of the lease', {
      retryAfterMs: 1000,
    });
  await deleteTicket(dependencies, { key, ticket }, call);
}

/**
 * Who is next, and whether others are parked; those past their deadline are told so on the way. The ticket of the ended
 * grant goes where it is met: to delete it in any case, though whoever told of the grant has done so, would be a request
 * more for each hand-off. One that is passed over, behind tickets of a slower clock, is skipped in its turn: its task takes no word twice.
 */
async function look(dependencies: LeaseDependencies, { record, ending, budget }: Search, call: Call) {
  let oldest: Ticket | undefined;
  let undecided = false;
  for await (const ticket of ticketsOf(dependencies, record.key, call, { firstPage: 3 })) {
    if (ending !== 'expired' && ticket.ticket === record.ticket) await deleteTicket(dependencies, ticket, call);
    else if (isOverdue(ticket, dependencies.clock.now())) {
      if (budget.overdue-- <= 0 || !(await failOverdue(dependencies, ticket, record, call))) undecided = true;
    } else if (oldest) return { oldest, others: true };
    else oldest = ticket;
  }
  return { oldest, others: undecided };
}

interface Search {
  record: LeaseRecord;
  ending: Ending;
  /** How many overdue tasks this hand-off still ends. */
  budget: { overdue: number };
}

/** @returns whether its waiting has ended; without an answer the row stays, or its task might wait for ever */
export async function failOverdue(
  dependencies: LeaseDependencies,
  ticket: Ticket,
  record: LeaseRecord,
  call: Call,
): Promise<boolean> {
  const error = leaseHeld(record, dependencies.clock.now(), dependencies.clockSkewMs);
  if ((await notifyFailed(dependencies, ticket, error, call)) === 'unanswered') return false;
  await deleteTicket(dependencies, ticket, call);
  return true;
}

/** @param undecided whether rows are left that nobody can be granted by: then the mark stays, for the schedule */
async function releaseUnclaimed(
  dependencies: LeaseDependencies,
  from: LeaseRecord,
  how: Ending,
  undecided: boolean,
  call: Call,
): Promise<Written> {
  const ends = isLeased(from) && how !== 'expired';
  if (!ends)
    return undecided || from.waiters === undefined
      ? { won: true, standing: from }
      : clearMark(dependencies, from, call);
  const condition = undecided ? grantUnchanged(from) : all(grantUnchanged(from), queueUnchanged(from));
  const outcome = await endLease(
    dependencies,
    {
      key: from.key,
      condition,
      markBroken: how === 'broken',
      clearMark: !undecided,
      forgetRequest: how === 'undelivered',
    },
    call,
  );
  if (outcome.won) return { won: true, standing: from };
  const standing = outcome.old ? parseRecord(outcome.old) : { key: from.key };
  // A try of the SDK's own may have landed before the one that lost.
  return { won: standing.leaseId === from.leaseId && !isLeased(standing), standing };
}

/**
 * The first send, by whoever wrote the grant: `gone` means that the task was never notified, as long as the version is
 * the one returned.
 */
async function notifyNewHolder(dependencies: LeaseDependencies, ticket: Ticket, record: LeaseRecord, call: Call) {
  // A call that was stalled for longer than the lease runs notifies nobody of it.
  if (!isLeased(record) || endsAt(record) <= dependencies.clock.now())
    return { outcome: 'unanswered', standing: record } as const;
  const grant = { record, repeated: false, isOurs: true };
  const notified = await notifyGranted(dependencies, ticket, grant, call);
  if (notified.outcome === 'delivered') await deleteTicket(dependencies, ticket, call);
  return notified;
}
