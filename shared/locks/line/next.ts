import type { Call } from '../../aws/call.ts';
import { HoldfastError } from '../../errors.ts';
import { type LeaseDependencies, WINDOW_MS } from '../dependencies.ts';
import { roomUnder } from '../record/cap-rules.ts';
import { capAt } from '../record/capped.ts';
import { otherTermsError } from '../record/continuing-grants.ts';
import { EXCLUSIVE_WEIGHT, nameOfRequest } from '../record/identity.ts';
import { notifyHolder } from '../record/notify-holder.ts';
import { endOfRequest, entryOf, type HolderEntry, type KeyRecord, type NewGrant, whyEnding } from '../record/record.ts';
import { leaseHeld, leaseLost } from '../record/refusals.ts';
import { readKey } from '../record/requests.ts';
import { type GrantToEnd, weightInUse, weightOf } from '../record/room.ts';
import type { LineReading } from './line-reading.ts';
import { canNotify, failTask, type Notified, type NotifyOutcome } from './notify.ts';
import { isLive, type Place } from './place.ts';
import { refusalOf } from './superseded.ts';
import {
  deleteWaiter,
  expiredRowLimit,
  isInLine,
  isOverdue,
  isPlace,
  isTask,
  MAX_EXPIRED_ROWS_IN_HAND_OFF,
  type Waiter,
  type WaitingCall,
  type WaitingTask,
  waiterKey,
} from './waiters.ts';
import { deleteExpiredRow } from './waiting-calls.ts';

// Judges each row of a line, and finds the waiters that are next.

/** The number of rows of the first page: one read unit usually holds as many. */
export const FIRST_PAGE = 13;

/** How many waiters that cannot be served any more a hand-off removes at most. It passes over the others. */
export const MAX_REMOVALS = 10;

/** How many tasks that were gone a hand-off may grant to before it stops. The next call, or the schedule, continues. */
export const MAX_GONE_TASKS = 10;

/**
 * What a record shows about the grant of a row's request.
 *
 * - `own`: the grant to this row stands, or another call has just ended it and deletes the row.
 * - `other`: a grant to another row of the request, or to a plain call, stands. The row must wait for its end.
 * - `shared`: as `other`, but a task in this row receives that grant too.
 * - `lapsed`: the grant to this row has expired. A task may never have been notified of it.
 * - `released`, `broken`: the record remembers how the grant of the request ended. A request receives only one grant.
 * - `superseded`: a newer request has replaced the request, or has asked its holder to stop.
 * - `none`: the request may receive a grant.
 */
type GrantOfRequest = 'none' | 'own' | 'other' | 'shared' | 'lapsed' | 'released' | 'broken' | 'superseded';

/**
 * - `waits`: the row can receive a grant.
 * - `passed`: the row cannot receive a grant now, and does not keep others out.
 * - `granted`: as `passed`, because the grant to the row stands.
 * - `refused`: the task accepted the message that its wait has ended, and the row is deleted.
 * - `gone`: the row is deleted.
 * - `undecided`: the task or call may have a new grant or a new deadline, so the mark stays.
 * - `asleep`: a live place. It keeps the mark, and cannot receive a grant.
 */
type Judgement = 'waits' | 'passed' | 'granted' | 'refused' | 'gone' | 'undecided' | 'asleep';

interface Row<Kind extends Waiter> {
  waiter: Kind;
  search: LineSearch;
}

