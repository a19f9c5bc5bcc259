import type { Call } from '../aws/call.ts';
import { HoldfastError } from '../errors.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import type { Ended } from '../line/ended.ts';
import { MAX_GONE, MAX_OVER } from '../line/judge.ts';
import { repairLater } from '../line/repair/later.ts';
import { TRANSFER_MS } from '../line/times.ts';
import { deleteWaiter, isTask, stayingOf, type Waiter } from '../line/waiters.ts';
import { logLine } from '../surroundings/log.ts';
import { isLate, isRemembered } from './alone.ts';
import { notifyPermit, raiseFence } from './deliver.ts';
import { endPermits, grantPermits } from './grants.ts';
import { ALONE } from './identity.ts';
import { findNext, type Head, type PoolLine } from './next.ts';
import { type Going, previousAlone, previousOf } from './previous.ts';
import { LineReading } from './reading.ts';
import { ending, entryOf, isAloneIn, type PoolEntry, type PoolRecord, unusable } from './record.ts';
import { repairAtRoom } from './watch.ts';
import type { Written } from './write.ts';

export interface HandedOff {
  /** The tickets that received permits. */
  granted: string[];
  /**
   * `empty`: the line is empty, and the mark is gone. `waits`: the first in line does not fit, or is undecided. `left`: this call met too many tasks
   * that are gone, or had too little time, and others are in line.
   */
  end: 'empty' | 'waits' | 'left';
  /** The first in line, if this call has seen that it does not fit. */
  blocked?: Waiter | undefined;
  /** The record as it was last seen. */
  record: PoolRecord;
  /** Whether this call has ended the grants that it was to end. */
  ended?: boolean;
  /** The version of the full grant that this call has written for itself. */
  ownVersion?: string | undefined;
  /** Whether a lost write had a try without an answer, which may have landed. */
  unanswered?: boolean;
}

/** One write ends up to this many permits beside the grants: DynamoDB limits an expression to 4 KB. */
export const MOST_GOING = 20;

/** Many calls may give to the same line at once. */
const MAX_LOST = 20;

interface Advancing {
  /** The record as a conditional write or a consistent read has just shown it. */
  record: PoolRecord;
  /** Permits that must end in any case, at most as many as one write ends. */
  ending?: readonly Going[];
  /** The ticket of the call in line that hands off. */
  own?: string | undefined;
  /** A grant that this call has just written. */
  given?: { line: PoolLine; versions: ReadonlyMap<string, string> };
  /** Collects the tickets of new holders whose tasks may not have been notified, for a task that parks. */
  unnotified?: Set<string>;
}

/**
 * Gives what is free to those in line, in their order, as long as each fits (docs/protocols/queue.md#hand-off). Notifies tasks. Callers look
 * for their grants. If the line is empty, removes the mark. Every call that ends a permit while the mark is there calls this afterwards.
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export async function handOff(dependencies: LeaseDependencies, advancing: Advancing, call: Call): Promise<HandedOff> {
  const done: Done = {};
  return advance(dependencies, { ...advancing, done }, call).catch((error) => {
    // The grant of the caller has ended. A failure after that is not the caller's.
    if (!done.ended) throw error;
    leftToSchedule(error);
    return { granted: [], end: 'left', record: advancing.record, ...done };
  });
}

/** What stays true of the outcome, however the hand-off goes on. */
type Done = Pick<HandedOff, 'ended' | 'ownVersion' | 'unanswered'>;

