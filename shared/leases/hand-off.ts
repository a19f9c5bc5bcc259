import type { Call } from '../aws/call.ts';
import { all } from '../aws/condition.ts';
import { HoldfastError } from '../errors.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import type { Ended } from '../line/ended.ts';
import { MAX_GONE, MAX_OVER } from '../line/next.ts';
import { canTellTasks, NOTIFY_MS } from '../line/notify.ts';
import { TRANSFER_MS } from '../line/times.ts';
import { tellBroken } from '../line/unnotified.ts';
import { deleteTicket, getTicket, isTask } from '../line/waiters.ts';
import { grantUnchanged, queueUnchanged } from './conditions.ts';
import { notifyGranted } from './deliver.ts';
import { endLease } from './end.ts';
import { clearMark } from './marks.ts';
import {
  type Ending,
  type EndingGrant,
  type Line,
  look,
  type NextInLine,
  type Search,
  type TaskOfLease,
} from './next.ts';
import { endedBefore } from './previous.ts';
import { type LeaseRecord, parseRecord, unusable } from './record.ts';
import { endsAt, isLeased } from './rules.ts';
import { type Transferred, transfer } from './transfer.ts';
import { leaseLost } from './views.ts';
import { repairAtTheEnd } from './watch.ts';
import type { Written } from './write.ts';

export interface HandedOff {
  /** The tickets that received the lease. All but the last were of tasks that were gone. */
  moved: string[];
  /**
   * `empty`: none in line can receive the lease, and the grant before has ended. `left`: it has ended too, and others are in line, because this
   * call met too many dead tickets, had too little time, or could not read the line. The lease is free and has its mark, so only the queue grants it: at the next
   * call, or by the schedule. `overtaken`: another call has changed the record, and this one has moved nothing.
   */
  end: 'granted' | 'empty' | 'left' | 'overtaken';
  /** The record as it was last seen. */
  standing: LeaseRecord;
  /** Whether the last grant landed without an answer, and its holder has extended, claimed or ended it since. */
  hasGoneOn?: boolean;
  /** Only with `overtaken`: whether the lost write had a try without an answer, so that the lease may have moved. */
  unanswered?: boolean;
}

/** No call has looked at this line, so others may wait in it. */
const UNREAD: Line = {
  ...{ oldest: undefined, next: undefined, others: true, following: [], taskWaits: false },
  ...{ isWhole: false, gone: 0, isUntold: false },
};

interface Passing extends EndingGrant {
  /** Whether the record shows a grant that this call has just written for the first in line. */
  transferred?: NextInLine;
  /** The ticket of the call in line that hands the lease on. That call is alive, so it receives its whole ttl and need not claim it. */
  own?: string;
  /** Collects the tickets of new holders whose tasks may not have been notified, for a task that parks. */
  unnotified?: Set<string>;
}

/**
 * Grants the lease on record to the first in line. Notifies a task, and passes over one that is gone. A caller looks for its grant. If the
 * line is empty, ends the grant and removes the mark. The steps are those of docs/protocols/queue.md#hand-off.
 *
 * A failure after the lease has moved is not the caller's: the schedule notifies the new holder (repair.ts).
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown, while nothing has moved
 */