/**
 * Judges one row of the line (docs/protocols/queue.md#hand-off, step 1). A task whose wait has ended does not keep
 * others out, even if it cannot be notified now: the schedule starts from the rows, without a mark, and tries again.
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
function judgeRow(dependencies: LeaseDependencies, { waiter, search }: Row<Waiter>, call: Call): Promise<Judgement> {
  if (isTask(waiter)) return judgeTask(dependencies, { waiter, search }, call);
  return isPlace(waiter)
    ? judgePlace(dependencies, { waiter, search }, call)
    : judgeCall(dependencies, { waiter, search }, call);
}

async function judgeTask(
  dependencies: LeaseDependencies,
  { waiter, search }: Row<WaitingTask>,
  call: Call,
): Promise<Judgement> {
  const grant = grantOfRequest(dependencies, search, waiter);
  if (grant === 'own') return 'granted';
  const mayWait = grant === 'none' || grant === 'lapsed';
  if (mayWait && !isOverdue(waiter, dependencies.clock.now())) return 'waits';
  if (grant === 'other' || search.budget.removals-- <= 0) return 'passed';
  if (!(await canNotify(dependencies, waiter))) return 'passed';
  const outcome = await sendRefusal(dependencies, { waiter, search, grant }, call);
  if (outcome === 'overtaken') return 'undecided';
  if (outcome === 'unanswered') return 'passed';
  return outcome === 'accepted' && grant !== 'shared' ? 'refused' : 'gone';
}

function sendRefusal(
  dependencies: LeaseDependencies,
  { waiter, search, grant }: Row<WaitingTask> & { grant: GrantOfRequest },
  call: Call,
): Promise<NotifyOutcome | 'overtaken'> {
  const { record } = search;
  if (grant === 'released' || grant === 'broken' || grant === 'superseded') {
    const error = refusalOf(record, nameOfRequest(waiter)) ?? leaseLost(record.key, grant);
    return failTask(dependencies, { waiter, error }, call);
  }
  return grant === 'shared'
    ? notifyOfSharedGrant(dependencies, { waiter, search }, call)
    : failOverdue(dependencies, { waiter, record }, call);
}

/** The states in which a call in line has lost its position. `lapsed`: it did not claim its grant in time. */
const HAS_LOST_POSITION: ReadonlySet<GrantOfRequest> = new Set(['lapsed', 'released', 'broken']);

/** Judges a place. Unlike a row, it survives a grant that was not claimed, because the caller was asleep. */
async function judgePlace(
  dependencies: LeaseDependencies,
  { waiter, search }: Row<Place>,
  call: Call,
): Promise<Judgement> {
  const { clock, clockSkewMs } = dependencies;
  const grant = grantOfRequest(dependencies, search, waiter);
  if (grant === 'released' || grant === 'broken') {
    await deleteWaiter(dependencies, waiterKey(waiter), call);
    return 'gone';
  }
  if (isLive(waiter, { now: clock.now(), clockSkewMs }))
    return grant === 'none' || grant === 'lapsed' ? 'asleep' : 'passed';
  const isExpired = waiter.keepUntil + clockSkewMs <= clock.now();
  if (!isExpired || search.budget.removals-- <= 0) return 'passed';
  return (await deleteExpiredRow(dependencies, waiter, call)) ? 'gone' : 'undecided';
}

async function judgeCall(
  dependencies: LeaseDependencies,
  { waiter, search }: Row<WaitingCall>,
  call: Call,
): Promise<Judgement> {
  const now = dependencies.clock.now();
  const grant = grantOfRequest(dependencies, search, waiter);
  const isFlagged = waiter.cancelledAt !== undefined; // the row stays until it expires, because the call must see the flag
  if (HAS_LOST_POSITION.has(grant) && !isFlagged) {
    await deleteWaiter(dependencies, waiter, call);
    return 'gone';
  }
  if (waiter.keepUntil <= now && search.budget.removals-- > 0)
    return (await deleteExpiredRow(dependencies, waiter, call)) ? 'gone' : 'undecided';
  if (isFlagged || isOverdue(waiter, now)) return 'passed';
  if (grant === 'own') return 'granted';
  return grant === 'none' ? 'waits' : 'passed';
}

/** How many grants one write makes at most, because DynamoDB limits an expression to 4 KB. */
const MAX_GRANTS_PER_WRITE = 5;

/** How many waiters the hints name at most. */
export const MAX_NAMED = 24;

