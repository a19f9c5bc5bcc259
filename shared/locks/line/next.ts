import type { Call } from '../../aws/call.ts';
import { HoldfastError } from '../../errors.ts';
import { type LeaseDependencies, WINDOW_MS } from '../dependencies.ts';
import { roomUnder } from '../record/cap-rules.ts';
import { capAt } from '../record/capped.ts';
import { EXCLUSIVE_WEIGHT, requestName } from '../record/identity.ts';
import { ending, endingOf, entryOf, type HolderEntry, type KeyRecord, type NewGrant } from '../record/record.ts';
import { leaseHeld, leaseLost } from '../record/refusals.ts';
import { readKey } from '../record/requests.ts';
import { type Going, weightInUse, weightOf } from '../record/room.ts';
import { notifyHolder, otherTerms } from '../record/versions.ts';
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
import { deleteOver } from './waiting-calls.ts';

// The judgement of each row of a line, and the bounds of one hand-off.

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
 * - `released`, `broken`: the request had a grant, and the record remembers how the grant ended. A request has one grant.
 * - `superseded`: a newer request has replaced the request, or has asked its grant to stop.
 * - `none`: the request may be granted.
 */
type GrantOfRequest = 'none' | 'own' | 'other' | 'shared' | 'lapsed' | 'released' | 'broken' | 'superseded';

/**
 * - `waits`: the row can receive a grant.
 * - `passed`: the row cannot receive a grant now, and keeps no caller out.
 * - `granted`: as `passed`, because the row has a grant that has not ended.
 * - `refused`: the task accepted the message that its wait has ended. The row is deleted.
 * - `gone`: the row is deleted.
 * - `undecided`: its task or call may have a new grant or a new deadline, so the mark stays.
 * - `asleep`: a live place. It keeps the mark, and receives nothing.
 */
type Judgement = 'waits' | 'passed' | 'granted' | 'refused' | 'gone' | 'undecided' | 'asleep';

interface Row<Kind extends Waiter> {
  waiter: Kind;
  search: LineSearch;
}

/**
 * Judges one row of the line (docs/protocols/queue.md#hand-off, step 1). A row that cannot receive a grant keeps no caller out, even if its task cannot
 * be notified: the schedule starts from the rows, and needs no mark.
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
  if (grant === 'other' || search.budget.over-- <= 0) return 'passed';
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
    const error = refusalOf(record, requestName(waiter)) ?? leaseLost(record.key, grant);
    return failTask(dependencies, { waiter, error }, call);
  }
  return grant === 'shared'
    ? repeatToTask(dependencies, { waiter, search }, call)
    : failOverdue(dependencies, { waiter, record }, call);
}

/** The states in which a call in line can receive no grant. A call that did not claim its grant in time has lost its position too. */
const HAS_HAD_IT: ReadonlySet<GrantOfRequest> = new Set(['lapsed', 'released', 'broken']);

/** A caller that sleeps keeps its place even if the request had a grant that was not claimed, because the caller did not know of that grant. */
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
  const isOver = waiter.keepUntil + clockSkewMs <= clock.now();
  if (!isOver || search.budget.over-- <= 0) return 'passed';
  return (await deleteOver(dependencies, waiter, call)) ? 'gone' : 'undecided';
}

async function judgeCall(
  dependencies: LeaseDependencies,
  { waiter, search }: Row<WaitingCall>,
  call: Call,
): Promise<Judgement> {
  const now = dependencies.clock.now();
  const grant = grantOfRequest(dependencies, search, waiter);
  const isCancelled = waiter.cancelledAt !== undefined; // its call must see that, until it is over
  if (HAS_HAD_IT.has(grant) && !isCancelled) {
    await deleteWaiter(dependencies, waiter, call);
    return 'gone';
  }
  if (waiter.keepUntil <= now && search.budget.over-- > 0)
    return (await deleteOver(dependencies, waiter, call)) ? 'gone' : 'undecided';
  if (isCancelled || isOverdue(waiter, now)) return 'passed';
  if (grant === 'own') return 'granted';
  return grant === 'none' ? 'waits' : 'passed';
}

/** One write makes up to this many grants: DynamoDB limits an expression to 4 KB. */
const BATCH = 5;

/** The hints name up to this many waiters. */
export const MOST_NAMED = 24;

/** A ticket that receives a grant. */
export interface NextGrant {
  waiter: Waiter;
  grant: NewGrant;
}

