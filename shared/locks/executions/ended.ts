import { integer, text } from '../../aws/attributes.ts';
import type { Call } from '../../aws/call.ts';
import { type ExpiredRow, hasNumbers } from '../../expiry/sources/rows.ts';
import type { SpareReason } from '../../expiry/sources/source.ts';
import { shuffled } from '../../surroundings/ids.ts';
import type { ExecutionEndedInput } from '../calls/inputs.ts';
import { handOffToLine } from '../calls/release.ts';
import { BOUND_SECONDS, type LeaseDependencies, memoized } from '../dependencies.ts';
import { sendRepairAt } from '../line/delayed-repair.ts';
import { handOff, MOST_GOING } from '../line/hand-off.ts';
import { deleteWaiter, parkedAtOf } from '../line/waiters.ts';
import { ALONE } from '../record/identity.ts';
import { entryOf, type HolderEntry, isBound, type KeyRecord } from '../record/record.ts';
import { executionAt, readKey, secondsOf, ttlOfRecord } from '../record/requests.ts';
import type { Going } from '../record/room.ts';
import { setting, writeAnew } from '../record/versions.ts';
import { forgetExecution, keysOf, noteExecution } from './execution-rows.ts';
import { type EndOfHolder, type Judge, judgeOf, type Reported } from './judgement.ts';
import { executionState, type Work, workOf } from './state.ts';

/**
 * Takes an execution that has ended out of all lines, and frees its grants (docs/protocols/executions.md). It is called
 * twice: at the end, and `again` a while later, when every call that the execution had under way has ended too. A redriven execution keeps what it has received
 * since. A failure of one key or query does not stop the others, because any caller can write records that name an execution. The order of the keys is random,
 * so that a try that runs out of time does not miss the same keys each time.
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown: the first failure of a query or a key, after all the others were tried
 */
export function endExecution(dependencies: LeaseDependencies) {
  return async ({ execution, again, status, stopDate }: ExecutionEndedInput, call: Call): Promise<ExecutionEnded> => {
    const failures: unknown[] = [];
    const keys = await keysOf(dependencies, { execution, failed: (error) => failures.push(error) }, call);
    const ended: ExecutionEnded = { execution, tickets: 0, freed: 0, graced: 0, kept: 0 };
    const reported = { execution, settled: again, status, stoppedAt: stopDate };
    const waiters = [...keys.values()].flatMap((tickets) => tickets.map(joinedBy));
    const judgeTickets = memoized(() => judgeOf(dependencies, { ...reported, grants: waiters }, call));
    const leaving = { ...reported, askedAt: dependencies.clock.now(), judgeTickets, ended };
    for (const [key, tickets] of shuffled([...keys], dependencies.ids))
      await endInKey(dependencies, { ...leaving, key, tickets }, call).catch((error) => failures.push(error));
    if (failures.length > 0) throw failures[0];
    return ended;
  };
}

/** What the end of an execution has done. */
export interface ExecutionEnded extends GrantCounts {
  execution: string;
  /** Tickets that were taken out of their lines. */
  tickets: number;
}

/** What has become of the grants of an execution that has ended. */
interface GrantCounts {
  /** Grants that ended here. */
  freed: number;
  /** Grants that go on for their grace, because the execution did not end with SUCCEEDED. */
  graced: number;
  /** Grants that stay, because the execution's target works under them or may be about to. */
  kept: number;
}

function add(counts: GrantCounts, { freed = 0, graced = 0, kept = 0 }: Partial<GrantCounts>): void {
  counts.freed += freed;
  counts.graced += graced;
  counts.kept += kept;
}

/** An execution that has ended, and the key that it leaves. */
interface ExecutionInKey extends Reported {
  key: string;
  /** The names of the execution's tickets that were in the index. */
  tickets: string[];
  /** When the pass began, in epoch milliseconds. */
  askedAt: number;
  /** Judges the tickets. Asks AWS at most once in a pass. */
  judgeTickets(): Promise<Judge>;
  /** The counts so far. */
  ended: ExecutionEnded;
}

/** A waiter as the judgement sees it: the execution was running when the call or task joined. */
const joinedBy = (ticket: string) => ({ acquiredAt: parkedAtOf(ticket) || 0 });

