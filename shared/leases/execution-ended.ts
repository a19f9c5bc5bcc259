import { text } from '../aws/attributes.ts';
import type { Call } from '../aws/call.ts';
import { all } from '../aws/condition.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import { type EndOfHolder, judgeOfBound } from '../line/executions/bound-grant.ts';
import type { EndedExecution } from '../line/executions/ended-execution.ts';
import { graceEnd } from '../line/executions/grace-end.ts';
import { endOf, executionState, type Found, type Reported, workOf } from '../line/executions/state.ts';
import { mayBeUnnotified } from '../line/executions/unnotified.ts';
import { deleteWaiter } from '../line/waiters.ts';
import { isOfExecution, isStillHeld, isUnmarked } from './conditions.ts';
import { endLease } from './end.ts';
import { endingOf, giveGrace } from './grace.ts';
import { handOff } from './hand-off.ts';
import { endedBefore } from './previous.ts';
import { readRecord } from './read-record.ts';
import { type Leased, type LeaseRecord, parseRecord } from './record.ts';
import { endsAt, isBound, isLeased } from './rules.ts';
import { updateLease } from './write.ts';

/**
 * Takes an execution that has ended out of the line of a lease, and ends its lease (docs/protocols/executions.md).
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export async function endInLease(dependencies: LeaseDependencies, leaving: EndedExecution, call: Call): Promise<void> {
  const { key, tickets, ended } = leaving;
  if (tickets.length > 0 && (await leaving.end()) === undefined) return;
  const record = tickets.length > 0 ? await readRecord(dependencies, key, call) : undefined;
  // The ticket of a grant goes last. While it is there, perhaps no task was notified of the grant.
  const granted = tickets.filter((ticket) => ticket === record?.ticket);
  const waiting = tickets.filter((ticket) => ticket !== record?.ticket);
  const endWaiting = async (ticket: string) => {
    await deleteWaiter(dependencies, { key, ticket }, call);
    ended.tickets++;
  };
  for (const ticket of waiting) await endWaiting(ticket);
  const { outcome } = await releaseHeldBy(dependencies, leaving, call);
  if (outcome === 'spared') return;
  for (const ticket of granted) await endWaiting(ticket);
  if (outcome === 'freed' || outcome === 'graced') ended[outcome]++;
  else if (outcome !== 'other') ended.kept++;
}

interface Held extends Reported, Pick<EndedExecution, 'key' | 'until'> {
  /**
   * Those of the execution that were still there. A grant to one of them may never have been delivered, and can no longer be used. A redriven
   * execution may ask again with the same request id, so the record forgets that id.
   */
  tickets: readonly string[];
  /** The record as a write of this call has just left it. */
  seen?: LeaseRecord;
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
 * Ends the lease of an execution that has ended, and hands it off, or lets it go on for its grace. If another execution works under the lease
 * (`target`), the lease passes to that execution while it runs, and ends with it.
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export async function releaseHeldBy(dependencies: LeaseDependencies, held: Held, call: Call): Promise<HeldOutcome> {
  const { key, execution, tickets, until } = held;
  for (let seen = held.seen; ; seen = undefined) {
    const record = seen ?? (await readRecord(dependencies, key, call));
    if (!isLeased(record) || record.execution !== execution) return { outcome: 'other' };
    if ((record.acquiredAt ?? 0) > until) return { outcome: 'spared' };
    // Redriven since, it may have been answered with this very grant, under a version that this pass has read only now.
    const ended = await endOfHolder(dependencies, { held, record }, call);
    if (ended === undefined) return { outcome: 'spared' };
    const { end, settled } = ended;
    const current = { ...record, execution };
    const { target } = record;
    const work = await workOf(dependencies, { target, end, settled }, call);
    if (work === 'unknown') return { outcome: 'kept' };
    if (work === 'running') {
      if (target === undefined || !(await passToTarget(dependencies, { record: current, target }, call))) continue;
      // It may have ended before it had the lease, and its own event found nothing.
      const hasEnded = (await executionState(dependencies, target, call)) === 'ended';
      if (!hasEnded) return { outcome: 'passed' };
      return releaseHeldBy(dependencies, { key, execution: target, settled, until, tickets: [] }, call);
    }
    const graceUntil = graceEnd(dependencies, endingOf(record), work);
    if (graceUntil !== undefined) {
      if (await giveGrace(dependencies, { record: current, until: graceUntil }, call)) return { outcome: 'graced' };
      continue;
    }
    const ending = (await mayBeUnnotified(
      dependencies,
      { grant: { ...record, line: key, endsAt: endsAt(record) }, tickets },
      call,
    ))
      ? 'perhapsUnnotified'
      : 'executionEnded';
    const granted = await endHeld(dependencies, { record: current, ending }, call);
    if (granted !== undefined) return { outcome: 'freed', granted };
  }
}

/** How the execution of a lease ended. @returns undefined if the lease goes on with it */
async function endOfHolder(
  dependencies: LeaseDependencies,
  { held: { execution, settled, status, stoppedAt }, record }: { held: Held; record: LeaseRecord },
  call: Call,
): Promise<EndOfHolder | undefined> {
  const reported = { execution, settled, status, stoppedAt };
  if (isBound(record)) return (await judgeOfBound(dependencies, reported, call))(record);
  const end = await endOf(dependencies, reported, call);
  return end && { end, settled };
}

/** A lease that an execution holds. */
type OfExecution = Leased & { execution: string };

/** @returns how many tasks were granted the lease then; undefined if the lease has changed */
async function endHeld(
  dependencies: LeaseDependencies,
  { record, ending }: { record: OfExecution; ending: 'perhapsUnnotified' | 'executionEnded' },
  call: Call,
): Promise<number | undefined> {
  const condition = all(isStillHeld(record), isOfExecution(record.execution), isUnmarked);
  const forget = { last: endedBefore(record, ending, { now: dependencies.clock.now() }) };
  const end = { key: record.key, condition, byExecution: true, ...(ending === 'perhapsUnnotified' && { forget }) };
  const outcome = await endLease(dependencies, end, call);
  if (outcome.won) return 0;
  const current = outcome.old ? parseRecord(outcome.old) : undefined;
  if (!current || current.version !== record.version) return undefined;
  const { end: how } = await handOff(dependencies, { record: current, ending }, call);
  if (how === 'overtaken') return undefined;
  return how === 'granted' ? 1 : 0;
}

/**
 * From now on the lease belongs to the target, and ends with it as with any execution. The version is new, so that no call that has read the lease as
 * that of the ended execution can hand it off.
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
 * Ends the lease on record as a pass would, if its execution has ended. No event has reported that end to this call.
 * @param found as `findEnd` returns it. `ticket`: that of the grant, if it was still there
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
