import type { Call } from '../../aws/call.ts';
import { HoldfastError } from '../../errors.ts';
import { type LeaseDependencies, MIN_HAND_OFF_TIME_MS } from '../dependencies.ts';
import { writeEnds } from '../record/grants.ts';
import { EXCLUSIVE_PATH } from '../record/identity.ts';
import {
  endOfRequest,
  entryOf,
  type HolderEntry,
  isExclusiveGrant,
  type KeyRecord,
  unusable,
} from '../record/record.ts';
import { type GrantToEnd, isRemembered, takeOverAt } from '../record/room.ts';
import { type RecordAndEnding, writeHandOff } from './hand-off-write.ts';
import { LineReading } from './line-reading.ts';
import { type FoundInLine, findNext, MAX_GONE_TASKS, MAX_REMOVALS, type NextGrant } from './next.ts';
import { logFailedHandOff, logGrants } from './notify.ts';
import { notifyGranted, type Versions } from './notify-granted.ts';
import { earlierReleaseHandsOff } from './pace.ts';
import { deleteWaiter, type Waiter } from './waiters.ts';

// Exported from here too, because a plain acquire that meets a mark already loads this file: a further import would
// make the bundler add a chunk, and each bundle larger.
export { mayBeHandingOff } from './pace.ts';

export interface HandOffOutcome {
  served: string[];
  /**
   * `empty`: the line is empty, and the mark is gone. `waits`: waiters are in line, and none can be served now: the next
   * does not fit, or its row has just changed. `left`: waiters are left, because this call met too many tasks that were gone, or had too little time.
   */
  end: 'empty' | 'waits' | 'left';
  /** The next waiter, if this call has seen that it does not fit. */
  blocked?: Waiter | undefined;
  /** Whether only callers that sleep are in line, so that the key stays free for them. */
  isLeftToSleepers?: boolean;
  record: KeyRecord;
  /** Whether a grant of `toEnd` has ended. From then on a failure must not reach the caller. */
  endedForGood?: boolean;
  /** The version of the full grant that this call has written for itself. */
  ownVersion?: string | undefined;
  /** Whether a try of a lost write received no answer, so that the write may have landed. */
  unanswered?: boolean;
}

/**
 * How many grants a hand-off ends at most in one write: half of `MAX_ENDED`, because its new grants need room in the
 * expression too.
 */
export const MAX_ENDED_BY_HAND_OFF = 20;

/** How many writes a call may lose before it stops: the calls that won serve the line. */
const MAX_LOST_WRITES = 20;

interface HandOffOptions {
  /** The record as a conditional write or a consistent read has just shown it. */
  record: KeyRecord;
  /** Grants that must end even if no waiter is served, at most `MAX_ENDED_BY_HAND_OFF`. */
  toEnd?: readonly GrantToEnd[];
  /** The ticket of the call in line that hands off. */
  ownTicket?: string | undefined;
  /** The tickets that the caller has served already. */
  servedBefore?: readonly string[];
  /** The grants of a quick release, which still has to notify their tasks. */
  justGranted?: { found: FoundInLine; versions: Versions };
  /**
   * Collects the tickets of new holders whose tasks may not have been notified. A task that parks looks for its own
   * ticket there.
   */
  unnotified?: Set<string>;
}

/**
 * Serves the waiters in their order, as long as each fits (docs/protocols/queue.md#hand-off), and notifies the tasks
 * among them. Callers poll, and find their grants. If the line is empty, removes the mark. Every call that ends a grant
 * while the mark is there calls this afterwards.
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export async function handOff(
  dependencies: LeaseDependencies,
  handingOff: HandOffOptions,
  call: Call,
): Promise<HandOffOutcome> {
  const soFar: OutcomeSoFar = {};
  return serveWhileRoom(dependencies, { ...handingOff, soFar }, call).catch((error) => {
    // The caller wanted its grant to end, and the grant has ended. The schedule repeats what failed after that.
    if (!soFar.endedForGood) throw error;
    logFailedHandOff(error);
    return { served: [], end: 'left', record: handingOff.record, ...soFar };
  });
}

/** The part of the outcome that stays true even if the hand-off fails later. */
type OutcomeSoFar = Pick<HandOffOutcome, 'endedForGood' | 'ownVersion' | 'unanswered'>;

