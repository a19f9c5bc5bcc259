import { integer, text } from '../../aws/attributes.ts';
import type { Call } from '../../aws/call.ts';
import { type ExpiredRow, hasNumbers } from '../../expiry/sources/rows.ts';
import type { SpareReason } from '../../expiry/sources/source.ts';
import { shuffled } from '../../surroundings/ids.ts';
import type { ExecutionEndedInput } from '../calls/inputs.ts';
import { handOffToLine } from '../calls/release.ts';
import { BOUND_SECONDS, type LeaseDependencies, memoized } from '../dependencies.ts';
import { sendRepairAt } from '../line/delayed-repair.ts';
import { handOff, MAX_ENDED_BY_HAND_OFF } from '../line/hand-off.ts';
import { deleteWaiter, parkedAtOf } from '../line/waiters.ts';
import { setting, writeNewVersion } from '../record/continuing-grants.ts';
import { EXCLUSIVE_PATH } from '../record/identity.ts';
import { entryOf, type HolderEntry, isBound, type KeyRecord } from '../record/record.ts';
import { executionAt, readKey, secondsAttribute, ttlOfRecord } from '../record/requests.ts';
import type { GrantToEnd } from '../record/room.ts';
import { forgetExecution, keysOf, noteExecution } from './execution-rows.ts';
import { askAndJudge, type EndOfHolder, type Judge, type Reported } from './judgement.ts';
import { executionState, type Work, workOf } from './state.ts';

/**
 * Takes an execution that has ended out of all lines, and ends its grants (docs/protocols/executions.md). Two passes
 * call this: one at the end, and one (`again`) a while later, when the calls that the execution had under way have
 * ended too. A redriven execution keeps what it has received since. A failure of one key or query does not stop the
 * others, because any caller can write a record that names an execution. The order of the keys is random, so that tries
 * that run out of time do not miss the same keys each time.
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown: the first failure of a query or a key, after all the
 * others were tried
 */
export function freeEndedExecution(dependencies: LeaseDependencies) {
  return async ({ execution, again, status, stopDate }: ExecutionEndedInput, call: Call): Promise<FreedByExecution> => {
    const failures: unknown[] = [];
    const keys = await keysOf(dependencies, { execution, failed: (error) => failures.push(error) }, call);
    const counts: FreedByExecution = { execution, tickets: 0, freed: 0, graced: 0, kept: 0 };
    const reported = { execution, isSecondPass: again, status, stoppedAt: stopDate };
    const waiters = [...keys.values()].flatMap((tickets) => tickets.map(asGrantSinceJoin));
    const judgeTickets = memoized(() => askAndJudge(dependencies, { ...reported, grants: waiters }, call));
    const pass = { ...reported, askedAt: dependencies.clock.now(), judgeTickets, counts };
    for (const [key, tickets] of shuffled([...keys], dependencies.ids))
      await endInKey(dependencies, { ...pass, key, tickets }, call).catch((error) => failures.push(error));
    if (failures.length > 0) throw failures[0];
    return counts;
  };
}

export interface FreedByExecution extends GrantCounts {
  execution: string;
  /** Tickets that were taken out of their lines. */
  tickets: number;
}

/** What has become of the grants of an execution that has ended. */
interface GrantCounts {
  /** Grants that this call has ended. */
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

/** An execution that has ended, and a key that it leaves. */
interface ExecutionInKey extends Reported {
  key: string;
  /** The tickets of the execution, as the index shows them. */
  tickets: string[];
  /** When the pass began, in epoch milliseconds. */
  askedAt: number;
  /** Judges the tickets, with a single question in the whole pass. */
  judgeTickets(): Promise<Judge>;
  counts: FreedByExecution;
}

/**
 * The judgement treats a ticket as a grant from the moment its waiter joined, because the execution was running then.
 */
const asGrantSinceJoin = (ticket: string) => ({ acquiredAt: parkedAtOf(ticket) || 0 });

/**
 * Takes an execution that has ended out of the line of a key, and ends its grants
 * (docs/protocols/executions.md#a-pass).
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
async function endInKey(dependencies: LeaseDependencies, pass: ExecutionInKey, call: Call): Promise<void> {
  const { key, execution, isSecondPass, askedAt, counts } = pass;
  const leaveLine = async (ticket: string) => {
    await deleteWaiter(dependencies, { key, ticket }, call);
    counts.tickets++;
  };
  const forget = () => isSecondPass && forgetExecution(dependencies, { key, execution, askedAt }, call);
  const record = await readKey(dependencies, key, call);
  const isIn = pass.tickets.length > 0 || record.entries.some((entry) => entry.execution === execution);
  if (!isIn) return void (await forget());
  const judge = pass.tickets.length > 0 ? await pass.judgeTickets() : undefined;
  // Tickets that are younger than a redrive stay, because their calls and tasks still wait.
  const tickets = pass.tickets.filter((ticket) => judge?.(asGrantSinceJoin(ticket)));
  // The ticket of the grant goes last: if this call crashes before that, the schedule finds the key by the ticket.
  const holderTickets = new Set(record.entries.map(({ ticket }) => ticket));
  const waiting = tickets.filter((ticket) => !holderTickets.has(ticket));
  for (const ticket of waiting) await leaveLine(ticket);
  if (waiting.length > 0) await handOffToLine(dependencies, { record: await readKey(dependencies, key, call) }, call);
  const ended = await endGrantsOf(dependencies, pass, call);
  add(counts, ended);
  if (ended.goesOn) return;
  for (const ticket of tickets) if (holderTickets.has(ticket)) await leaveLine(ticket);
  if (tickets.length === pass.tickets.length) await forget();
}

interface GrantsOfExecution extends Reported {
  key: string;
  /** The id of the only grant that may end. If it is absent, all grants of the execution may. */
  only?: string | undefined;
  /** The record, if a write of this call has just shown it. */
  seen?: KeyRecord | undefined;
}