export async function handOff(dependencies: LeaseDependencies, grant: Passing, call: Call): Promise<HandedOff> {
  const moved: string[] = [];
  let { record: from, ending: how } = grant;
  /** A grant that this call wrote and that no task will ever receive. */
  let undelivered: LeaseRecord | undefined;
  /** Whether the task of the expired grant received LeaseHeld in place of that grant. */
  let isUntold = false;
  const budget = { over: MAX_OVER };
  await settleTicket(dependencies, grant, call);
  try {
    for (let line: Line | undefined = grant.transferred; ; line = undefined) {
      if (!line) {
        const isSpent = moved.length >= MAX_GONE || call.timeLeftMs() < TRANSFER_MS;
        line = isSpent ? UNREAD : await lookIfPossible(dependencies, { record: from, ending: how, budget }, call);
        const { oldest, others } = line;
        isUntold ||= line.isUntold;
        const previous = endedBefore(from, isUntold ? 'undelivered' : how, dependencies.clock.now());
        const written: Transferred = oldest
          ? await transfer(dependencies, { from, how, ticket: oldest, line, previous, own: grant.own }, call)
          : await releaseUnclaimed(dependencies, { from, how, undecided: others, previous, isUntold }, call);
        if (!written.won) {
          const { standing, unanswered = false, hasGoneOn } = written;
          if (oldest && hasGoneOn) return { moved: [...moved, oldest.ticket], end: 'granted', standing, hasGoneOn };
          // The grant before has ended where this call's own one stood there.
          const end = undelivered ? 'granted' : 'overtaken';
          if (standing.version !== from.version) return { moved, end, standing, unanswered };
          if (standing.malformed !== undefined) throw unusable(standing);
          from = standing; // the same grant: another has joined, or the mark has gone
          continue;
        }
        from = written.standing;
        undelivered = undefined;
        isUntold = false;
        if (!oldest) return { moved, end: line === UNREAD ? 'left' : 'empty', standing: from };
      }
      const { oldest } = line as NextInLine;
      if (!isTask(oldest)) {
        moved.push(oldest.ticket);
        if (line.taskWaits) await repairAtTheEnd(dependencies, from, { call });
        return { moved, end: 'granted', standing: from };
      }
      const sent = call.timeLeftMs() >= NOTIFY_MS;
      if (sent) moved.push(oldest.ticket);
      grant.unnotified?.add(oldest.ticket);
      const { outcome, standing } = sent
        ? await notifyNewHolder(dependencies, { ticket: oldest, record: from }, call)
        : { outcome: 'gone', standing: from };
      from = standing;
      if (sent && (outcome === 'delivered' || outcome === 'gone')) grant.unnotified?.delete(oldest.ticket);
      if (outcome !== 'gone') {
        if (line.taskWaits) await repairAtTheEnd(dependencies, from, { call });
        return { moved, end: 'granted', standing: from };
      }
      // This call wrote the version and sent the first message about it: while that version stands, no task was notified.
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

/** The holder of such a grant is done with it, so it must not run on because DynamoDB did not read the line. */
const GIVEN_BACK: ReadonlySet<Ending> = new Set(['released', 'broken', 'executionEnded', 'perhapsUnheard']);

/** @returns UNREAD also if a task is next that this process cannot notify. @throws HoldfastError as `look`, unless the grant can end without it */
async function lookIfPossible(dependencies: LeaseDependencies, search: Search, call: Call): Promise<Line> {
  try {
    const line = await look(dependencies, search, call);
    return line.oldest && isTask(line.oldest) && !(await canTellTasks(dependencies)) ? UNREAD : line;
  } catch (error) {
    if (error instanceof HoldfastError && GIVEN_BACK.has(search.ending) && isLeased(search.record)) return UNREAD;
    throw error;
  }
}

/** Without this write the key stays with a task that is gone: for its whole ttl if the task names no execution. */
async function endUndelivered(dependencies: LeaseDependencies, record: LeaseRecord, call: Call): Promise<void> {
  try {
    const { previous } = record;
    await releaseUnclaimed(dependencies, { from: record, how: 'undelivered', undecided: true, previous }, call);
  } catch (error) {
    // The caller's own lease has ended all the same. This grant ends at its expiry.
    if (!(error instanceof HoldfastError)) throw error;
  }
}

/**
 * Ends the task of a broken grant if its ticket is still there, because the task may not have been notified yet. A holder that released its
 * lease had been notified.
 * If the task cannot be notified, its ticket stays.
 */
export async function settleTicket(
  dependencies: LeaseDependencies,
  { record: { key, ticket, brokenAt }, ending }: EndingGrant,
  call: Call,
): Promise<void> {
  if (ticket === undefined || ending === 'expired' || !(ending === 'broken' || brokenAt !== undefined)) return;
  const row = await getTicket(dependencies, { key, ticket }, call);
  if (row && isTask(row))
    await tellBroken(dependencies, { ticket: row, error: leaseLost(key, 'broken', undefined) }, call);
  else if (row) await deleteTicket(dependencies, row, call);
}

interface Unclaimed {
  from: LeaseRecord;
  how: Ending;
  /** Whether others may be in line that this call has not seen. Then the mark stays. */
  undecided: boolean;
  /** What the next holder learns of the one before. */
  previous: Ended | undefined;
  /** Whether the task of a grant that expired never heard of it. */
  isUntold?: boolean;
}

async function releaseUnclaimed(
  dependencies: LeaseDependencies,
  { from, how, undecided, previous, isUntold = false }: Unclaimed,
  call: Call,
): Promise<Written> {
  const isUnclaimed = from.claimTtlMs !== undefined || isUntold;
  const ends = isLeased(from) && (how !== 'expired' || isUnclaimed);
  if (!ends)
    return undecided || from.waiters === undefined
      ? { won: true, standing: from }
      : clearMark(dependencies, from, call);
  const condition = undecided ? grantUnchanged(from) : all(grantUnchanged(from), queueUnchanged(from));
  const isUnheard = how === 'undelivered' || how === 'perhapsUnheard' || (how === 'expired' && isUnclaimed);
  const outcome = await endLease(
    dependencies,
    {
      key: from.key,
      condition,
      markBroken: how === 'broken',
      byExecution: how === 'executionEnded' || how === 'perhapsUnheard',
      clearMark: !undecided,
      ...(isUnheard && { forget: { last: previous } }),
    },
    call,
  );
  if (outcome.won) return { won: true, standing: from };
  const standing = outcome.old ? parseRecord(outcome.old) : { key: from.key };
  // A try of the SDK may have landed before the one that lost.
  const won = standing.leaseId === from.leaseId && !isLeased(standing);
  return { won, standing, unanswered: outcome.unanswered };
}

/**
 * The first message about a grant, from the call that wrote it. `gone` means that the task was never notified, as long as the
 * returned version stands.
 */
async function notifyNewHolder(dependencies: LeaseDependencies, { ticket, record }: TaskOfLease, call: Call) {
  // If this call stood still for longer than the lease runs, another holder may have it by now.
  if (!isLeased(record) || endsAt(record) <= dependencies.clock.now())
    return { outcome: 'unanswered', standing: record } as const;
  const grant = { ticket, record, repeated: false, isOurs: true };
  const notified = await notifyGranted(dependencies, grant, call);
  if (notified.outcome === 'delivered') await deleteTicket(dependencies, ticket, call);
  return notified;
}