export interface NextGrant {
  waiter: Waiter;
  grant: NewGrant;
}

/** What a search finds: the waiters that the next write serves, and what it must know about the *others*. */
export interface FoundInLine {
  /** The waiters to serve, in the order of the line. */
  nextGrants: NextGrant[];
  /** Whether there are others, or may be. */
  hasOthers: boolean;
  /** The ticket of the first of the others, if it is known. It becomes the `next_ticket`. */
  firstOther?: string | undefined;
  /** What the waiter of `firstOther` asks for, if it is awake. */
  firstOtherAsks?: NewGrant | undefined;
  /** The waiter of `firstOther`, if the search has ended because it does not fit. */
  blocked?: Waiter;
  /** Whether `firstOther` is the ticket of a caller that sleeps, so that the key is left free for sleepers. */
  isLeftToSleepers?: boolean;
  /** The tickets of the others on the first page, beginning with `firstOther`. */
  waitingTickets?: string[];
  /** Whether a task is among the others, so that a delayed repair is needed. */
  taskWaits: boolean;
  /** The rows that are in line and cannot be served by the next write, of those that were read. */
  unservedRows: Waiter[];
  /** The arrival number of the waiter that a quick release serves, if that waiter does not pass a sleeper. */
  number?: number | undefined;
  /** Whether the line has a place of a holder's request. It keeps the mark as soon as that grant has ended. */
  hasPlaceOfHolder?: boolean;
  /** The tickets of tasks that accepted the message that their wait has ended. */
  refused: string[];
}

interface LineSearch {
  record: KeyRecord;
  reading: LineReading;
  toEnd: readonly GrantToEnd[];
  /** The tickets that this call has served. */
  served: readonly string[];
  /** How many more rows this call may remove. */
  budget: { removals: number };
  /** The ticket of the call that hands off, if it is in line. That call is alive, so it need not claim its grant. */
  ownTicket?: string | undefined;
}

/**
 * Finds the waiters that are next: from the first on, as long as each fits. No waiter passes one that does not fit.
 * Deletes expired rows (docs/protocols/queue.md#hand-off).
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export async function findNext(dependencies: LeaseDependencies, search: LineSearch, call: Call): Promise<FoundInLine> {
  const { record, reading, toEnd, ownTicket } = search;
  const { clockSkewMs } = dependencies;
  const found: FoundInLine = {
    nextGrants: [],
    hasOthers: false,
    unservedRows: [],
    taskWaits: false,
    refused: [],
  };
  const now = dependencies.clock.now();
  const cap = capAt(record, { now, clockSkewMs });
  const reachesLimit = expiredRowLimit(now, MAX_EXPIRED_ROWS_IN_HAND_OFF);
  let used = weightInUse(record, { now, clockSkewMs }) - weightOf(toEnd.map(({ entry }) => entry));
  for await (const waiter of reading.rows()) {
    const judgement = await judgeRow(dependencies, { waiter, search }, call);
    noteJudgement(found, { waiter, judgement, reading, now: dependencies.clock.now() });
    // Places sort last, so no waiter that is awake comes after this row.
    if (judgement === 'asleep') return { ...found, hasOthers: true, firstOther: waiter.ticket, isLeftToSleepers: true };
    if (reachesLimit(waiter)) return { ...found, hasOthers: true }; // waiters may be behind this pile of expired rows
    if (judgement !== 'waits') continue;
    if (waiter.ticket !== ownTicket && (await mayHaveLeftBeforeTask(reading, { waiter, latest: now + clockSkewMs }))) {
      found.unservedRows.push(waiter);
      found.hasOthers = true;
      continue;
    }
    const newGrant = newGrantOf(waiter, ownTicket);
    const grant = { ...newGrant, room: roomUnder(cap, newGrant) };
    // This write serves an earlier row of the same request. This row waits for that, without keeping others out.
    if (found.nextGrants.some((nextGrant) => nextGrant.grant.name === grant.name)) {
      found.taskWaits ||= isTask(waiter);
      found.unservedRows.push(waiter);
      continue;
    }
    // This process has no client for the task, so the schedule must serve it. Those behind it wait for their turn.
    if (isTask(waiter) && !(await canNotify(dependencies, waiter)))
      return { ...found, hasOthers: true, firstOther: waiter.ticket, taskWaits: true };
    const isBlocked = used > grant.room;
    if (isBlocked || found.nextGrants.length === MAX_GRANTS_PER_WRITE) {
      const others = await othersFrom(reading, { waiter, grant });
      return {
        ...{ ...found, ...others, taskWaits: found.taskWaits || others.taskWaits },
        ...(isBlocked && { blocked: waiter }),
      };
    }
    found.nextGrants.push({ waiter, grant });
    used += grant.weight;
  }
  return found;
}

interface Judged {
  waiter: Waiter;
  judgement: Judgement;
  reading: LineReading;
  now: number;
}

function noteJudgement(found: FoundInLine, { waiter, judgement, reading, now }: Judged): void {
  if (judgement === 'undecided') found.hasOthers = true;
  if (judgement === 'passed' && isPlace(waiter) && waiter.cancelledAt === undefined) found.hasPlaceOfHolder = true;
  if (judgement === 'gone' || judgement === 'refused') reading.noteDeleted(waiterKey(waiter));
  if (judgement === 'refused') found.refused.push(waiter.ticket);
  if (judgement === 'granted') reading.noteGranted(waiter);
  if (judgement === 'passed' && !isPlace(waiter) && isInLine(waiter, now)) found.unservedRows.push(waiter);
}

/**
 * Whether the caller may have left already, by a clock that is ahead, while a task waits behind it. The caller would
 * not claim its grant, and the task does not poll, so the hand-off passes over the caller.
 */
