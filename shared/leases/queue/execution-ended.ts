import { text } from '../../aws/attributes.ts';
import type { Call } from '../../aws/call.ts';
import { all } from '../../aws/condition.ts';
import type { Ids } from '../../ids.ts';
import { isOfExecution, isStillHeld, isUnmarked } from '../conditions.ts';
import type { LeaseDependencies } from '../dependencies.ts';
import { endLease } from '../end.ts';
import type { ExecutionEndedInput } from '../inputs.ts';
import { endedBefore } from '../previous.ts';
import { type Leased, type LeaseRecord, parseRecord } from '../record.ts';
import { endsAt, isLeased } from '../rules.ts';
import { updateLease } from '../write.ts';
import { executionState, goesOn } from './execution-state.ts';
import { handOff } from './hand-off.ts';
import { keysOf } from './keys-of-execution.ts';
import type { ExecutionEnded, Leaving } from './leaving.ts';
import { readRecord } from './record.ts';
import { deleteTicket, getTicket, isTask, poolOfLine } from './tickets.ts';

/**
 * Takes an execution that has ended out of all queues, and frees its leases and permits (docs/protocols/queue.md#end-of-an-execution). It is
 * called twice: at the end, and `again` a while later, when every call that the execution had under way has ended too. An execution
 * that was redriven and runs keeps what it has. A failure of one key stops no other: any caller can write records that name an execution. The
 * order of the keys is random, so that a try that runs out of time among a great many does not miss the same ones each time.
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown: the first failure of a key, after all the others were tried
 */
export function executionEnder(dependencies: LeaseDependencies) {
  return async ({ execution, again }: ExecutionEndedInput, call: Call): Promise<ExecutionEnded> => {
    const failures: unknown[] = [];
    const keys = await keysOf(dependencies, { execution, failed: (error) => failures.push(error) }, call);
    const ended: ExecutionEnded = { execution, tickets: 0, freed: 0, kept: 0 };
    const askedAt = dependencies.clock.now();
    if (keys.size > 0 && !(await goesOn(dependencies, { execution, settled: again }, call)))
      for (const [key, tickets] of shuffled([...keys], dependencies.ids)) {
        const leaving = { key, tickets, execution, settled: again, askedAt, ended };
        await leaveKey(dependencies, leaving, call).catch((error) => failures.push(error));
      }
    if (failures.length > 0) throw failures[0];
    return ended;
  };
}

function shuffled<Item>(items: Item[], { random }: Ids): Item[] {
  if (items.length < 2) return items;
  const lots = items.map((item) => ({ item, lot: random() })).toSorted((one, other) => one.lot - other.lot);
  return lots.map(({ item }) => item);
}

async function leaveKey(dependencies: LeaseDependencies, leaving: Leaving, call: Call): Promise<void> {
  const { key, tickets, execution, ended, ...asked } = leaving;
  const pool = poolOfLine(key);
  if (pool !== undefined) {
    const [{ withPools }, { leavePool }] = [
      await import('../pools/dependencies.ts'),
      await import('../pools/queue/execution-ended.ts'),
    ];
    return leavePool(withPools(dependencies), { ...leaving, key: pool }, call);
  }
  const record = tickets.length > 0 ? await readRecord(dependencies, key, call) : undefined;
  // The ticket of a grant goes last. While it is there, perhaps no task was notified of the grant.
  const granted = tickets.filter((ticket) => ticket === record?.ticket);
  const waiting = tickets.filter((ticket) => ticket !== record?.ticket);
  const leaveQueue = async (ticket: string) => {
    await deleteTicket(dependencies, { key, ticket }, call);
    ended.tickets++;
  };
  for (const ticket of waiting) await leaveQueue(ticket);
  const held = { key, execution, ...asked, tickets };
  const { outcome } = await releaseHeldBy(dependencies, held, call);
  for (const ticket of granted) await leaveQueue(ticket);
  if (outcome === 'freed') ended.freed++;
  else if (outcome !== 'other') ended.kept++;
}

/**
 * Whether perhaps nobody knows of the grant, whose ticket was still there: its task, or a caller that has not claimed it. The schedule deletes the
 * ticket of a task that it tells LeaseHeld. So nobody may know either of a grant that is over and that answered no call.
 */
async function mayBeUnheard(
  dependencies: LeaseDependencies,
  { record, tickets }: { record: Leased } & Pick<Held, 'tickets'>,
  call: Call,
): Promise<boolean> {
  const { key, ticket, claimTtlMs, answeredAt } = record;
  if (ticket === undefined || answeredAt !== undefined) return false;
  if (endsAt(record) <= dependencies.clock.now()) return true;
  if (!tickets.includes(ticket)) return false;
  if (claimTtlMs !== undefined) return true;
  const row = await getTicket(dependencies, { key, ticket }, call);
  return row === undefined || isTask(row);
}

