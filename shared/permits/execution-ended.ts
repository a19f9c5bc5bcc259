import { integer, text } from '../aws/attributes.ts';
import type { Call } from '../aws/call.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import { deadTickets, type EndedExecution } from '../line/executions/ended-execution.ts';
import { graceEnd } from '../line/executions/grace-end.ts';
import { type EndOfHolder, judgeOf, type Reported } from '../line/executions/judgement.ts';
import { executionState, type Work, workOf } from '../line/executions/state.ts';
import { BOUND_SECONDS } from '../line/times.ts';
import { deleteWaiter } from '../line/waiters.ts';
import { executionAt, ttlOf } from './alone.ts';
import { isStill } from './conditions.ts';
import { forgetExecution, noteExecution } from './execution-rows.ts';
import { giveGrace } from './grace.ts';
import { handOff, MOST_GOING } from './hand-off.ts';
import { ALONE } from './identity.ts';
import type { Going } from './previous.ts';
import { readPool } from './read.ts';
import { isBound, type PoolEntry, type PoolRecord } from './record.ts';
import { handOffToLine } from './release.ts';
import { updatePool } from './write.ts';

/**
 * Takes an execution that has ended out of the line of a pool, and ends its permits (docs/protocols/executions.md#a-pass).
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export async function endInPool(dependencies: LeaseDependencies, leaving: EndedExecution, call: Call): Promise<void> {
  const { key, execution, settled, askedAt, ended } = leaving;
  const leaveLine = async (ticket: string) => {
    await deleteWaiter(dependencies, { key: key, ticket }, call);
    ended.tickets++;
  };
  const forget = () => settled && forgetExecution(dependencies, { key, execution, askedAt }, call);
  const record = await readPool(dependencies, key, call);
  const isIn = leaving.tickets.length > 0 || record.entries.some((entry) => entry.execution === execution);
  if (!isIn) return void (await forget());
  const tickets = await deadTickets(leaving);
  // Delete the ticket of the grant last: if this call exits before, the schedule finds the pool by that ticket.
  const granted = new Set(record.entries.map(({ ticket }) => ticket));
  const waiting = tickets.filter((ticket) => !granted.has(ticket));
  for (const ticket of waiting) await leaveLine(ticket);
  if (waiting.length > 0) await handOffToLine(dependencies, { record: await readPool(dependencies, key, call) }, call);
  const { freed, graced, kept, goesOn } = await endPermitsOf(dependencies, leaving, call);
  ended.freed += freed;
  ended.graced += graced;
  ended.kept += kept;
  if (goesOn) return;
  for (const ticket of tickets) if (granted.has(ticket)) await leaveLine(ticket);
  if (tickets.length === leaving.tickets.length) await forget();
}

interface Held extends Reported {
  key: string;
  /** The id of the only permit that may end. */
  only?: string | undefined;
  /** The record as a write of this call has just left it. */
  seen?: PoolRecord | undefined;
}

interface Ended {
  /** Permits that ended. */
  freed: number;
  /** Permits that go on for their grace. */
  graced: number;
  /** Permits that stay, because their target works under them or may be about to. */
  kept: number;
  /** How many in line received permits. */
  granted: number;
  /** Whether the execution runs, or may have received the permits that are left after its end. */
  goesOn: boolean;
}

/**
 * Ends the permits of an execution that has ended, and gives their room to the line, or lets them go on for their grace. If another execution works under a
 * permit (`target`) and runs, the permit passes to that execution, and ends with it.
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export async function endPermitsOf(dependencies: LeaseDependencies, held: Held, call: Call): Promise<Ended> {
  const { key, execution, settled, only } = held;
  const ended: Ended = { freed: 0, graced: 0, kept: 0, granted: 0, goesOn: false };
  const count = ({ goesOn: _, ...more }: Partial<Ended>) => {
    for (const [name, value] of Object.entries(more) as [Exclude<keyof Ended, 'goesOn'>, number][])
      ended[name] += value;
  };
  for (let seen = held.seen; ; seen = undefined) {
    const record = seen ?? (await readPool(dependencies, key, call));
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
      // It ended before it had the permit, and its own event found nothing.
      if (outcome === 'ended') count(await endPermitsOf(dependencies, { key, execution: target, settled }, call));
    }
    if (running.length > 0) continue;
    const { atOnce, graced } = await giveGraces(dependencies, { record, over }, call);
    count({ graced });
    if (atOnce.length < over.length) continue;
    if (over.length === 0) return { ...ended, kept: ended.kept + unknown.length };
    count(await endAll(dependencies, { record, over: atOnce }, call));
  }
}

/** A permit whose execution has ended, and how. */
interface EndedEntry extends EndOfHolder {
  entry: PoolEntry;
}