export interface NextInLine {
  /** The tickets that the next write serves, in the order of the line. */
  nextGrants: NextGrant[];
  /** Whether there are, or may be, waiters that the next write does not serve. */
  others: boolean;
  /** The ticket of the first waiter that the next write does not serve, if this call has read so far. */
  next: string | undefined;
  /** The tickets of the waiters that the next write does not serve, as far as the first page shows. */
  waitingTickets?: string[];
  /** The rows that are in line and receive nothing by the next write, as far as they were read. */
  inLine: Waiter[];
  /** The number of the waiter that a quick release serves, if that waiter passes no sleeper. */
  number?: number | undefined;
  /** What the first waiter asks for that the next write does not serve. */
  behind: NewGrant | undefined;
  /** Whether that waiter is a caller that sleeps. */
  isAsleep?: boolean;
  /** Whether a place was passed over that keeps the mark as soon as the grant of its request has ended. */
  hasPlaceOfHolder?: boolean;
  /** The same waiter, if it does not fit. */
  blocked?: Waiter;
  /** Whether a task is among the waiters that the next write does not serve. */
  taskWaits: boolean;
  /** The tickets of tasks that took the message that their wait has ended. */
  refused: string[];
}

interface LineSearch {
  record: KeyRecord;
  reading: LineReading;
  ending: readonly Going[];
  /** The tickets that this call has served. */
  granted: readonly string[];
  /** How many more rows that no longer wait this call ends or deletes. */
  budget: { over: number };
  /** The ticket of the call in line that hands off. That call is alive, so it receives its whole ttl and need not claim it. */
  own?: string | undefined;
}

/**
 * Finds the waiters that are next: the oldest ones, as long as each fits. No waiter passes the first that does not fit. Deletes expired rows
 * (docs/protocols/queue.md#hand-off).
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export async function findNext(dependencies: LeaseDependencies, search: LineSearch, call: Call): Promise<NextInLine> {
  const { record, reading, ending, own } = search;
  const { clockSkewMs } = dependencies;
  const line: NextInLine = {
    ...{ nextGrants: [], others: false, next: undefined, inLine: [], behind: undefined, taskWaits: false, refused: [] },
  };
  const now = dependencies.clock.now();
  const cap = capAt(record, { now, clockSkewMs });
  const reachesLimit = expiredRowLimit(now, MAX_EXPIRED_ROWS_IN_HAND_OFF);
  let used = weightInUse(record, { now, clockSkewMs }) - weightOf(ending.map(({ entry }) => entry));
  for await (const waiter of reading.rows()) {
    const judgement = await judgeRow(dependencies, { waiter, search }, call);
    noteJudgement(line, { waiter, judgement, reading, now: dependencies.clock.now() });
    // Places sort last, so no waiter that is awake comes after this row.
    if (judgement === 'asleep') return { ...line, others: true, next: waiter.ticket, isAsleep: true };
    if (reachesLimit(waiter)) return { ...line, others: true }; // another waiter may be behind it
    if (judgement !== 'waits') continue;
    if (waiter.ticket !== own && (await mayLeaveTask(reading, { waiter, latest: now + clockSkewMs }))) {
      line.inLine.push(waiter);
      line.others = true;
      continue;
    }
    const asked = newGrantOf(waiter, own);
    const grant = { ...asked, room: roomUnder(cap, asked) };
    // A second row of a request waits for the outcome of the first row, and keeps no caller out.
    if (line.nextGrants.some((nextGrant) => nextGrant.grant.name === grant.name)) {
      line.taskWaits ||= isTask(waiter);
      line.inLine.push(waiter);
      continue;
    }
    // The schedule serves a task that this process cannot notify, and those behind it wait for their turn.
    if (isTask(waiter) && !(await canNotify(dependencies, waiter)))
      return { ...line, others: true, next: waiter.ticket, taskWaits: true };
    const isBlocked = used > grant.room;
    if (isBlocked || line.nextGrants.length === BATCH) {
      const others = await othersFrom(reading, { waiter, grant });
      return {
        ...{ ...line, ...others, taskWaits: line.taskWaits || others.taskWaits },
        ...(isBlocked && { blocked: waiter }),
      };
    }
    line.nextGrants.push({ waiter, grant });
    used += grant.weight;
  }
  return line;
}

interface Judged {
  waiter: Waiter;
  judgement: Judgement;
  reading: LineReading;
  now: number;
}

/** What the judgement of a row says about the line. */
function noteJudgement(line: NextInLine, { waiter, judgement, reading, now }: Judged): void {
  if (judgement === 'undecided') line.others = true;
  if (judgement === 'passed' && isPlace(waiter) && waiter.cancelledAt === undefined) line.hasPlaceOfHolder = true;
  if (judgement === 'gone' || judgement === 'refused') reading.skip(waiterKey(waiter));
  if (judgement === 'refused') line.refused.push(waiter.ticket);
  if (judgement === 'granted') reading.sawGranted(waiter);
  if (judgement === 'passed' && !isPlace(waiter) && isInLine(waiter, now)) line.inLine.push(waiter);
}

/** Whether a caller may have left, by a clock that is ahead. A task behind it does not search by itself. */
const mayLeaveTask = async (
  reading: LineReading,
  { waiter, latest }: { waiter: Waiter; latest: number },
): Promise<boolean> => !isTask(waiter) && waiter.deadline <= latest && (await reading.behind(waiter)).some(isTask);