const mayHaveLeftBeforeTask = async (
  reading: LineReading,
  { waiter, latest }: { waiter: Waiter; latest: number },
): Promise<boolean> => !isTask(waiter) && waiter.deadline <= latest && (await reading.behind(waiter)).some(isTask);

/** Describes the waiters that the next write does not serve: this one, and those behind it. */
async function othersFrom(
  reading: LineReading,
  { waiter, grant }: NextGrant,
): Promise<Omit<FoundInLine, 'nextGrants' | 'unservedRows' | 'refused'>> {
  const behind = await reading.behind(waiter);
  return {
    hasOthers: true,
    firstOther: waiter.ticket,
    ...(!isTask(waiter) && { waitingTickets: [waiter, ...behind].slice(0, MAX_NAMED).map(({ ticket }) => ticket) }),
    firstOtherAsks: grant,
    taskWaits: isTask(waiter) || behind.some(isTask),
  };
}

/**
 * The grant that a waiter asks for. A caller first receives only the grant window, because it may have crashed; its
 * claim brings the whole ttl.
 * @param ownTicket the ticket of the call that hands off, which is alive
 */
export function newGrantOf(waiter: Waiter, ownTicket?: string): NewGrant {
  const { holder, ttlSeconds, data, execution, target, graceSeconds = 0, bound, replace } = waiter;
  const { permit = { weight: EXCLUSIVE_WEIGHT, limit: null } } = waiter;
  const { limit, weight } = permit;
  const [ttlMs, graceMs] = [ttlSeconds * 1000, graceSeconds * 1000];
  return {
    ...{ name: nameOfRequest(waiter), holder, data, limit, weight, ticket: waiter.ticket },
    ...{ execution, target, graceMs, bound, replace },
    room: limit === null || weight >= EXCLUSIVE_WEIGHT ? 0 : limit - weight,
    ...(isTask(waiter) || waiter.ticket === ownTicket ? { ttlMs } : { ttlMs: WINDOW_MS, claimTtlMs: ttlMs }),
  };
}