interface EndedCounts extends GrantCounts {
  /** How many waiters were served. */
  granted: number;
  /** Whether the execution still holds grants, because it runs, or may have been redriven. */
  goesOn: boolean;
}

/**
 * Ends the grants of an execution that has ended, and hands off their room, or lets them go on for their grace. If
 * another execution works under a grant (`target`) and runs, the grant passes to that execution, and ends with it.
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export async function endGrantsOf(
  dependencies: LeaseDependencies,
  held: GrantsOfExecution,
  call: Call,
): Promise<EndedCounts> {
  const { key, execution, isSecondPass, only } = held;
  const counts: EndedCounts = { freed: 0, graced: 0, kept: 0, granted: 0, goesOn: false };
  const count = ({ granted = 0, ...more }: Partial<EndedCounts>) => {
    add(counts, more);
    counts.granted += granted;
  };
  for (let seen = held.seen; ; seen = undefined) {
    const record = seen ?? (await readKey(dependencies, key, call));
    const own = record.entries.filter((entry) => entry.execution === execution && entry.id === (only ?? entry.id));
    if (own.length === 0) return counts;
    // Judge again after each read: the execution may have been redriven since, and may have received a grant again,
    // under a new version.
    const judge = await askAndJudge(dependencies, { ...held, grants: own }, call);
    const toEnd = own.flatMap((entry) => {
      const verdict = judge(entry);
      return verdict ? [{ entry, ...verdict }] : [];
    });
    counts.goesOn = toEnd.length < own.length;
    if (toEnd.length === 0) return counts;
    const { finished, running, unknown } = await sortByTarget(dependencies, toEnd, call);
    for (const { entry, target } of running) {
      const outcome = await passToTarget(dependencies, { key, entry, target }, call);
      if (outcome === 'passed') counts.kept++;
      // The target ended before it had the grant, so the pass of its own end found nothing.
      if (outcome === 'ended') count(await endGrantsOf(dependencies, { key, execution: target, isSecondPass }, call));
    }
    if (running.length > 0) continue;
    const { endNow, graced } = await giveGraces(dependencies, { record, finished }, call);
    count({ graced });
    if (endNow.length < finished.length) continue;
    if (finished.length === 0) return { ...counts, kept: counts.kept + unknown.length };
    count(await endFinished(dependencies, { record, finished: endNow }, call));
  }
}

/** Gives each grant that has a grace its grace. @returns the grants that end now, and how many go on */
async function giveGraces(
  dependencies: LeaseDependencies,
  { record: { key }, finished }: { record: KeyRecord; finished: readonly FinishedGrant[] },
  call: Call,
): Promise<{ endNow: HolderEntry[]; graced: number }> {
  const endNow: HolderEntry[] = [];
  let graced = 0;
  for (const { entry, work } of finished) {
    const until = graceEnd(dependencies, { entry, work });
    if (until === undefined) endNow.push(entry);
    else if (await giveGrace(dependencies, { key, entry, until }, call)) graced++;
  }
  return { endNow, graced };
}

interface FinishedGrant {
  entry: HolderEntry;
  work: Exclude<Work, 'running' | 'unknown'>;
}

type EndingGrant = EndOfHolder & { entry: HolderEntry };

interface SortedByTarget {
  finished: FinishedGrant[];
  running: { entry: HolderEntry; target: string }[];
  /** The grants whose target may be about to start. */
  unknown: HolderEntry[];
}

