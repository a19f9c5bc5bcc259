import type { Call } from '../aws/call.ts';
import { all } from '../aws/condition.ts';
import { HoldfastError } from '../errors.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import { type Ended, operatorOf } from '../line/ended.ts';
import { MAX_GONE, MAX_OVER } from '../line/judge.ts';
import { canNotify } from '../line/message.ts';
import { NOTIFY_MS, tellBroken } from '../line/notify.ts';
import { TRANSFER_MS } from '../line/times.ts';
import { deleteWaiter, getWaiter, isTask, type Staying, stayingOf } from '../line/waiters.ts';
import { grantUnchanged, lineUnchanged } from './conditions.ts';
import { notifyLease } from './deliver.ts';
import { endLease } from './end.ts';
import { clearMark } from './marks.ts';
import {
  type Ending,
  type EndingGrant,
  FORGOTTEN,
  type Line,
  look,
  type NextInLine,
  type Search,
  type TaskOfLease,
} from './next.ts';
import { endedBefore } from './previous.ts';
import { type LeaseRecord, parseRecord, unusable } from './record.ts';
import { endsAt, isEndOf, isLeased } from './rules.ts';
import { type Transferred, transfer } from './transfer.ts';
import { leaseLost } from './views.ts';
import { repairAtTheEnd } from './watch.ts';
import type { Written } from './write.ts';

export interface HandedOff {
  /** The tickets that received the lease. All but the last were of tasks that were gone. */
  moved: string[];
  /**
   * `empty`: none in line can receive the lease, and the grant before has ended. `left`: it has ended too, and others are in line, because this call
   * met too many tasks that are gone, had too little time, or could not read the line. The lease is free and has its mark, so only the line grants
   * it: at the next call, or by the schedule. `overtaken`: another call has changed the record, and this one has moved nothing.
   */
  end: 'granted' | 'empty' | 'left' | 'overtaken';
  /** The record as it was last seen. */
  record: LeaseRecord;
  /** Whether the last grant landed without an answer, and its holder has extended, claimed or ended it since. */
  hasGoneOn?: boolean;
  /** Only with `overtaken`: whether the lost write had a try without an answer, so that the lease may have moved. */
  unanswered?: boolean;
}

/** No call has looked at this line, so others may wait in it. */
const UNREAD: Line = {
  ...{ oldest: undefined, next: undefined, others: true, following: [], taskWaits: false, staying: stayingOf([]) },
  ...{ isFull: false, gone: 0, expiredUnnotified: false },
};

interface Passing extends EndingGrant {
  /** Whether the record shows a grant that this call has just written for the first in line. */
  transferred?: NextInLine;
  /** The ticket of the call in line that hands the lease off. That call is alive, so it receives its whole ttl and need not claim it. */
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
  /** True if the task of the expired grant received LeaseHeld in place of that grant. */
  let expiredUnnotified = false;
  const budget = { over: MAX_OVER };
  await settleWaiter(dependencies, grant, call);
  try {
    for (let line: Line | undefined = grant.transferred; ; line = undefined) {
      if (!line) {
        const isSpent = moved.length >= MAX_GONE || call.timeLeftMs() < TRANSFER_MS;
        line = isSpent ? UNREAD : await lookIfPossible(dependencies, { record: from, ending: how, budget }, call);
        const { oldest, others } = line;
        expiredUnnotified ||= line.expiredUnnotified;
        const ended = { now: dependencies.clock.now(), by: operatorOf(call) };
        const previous = endedBefore(from, expiredUnnotified ? 'undelivered' : how, ended);
        const written: Transferred = oldest
          ? await transfer(dependencies, { from, how, waiter: oldest, line, previous, own: grant.own }, call)
          : await releaseUnclaimed(
              dependencies,
              { from, how, staying: others ? undefined : line.staying, previous, expiredUnnotified },
              call,
            );
        if (!written.won) {
          const { record, unanswered = false, hasGoneOn } = written;
          if (oldest && hasGoneOn) return { moved: [...moved, oldest.ticket], end: 'granted', record, hasGoneOn };
          // The grant before has ended where this call's own one stood there.
          const end = undelivered ? 'granted' : 'overtaken';
          if (record.version !== from.version) return { moved, end, record, unanswered };
          if (record.malformed !== undefined) throw unusable(record);
          from = record; // the same grant: another has joined, or the mark has gone
          continue;
        }
        from = written.record;
        undelivered = undefined;
        expiredUnnotified = false;
        if (!oldest) return { moved, end: line === UNREAD ? 'left' : 'empty', record: from };
      }
      const { oldest } = line as NextInLine;
      if (!isTask(oldest)) {
        moved.push(oldest.ticket);
        if (line.taskWaits) await repairAtTheEnd(dependencies, from, { call });
        return { moved, end: 'granted', record: from };
      }
      const sent = call.timeLeftMs() >= NOTIFY_MS;
      if (sent) moved.push(oldest.ticket);
      grant.unnotified?.add(oldest.ticket);
      const { outcome, record: current } = sent
        ? await notifyNewHolder(dependencies, { waiter: oldest, record: from }, call)
        : { outcome: 'gone', record: from };
      from = current;
      if (sent && (outcome === 'delivered' || outcome === 'gone')) grant.unnotified?.delete(oldest.ticket);
      if (outcome !== 'gone') {
        if (line.taskWaits) await repairAtTheEnd(dependencies, from, { call });
        return { moved, end: 'granted', record: from };
      }
      // This call wrote the version and sent the first message about it: while that version stands, no task was notified.
      undelivered = from;
      how = 'undelivered';
      if (sent) await deleteWaiter(dependencies, oldest, call);
    }
  } catch (error) {
    if (!(error instanceof HoldfastError) || (moved.length === 0 && !undelivered)) throw error;
    if (undelivered) await endUndelivered(dependencies, undelivered, call);
    return { moved, end: 'granted', record: from };
  }
}

