import type { Call } from '../aws/call.ts';
import { HoldfastError } from '../errors.ts';
import { MAX_GONE, MAX_OVER } from '../line/next.ts';
import { repairLater } from '../line/repair/later.ts';
import { TRANSFER_MS } from '../line/times.ts';
import { deleteTicket, isTask, lineOf, type Ticket } from '../line/waiters.ts';
import { logLine } from '../surroundings/log.ts';
import { tellGrant } from './deliver.ts';
import type { PoolDependencies } from './dependencies.ts';
import { endPermits, grantPermits } from './grants.ts';
import { type Head, lookAtLine, type PoolLine } from './next.ts';
import { type Going, previousOf, rememberedOf } from './previous.ts';
import { LineReading } from './reading.ts';
import { ending, entryOf, type PoolEntry, type PoolRecord, unusable } from './record.ts';
import type { Written } from './write.ts';

export interface Advanced {
  /** The tickets that received permits. */
  granted: string[];
  /**
   * `empty`: the line is empty, and the mark is gone. `waits`: the first in line does not fit, or is undecided. `left`: this call met too
   * many dead tickets, or had too little time, and others are in line.
   */
  end: 'empty' | 'waits' | 'left';
  /** The first in line, if this call has seen that it does not fit. */
  blocked?: Ticket | undefined;
  /** The record as it was last seen. */
  standing: PoolRecord;
}

/** One write ends so many permits beside the grants: DynamoDB limits an expression to 4 KB. */
export const MOST_GOING = 20;

/** Many calls may give to the same line at once. */
const MAX_LOST = 20;

interface Advancing {
  /** The record as a conditional write or a consistent read has just shown it. */
  record: PoolRecord;
  /** Permits that must end in any case, at most as many as one write ends. */
  going?: readonly Going[];
  /** Collects the tickets of new holders whose tasks may not have been notified, for a task that parks. */
  unnotified?: Set<string>;
}

/**
 * Gives what is free to those in line, in their order, as long as each fits (docs/protocols/pools.md#advance). Notifies tasks. Callers look
 * for their grants. If the line is empty, removes the mark. Every call that ends a permit while the mark is there calls this afterwards.
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export async function advance(
  dependencies: PoolDependencies,
  { record, going: first = [], unnotified = new Set() }: Advancing,
  call: Call,
): Promise<Advanced> {
  const { clock } = dependencies;
  const granted: string[] = [];
  const budget = { over: MAX_OVER };
  let standing = record;
  let going = [...first];
  let reading = new LineReading(dependencies, record, call);
  for (let [gone, lost] = [0, 0]; ; ) {
    if (gone >= MAX_GONE || lost > MAX_LOST || call.timeLeftMs() < TRANSFER_MS)
      return leave(dependencies, { granted, standing, going }, call);
    if (!reading.isTrueOf(standing, clock.now())) reading = new LineReading(dependencies, standing, call);
    going = withExpired(dependencies, { standing, going });
    const line = await lookAtLine(dependencies, { record: standing, reading, going, granted, budget }, call);
    if (!reading.isWholeFor(standing)) {
      line.others = true;
      if (line.heads.length === 0) {
        reading = new LineReading(dependencies, standing, call);
        continue;
      }
    }
    const needed = line.others || line.heads.length > 0 ? going : going.filter(({ how }) => how !== 'expired');
    const clears = line.heads.length === 0 && !line.others;
    if (line.heads.length === 0 && needed.length === 0 && (!clears || standing.waiters === undefined))
      return { granted, end: clears ? 'empty' : 'waits', standing, blocked: line.blocked };
    const written = await write(dependencies, { standing, going: needed, line, clears, now: clock.now() }, call);
    if (!written.won && written.standing.malformed !== undefined) throw unusable(written.standing);
    standing = written.standing;
    going = written.won ? [] : going.filter(({ entry }) => entryOf(standing, entry.name)?.version === entry.version);
    if (!written.won) {
      lost++;
      if (isLeftToOther({ line, standing, going })) return { granted, end: 'waits', standing };
      continue;
    }
    if (clears) return { granted, end: 'empty', standing };
    reading.wrote(
      standing,
      needed.map(({ entry }) => entry),
    );
    granted.push(...line.heads.map(({ ticket }) => ticket.ticket));
    going = await tellAll(dependencies, { line, standing, versions: written.versions, unnotified }, call);
    gone += going.length;
    if (going.length > 0) continue;
    if (!line.others) return { granted, end: 'empty', standing };
    // A call that has ended anything looks again, because another may have joined before that, and found no room. So does a call that finds
    // room behind its own grants: others who have ended permits meanwhile leave it to this one.
    if (needed.length === 0 && line.behind && standing.used > line.behind.room)
      return { granted, end: 'waits', standing, blocked: line.blocked };
  }
}

/**
 * Whether another call has granted permits to tickets that this one was about to grant them to. The write of that call shows all room that was
 * free before it, so that call goes on while any ticket fits. Otherwise all calls of a crowd would race for the same tickets.
 */
function isLeftToOther({ line: { heads }, standing, going }: Standing & { line: PoolLine }): boolean {
  if (going.some(({ how }) => how !== 'expired')) return false;
  return heads.some(
    ({ ticket, permit: { name } }) =>
      entryOf(standing, name)?.ticket === ticket.ticket || ending(standing, name) !== undefined,
  );
}