/** Finds out what the record, with the grants that are about to end, shows about the request of a row. */
function grantOfRequest(
  { clock }: LeaseDependencies,
  { record, reading, toEnd, served }: LineSearch,
  waiter: Waiter,
): GrantOfRequest {
  if (served.includes(waiter.ticket)) return 'own';
  const name = nameOfRequest(waiter);
  const grantToEnd = toEnd.find(({ entry }) => entry.name === name || entry.ticket === waiter.ticket);
  // Counts as ended even for its own row: another call may have released the grant before the task was notified.
  if (grantToEnd?.how === 'released' || grantToEnd?.how === 'broken')
    return grantToEnd.entry.isEnding ? whyEnding(grantToEnd.entry) : grantToEnd.how;
  const how = endOfRequest(record, name);
  if (grantToEnd && how === 'superseded') return how;
  if (grantToEnd && grantToEnd.entry.ticket !== waiter.ticket) return 'none';
  if (grantToEnd) return grantToEnd.how === 'expired' || !isTask(waiter) ? 'lapsed' : 'own';
  const entry = entryOf(record, name);
  // The call that made the grant to this row notifies its task, even if the grant has ended since.
  if (entry ? entry.ticket === waiter.ticket : how && reading.wasGranted(waiter)) return 'own';
  if (how) return how;
  if (!entry) return 'none';
  return isShared(entry, newGrantOf(waiter)) && entry.expiresAt > clock.now() ? 'shared' : 'other';
}

/** Whether the grant that a request has by another row, or by a plain call, can answer this row too. */
const isShared = (entry: HolderEntry, { ticket, weight }: NewGrant): boolean =>
  entry.ticket !== ticket && entry.weight === weight && entry.claimTtlMs === undefined && !entry.isEnding;

/**
 * Notifies a task of the grant that its request has by another ticket, or of InvalidRequest if the task expects another
 * end of the grant. Each message gives the grant a new version. The search keeps the record with that version, because
 * a later row may belong to the same request.
 */
async function notifyOfSharedGrant(
  dependencies: LeaseDependencies,
  { waiter, search }: Row<WaitingTask>,
  call: Call,
): Promise<Notified['outcome']> {
  const { record } = search;
  const entry = entryOf(record, nameOfRequest(waiter));
  if (!entry) return 'overtaken';
  const error = otherTermsError(entry, waiter);
  if (error) return failTask(dependencies, { waiter, error }, call);
  const grant = { waiter, record, entry, repeated: true, isWrittenHere: false };
  const { outcome, record: current } = await notifyHolder(dependencies, grant, call);
  search.record = current;
  if (outcome === 'accepted' || outcome === 'gone') await deleteWaiter(dependencies, waiter, call);
  return outcome;
}

/**
 * Ends an overdue task. Reads the record again first, because the task may have received a grant in the meantime.
 * @returns `overtaken`: nothing was sent, because the task has such a grant, or its request has one by another row
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export async function failOverdue(
  dependencies: LeaseDependencies,
  { waiter, record: seen }: { waiter: WaitingTask; record: KeyRecord },
  call: Call,
): Promise<NotifyOutcome | 'overtaken'> {
  const { clock, clockSkewMs } = dependencies;
  const record = await readKey(dependencies, seen.key, call);
  const newGrant = newGrantOf(waiter);
  const now = clock.now();
  const entry = entryOf(record, newGrant.name);
  const isNew = entry?.ticket === waiter.ticket && entry.fence !== entryOf(seen, newGrant.name)?.fence;
  if (entry && entry.expiresAt > now && (isNew || isShared(entry, newGrant))) return 'overtaken';
  const held = leaseHeld(record, { request: newGrant, now, clockSkewMs });
  const error = new HoldfastError(
    'LeaseHeld',
    `${held.message}. The task has waited for its parkSeconds`,
    held.context,
  );
  return failTask(dependencies, { waiter, error }, call);
}
