import { text } from '../../../aws/attributes.ts';
import type { Call } from '../../../aws/call.ts';
import { executionState, goesOn } from '../../queue/execution-state.ts';
import type { Leaving } from '../../queue/leaving.ts';
import { deleteTicket, lineOf } from '../../queue/tickets.ts';
import { isStill } from '../conditions.ts';
import type { PoolDependencies } from '../dependencies.ts';
import { forgetExecution, noteExecution } from '../executions.ts';
import { readPool } from '../read.ts';
import type { PoolEntry, PoolRecord } from '../record.ts';
import { giveToLine } from '../release.ts';
import { updatePool } from '../write.ts';
import { advance, MOST_GOING } from './advance.ts';

/**
 * Takes an execution that has ended out of the line of a pool, and ends its permits (docs/protocols/pools.md#end-of-an-execution).
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export async function leavePool(
  dependencies: PoolDependencies,
  { key, tickets, execution, settled, askedAt, ended }: Leaving,
  call: Call,
): Promise<void> {
  const leaveLine = async (ticket: string) => {
    await deleteTicket(dependencies, { key: lineOf(key), ticket }, call);
    ended.tickets++;
  };
  const record = await readPool(dependencies, key, call);
  // The ticket of a grant goes last. While it is there, perhaps no task was notified of the grant.
  const standing = new Set(record.entries.map((entry) => entry.ticket));
  const waiting = tickets.filter((ticket) => !standing.has(ticket));
  for (const ticket of waiting) await leaveLine(ticket);
  if (waiting.length > 0) await giveToLine(dependencies, { record: await readPool(dependencies, key, call) }, call);
  const { freed, kept } = await endPermitsOf(dependencies, { key, execution, settled, askedAt }, call);
  for (const ticket of tickets) if (standing.has(ticket)) await leaveLine(ticket);
  ended.freed += freed;
  ended.kept += kept;
  if (settled) await forgetExecution(dependencies, { key, execution, askedAt }, call);
}

type Held = Pick<Leaving, 'key' | 'execution' | 'settled' | 'askedAt'>;

interface Ended {
  /** Permits that ended. */
  freed: number;
  /** Permits that stay, because their target works under them or may be about to. */
  kept: number;
  /** How many in line received permits. */
  granted: number;
}

/**
 * Ends the permits of an execution that has ended, and gives their room to the line. Where another execution works under a permit (`target`), the
 * permit passes to that execution while it runs, and ends with it.
 */
async function endPermitsOf(dependencies: PoolDependencies, held: Held, call: Call): Promise<Ended> {
  const { key, execution, settled, askedAt } = held;
  const ended: Ended = { freed: 0, kept: 0, granted: 0 };
  for (;;) {
    const record = await readPool(dependencies, key, call);
    const own = record.entries.filter((entry) => entry.execution === execution && entry.acquiredAt <= askedAt);
    // Redriven since, it may have been answered with one of these, under a version that this pass has read only now.
    if (own.length > 0 && (await goesOn(dependencies, { execution, settled }, call))) return ended;
    const { over, running, unknown } = await byTarget(dependencies, { own, settled }, call);
    for (const { entry, target } of running) {
      const outcome = await passToTarget(dependencies, { key, entry, target }, call);
      if (outcome === 'passed') ended.kept++;
      if (outcome !== 'ended') continue;
      // It ended before it had the permit, and its own event found nothing.
      const { freed, kept, granted } = await endPermitsOf(dependencies, { ...held, execution: target }, call);
      ended.freed += freed;
      ended.kept += kept;
      ended.granted += granted;
    }
    if (running.length > 0) continue;
    if (over.length === 0) return { ...ended, kept: ended.kept + unknown.length };
    const { freed, granted } = await endAll(dependencies, { record, over }, call);
    ended.freed += freed;
    ended.granted += granted;
  }
}

interface ByTarget {
  over: PoolEntry[];
  running: { entry: PoolEntry; target: string }[];
  /** The start of the target may be on the way. */
  unknown: PoolEntry[];
}

async function byTarget(
  dependencies: PoolDependencies,
  { own, settled }: { own: readonly PoolEntry[]; settled: boolean },
  call: Call,
): Promise<ByTarget> {
  const sorted: ByTarget = { over: [], running: [], unknown: [] };
  for (const entry of own) {
    const { target } = entry;
    const state = target === undefined ? 'ended' : await executionState(dependencies, target, call);
    if (state === 'running' && target !== undefined) sorted.running.push({ entry, target });
    else if ((state === 'missing' || state === 'foreign') && !settled) sorted.unknown.push(entry);
    else sorted.over.push(entry);
  }
  return sorted;
}

/** Ends as many as one write ends. @returns how many have ended, and how many in line were given their room */
async function endAll(
  dependencies: PoolDependencies,
  { record, over }: { record: PoolRecord; over: readonly PoolEntry[] },
  call: Call,
): Promise<Pick<Ended, 'freed' | 'granted'>> {
  const going = over.slice(0, MOST_GOING).map((entry) => ({ entry, how: 'executionEnded' as const }));
  const { granted, standing } = await advance(dependencies, { record, going }, call);
  const left = new Set(standing.entries.map(({ id }) => id));
  return { freed: going.filter(({ entry }) => !left.has(entry.id)).length, granted: granted.length };
}

interface Passing {
  key: string;
  entry: PoolEntry;
  target: string;
}

/**
 * From now on the permit belongs to the target, and ends with it as with any execution. The version is new, so that no call that has read the
 * permit as the dead execution's can end it.
 * @returns `lost`: it has changed meanwhile. `ended`: the target has, before it had the permit
 */
async function passToTarget(
  dependencies: PoolDependencies,
  { key, entry, target }: Passing,
  call: Call,
): Promise<'passed' | 'ended' | 'lost'> {
  const { clock, ids } = dependencies;
  await noteExecution(dependencies, { key, execution: target }, call);
  const { won } = await updatePool(
    dependencies,
    {
      key,
      now: clock.now(),
      set: ['#h.x = :target', '#h.v = :version'],
      remove: ['#h.y'],
      condition: isStill(entry),
      values: { ':target': text(target), ':version': text(ids.uuid()) },
    },
    call,
  );
  if (!won) return 'lost';
  return (await executionState(dependencies, target, call)) === 'ended' ? 'ended' : 'passed';
}

/**
 * For a grant whose ticket was still there and whose task is gone. The task may have been notified before, so only the end of its execution ends
 * the permit.
 * @returns how many in line were given permits
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export async function endPermitOfDead(
  dependencies: PoolDependencies,
  { key, execution }: { key: string; execution: string | undefined },
  call: Call,
): Promise<number> {
  if (execution === undefined) return 0;
  const askedAt = dependencies.clock.now();
  const state = await executionState(dependencies, execution, call);
  if (state === 'running' || state === 'foreign') return 0;
  const { granted } = await endPermitsOf(dependencies, { key, execution, settled: false, askedAt }, call);
  return granted;
}