/** The holder of such a grant is done with it, so it must not run on because DynamoDB did not read the line. */
const GIVEN_BACK: ReadonlySet<Ending> = new Set(['released', 'broken', 'executionEnded']);

/** @returns UNREAD also if a task is next that this process cannot notify. @throws HoldfastError as `look`, unless the grant can end without it */
async function lookIfPossible(dependencies: LeaseDependencies, search: Search, call: Call): Promise<Line> {
  try {
    const line = await look(dependencies, search, call);
    return line.oldest && isTask(line.oldest) && !(await canNotify(dependencies, line.oldest)) ? UNREAD : line;
  } catch (error) {
    if (error instanceof HoldfastError && GIVEN_BACK.has(search.ending) && isLeased(search.record)) return UNREAD;
    throw error;
  }
}

/** Without this write the key stays with a task that is gone: for its whole ttl if the task names no execution. */
async function endUndelivered(dependencies: LeaseDependencies, record: LeaseRecord, call: Call): Promise<void> {
  try {
    const { previous } = record;
    await releaseUnclaimed(dependencies, { from: record, how: 'undelivered', previous }, call);
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
export async function settleWaiter(
  dependencies: LeaseDependencies,
  { record: { key, ticket, brokenAt }, ending }: EndingGrant,
  call: Call,
): Promise<void> {
  // The tasks of an execution end with it.
  const isOver = ending === 'expired' || ending === 'executionEnded';
  if (ticket === undefined || isOver || !(ending === 'broken' || brokenAt !== undefined)) return;
  const row = await getWaiter(dependencies, { key, ticket }, call);
  if (row && isTask(row))
    await tellBroken(dependencies, { waiter: row, error: leaseLost(key, 'broken', undefined) }, call);
  else if (row) await deleteWaiter(dependencies, row, call);
}

interface Unclaimed {
  from: LeaseRecord;
  how: Ending;
  /** The rows that stay in line when the mark goes. Undefined if others may be in line that this call has not seen. Then the mark stays. */
  staying?: Staying | undefined;
  /** What a grant says about the holder before it (`previous`). */
  previous: Ended | undefined;
  /** True if a grant expired before its task was notified. */
  expiredUnnotified?: boolean;
}

async function releaseUnclaimed(
  dependencies: LeaseDependencies,
  { from, how, staying, previous, expiredUnnotified = false }: Unclaimed,
  call: Call,
): Promise<Written> {
  const isUnclaimed = from.claimTtlMs !== undefined || expiredUnnotified;
  const ends = isLeased(from) && (how !== 'expired' || isUnclaimed);
  if (!ends)
    return staying === undefined || from.waiters === undefined
      ? { won: true, record: from }
      : clearMark(dependencies, { record: from, staying }, call);
  const condition = staying ? all(grantUnchanged(from), lineUnchanged(from)) : grantUnchanged(from);
  const isForgotten = FORGOTTEN.has(how) || (how === 'expired' && isUnclaimed);
  const outcome = await endLease(
    dependencies,
    {
      key: from.key,
      condition,
      markBroken: how === 'broken',
      clearMark: staying,
      ...(isForgotten && { forget: { last: previous } }),
    },
    call,
  );
  if (outcome.won) return { won: true, record: from };
  const record = outcome.old ? parseRecord(outcome.old) : { key: from.key };
  const { unanswered } = outcome;
  return { won: unanswered && isEndOf(from, { record, isBroken: how === 'broken' }), record, unanswered };
}

/**
 * The first message about a grant, from the call that wrote it. `gone` means that the task was never notified, as long as the
 * returned version stands.
 */
async function notifyNewHolder(dependencies: LeaseDependencies, { waiter, record }: TaskOfLease, call: Call) {
  // If this call was paused for longer than the lease runs, another holder may have it by now.
  if (!isLeased(record) || endsAt(record) <= dependencies.clock.now())
    return { outcome: 'unanswered', record } as const;
  const grant = { waiter, record, repeated: false, isOurs: true };
  const notified = await notifyLease(dependencies, grant, call);
  if (notified.outcome === 'delivered') await deleteWaiter(dependencies, waiter, call);
  return notified;
}