interface HandOffProgress {
  record: KeyRecord;
  reading: LineReading;
  toEnd: GrantToEnd[];
  served: string[];
  budget: { removals: number };
  ownTicket: string | undefined;
  unnotified: Set<string>;
  soFar: OutcomeSoFar;
  /** How many tasks that received a grant were gone. */
  goneTasks: number;
  lostWrites: number;
}

const ticketsOf = ({ nextGrants }: FoundInLine): string[] => nextGrants.map(({ waiter }) => waiter.ticket);

/** Whether the write makes an exclusive grant, which leaves no room for another waiter. */
const servesExclusive = ({ nextGrants }: FoundInLine): boolean =>
  nextGrants.some(({ grant }) => isExclusiveGrant(grant));

const handOffOutcome = (
  { served, record, soFar }: HandOffProgress,
  end: HandOffOutcome['end'],
  found?: FoundInLine,
): HandOffOutcome => ({
  served,
  end,
  record,
  blocked: found?.blocked,
  isLeftToSleepers: found?.isLeftToSleepers === true && found.nextGrants.length === 0,
  ...soFar,
});

async function serveWhileRoom(
  dependencies: LeaseDependencies,
  {
    record,
    toEnd: endingAtFirst = [],
    unnotified = new Set(),
    ownTicket,
    servedBefore = [],
    justGranted,
    soFar,
  }: HandOffOptions & { soFar: OutcomeSoFar },
  call: Call,
): Promise<HandOffOutcome> {
  const served = justGranted ? ticketsOf(justGranted.found) : [...servedBefore];
  const toEnd = justGranted
    ? await notifyGranted(dependencies, { ...justGranted, record, unnotified }, call)
    : [...endingAtFirst];
  if (justGranted && toEnd.length === 0) return { served, end: 'waits', record };
  const reading = new LineReading(dependencies, record, call);
  const progress: HandOffProgress = {
    ...{ record, reading, toEnd, served, budget: { removals: MAX_REMOVALS } },
    ...{ ownTicket, unnotified, soFar, goneTasks: 0, lostWrites: 0 },
  };
  for (;;) {
    if (
      progress.goneTasks >= MAX_GONE_TASKS ||
      progress.lostWrites > MAX_LOST_WRITES ||
      call.timeLeftMs() < MIN_HAND_OFF_TIME_MS
    )
      return leaveRest(dependencies, progress, call);
    const found = await findWrite(dependencies, progress, call);
    if (found === 'unread') return leaveRest(dependencies, progress, call);
    if (found === 'grown') continue;
    const outcome = await serve(dependencies, { progress, found }, call);
    if (outcome) return outcome;
  }
}

/**
 * Finds the waiters that the next write serves, and the grants that it ends.
 * @returns `grown`: a waiter has joined since the line was read, so it must be read again. `unread`: the line could not
 * be read
 */
async function findWrite(
  dependencies: LeaseDependencies,
  progress: HandOffProgress,
  call: Call,
): Promise<FoundInLine | 'unread' | 'grown'> {
  const { record, served, budget, ownTicket } = progress;
  if (!progress.reading.isCurrentFor(record, dependencies.clock.now()))
    progress.reading = new LineReading(dependencies, record, call);
  const { reading } = progress;
  const toEnd = withExpired(dependencies, progress);
  progress.toEnd = toEnd;
  const search = { record, reading, toEnd, served, budget, ownTicket };
  const line = await findNext(dependencies, search, call).catch((error) => undefinedIfUnread(error, toEnd));
  if (!line) return 'unread';
  progress.toEnd = toEnd.map((grantToEnd) =>
    reachedNoCaller(grantToEnd, line) ? { ...grantToEnd, how: 'neverNotified' } : grantToEnd,
  );
  if (reading.isCompleteFor(record)) return line;
  // The waiter that has joined may be a task. If it is alone behind an exclusive grant, it needs a delayed repair, so
  // this call must read its row.
  if (line.nextGrants.length > 0 && (line.hasOthers || !servesExclusive(line))) return { ...line, hasOthers: true };
  progress.reading = new LineReading(dependencies, record, call);
  return 'grown';
}

interface HandOffRound {
  progress: HandOffProgress;
  found: FoundInLine;
}