/**
 * Takes an execution that has ended out of the line of a key, and ends its grants (docs/protocols/executions.md#a-pass).
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
async function endInKey(dependencies: LeaseDependencies, leaving: ExecutionInKey, call: Call): Promise<void> {
  const { key, execution, settled, askedAt, ended } = leaving;
  const leaveLine = async (ticket: string) => {
    await deleteWaiter(dependencies, { key, ticket }, call);
    ended.tickets++;
  };
  const forget = () => settled && forgetExecution(dependencies, { key, execution, askedAt }, call);
  const record = await readKey(dependencies, key, call);
  const isIn = leaving.tickets.length > 0 || record.entries.some((entry) => entry.execution === execution);
  if (!isIn) return void (await forget());
  const judge = leaving.tickets.length > 0 ? await leaving.judgeTickets() : undefined;
  // Tickets since a redrive stay, because their calls and tasks wait.
  const tickets = leaving.tickets.filter((ticket) => judge?.(joinedBy(ticket)));
  // Delete the ticket of the grant last: if this call exits before, the schedule finds the key by that ticket.
  const granted = new Set(record.entries.map(({ ticket }) => ticket));
  const waiting = tickets.filter((ticket) => !granted.has(ticket));
  for (const ticket of waiting) await leaveLine(ticket);
  if (waiting.length > 0) await handOffToLine(dependencies, { record: await readKey(dependencies, key, call) }, call);
  const own = await endGrantsOf(dependencies, leaving, call);
  add(ended, own);
  if (own.goesOn) return;
  for (const ticket of tickets) if (granted.has(ticket)) await leaveLine(ticket);
  if (tickets.length === leaving.tickets.length) await forget();
}

interface GrantsOfExecution extends Reported {
  key: string;
  /** The id of the only grant that may end. */
  only?: string | undefined;
  /** The record as a write of this call has just left it. */
  seen?: KeyRecord | undefined;
}

interface EndedCounts extends GrantCounts {
  /** How many waiters were served. */
  granted: number;
  /** Whether the execution runs, or may have received the grants that are left after its end. */
  goesOn: boolean;
}

/**
 * Ends the grants of an execution that has ended, and hands off their room, or lets them go on for their grace. If another execution works under a
 * grant (`target`) and runs, the grant passes to that execution, and ends with it.
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export async function endGrantsOf(
  dependencies: LeaseDependencies,
  held: GrantsOfExecution,
  call: Call,
): Promise<EndedCounts> {
  const { key, execution, settled, only } = held;
  const ended: EndedCounts = { freed: 0, graced: 0, kept: 0, granted: 0, goesOn: false };
  const count = ({ granted = 0, ...more }: Partial<EndedCounts>) => {
    add(ended, more);
    ended.granted += granted;
  };
  for (let seen = held.seen; ; seen = undefined) {
    const record = seen ?? (await readKey(dependencies, key, call));
    const own = record.entries.filter((entry) => entry.execution === execution && entry.id === (only ?? entry.id));
    if (own.length === 0) return ended;
    // Ask again after each read: the execution may have been redriven since, and have received one of these again under the new version.
    const judge = await judgeOf(dependencies, { ...held, grants: own }, call);
    const ending = own.flatMap((entry) => {
      const verdict = judge(entry);
      return verdict ? [{ entry, ...verdict }] : [];
    });
    ended.goesOn = ending.length < own.length;
    if (ending.length === 0) return ended;
    const { over, running, unknown } = await byTarget(dependencies, ending, call);
    for (const { entry, target } of running) {
      const outcome = await passToTarget(dependencies, { key, entry, target }, call);
      if (outcome === 'passed') ended.kept++;
      // It ended before it had the grant, and its own event found nothing.
      if (outcome === 'ended') count(await endGrantsOf(dependencies, { key, execution: target, settled }, call));
    }
    if (running.length > 0) continue;
    const { atOnce, graced } = await giveGraces(dependencies, { record, over }, call);
    count({ graced });
    if (atOnce.length < over.length) continue;
    if (over.length === 0) return { ...ended, kept: ended.kept + unknown.length };
    count(await endAll(dependencies, { record, over: atOnce }, call));
  }
}

/** Lets grants go on for their grace. @returns those that end at once, and how many go on */
async function giveGraces(
  dependencies: LeaseDependencies,
  { record: { key }, over }: { record: KeyRecord; over: readonly Over[] },
  call: Call,
): Promise<{ atOnce: HolderEntry[]; graced: number }> {
  const atOnce: HolderEntry[] = [];
  let graced = 0;
  for (const { entry, work } of over) {
    const until = graceEnd(dependencies, { entry, work });
    if (until === undefined) atOnce.push(entry);
    else if (await giveGrace(dependencies, { key, entry, until }, call)) graced++;
  }
  return { atOnce, graced };
}

/** A grant whose work has ended, and how. */
interface Over {
  entry: HolderEntry;
  work: Exclude<Work, 'running' | 'unknown'>;
}

/** A grant whose execution has ended, and how. */
type EndingGrant = EndOfHolder & { entry: HolderEntry };

interface ByTarget {
  over: Over[];
  running: { entry: HolderEntry; target: string }[];
  /** The start of the target may be on the way. */
  unknown: HolderEntry[];
}

async function byTarget(dependencies: LeaseDependencies, ended: readonly EndingGrant[], call: Call): Promise<ByTarget> {
  const sorted: ByTarget = { over: [], running: [], unknown: [] };
  for (const { entry, ...asked } of ended) {
    const { target } = entry;
    const work = await workOf(dependencies, { target, ...asked }, call);
    if (work === 'unknown') sorted.unknown.push(entry);
    else if (work !== 'running') sorted.over.push({ entry, work });
    else if (target !== undefined) sorted.running.push({ entry, target });
  }
  return sorted;
}

