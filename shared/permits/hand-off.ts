import type { Call } from '../aws/call.ts';
import { HoldfastError } from '../errors.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import { MAX_GONE, MAX_OVER } from '../line/judge.ts';
import { repairAfter, repairLater } from '../line/repair/later.ts';
import { TRANSFER_MS } from '../line/times.ts';
import { deleteWaiter, isTask, stayingOf, type Waiter } from '../line/waiters.ts';
import { logLine } from '../surroundings/log.ts';
import { notifyPermit } from './deliver.ts';
import { endPermits, grantPermits } from './grants.ts';
import { findNext, type Head, type PoolLine } from './next.ts';
import { type Going, previousOf } from './previous.ts';
import { LineReading } from './reading.ts';
import { ending, entryOf, isBound, type PoolEntry, type PoolRecord, unusable } from './record.ts';
import { type Asked, roomAt } from './room.ts';
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
  /** Collects the tickets of new holders whose tasks may not have been notified, for a task that parks. */
  unnotified?: Set<string>;
}

/**
 * Gives what is free to those in line, in their order, as long as each fits (docs/protocols/pools.md#hand-off). Notifies tasks. Callers look
 * for their grants. If the line is empty, removes the mark. Every call that ends a permit while the mark is there calls this afterwards.
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export async function handOff(
  dependencies: LeaseDependencies,
  { record, ending: first = [], unnotified = new Set() }: Advancing,
  call: Call,
): Promise<HandedOff> {
  const { clock } = dependencies;
  const granted: string[] = [];
  const budget = { over: MAX_OVER };
  let current = record;
  let ending = [...first];
  let reading = new LineReading(dependencies, record, call);
  for (let [gone, lost] = [0, 0]; ; ) {
    if (gone >= MAX_GONE || lost > MAX_LOST || call.timeLeftMs() < TRANSFER_MS)
      return leave(dependencies, { granted, record: current, ending }, call);
    if (!reading.isTrueOf(current, clock.now())) reading = new LineReading(dependencies, current, call);
    ending = withExpired(dependencies, { record: current, ending });
    const line = await findNext(dependencies, { record: current, reading, ending, granted, budget }, call);
    if (!reading.isFullFor(current)) {
      line.others = true;
      if (line.heads.length === 0) {
        reading = new LineReading(dependencies, current, call);
        continue;
      }
    }
    const needed = line.others || line.heads.length > 0 ? ending : ending.filter(({ how }) => how !== 'expired');
    const clears = line.heads.length === 0 && !line.others;
    if (line.heads.length === 0 && needed.length === 0 && (!clears || current.mark === undefined))
      return { granted, end: clears ? 'empty' : 'waits', record: current, blocked: line.blocked };
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
      if (isLeftToOther({ line, record: current, ending })) return { granted, end: 'waits', record: current };
      continue;
    }
    if (clears) return { granted, end: 'empty', record: current };
    reading.wrote(needed.map(({ entry }) => entry));
    granted.push(...line.heads.map(({ waiter }) => waiter.ticket));
    ending = await notifyAll(dependencies, { line, record: current, versions: written.versions, unnotified }, call);
    gone += ending.length;
    if (ending.length > 0) continue;
    if (!line.others) return { granted, end: 'empty', record: current };
    // A call that has ended anything looks again, because another may have joined before that, and found no room. So does a call that finds room
    // behind its own grants: others who have ended permits leave it to this one.
    if (needed.length === 0 && line.behind && current.used > line.behind.room)
      return { granted, end: 'waits', record: current, blocked: line.blocked };
  }
}

/**
 * Whether another call has granted permits to tickets that this one was about to grant them to. The write of that call shows all room that was
 * free before it, so that call goes on while any ticket fits. Otherwise all calls of a crowd would race for the same tickets.
 */
function isLeftToOther({ line: { heads }, record, ending: leaving }: Current & { line: PoolLine }): boolean {
  if (leaving.some(({ how }) => how !== 'expired')) return false;
  return heads.some(
    ({ waiter, permit: { name } }) =>
      entryOf(record, name)?.ticket === waiter.ticket || ending(record, name) !== undefined,
  );
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
  const ended = ending.map(({ entry }) => entry);
  const [head] = heads;
  if (!head) {
    const unmark = clears ? { seen: record, staying: stayingOf(inLine) } : undefined;
    const written = await endPermits(dependencies, { key, ended, now, unmark }, call);
    return { ...written, versions: new Map() };
  }
  const previous = previousOf(ending, now);
  let last = record.lastLimit;
  const permits = heads.map(({ permit }, nth) => {
    const { limit } = permit;
    const limitBefore = limit === null || limit === last ? undefined : last;
    last = limit ?? last;
    return { ...permit, previous: previous[nth], limitBefore };
  });
  const line = { seen: record, others, next, first, staying: stayingOf(inLine) };
  const granting = { key, permits, ended, now, line };
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

/**
 * Sends a message that looks again when enough permits have expired for a waiter, because their holders may have exited. Sends no message if there is
 * room already, or if no expiry makes enough room. The schedule ends bound permits.
 */
export async function repairAtRoom(
  dependencies: LeaseDependencies,
  { record, asked }: { record: PoolRecord; asked: Asked },
  call: Call,
): Promise<void> {
  const entries = record.entries.filter((entry) => !isBound(entry));
  const endsAt = roomAt({ ...record, entries }, asked, 0);
  if (Number.isFinite(endsAt)) await repairAfter(dependencies, { key: record.key, endsAt }, call);
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
    const grant = { waiter, record, entry, repeated: false, isOurs: true };
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
  { granted, record, ending }: Current & { granted: string[] },
  call: Call,
): Promise<HandedOff> {
  const ended = ending.filter(({ how }) => how !== 'expired').map(({ entry }) => entry);
  if (ended.length === 0) return { granted, end: 'left', record };
  const now = dependencies.clock.now();
  const written = await endPermits(dependencies, { key: record.key, ended, now }, call);
  return { granted, end: 'left', record: written.record };
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
