import type { Call } from '../../aws/call.ts';
import type { Condition } from '../../aws/condition.ts';
import { HoldfastError } from '../../errors.ts';
import type { EndedGrant } from '../calls/types.ts';
import { type LeaseDependencies, TRANSFER_MS } from '../dependencies.ts';
import { isUsedAsSeen, markUnchanged } from '../record/conditions.ts';
import { writeEnds, writeGrants } from '../record/grants.ts';
import { ALONE } from '../record/identity.ts';
import {
  areNotSuperseded,
  isStillMoved,
  keptMark,
  leftAsleep,
  movedNoMore,
  newMark,
  removedMark,
} from '../record/mark.ts';
import {
  ending,
  entryOf,
  type HolderEntry,
  isAloneIn,
  type KeyRecord,
  type NewGrant,
  unusable,
} from '../record/record.ts';
import type { Written } from '../record/requests.ts';
import { type Going, isRemembered, previousAlone, previousOf, takeoverAt } from '../record/room.ts';
import { LineReading } from './line-reading.ts';
import { findNext, MAX_GONE, MAX_OVER, type NextGrant, type NextInLine } from './next.ts';
import { leftToSchedule, logGrants } from './notify.ts';
import { notifyGranted, type Versions } from './notify-granted.ts';
import { hintsAfter, isHandedOffWithBefore } from './pace.ts';
import { deleteWaiter, stayingOf, type Waiter } from './waiters.ts';

// A plain acquire that meets a mark asks this too.
export { isHandedOff } from './pace.ts';

export interface HandedOff {
  /** The tickets that received grants. */
  granted: string[];
  /**
   * `empty`: the line is empty, and the mark is gone. `waits`: the first in line does not fit, or is undecided. `left`: this call met too many tasks
   * that are gone, or had too little time, and others are in line.
   */
  end: 'empty' | 'waits' | 'left';
  /** The first in line, if this call has seen that it does not fit. */
  blocked?: Waiter | undefined;
  /** Whether only callers that sleep are in line. The key is then left free for them. */
  isAsleep?: boolean;
  /** The record as it was last seen. */
  record: KeyRecord;
  /** Whether this call has ended the grants that it was to end. */
  ended?: boolean;
  /** The version of the full grant that this call has written for itself. */
  ownVersion?: string | undefined;
  /** Whether a lost write had a try without an answer, which may have landed. */
  unanswered?: boolean;
}

/** One write ends up to this many grants beside the new ones: DynamoDB limits an expression to 4 KB. */
export const MOST_GOING = 20;

/** Many calls may serve the same line at once. */
const MAX_LOST = 20;

interface HandingOff {
  /** The record as a conditional write or a consistent read has just shown it. */
  record: KeyRecord;
  /** Grants that must end in any case, at most as many as one write ends. */
  ending?: readonly Going[];
  /** The ticket of the call in line that hands off. */
  own?: string | undefined;
  /** The tickets that this call has served already. */
  served?: readonly string[];
  /** A grant that this call has just written. */
  given?: { line: NextInLine; versions: ReadonlyMap<string, string> };
  /** Collects the tickets of new holders whose tasks may not have been notified, for a task that parks. */
  unnotified?: Set<string>;
}

/**
 * Serves the waiters in their order, as long as each fits (docs/protocols/queue.md#hand-off). Notifies tasks. Callers look for their
 * grants. If the line is empty, removes the mark. Every call that ends a grant while the mark is there calls this afterwards.
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export async function handOff(dependencies: LeaseDependencies, advancing: HandingOff, call: Call): Promise<HandedOff> {
  const done: DoneSoFar = {};
  return serveWhileRoom(dependencies, { ...advancing, done }, call).catch((error) => {
    // The grant of the caller has ended. A failure after that is not the caller's.
    if (!done.ended) throw error;
    leftToSchedule(error);
    return { granted: [], end: 'left', record: advancing.record, ...done };
  });
}

/** What stays true of the outcome, however the hand-off goes on. */
type DoneSoFar = Pick<HandedOff, 'ended' | 'ownVersion' | 'unanswered'>;

interface HandOffProgress {
  record: KeyRecord;
  reading: LineReading;
  ending: Going[];
  granted: string[];
  budget: { over: number };
  own: string | undefined;
  unnotified: Set<string>;
  done: DoneSoFar;
  /** How many tasks that received a grant were gone. */
  gone: number;
  /** How many writes of others came first. */
  lost: number;
}

const ticketsOf = ({ nextGrants }: NextInLine): string[] => nextGrants.map(({ waiter }) => waiter.ticket);