async function advance(
  dependencies: LeaseDependencies,
  { record, ending: first = [], unnotified = new Set(), own, given, done }: Advancing & { done: Done },
  call: Call,
): Promise<HandedOff> {
  const { clock } = dependencies;
  const granted: string[] = [];
  const budget = { over: MAX_OVER };
  let current = record;
  let ending = [...first];
  if (given) {
    granted.push(...given.line.heads.map(({ waiter }) => waiter.ticket));
    ending = await notifyAll(dependencies, { ...given, record, unnotified }, call);
    if (ending.length === 0) return { granted, end: 'waits', record };
  }
  let reading = new LineReading(dependencies, record, call);
  for (let [gone, lost] = [0, 0]; ; ) {
    if (gone >= MAX_GONE || lost > MAX_LOST || call.timeLeftMs() < TRANSFER_MS)
      return leave(dependencies, { granted, record: current, ending, done }, call);
    if (!reading.isTrueOf(current, clock.now())) reading = new LineReading(dependencies, current, call);
    ending = withExpired(dependencies, { record: current, ending });
    const search = { record: current, reading, ending, granted, budget, own };
    const line = await findNext(dependencies, search, call).catch((error) => ifUnread(error, ending));
    if (!line) return leave(dependencies, { granted, record: current, ending, done }, call);
    ending = ending.map((going) => (isUnnotified(going, line) ? { ...going, how: 'undelivered' } : going));
    if (!reading.isFullFor(current)) {
      // A holder alone serves nobody else soon, so a task behind it that has just joined needs a message.
      const isUnseen = line.heads.length === 0 || (!line.others && line.heads.some(({ permit }) => isAloneIn(permit)));
      line.others = true;
      if (isUnseen) {
        reading = new LineReading(dependencies, current, call);
        continue;
      }
    }
    const needed = line.others || line.heads.length > 0 ? ending : ending.filter(({ how }) => how !== 'expired');
    const clears = line.heads.length === 0 && !line.others;
    if (line.heads.length === 0 && needed.length === 0 && (!clears || current.mark === undefined))
      return { granted, end: clears ? 'empty' : 'waits', record: current, blocked: line.blocked, ...done };
    const written = await write(
      dependencies,
      { record: current, ending: needed, line, clears, now: clock.now() },
      call,
    );
    if (!written.won && written.record.malformed !== undefined) throw unusable(written.record);
    current = written.record;
    ending = written.won ? [] : ending.filter(({ entry }) => entryOf(current, entry.name)?.version === entry.version);
    if (!written.won) {
      lost++;
      const taken = takenByOther({ line, record: current, ending });
      if (written.unanswered) {
        done.unanswered = true;
        granted.push(...taken);
      }
      if (taken.length > 0) return { granted, end: 'waits', record: current, ...done };
      continue;
    }
    if (needed.some(({ how }) => isRemembered(how))) done.ended = true;
    if (clears) return { granted, end: 'empty', record: current, ...done };
    reading.wrote(needed.map(({ entry }) => entry));
    granted.push(...line.heads.map(({ waiter }) => waiter.ticket));
    const full = line.heads.find(({ waiter }) => waiter.ticket === own);
    if (full) done.ownVersion = written.versions.get(full.permit.name);
    ending = await notifyAll(dependencies, { line, record: current, versions: written.versions, unnotified }, call);
    gone += ending.length;
    if (ending.length > 0) continue;
    if (!line.others) return { granted, end: 'empty', record: current, ...done };
    // No waiter has joined since the look, which has seen none that could be served, though the key was free.
    const wasAlone = needed.some(({ entry }) => entry.path === ALONE);
    if (line.heads.length === 0 && wasAlone && reading.isFullFor(current))
      return { granted, end: 'waits', record: current, blocked: line.blocked, ...done };
    // A call that has ended anything looks again, because another may have joined before that, and found no room. So does a call that finds room
    // behind its own grants: others who have ended permits leave it to this one.
    const isFull = line.heads.some(({ permit }) => isAloneIn(permit));
    if (isFull || (needed.length === 0 && line.behind && current.used > line.behind.room))
      return { granted, end: 'waits', record: current, blocked: line.blocked, ...done };
  }
}

/**
 * The tickets that this call was about to grant permits to, and that another call has granted them to. The write of that call shows all room that was
 * free before it, so that call goes on while any ticket fits. Otherwise all calls of a crowd would race for the same tickets.
 */
function takenByOther({ line: { heads }, record, ending: leaving }: Current & { line: PoolLine }): string[] {
  if (leaving.some(({ how }) => how !== 'expired')) return [];
  const isTaken = ({ waiter, permit: { name } }: Head) =>
    entryOf(record, name)?.ticket === waiter.ticket || ending(record, name) !== undefined;
  return heads.filter(isTaken).map(({ waiter }) => waiter.ticket);
}

interface Current {
  record: PoolRecord;
  ending: readonly Going[];
}

/** Adds the expired permits, because the line may need their room. */
function withExpired({ clock, clockSkewMs }: LeaseDependencies, { record, ending }: Current): Going[] {
  const cut = clock.now() - clockSkewMs;
  const isEnding = (entry: PoolEntry) => ending.some((one) => one.entry.name === entry.name);
  const expired = record.entries.filter((entry) => entry.expiresAt < cut && !isEnding(entry));
  const room = Math.max(0, MOST_GOING - ending.length);
  return [...ending, ...expired.slice(0, room).map((entry): Going => ({ entry, how: 'expired' }))];
}

/** True for an expired grant whose task took LeaseHeld in its place, and with which no call of the request was answered. So nobody has had the grant. */
const isUnnotified = ({ entry, how }: Going, { refused }: PoolLine): boolean =>
  how === 'expired' && entry.answeredAt === undefined && entry.ticket !== undefined && refused.includes(entry.ticket);

/** Those that the entries of new permits have by the write that made them, by name. */
type Versions = ReadonlyMap<string, string>;

interface Writing extends Current {
  line: PoolLine;
  /** Whether the line is empty. */
  clears: boolean;
  now: number;
}