interface Held extends Omit<Leaving, 'tickets' | 'ended'> {
  /**
   * Those of the execution that were still there. Perhaps nobody was notified of a grant to one of them, and nobody can use it any more. A
   * redriven execution may ask again with the same request id, so the record forgets that id.
   */
  tickets: readonly string[];
}

/**
 * `freed`: the lease has ended. `kept`: the target may not have started yet. `passed`: the target runs, and the lease belongs to it
 * now. `other`: the lease does not belong to the execution, or no longer.
 */
type HeldOutcome = { outcome: 'freed'; granted: number } | { outcome: 'kept' | 'passed' | 'other' };

/**
 * Ends the lease of an execution that has ended, and hands it on. Where another execution works under the lease (`target`), the lease
 * passes to that execution while it runs, and ends with it.
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
async function releaseHeldBy(dependencies: LeaseDependencies, held: Held, call: Call): Promise<HeldOutcome> {
  const { key, execution, settled, tickets, askedAt } = held;
  for (;;) {
    const record = await readRecord(dependencies, key, call);
    if (!isLeased(record) || record.execution !== execution) return { outcome: 'other' };
    if ((record.acquiredAt ?? 0) > askedAt) return { outcome: 'other' };
    // Redriven since, it may have been answered with this very grant, under a version that this pass has read only now.
    if (await goesOn(dependencies, { execution, settled }, call)) return { outcome: 'other' };
    const standing = { ...record, execution };
    const { target } = record;
    const state = target === undefined ? 'ended' : await executionState(dependencies, target, call);
    if ((state === 'missing' || state === 'foreign') && !settled) return { outcome: 'kept' };
    if (state === 'running' && target !== undefined) {
      if (!(await passToTarget(dependencies, { record: standing, target }, call))) continue;
      // It may have ended before it had the lease, and its own event found nothing.
      const ended = (await executionState(dependencies, target, call)) === 'ended';
      return ended
        ? releaseHeldBy(dependencies, { ...held, execution: target, tickets: [] }, call)
        : { outcome: 'passed' };
    }
    const ending = (await mayBeUnheard(dependencies, { record, tickets }, call)) ? 'perhapsUnheard' : 'executionEnded';
    const granted = await endHeld(dependencies, { record: standing, ending }, call);
    if (granted !== undefined) return { outcome: 'freed', granted };
  }
}

/** A lease that an execution holds. */
type OfExecution = Leased & { execution: string };

/** @returns how many tasks were granted the lease then; undefined if the lease has changed meanwhile */
async function endHeld(
  dependencies: LeaseDependencies,
  { record, ending }: { record: OfExecution; ending: 'perhapsUnheard' | 'executionEnded' },
  call: Call,
): Promise<number | undefined> {
  const condition = all(isStillHeld(record), isOfExecution(record.execution), isUnmarked);
  const forget = { last: endedBefore(record, ending, dependencies.clock.now()) };
  const end = { key: record.key, condition, byExecution: true, ...(ending === 'perhapsUnheard' && { forget }) };
  const outcome = await endLease(dependencies, end, call);
  if (outcome.won) return 0;
  const standing = outcome.old ? parseRecord(outcome.old) : undefined;
  if (!standing || standing.version !== record.version) return undefined;
  const { end: how } = await handOff(dependencies, { record: standing, ending }, call);
  if (how === 'overtaken') return undefined;
  return how === 'granted' ? 1 : 0;
}

/**
 * From now on the lease belongs to the target, and ends with it as with any execution. The version is new, so that no call that has read
 * the lease as the dead execution's can hand it on.
 */
async function passToTarget(
  dependencies: LeaseDependencies,
  { record, target }: { record: OfExecution; target: string },
  call: Call,
): Promise<boolean> {
  const version = dependencies.ids.uuid();
  const { key, execution } = record;
  const condition = all(isStillHeld(record), isOfExecution(execution));
  const values = { ':target': text(target), ':next': text(version) };
  const expression = 'SET execution = :target, lease_version = :next REMOVE target';
  return (await updateLease(dependencies, { key, expression, condition, values, version }, call)).won;
}

/**
 * For a grant whose ticket was still there and whose task is gone. The task may have been notified before, so only the end of its
 * execution frees the lease.
 * @returns how many were given the lease
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export async function releaseHeldByDead(
  dependencies: LeaseDependencies,
  record: LeaseRecord,
  call: Call,
): Promise<number> {
  const { key, execution, ticket } = record;
  if (execution === undefined) return 0;
  const askedAt = dependencies.clock.now();
  const state = await executionState(dependencies, execution, call);
  if (state === 'running' || state === 'foreign') return 0;
  const held = { key, execution, settled: false, tickets: ticket === undefined ? [] : [ticket], askedAt };
  const released = await releaseHeldBy(dependencies, held, call);
  return released.outcome === 'freed' ? released.granted : 0;
}