/** Whether the write makes an exclusive grant, which leaves no room for another waiter. */
const servesAlone = ({ nextGrants }: NextInLine): boolean => nextGrants.some(({ grant }) => isAloneIn(grant));

const handedOff = (
  { granted, record, done }: HandOffProgress,
  end: HandedOff['end'],
  line?: NextInLine,
): HandedOff => ({
  ...{
    granted,
    end,
    record,
    blocked: line?.blocked,
    isAsleep: line?.isAsleep === true && line.nextGrants.length === 0,
  },
  ...done,
});

async function serveWhileRoom(
  dependencies: LeaseDependencies,
  {
    record,
    ending: first = [],
    unnotified = new Set(),
    own,
    served = [],
    given,
    done,
  }: HandingOff & { done: DoneSoFar },
  call: Call,
): Promise<HandedOff> {
  const granted = given ? ticketsOf(given.line) : [...served];
  const ending = given ? await notifyGranted(dependencies, { ...given, record, unnotified }, call) : [...first];
  if (given && ending.length === 0) return { granted, end: 'waits', record };
  const reading = new LineReading(dependencies, record, call);
  const progress: HandOffProgress = {
    ...{ record, reading, ending, granted, budget: { over: MAX_OVER } },
    ...{ own, unnotified, done, gone: 0, lost: 0 },
  };
  for (;;) {
    if (progress.gone >= MAX_GONE || progress.lost > MAX_LOST || call.timeLeftMs() < TRANSFER_MS)
      return leaveRest(dependencies, progress, call);
    const line = await findWrite(dependencies, progress, call);
    if (line === 'unread') return leaveRest(dependencies, progress, call);
    if (line === 'grown') continue;
    const outcome = await serve(dependencies, { progress, line }, call);
    if (outcome) return outcome;
  }
}

/** Finds whom the next write serves, and what it may end. @returns `grown`: a waiter has joined whom this call must see */
async function findWrite(
  dependencies: LeaseDependencies,
  progress: HandOffProgress,
  call: Call,
): Promise<NextInLine | 'unread' | 'grown'> {
  const { record, granted, budget, own } = progress;
  if (!progress.reading.isTrueOf(record, dependencies.clock.now()))
    progress.reading = new LineReading(dependencies, record, call);
  const { reading } = progress;
  const ending = withExpired(dependencies, progress);
  progress.ending = ending;
  const search = { record, reading, ending, granted, budget, own };
  const line = await findNext(dependencies, search, call).catch((error) => ifUnread(error, ending));
  if (!line) return 'unread';
  progress.ending = ending.map((going) => (reachedNoCaller(going, line) ? { ...going, how: 'neverNotified' } : going));
  if (reading.isFullFor(record)) return line;
  // A task that has just joined behind a holder that has the key alone needs a message.
  if (line.nextGrants.length > 0 && (line.others || !servesAlone(line))) return { ...line, others: true };
  progress.reading = new LineReading(dependencies, record, call);
  return 'grown';
}

interface Serving {
  progress: HandOffProgress;
  line: NextInLine;
}

/** Grants to the nextGrants of the line, or removes the mark of an empty one. @returns undefined if the line needs another look */
async function serve(
  dependencies: LeaseDependencies,
  { progress, line }: Serving,
  call: Call,
): Promise<HandedOff | undefined> {
  const { record } = progress;
  const clears = line.nextGrants.length === 0 && !line.others;
  const ending = clears ? progress.ending.filter(({ how }) => how !== 'expired') : progress.ending;
  if (line.nextGrants.length === 0 && ending.length === 0 && !(clears && record.mark !== undefined))
    return handedOff(progress, clears ? 'empty' : 'waits', line);
  const now = dependencies.clock.now();
  const number = await progress.reading.numberOf(line.nextGrants.at(-1)?.waiter);
  const own = line.nextGrants.some(({ waiter }) => waiter.ticket === progress.own);
  const { moved: ticket } = record;
  const isDone = ticket !== undefined && (ticketsOf(line).includes(ticket) || !progress.reading.hasMoved);
  const moved = isDone ? ticket : undefined;
  const written = await writeHandOff(dependencies, { record, ending, line, clears, now, number, own, moved }, call);
  if (!written.won && written.record.malformed !== undefined) throw unusable(written.record);
  progress.record = written.record;
  return written.won
    ? afterWrite(dependencies, { progress, line, ended: ending, versions: written.versions }, call)
    : afterLoss({ progress, line, unanswered: written.unanswered });
}