/** Ends as many grants as one write can end. @returns how many have ended, and how many waiters were granted their room */
async function endAll(
  dependencies: LeaseDependencies,
  { record, over }: { record: KeyRecord; over: readonly HolderEntry[] },
  call: Call,
): Promise<Pick<EndedCounts, 'freed' | 'granted'>> {
  const ending = over.slice(0, MOST_GOING).map((entry): Going => ({ entry, how: 'executionEnded' }));
  const { granted, record: current } = await handOff(dependencies, { record, ending }, call);
  const left = new Set(current.entries.map(({ id }) => id));
  return { freed: ending.filter(({ entry }) => !left.has(entry.id)).length, granted: granted.length };
}

/**
 * From now on the grant belongs to the target, and ends with it as with any execution. The version is new, so that no call that has read the grant
 * as that of the ended execution can end it.
 * @returns `lost`: it has changed. `ended`: the target has, before it had the grant
 */
async function passToTarget(
  dependencies: LeaseDependencies,
  { key, entry, target }: { key: string; entry: HolderEntry; target: string },
  call: Call,
): Promise<'passed' | 'ended' | 'lost'> {
  // The index finds an exclusive holder by itself.
  if (entry.path !== ALONE) await noteExecution(dependencies, { key, execution: target }, call);
  const now = dependencies.clock.now();
  // The target may have begun late, and then runs for longer than the grant has left.
  const expiresAt = now + BOUND_SECONDS * 1000;
  const { set, values } = setting(isBound(entry) ? { e: integer(expiresAt) } : {});
  const update = {
    ...{ key, entry, remove: ['#h.y'], set: [...set, `${executionAt(entry.path)} = :target`] },
    values: { ...values, ':target': text(target) },
    ...(isBound(entry) && { ttl: ttlOfRecord(entry.path, { now, expiresAt }) }),
  };
  const { won } = await writeAnew(dependencies, update, call);
  if (!won) return 'lost';
  return (await executionState(dependencies, target, call)) === 'ended' ? 'ended' : 'passed';
}

/**
 * When a grant ends whose execution has ended (docs/protocols/executions.md#grace). Step Functions does not stop a function that the execution started. So
 * after an abnormal end the function may still work, and count on the expiry that it received. Nothing works under a grant that was not claimed,
 * because no call was answered with it.
 * @returns undefined if the grant ends at once
 */
function graceEnd({ clock, clockSkewMs }: LeaseDependencies, { entry, work }: Over): number | undefined {
  const now = clock.now();
  const { graceMs = 0, claimTtlMs, expiresAt } = entry;
  const isOver = expiresAt + clockSkewMs < now;
  if (work !== 'failed' || graceMs <= 0 || claimTtlMs !== undefined || isOver) return undefined;
  return Math.min(expiresAt, now + graceMs);
}

/**
 * Lets a grant go on until then.
 * @returns false if the grant has changed since it was read
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
async function giveGrace(
  dependencies: LeaseDependencies,
  { key, entry, until }: { key: string; entry: HolderEntry; until: number },
  call: Call,
): Promise<boolean> {
  const { path, execution = '', graceMs = 0 } = entry;
  const isTimed = isBound(entry) && path === ALONE;
  const { set, values } = setting({ e: integer(until), g: text(execution), ...(isTimed && { u: secondsOf(graceMs) }) });
  const update = {
    ...{ key, entry, values, set: isBound(entry) ? [...set, '#h.t = #h.n'] : set },
    remove: [executionAt(path), '#h.y', '#h.n', '#h.j', '#h.z'],
    ttl: ttlOfRecord(path, { now: dependencies.clock.now(), expiresAt: until }),
  };
  const { won, record } = await writeAnew(dependencies, update, call);
  if (won && record.mark !== undefined) await sendRepairAt(dependencies, { key, endsAt: until }, call);
  return won;
}

/**
 * Ends a bound grant for the clean-up, if it is as reported and its execution has ended. If the key has a line, a look ends the grant.
 * @returns why it was spared, or undefined if it has ended
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export async function endIfOver(
  dependencies: LeaseDependencies,
  { key: { key = '' }, identity }: Pick<ExpiredRow, 'key' | 'identity'>,
  call: Call,
): Promise<SpareReason | undefined> {
  const name = identity?.name;
  if (!name || !('S' in name)) return 'unrecognisable';
  const record = await readKey(dependencies, key, call);
  const entry = entryOf(record, name.S);
  if (!entry) return 'gone';
  if (!isBound(entry) || record.mark !== undefined) return 'changed';
  const { execution, id, fence } = entry;
  if (!hasNumbers(identity, { fence })) return 'changed';
  const { freed } = await endGrantsOf(dependencies, { key, execution, only: id }, call);
  return freed > 0 ? undefined : 'changed';
}