interface Standing {
  standing: PoolRecord;
  going: readonly Going[];
}

/** Adds the permits whose time is over, because the line may need their room. */
function withExpired({ clock, clockSkewMs }: PoolDependencies, { standing, going }: Standing): Going[] {
  const cut = clock.now() - clockSkewMs;
  const isGoing = (entry: PoolEntry) => going.some((one) => one.entry.name === entry.name);
  const expired = standing.entries.filter((entry) => entry.expiresAt < cut && !isGoing(entry));
  const room = Math.max(0, MOST_GOING - going.length);
  return [...going, ...expired.slice(0, room).map((entry): Going => ({ entry, how: 'expired' }))];
}

/** Those that the entries of new permits have by the write that made them, by name. */
type Versions = ReadonlyMap<string, string>;

interface Writing extends Standing {
  line: PoolLine;
  /** Whether the line is empty. */
  clears: boolean;
  now: number;
}

async function write(
  dependencies: PoolDependencies,
  { standing, going, line: { heads, others, next }, clears, now }: Writing,
  call: Call,
): Promise<Written & { versions: Versions }> {
  const { key } = standing;
  const ended = going.map(({ entry }) => entry);
  const remembered = rememberedOf(going);
  const [head] = heads;
  if (!head) {
    const written = await endPermits(
      dependencies,
      { key, ended, remembered, now, unmark: clears ? standing : undefined },
      call,
    );
    return { ...written, versions: new Map() };
  }
  const previous = previousOf(going, now);
  const permits = heads.map(({ permit }, nth) => ({ ...permit, previous: previous[nth] }));
  const granting = { key, permits, ended, remembered, now, line: { seen: standing, others, next } };
  const written = await grantPermits(dependencies, granting, call);
  return { ...written, won: written.landed };
}

interface Telling {
  standing: PoolRecord;
  versions: Versions;
  unnotified: Set<string>;
}

/** @returns the permits whose tasks were gone. This call sent the first message about them, so their tasks were never notified */
async function tellAll(
  dependencies: PoolDependencies,
  { line: { heads, taskWaits }, ...telling }: Telling & { line: PoolLine },
  call: Call,
): Promise<Going[]> {
  const undelivered: Going[] = [];
  for (const head of heads.filter(({ ticket }) => isTask(ticket))) {
    const entry = await tell(dependencies, { head, ...telling }, call);
    if (entry) undelivered.push({ entry, how: 'undelivered' });
  }
  if (taskWaits && heads.some(({ ticket }) => !isTask(ticket)))
    await repairLater(dependencies, lineOf(telling.standing.key), call);
  return undelivered;
}

/** A failure after the grant is not the caller's: the schedule notifies the task. */
async function tell(
  dependencies: PoolDependencies,
  { head: { ticket, permit }, standing, versions, unnotified }: Telling & { head: Head },
  call: Call,
): Promise<PoolEntry | undefined> {
  const entry = entryOf(standing, permit.name);
  if (!entry || entry.ticket !== ticket.ticket || !isTask(ticket)) return undefined;
  // The answer of the write was lost, and a call with another token of the request may have notified that one since.
  if (entry.version !== versions.get(permit.name)) return undefined;
  // If this call stood still for longer than the permit runs, others may be in its place by now.
  if (entry.expiresAt <= dependencies.clock.now()) return undefined;
  unnotified.add(ticket.ticket);
  try {
    const grant = { ticket, record: standing, entry, repeated: false, isOurs: true };
    const { outcome, standing: told } = await tellGrant(dependencies, grant, call);
    if (outcome === 'delivered' || outcome === 'gone') unnotified.delete(ticket.ticket);
    if (outcome === 'delivered' || outcome === 'gone') await deleteTicket(dependencies, ticket, call);
    return outcome === 'gone' ? entryOf(told, permit.name) : undefined;
  } catch (error) {
    return leftToSchedule(error);
  }
}

async function leave(
  dependencies: PoolDependencies,
  { granted, standing, going }: Standing & { granted: string[] },
  call: Call,
): Promise<Advanced> {
  const ends = going.filter(({ how }) => how !== 'expired');
  const ended = ends.map(({ entry }) => entry);
  if (ended.length === 0) return { granted, end: 'left', standing };
  const now = dependencies.clock.now();
  const written = await endPermits(
    dependencies,
    { key: standing.key, ended, remembered: rememberedOf(ends), now },
    call,
  );
  return { granted, end: 'left', standing: written.standing };
}

/** Leaves the line to the next call on the pool, or to the schedule. @throws what is no HoldfastError */
function leftToSchedule(error: unknown): undefined {
  if (!(error instanceof HoldfastError)) throw error;
  logLine('WARN', { message: 'the line of a pool is left to the schedule', cause: error.message });
}

/**
 * The same after a permit has ended for good. A failure does not concern its holder.
 * @throws never a HoldfastError
 */
export async function advanceAfter(dependencies: PoolDependencies, record: PoolRecord, call: Call): Promise<void> {
  await advance(dependencies, { record }, call).catch(leftToSchedule);
}