/** The line from the first waiter on that the next write does not serve. */
async function othersFrom(reading: LineReading, { waiter, grant }: NextGrant) {
  const behind = await reading.behind(waiter);
  return {
    others: true,
    next: waiter.ticket,
    ...(!isTask(waiter) && { waitingTickets: [waiter, ...behind].slice(0, MOST_NAMED).map(({ ticket }) => ticket) }),
    behind: grant,
    taskWaits: isTask(waiter) || behind.some(isTask),
  };
}

/** What a ticket asks for. A caller receives only the window, until it claims its grant. @param own the ticket of the call that grants it */
export function newGrantOf(waiter: Waiter, own?: string): NewGrant {
  const { holder, ttlSeconds, data, execution, target, graceSeconds = 0, bound, replace } = waiter;
  const { permit = { weight: EXCLUSIVE_WEIGHT, limit: null } } = waiter;
  const { limit, weight } = permit;
  const [ttlMs, graceMs] = [ttlSeconds * 1000, graceSeconds * 1000];
  return {
    ...{ name: requestName(waiter), holder, data, limit, weight, ticket: waiter.ticket },
    ...{ execution, target, graceMs, bound, replace },
    room: limit === null || weight >= EXCLUSIVE_WEIGHT ? 0 : limit - weight,
    ...(isTask(waiter) || waiter.ticket === own ? { ttlMs } : { ttlMs: WINDOW_MS, claimTtlMs: ttlMs }),
  };
}

/** What the record shows about the request of a row. */
function grantOfRequest(
  { clock }: LeaseDependencies,
  { record, reading, ending: leaving, granted }: LineSearch,
  waiter: Waiter,
): GrantOfRequest {
  if (granted.includes(waiter.ticket)) return 'own';
  const name = requestName(waiter);
  const gone = leaving.find(({ entry }) => entry.name === name || entry.ticket === waiter.ticket);
  // A call that knows the request may have ended the grant before its task was notified.
  if (gone?.how === 'released' || gone?.how === 'broken') return gone.entry.isEnding ? endingOf(gone.entry) : gone.how;
  const how = ending(record, name);
  if (gone && how === 'superseded') return how;
  if (gone && gone.entry.ticket !== waiter.ticket) return 'none';
  if (gone) return gone.how === 'expired' || !isTask(waiter) ? 'lapsed' : 'own';
  const entry = entryOf(record, name);
  // Another call notifies its task, even if the grant has ended since.
  if (entry ? entry.ticket === waiter.ticket : how && reading.wasGranted(waiter)) return 'own';
  if (how) return how;
  if (!entry) return 'none';
  return isShared(entry, newGrantOf(waiter)) && entry.expiresAt > clock.now() ? 'shared' : 'other';
}

/** Whether a row is answered with the grant that its request has by another row, or by a plain call. */
const isShared = (entry: HolderEntry, { ticket, weight }: NewGrant): boolean =>
  entry.ticket !== ticket && entry.weight === weight && entry.claimTtlMs === undefined && !entry.isEnding;

/**
 * Sends a task the grant that the request has by another ticket, or InvalidRequest if the task expects another end of the grant. Each message
 * gives the grant a new version. The search keeps the record with that version, because the next row may be of the same request.
 */
async function repeatToTask(
  dependencies: LeaseDependencies,
  { waiter, search }: Row<WaitingTask>,
  call: Call,
): Promise<Notified['outcome']> {
  const { record } = search;
  const entry = entryOf(record, requestName(waiter));
  if (!entry) return 'overtaken';
  const error = otherTerms(entry, waiter);
  if (error) return failTask(dependencies, { waiter, error }, call);
  const grant = { waiter, record, entry, repeated: true, isOurs: false };
  const { outcome, record: current } = await notifyHolder(dependencies, grant, call);
  search.record = current;
  if (outcome === 'accepted' || outcome === 'gone') await deleteWaiter(dependencies, waiter, call);
  return outcome;
}

/**
 * Ends an overdue task. The record that was passed may be older than its ticket, so this reads the record again.
 * @returns `overtaken`: nothing was sent, because the task has a grant that the record did not show, or its request has one by another row
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export async function failOverdue(
  dependencies: LeaseDependencies,
  { waiter, record: seen }: { waiter: WaitingTask; record: KeyRecord },
  call: Call,
): Promise<NotifyOutcome | 'overtaken'> {
  const { clock, clockSkewMs } = dependencies;
  const record = await readKey(dependencies, seen.key, call);
  const asked = newGrantOf(waiter);
  const now = clock.now();
  const entry = entryOf(record, asked.name);
  const isNew = entry?.ticket === waiter.ticket && entry.fence !== entryOf(seen, asked.name)?.fence;
  if (entry && entry.expiresAt > now && (isNew || isShared(entry, asked))) return 'overtaken';
  const held = leaseHeld(record, { asked, now, clockSkewMs });
  const error = new HoldfastError(
    'LeaseHeld',
    `${held.message}. The task has waited for its parkSeconds`,
    held.context,
  );
  return failTask(dependencies, { waiter, error }, call);
}