/** Another call has written first, or an earlier try of this one has. */
function afterLoss({ progress, line, unanswered }: Serving & { unanswered: boolean }): HandedOff | undefined {
  const { record, done } = progress;
  progress.lost++;
  progress.ending = progress.ending.filter(({ entry }) => entryOf(record, entry.name)?.version === entry.version);
  const taken = takenByOther({ line, ...progress });
  if (unanswered) {
    done.unanswered = true;
    progress.granted.push(...taken);
  }
  return taken.length > 0 ? handedOff(progress, 'waits') : undefined;
}

interface ServedWrite extends Serving {
  ended: readonly Going[];
  versions: Versions;
}

async function afterWrite(
  dependencies: LeaseDependencies,
  { progress, line, ended, versions }: ServedWrite,
  call: Call,
): Promise<HandedOff | undefined> {
  const { record, reading, granted, own, unnotified, done } = progress;
  if (ended.some(({ how }) => isRemembered(how))) done.ended = true;
  // The line of this call says what it received itself.
  logGrants(record, { nextGrants: line.nextGrants.filter(({ waiter }) => waiter.ticket !== own) }, call);
  reading.wrote(ended.map(({ entry }) => entry));
  granted.push(...ticketsOf(line));
  const full = line.nextGrants.find(({ waiter }) => waiter.ticket === own);
  if (full) done.ownVersion = versions.get(full.grant.name);
  await deleteWaitersOf(dependencies, { key: record.key, granted, ended }, call);
  progress.ending = await notifyGranted(dependencies, { line, record, versions, unnotified }, call);
  progress.gone += progress.ending.length;
  if (progress.ending.length > 0) return undefined;
  if (!line.others) return handedOff(progress, 'empty');
  return servesNoMore(progress, line, ended) ? handedOff(progress, 'waits', line) : undefined;
}

function servesNoMore({ record, reading }: HandOffProgress, line: NextInLine, ended: readonly Going[]): boolean {
  // No waiter has joined since the look, which has seen none that could be served, though the key was free.
  const wasAlone = ended.some(({ entry }) => entry.path === ALONE);
  if (line.nextGrants.length === 0 && wasAlone && reading.isFullFor(record)) return true;
  // A call that has ended grants looks again, because a waiter may have joined before that, and found no room. A call that finds room behind its own
  // grants looks again too, because the calls that made this room leave it to this call.
  return servesAlone(line) || (ended.length === 0 && line.behind !== undefined && record.used > line.behind.room);
}

/**
 * The tickets that this call was about to serve, and that another call has served. The write of that call shows all room that was
 * free before it, so that call goes on while any ticket fits. Otherwise all calls of a crowd would race for the same tickets.
 */
function takenByOther({
  line: { nextGrants },
  record,
  ending: leaving,
}: RecordAndEnding & { line: NextInLine }): string[] {
  if (leaving.some(({ how }) => how !== 'expired')) return [];
  const isTaken = ({ waiter, grant: { name } }: NextGrant) =>
    entryOf(record, name)?.ticket === waiter.ticket || ending(record, name) !== undefined;
  return nextGrants.filter(isTaken).map(({ waiter }) => waiter.ticket);
}

interface RecordAndEnding {
  record: KeyRecord;
  ending: readonly Going[];
}

/** Adds the expired holders, because the line may need their room. */
function withExpired({ clock, clockSkewMs }: LeaseDependencies, { record, ending }: RecordAndEnding): Going[] {
  const now = clock.now();
  const isEnding = (entry: HolderEntry) => ending.some((one) => one.entry.name === entry.name);
  const expired = record.entries.filter((entry) => takeoverAt(entry, clockSkewMs) <= now && !isEnding(entry));
  const room = Math.max(0, MOST_GOING - ending.length);
  return [...ending, ...expired.slice(0, room).map((entry): Going => ({ entry, how: 'expired' }))];
}

/** Whether an expired grant reached no caller: its task took LeaseHeld instead, and no call of the request was answered with it. */
const reachedNoCaller = ({ entry, how }: Going, { refused }: NextInLine): boolean =>
  how === 'expired' && entry.answeredAt === undefined && entry.ticket !== undefined && refused.includes(entry.ticket);

interface HandOffWrite extends RecordAndEnding {
  line: NextInLine;
  /** Whether the line is empty. */
  clears: boolean;
  now: number;
  /** The number of the last new holder, if that holder passed no sleeper. */
  number: number | undefined;
  /** Whether this call is among the new holders. It has no claim, which would write how long turns last. */
  own: boolean;
  /** The moved waiter that the write serves or forgets. */
  moved: string | undefined;
}

/** What a write demands that removes the mark. If a grant has ended since the look, a place of its request keeps the mark. */
const mayUnmark = (record: KeyRecord, hasPlaceOfHolder = false): Condition[] => [
  markUnchanged(record),
  ...isStillMoved(record.moved),
  ...(hasPlaceOfHolder ? [isUsedAsSeen(record)] : []),
];