async function write(
  dependencies: LeaseDependencies,
  { record, ending, line: { heads, others, next, first, inLine }, clears, now }: Writing,
  call: Call,
): Promise<Written & { versions: Versions }> {
  const { key } = record;
  const [head] = heads;
  if (!head) {
    const unmark = clears ? { seen: record, staying: stayingOf(inLine) } : undefined;
    const written = await endPermits(dependencies, { key, ended: ending, now, unmark }, call);
    return { ...written, versions: new Map() };
  }
  const previous: (Ended | undefined)[] = previousOf(ending, now);
  if (isAloneIn(head.permit)) previous[0] ??= record.entries.length === 0 ? previousAlone(record, now) : undefined;
  let last = record.lastLimit;
  const permits = heads.map(({ permit }, nth) => {
    const { limit } = permit;
    const limitBefore = limit === null || limit === last ? undefined : last;
    last = limit ?? last;
    return { ...permit, previous: previous[nth], limitBefore };
  });
  const line = { seen: record, others, next, first, staying: stayingOf(inLine) };
  const granting = { key, permits, ended: ending, now, line };
  const written = await grantPermits(dependencies, granting, call);
  return { ...written, won: written.landed };
}

interface Notifying {
  record: PoolRecord;
  versions: Versions;
  unnotified: Set<string>;
}

/** @returns the permits whose tasks were gone. This call sent the first message about them, so their tasks were never notified */
async function notifyAll(
  dependencies: LeaseDependencies,
  { line: { heads, behind, taskWaits }, ...notifying }: Notifying & { line: PoolLine },
  call: Call,
): Promise<Going[]> {
  const undelivered: Going[] = [];
  for (const head of heads.filter(({ waiter }) => isTask(waiter))) {
    const entry = await tell(dependencies, { head, ...notifying }, call);
    if (entry) undelivered.push({ entry, how: 'undelivered' });
  }
  const { record } = notifying;
  if (!taskWaits || undelivered.length === heads.length) return undelivered;
  if (heads.some(({ waiter }) => !isTask(waiter))) await repairLater(dependencies, record.key, call);
  else if (behind) await repairAtRoom(dependencies, { record, asked: behind }, call);
  return undelivered;
}

/** A failure after the grant is not the caller's: the schedule notifies the task. */
async function tell(
  dependencies: LeaseDependencies,
  { head: { waiter, permit }, record, versions, unnotified }: Notifying & { head: Head },
  call: Call,
): Promise<PoolEntry | undefined> {
  const entry = entryOf(record, permit.name);
  if (!entry || entry.ticket !== waiter.ticket || !isTask(waiter)) return undefined;
  // The answer of the write was lost, and a call with another token of the request may have notified that one since.
  if (entry.version !== versions.get(permit.name)) return undefined;
  // If this call was paused for longer than the ttl, others may have taken its place.
  if (entry.expiresAt <= dependencies.clock.now()) return undefined;
  unnotified.add(waiter.ticket);
  try {
    const raised = entry.metNoFence && isLate(entry.acquiredAt, dependencies.clock.now());
    const late = raised ? await raiseFence(dependencies, { key: record.key, entry }, call) : undefined;
    if (late && !(late.won && late.entry)) return undefined;
    const grant = {
      waiter,
      record: late?.record ?? record,
      entry: late?.entry ?? entry,
      repeated: false,
      isOurs: true,
    };
    const { outcome, record: told } = await notifyPermit(dependencies, grant, call);
    if (outcome === 'delivered' || outcome === 'gone') unnotified.delete(waiter.ticket);
    if (outcome === 'delivered' || outcome === 'gone') await deleteWaiter(dependencies, waiter, call);
    return outcome === 'gone' ? entryOf(told, permit.name) : undefined;
  } catch (error) {
    return leftToSchedule(error);
  }
}

async function leave(
  dependencies: LeaseDependencies,
  { granted, record, ending, done }: Current & { granted: string[]; done: Done },
  call: Call,
): Promise<HandedOff> {
  const ended = ending.filter(({ how }) => how !== 'expired');
  if (ended.length === 0) return { granted, end: 'left', record, ...done };
  const now = dependencies.clock.now();
  const { won, record: current } = await endPermits(dependencies, { key: record.key, ended, now }, call);
  const isEnded = won && ended.some(({ how }) => isRemembered(how));
  return { granted, end: 'left', record: current, ...done, ...(isEnded && { ended: true }) };
}

/** Without the line, a grant that nobody works under, or works under any more, can end all the same. */
function ifUnread(error: unknown, ending: readonly Going[]): undefined {
  if (!(error instanceof HoldfastError) || ending.every(({ how }) => how === 'expired')) throw error;
}

/** Leaves the line to the next call on the pool, or to the schedule. @throws what is no HoldfastError */
function leftToSchedule(error: unknown): undefined {
  if (!(error instanceof HoldfastError)) throw error;
  logLine('WARN', { message: 'the hand-off of a pool failed: the schedule repeats it', cause: error.message });
}

/**
 * The same after a permit has ended for good. A failure does not concern its holder.
 * @throws never a HoldfastError
 */
export async function handOffAfter(dependencies: LeaseDependencies, record: PoolRecord, call: Call): Promise<void> {
  await handOff(dependencies, { record }, call).catch(leftToSchedule);
}