/** Lets permits go on for their grace. @returns those that end at once, and how many go on */
async function giveGraces(
  dependencies: LeaseDependencies,
  { record: { key }, over }: { record: PoolRecord; over: readonly Over[] },
  call: Call,
): Promise<{ atOnce: PoolEntry[]; graced: number }> {
  const atOnce: PoolEntry[] = [];
  let graced = 0;
  for (const { entry, work } of over) {
    const { expiresAt: endsAt, graceMs, claimTtlMs, execution = '' } = entry;
    const until = graceEnd(dependencies, { endsAt, graceMs, claimTtlMs }, work);
    if (until === undefined) atOnce.push(entry);
    else if (await giveGrace(dependencies, { key, entry: { ...entry, execution }, until }, call)) graced++;
  }
  return { atOnce, graced };
}

/** A permit whose work has ended, and how. */
interface Over {
  entry: PoolEntry;
  work: Exclude<Work, 'running' | 'unknown'>;
}

interface ByTarget {
  over: Over[];
  running: { entry: PoolEntry; target: string }[];
  /** The start of the target may be on the way. */
  unknown: PoolEntry[];
}

async function byTarget(dependencies: LeaseDependencies, ended: readonly EndedEntry[], call: Call): Promise<ByTarget> {
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

/** Ends as many permits as one write can end. @returns how many have ended, and how many waiters were granted their room */
async function endAll(
  dependencies: LeaseDependencies,
  { record, over }: { record: PoolRecord; over: readonly PoolEntry[] },
  call: Call,
): Promise<Pick<Ended, 'freed' | 'granted'>> {
  const ending = over.slice(0, MOST_GOING).map((entry): Going => ({ entry, how: 'executionEnded' }));
  const { granted, record: current } = await handOff(dependencies, { record, ending }, call);
  const left = new Set(current.entries.map(({ id }) => id));
  return { freed: ending.filter(({ entry }) => !left.has(entry.id)).length, granted: granted.length };
}

interface Passing {
  key: string;
  entry: PoolEntry;
  target: string;
}

/**
 * From now on the permit belongs to the target, and ends with it as with any execution. The version is new, so that no call that has read the permit
 * as that of the ended execution can end it.
 * @returns `lost`: it has changed. `ended`: the target has, before it had the permit
 */
async function passToTarget(
  dependencies: LeaseDependencies,
  { key, entry, target }: Passing,
  call: Call,
): Promise<'passed' | 'ended' | 'lost'> {
  const { clock, ids } = dependencies;
  // The index finds an exclusive holder by itself.
  if (entry.path !== ALONE) await noteExecution(dependencies, { key, execution: target }, call);
  const at = executionAt(entry.path);
  const expiresAt = clock.now() + BOUND_SECONDS * 1000;
  const { won } = await updatePool(
    dependencies,
    {
      key,
      // The target may have begun late, and then runs for longer than the permit has left.
      set: [`${at} = :target`, '#h.v = :version', ...(isBound(entry) ? ['#h.e = :expires'] : [])],
      remove: ['#h.y'],
      condition: isStill(entry),
      values: {
        ...{ ':target': text(target), ':version': text(ids.uuid()) },
        ...(isBound(entry) && { ':expires': integer(expiresAt) }),
      },
      ...(isBound(entry) && { ttl: ttlOf(entry.path, { now: clock.now(), expiresAt }) }),
    },
    call,
  );
  if (!won) return 'lost';
  return (await executionState(dependencies, target, call)) === 'ended' ? 'ended' : 'passed';
}