/** Makes the next grants, or removes the mark of an empty line. @returns undefined if the line must be judged again */
async function serve(
  dependencies: LeaseDependencies,
  { progress, found }: HandOffRound,
  call: Call,
): Promise<HandOffOutcome | undefined> {
  const { record } = progress;
  const isLineEmpty = found.nextGrants.length === 0 && !found.hasOthers;
  const toEnd = isLineEmpty ? progress.toEnd.filter(({ how }) => how !== 'expired') : progress.toEnd;
  const hasNothingToWrite =
    found.nextGrants.length === 0 && toEnd.length === 0 && !(isLineEmpty && record.mark !== undefined);
  if (hasNothingToWrite) return handOffOutcome(progress, isLineEmpty ? 'empty' : 'waits', found);
  const now = dependencies.clock.now();
  const arrivalNumber = await progress.reading.numberOf(found.nextGrants.at(-1)?.waiter);
  const servesSelf = found.nextGrants.some(({ waiter }) => waiter.ticket === progress.ownTicket);
  const { moved: ticket } = record;
  // The move counts for one grant: the write forgets it when it serves that waiter, or when its row is gone.
  const endsMove = ticket !== undefined && (ticketsOf(found).includes(ticket) || !progress.reading.hasMoved);
  const moved = endsMove ? ticket : undefined;
  const writing = { record, toEnd, found, isLineEmpty, now, arrivalNumber, servesSelf, moved };
  const written = await writeHandOff(dependencies, writing, call);
  if (!written.won && written.record.malformed !== undefined) throw unusable(written.record);
  progress.record = written.record;
  return written.won
    ? afterWrite(dependencies, { progress, found, ended: toEnd, versions: written.versions }, call)
    : afterLoss({ progress, found, unanswered: written.unanswered });
}

/** Continues after a lost write: another call has written first, or an earlier try of this write has landed. */
function afterLoss({
  progress,
  found,
  unanswered,
}: HandOffRound & { unanswered: boolean }): HandOffOutcome | undefined {
  const { record, soFar } = progress;
  progress.lostWrites++;
  progress.toEnd = progress.toEnd.filter(({ entry }) => entryOf(record, entry.name)?.version === entry.version);
  const taken = takenByOther({ found, ...progress });
  if (unanswered) {
    soFar.unanswered = true;
    progress.served.push(...taken);
  }
  return taken.length > 0 ? handOffOutcome(progress, 'waits') : undefined;
}

interface ServedWrite extends HandOffRound {
  ended: readonly GrantToEnd[];
  versions: Versions;
}

async function afterWrite(
  dependencies: LeaseDependencies,
  { progress, found, ended, versions }: ServedWrite,
  call: Call,
): Promise<HandOffOutcome | undefined> {
  const { record, reading, served, ownTicket, unnotified, soFar } = progress;
  if (ended.some(({ how }) => isRemembered(how))) soFar.endedForGood = true;
  // The log line of this call names its own grant.
  logGrants(record, { nextGrants: found.nextGrants.filter(({ waiter }) => waiter.ticket !== ownTicket) }, call);
  reading.noteEnded(ended.map(({ entry }) => entry));
  served.push(...ticketsOf(found));
  const full = found.nextGrants.find(({ waiter }) => waiter.ticket === ownTicket);
  if (full) soFar.ownVersion = versions.get(full.grant.name);
  await deleteWaitersOf(dependencies, { key: record.key, served, ended }, call);
  progress.toEnd = await notifyGranted(dependencies, { found, record, versions, unnotified }, call);
  progress.goneTasks += progress.toEnd.length;
  if (progress.toEnd.length > 0) return undefined;
  if (!found.hasOthers) return handOffOutcome(progress, 'empty');
  return servesNoMore(progress, found, ended) ? handOffOutcome(progress, 'waits', found) : undefined;
}

/** Whether another round would serve no waiter. */
function servesNoMore({ record, reading }: HandOffProgress, found: FoundInLine, ended: readonly GrantToEnd[]): boolean {
  // The write freed the key and served no waiter, and none has joined since the line was read. So no waiter in line can
  // be served.
  const endsExclusive = ended.some(({ entry }) => entry.path === EXCLUSIVE_PATH);
  if (found.nextGrants.length === 0 && endsExclusive && reading.isCompleteFor(record)) return true;
  if (servesExclusive(found)) return true;
  // If this write has ended grants, a waiter may have joined before it and found no room.
  if (ended.length > 0) return false;
  // If there is room behind the new holders, this call must use it: the calls that made that room leave it to this
  // call.
  return found.firstOtherAsks !== undefined && record.used > found.firstOtherAsks.room;
}