/** Sorts grants whose execution has ended by what became of their work. */
async function sortByTarget(
  dependencies: LeaseDependencies,
  toEnd: readonly EndingGrant[],
  call: Call,
): Promise<SortedByTarget> {
  const sorted: SortedByTarget = { finished: [], running: [], unknown: [] };
  for (const { entry, ...workOptions } of toEnd) {
    const { target } = entry;
    const work = await workOf(dependencies, { target, ...workOptions }, call);
    if (work === 'unknown') sorted.unknown.push(entry);
    else if (work !== 'running') sorted.finished.push({ entry, work });
    else if (target !== undefined) sorted.running.push({ entry, target });
  }
  return sorted;
}

/**
 * Ends as many grants as one write can end, and hands off their room.
 * @returns how many have ended, and how many waiters were served
 */
async function endFinished(
  dependencies: LeaseDependencies,
  { record, finished }: { record: KeyRecord; finished: readonly HolderEntry[] },
  call: Call,
): Promise<Pick<EndedCounts, 'freed' | 'granted'>> {
  const toEnd = finished.slice(0, MAX_ENDED_BY_HAND_OFF).map((entry): GrantToEnd => ({ entry, how: 'executionEnded' }));
  const { served, record: current } = await handOff(dependencies, { record, toEnd }, call);
  const remaining = new Set(current.entries.map(({ id }) => id));
  return { freed: toEnd.filter(({ entry }) => !remaining.has(entry.id)).length, granted: served.length };
}

/**
 * Passes a grant to the target. From then on, the grant ends with the target. The version is new, so that calls that
 * have read the grant while the ended execution had it cannot end it.
 * @returns `lost`: the grant has changed since it was read. `ended`: the target had ended before it had the grant
 */
async function passToTarget(
  dependencies: LeaseDependencies,
  { key, entry, target }: { key: string; entry: HolderEntry; target: string },
  call: Call,
): Promise<'passed' | 'ended' | 'lost'> {
  // The index of leases finds an exclusive holder. A shared holder needs a row.
  if (entry.path !== EXCLUSIVE_PATH) await noteExecution(dependencies, { key, execution: target }, call);
  const now = dependencies.clock.now();
  // The target may have begun late, and then may run for longer than the grant has left.
  const expiresAt = now + BOUND_SECONDS * 1000;
  const { set, values } = setting(isBound(entry) ? { e: integer(expiresAt) } : {});
  const update = {
    ...{ key, entry, remove: ['#h.y'], set: [...set, `${executionAt(entry.path)} = :target`] },
    values: { ...values, ':target': text(target) },
    ...(isBound(entry) && { ttl: ttlOfRecord(entry.path, { now, expiresAt }) }),
  };
  const { won } = await writeNewVersion(dependencies, update, call);
  if (!won) return 'lost';
  return (await executionState(dependencies, target, call)) === 'ended' ? 'ended' : 'passed';
}

/**
 * The end of the grace of a grant whose work has ended (docs/protocols/executions.md#grace). Step Functions does not
 * stop a function that the execution has started. So after an abnormal end the function may still work, and count on
 * the expiry that it received. No function works under a grant that was not claimed.
 *
 *   the execution ends       + graceMs, or the expiry if that is earlier
 *           |------- grace -------|--- the grant has expired
 *
 * @returns undefined if the grant ends at once
 */
function graceEnd({ clock, clockSkewMs }: LeaseDependencies, { entry, work }: FinishedGrant): number | undefined {
  const now = clock.now();
  const { graceMs = 0, claimTtlMs, expiresAt } = entry;
  const isExpired = expiresAt + clockSkewMs < now;
  if (work !== 'failed' || graceMs <= 0 || claimTtlMs !== undefined || isExpired) return undefined;
  return Math.min(expiresAt, now + graceMs);
}

/**
 * Gives a grant its grace: until then it is an ordinary grant, without an execution.
 * @returns false if the grant has changed since it was read
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
async function giveGrace(
  dependencies: LeaseDependencies,
  { key, entry, until }: { key: string; entry: HolderEntry; until: number },
  call: Call,
): Promise<boolean> {
  const { path, execution = '', graceMs = 0 } = entry;
  const storesTtlSeconds = isBound(entry) && path === EXCLUSIVE_PATH;
  const { set, values } = setting({
    e: integer(until),
    g: text(execution),
    ...(storesTtlSeconds && { u: secondsAttribute(graceMs) }),
  });
  const update = {
    ...{ key, entry, values, set: isBound(entry) ? [...set, '#h.t = #h.n'] : set },
    remove: [executionAt(path), '#h.y', '#h.n', '#h.j', '#h.z'],
    ttl: ttlOfRecord(path, { now: dependencies.clock.now(), expiresAt: until }),
  };
  const { won, record } = await writeNewVersion(dependencies, update, call);
  if (won && record.mark !== undefined) await sendRepairAt(dependencies, { key, endsAt: until }, call);
  return won;
}

/**
 * Ends a bound grant for the clean-up, if it is as reported and its execution has ended. If the key has a line, the
 * grant is left to a look.
 * @returns why the grant was spared, or undefined if it has ended
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