async function writeHandOff(
  dependencies: LeaseDependencies,
  {
    record,
    ending,
    line: { nextGrants, others, next, waitingTickets, inLine, isAsleep, hasPlaceOfHolder },
    clears,
    now,
    number,
    own,
    moved,
  }: HandOffWrite,
  call: Call,
): Promise<Written & { versions: Versions }> {
  const { key } = record;
  if (nextGrants.length === 0) {
    const asleep = isAsleep && next !== undefined ? { mark: leftAsleep(next) } : undefined;
    const { moved: gone } = record;
    const also = mayUnmark(record, hasPlaceOfHolder);
    const line = clears ? { mark: removedMark(stayingOf(inLine), gone), also } : asleep;
    const written = await writeEnds(dependencies, { key, ended: ending, now, line }, call);
    return { ...written, versions: new Map() };
  }
  const grants = newGrants({ record, ending, nextGrants, now });
  const value = newMark(dependencies);
  const kept = () =>
    keptMark(
      { seen: record, next, waitingTickets },
      { granted: nextGrants.length, value, number, hints: own ? hintsAfter(record) : {} },
    );
  const mark = others ? { ...kept(), remove: movedNoMore(moved) } : removedMark(stayingOf(inLine), record.moved);
  const also = others ? [...isStillMoved(moved), ...areNotSuperseded(grants)] : mayUnmark(record, hasPlaceOfHolder);
  const line = { seen: record, others, mark, also };
  const granting = { key, grants, ended: ending, now, line };
  const written = await writeGrants(dependencies, granting, call);
  return { ...written, won: written.landed };
}

/** The grants of the nextGrants, with what each says about the holder and the limit before it. */
function newGrants({
  record,
  ending,
  nextGrants,
  now,
}: RecordAndEnding & { nextGrants: readonly NextGrant[]; now: number }): NewGrant[] {
  const previous: (EndedGrant | undefined)[] = previousOf(ending, now);
  let last = record.lastLimit;
  return nextGrants.map(({ grant }, nth) => {
    const { limit } = grant;
    const limitBefore = limit === null || limit === last ? undefined : last;
    last = limit ?? last;
    const before = isAloneIn(grant) && record.entries.length === 0 ? previousAlone(record, now) : undefined;
    return { ...grant, previous: previous[nth] ?? before, limitBefore };
  });
}

/** Deletes the rows of tasks that were gone, once their grants have ended: the schedule finds such a grant by its row. */
async function deleteWaitersOf(
  dependencies: LeaseDependencies,
  { key, granted, ended }: { key: string; granted: readonly string[]; ended: readonly Going[] },
  call: Call,
): Promise<void> {
  for (const { entry, how } of ended) {
    const { ticket } = entry;
    if (how !== 'neverNotified' || ticket === undefined || !granted.includes(ticket)) continue;
    await deleteWaiter(dependencies, { key, ticket }, call).catch(leftToSchedule);
  }
}

async function leaveRest(
  dependencies: LeaseDependencies,
  { granted, record, ending, done }: RecordAndEnding & { granted: string[]; done: DoneSoFar },
  call: Call,
): Promise<HandedOff> {
  const ended = ending.filter(({ how }) => how !== 'expired');
  if (ended.length === 0) return { granted, end: 'left', record, ...done };
  const now = dependencies.clock.now();
  const { won, record: current } = await writeEnds(dependencies, { key: record.key, ended, now }, call);
  if (won) await deleteWaitersOf(dependencies, { key: record.key, granted, ended }, call);
  const isEnded = won && ended.some(({ how }) => isRemembered(how));
  return { granted, end: 'left', record: current, ...done, ...(isEnded && { ended: true }) };
}

/** If the line cannot be read, grants that must end still end. Only expired ones can wait. */
function ifUnread(error: unknown, ending: readonly Going[]): undefined {
  if (!(error instanceof HoldfastError) || ending.every(({ how }) => how === 'expired')) throw error;
}

/**
 * Hands off after a grant has ended for good. Logs a failure, which does not concern the former holder.
 * @param isReleased whether the record is as the release of a shared holder has just left it
 * @throws never a HoldfastError
 */
export async function handOffAfter(
  dependencies: LeaseDependencies,
  { record, isReleased = false }: { record: KeyRecord; isReleased?: boolean | undefined },
  call: Call,
): Promise<void> {
  if (isReleased && isHandedOffWithBefore(record, dependencies.clock.now())) return;
  await handOff(dependencies, { record }, call).catch(leftToSchedule);
}