/**
 * The tickets that this call was about to serve, and that another call has served. That call saw all room that was
 * free, and goes on while any ticket fits. So this call stops: otherwise all calls of a crowd would race for the same
 * tickets.
 */
function takenByOther({ found: { nextGrants }, record, toEnd }: RecordAndEnding & { found: FoundInLine }): string[] {
  if (toEnd.some(({ how }) => how !== 'expired')) return [];
  const isTaken = ({ waiter, grant: { name } }: NextGrant) =>
    entryOf(record, name)?.ticket === waiter.ticket || endOfRequest(record, name) !== undefined;
  return nextGrants.filter(isTaken).map(({ waiter }) => waiter.ticket);
}

/** The grants that the next write ends, and the expired ones, because the line may need their room. */
function withExpired({ clock, clockSkewMs }: LeaseDependencies, { record, toEnd }: RecordAndEnding): GrantToEnd[] {
  const now = clock.now();
  const willEnd = (entry: HolderEntry) => toEnd.some((grantToEnd) => grantToEnd.entry.name === entry.name);
  const expired = record.entries.filter((entry) => takeOverAt(entry, clockSkewMs) <= now && !willEnd(entry));
  const room = Math.max(0, MAX_ENDED_BY_HAND_OFF - toEnd.length);
  return [...toEnd, ...expired.slice(0, room).map((entry): GrantToEnd => ({ entry, how: 'expired' }))];
}

/**
 * Whether an expired grant reached no caller: its task accepted LeaseHeld instead, and no call of the request received
 * the grant as an answer.
 */
const reachedNoCaller = ({ entry, how }: GrantToEnd, { refused }: FoundInLine): boolean =>
  how === 'expired' && entry.answeredAt === undefined && entry.ticket !== undefined && refused.includes(entry.ticket);

/**
 * Deletes the rows of tasks that were gone, after their grants have ended. Until then the schedule needs the row to
 * find the grant.
 */
async function deleteWaitersOf(
  dependencies: LeaseDependencies,
  { key, served, ended }: { key: string; served: readonly string[]; ended: readonly GrantToEnd[] },
  call: Call,
): Promise<void> {
  for (const { entry, how } of ended) {
    const { ticket } = entry;
    if (how !== 'neverNotified' || ticket === undefined || !served.includes(ticket)) continue;
    await deleteWaiter(dependencies, { key, ticket }, call).catch(logFailedHandOff);
  }
}

/** Leaves the rest of the line to other calls, but still ends the grants that must end. */
async function leaveRest(
  dependencies: LeaseDependencies,
  { served, record, toEnd, soFar }: RecordAndEnding & { served: string[]; soFar: OutcomeSoFar },
  call: Call,
): Promise<HandOffOutcome> {
  const mustEnd = toEnd.filter(({ how }) => how !== 'expired');
  if (mustEnd.length === 0) return { served, end: 'left', record, ...soFar };
  const now = dependencies.clock.now();
  const { won, record: current } = await writeEnds(dependencies, { key: record.key, toEnd: mustEnd, now }, call);
  if (won) await deleteWaitersOf(dependencies, { key: record.key, served, ended: mustEnd }, call);
  const isEnded = won && mustEnd.some(({ how }) => isRemembered(how));
  return { served, end: 'left', record: current, ...soFar, ...(isEnded && { endedForGood: true }) };
}

/**
 * If the line cannot be read, grants that must end still end.
 * @throws the error if only expired grants would end, because these can wait
 */
function undefinedIfUnread(error: unknown, toEnd: readonly GrantToEnd[]): undefined {
  if (!(error instanceof HoldfastError) || toEnd.every(({ how }) => how === 'expired')) throw error;
}

/**
 * Hands off after a grant has ended for good. Logs a failure and does not throw it, because the former holder need not
 * repeat anything.
 * @param isReleased whether the release of a shared holder has just written the record
 * @throws never a HoldfastError
 */
export async function handOffAfter(
  dependencies: LeaseDependencies,
  { record, isReleased = false }: { record: KeyRecord; isReleased?: boolean | undefined },
  call: Call,
): Promise<void> {
  if (isReleased && earlierReleaseHandsOff(record, dependencies.clock.now())) return;
  await handOff(dependencies, { record }, call).catch(logFailedHandOff);
}
