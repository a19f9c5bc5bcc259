import { text } from '../aws/attributes.ts';
import type { Call } from '../aws/call.ts';
import { all } from '../aws/condition.ts';
import { isOfExecution, isStillHeld, isUnmarked } from '../leases/conditions.ts';
import { endLease } from '../leases/end.ts';
import { endingOf, giveGrace } from '../leases/grace.ts';
import { handOff } from '../leases/hand-off.ts';
import { endedBefore } from '../leases/previous.ts';
import { readRecord } from '../leases/read-record.ts';
import { type Leased, parseRecord } from '../leases/record.ts';
import { endsAt, isLeased } from '../leases/rules.ts';
import { updateLease } from '../leases/write.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import type { ExecutionEnded, Leaving } from '../line/executions/ended-execution.ts';
import { graceEnd } from '../line/executions/grace.ts';
import { keysOf } from '../line/executions/keys-of-execution.ts';
import { endOf, executionState, type Found, type Reported, workOf } from '../line/executions/state.ts';
import { deleteTicket, getTicket, isTask, parkedAtOf, poolOfLine } from '../line/waiters.ts';
import { shuffled } from '../surroundings/ids.ts';
import type { ExecutionEndedInput } from './inputs.ts';

/**
 * Takes an execution that has ended out of all queues, and frees its leases and permits (docs/protocols/queue.md#end-of-an-execution). It is
 * called twice: at the end, and `again` a while later, when every call that the execution had under way has ended too. An execution
 * that was redriven and runs keeps what it has. A failure of one key stops no other: any caller can write records that name an execution. The
 * order of the keys is random, so that a try that runs out of time among a great many does not miss the same ones each time.
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown: the first failure of a key, after all the others were tried
 */
export function executionEnder(dependencies: LeaseDependencies) {
  return async ({ execution, again, status, stopDate }: ExecutionEndedInput, call: Call): Promise<ExecutionEnded> => {
    const failures: unknown[] = [];
    const keys = await keysOf(dependencies, { execution, failed: (error) => failures.push(error) }, call);
    const ended: ExecutionEnded = { execution, tickets: 0, freed: 0, graced: 0, kept: 0 };
    const reported = { execution, settled: again, status };
    let asked: ReturnType<typeof endOf> | undefined;
    const end = () => {
      asked ??= endOf(dependencies, reported, call);
      return asked;
    };
    const askedAt = dependencies.clock.now();
    const stoppedBy = again || stopDate === undefined ? askedAt : stopDate + dependencies.clockSkewMs;
    const leaving = { ...reported, until: Math.min(askedAt, stoppedBy), end, ended };
    for (const [key, tickets] of shuffled([...keys], dependencies.ids))
      await leaveKey(dependencies, { ...leaving, key, tickets }, call).catch((error) => failures.push(error));
    if (failures.length > 0) throw failures[0];
    return ended;
  };
}

async function leaveKey(dependencies: LeaseDependencies, leaving: Leaving, call: Call): Promise<void> {
  const { key, ended } = leaving;
  const tickets = leaving.tickets.filter((ticket) => isFromBefore(ticket, leaving));
  const pool = poolOfLine(key);
  if (pool !== undefined) {
    const [{ withPools }, { leavePool }] = [
      await import('../permits/dependencies.ts'),
      await import('../permits/execution-ended.ts'),
    ];
    return leavePool(withPools(dependencies), { ...leaving, key: pool, tickets }, call);
  }
  if (tickets.length > 0 && (await leaving.end()) === undefined) return;
  const record = tickets.length > 0 ? await readRecord(dependencies, key, call) : undefined;
  // The ticket of a grant goes last. While it is there, perhaps no task was notified of the grant.
  const granted = tickets.filter((ticket) => ticket === record?.ticket);
  const waiting = tickets.filter((ticket) => ticket !== record?.ticket);
  const leaveQueue = async (ticket: string) => {
    await deleteTicket(dependencies, { key, ticket }, call);
    ended.tickets++;
  };
  for (const ticket of waiting) await leaveQueue(ticket);
  const { outcome } = await releaseHeldBy(dependencies, { ...leaving, tickets }, call);
  if (outcome === 'spared') return;
  for (const ticket of granted) await leaveQueue(ticket);
  if (outcome === 'freed' || outcome === 'graced') ended[outcome]++;
  else if (outcome !== 'other') ended.kept++;
}

/** The place of a task that a redriven execution has parked since must stay, because that task waits. */
const isFromBefore = (ticket: string, { until }: Pick<Leaving, 'until'>): boolean => !(parkedAtOf(ticket) > until);

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

interface Held extends Reported, Pick<Leaving, 'key' | 'until'> {
  /**
   * Those of the execution that were still there. Perhaps nobody was notified of a grant to one of them, and nobody can use it any more. A
   * redriven execution may ask again with the same request id, so the record forgets that id.
   */
  tickets: readonly string[];
}

/**
 * `freed`: the lease has ended. `graced`: it goes on for its grace. `kept`: the target may not have started yet. `passed`: the target runs, and the
 * lease belongs to it now. `spared`: the execution was redriven, or the grant is from after the end. `other`: the lease does not belong to the execution, or
 * no longer.
 */
type HeldOutcome =
  | { outcome: 'freed'; granted: number }
  | { outcome: 'graced' | 'kept' | 'passed' | 'spared' | 'other'; granted?: undefined };

/**
 * Ends the lease of an execution that has ended, and hands it on, or lets it go on for its grace. If another execution works under the lease
 * (`target`), the lease passes to that execution while it runs, and ends with it.
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
async function releaseHeldBy(dependencies: LeaseDependencies, held: Held, call: Call): Promise<HeldOutcome> {
  const { key, execution, settled, tickets, until } = held;
  for (;;) {
    const record = await readRecord(dependencies, key, call);
    if (!isLeased(record) || record.execution !== execution) return { outcome: 'other' };
    if ((record.acquiredAt ?? 0) > until) return { outcome: 'spared' };
    // Redriven since, it may have been answered with this very grant, under a version that this pass has read only now.
    const end = await endOf(dependencies, held, call);
    if (end === undefined) return { outcome: 'spared' };
    const standing = { ...record, execution };
    const { target } = record;
    const work = await workOf(dependencies, { target, end, settled }, call);
    if (work === 'unknown') return { outcome: 'kept' };
    if (work === 'running') {
      if (target === undefined || !(await passToTarget(dependencies, { record: standing, target }, call))) continue;
      // It may have ended before it had the lease, and its own event found nothing.
      const hasEnded = (await executionState(dependencies, target, call)) === 'ended';
      if (!hasEnded) return { outcome: 'passed' };
      return releaseHeldBy(dependencies, { key, execution: target, settled, until, tickets: [] }, call);
    }
    const graceUntil = graceEnd(dependencies, endingOf(record), work);
    if (graceUntil !== undefined) {
      if (await giveGrace(dependencies, { record: standing, until: graceUntil }, call)) return { outcome: 'graced' };
      continue;
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
 * Ends the lease on record as a pass would, if its execution has ended. No event has told this call of that end.
 * @param found as `findEnd` tells. `ticket`: that of the grant, if it was still there
 * @returns how many were given the lease
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export async function releaseHeldByEnded(
  dependencies: LeaseDependencies,
  { key, ticket, ...found }: Found & { key: string; ticket: string | undefined },
  call: Call,
): Promise<number> {
  const held = { ...found, key, tickets: ticket === undefined ? [] : [ticket] };
  const { granted = 0 } = await releaseHeldBy(dependencies, held, call);
  return granted;
}
