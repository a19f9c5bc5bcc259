import { integer, text } from '../aws/attributes.ts';
import type { Call } from '../aws/call.ts';
import { all } from '../aws/condition.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import { deadTickets, type EndedExecution } from '../line/executions/ended-execution.ts';
import { graceEnd } from '../line/executions/grace-end.ts';
import { judgeOf, type Reported } from '../line/executions/judgement.ts';
import { executionState, workOf } from '../line/executions/state.ts';
import { BOUND_SECONDS } from '../line/times.ts';
import { deleteWaiter } from '../line/waiters.ts';
import { isOfExecution, isStillHeld, isUnmarked } from './conditions.ts';
import { endLease } from './end.ts';
import { endingOf, giveGrace } from './grace.ts';
import { handOff } from './hand-off.ts';
import { endedBefore } from './previous.ts';
import { readRecord } from './read-record.ts';
import { type Leased, type LeaseRecord, parseRecord } from './record.ts';
import { isBound, isLeased } from './rules.ts';
import { updateLease } from './write.ts';

/**
 * Takes an execution that has ended out of the line of a lease, and ends its lease (docs/protocols/executions.md).
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export async function endInLease(dependencies: LeaseDependencies, leaving: EndedExecution, call: Call): Promise<void> {
  const { key, ended } = leaving;
  const tickets = await deadTickets(leaving);
  const record = tickets.length > 0 ? await readRecord(dependencies, key, call) : undefined;
  // The ticket of a grant goes last: the schedule finds the key by it if this call exits.
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

interface Held extends Reported {
  key: string;
  /** The record as a write of this call has just left it. */
  seen?: LeaseRecord;
}

/**
 * `freed`: the lease has ended. `graced`: it goes on for its grace. `kept`: the target may not have started yet. `passed`: the target runs, and the
 * lease belongs to it now. `spared`: the execution runs, or may have received the lease after its end. `other`: the lease does not belong to the
 * execution, or no longer.
 */
export type HeldOutcome =
  | { outcome: 'freed'; granted: number }
  | { outcome: 'graced' | 'kept' | 'passed' | 'spared' | 'other'; granted?: undefined };

/**
 * Ends the lease of an execution if that execution has ended, and hands it off, or lets it go on for its grace. If another execution works under the
 * lease (`target`), the lease passes to that execution while it runs, and ends with it.
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export async function releaseHeldBy(dependencies: LeaseDependencies, held: Held, call: Call): Promise<HeldOutcome> {
  const { key, execution, settled } = held;
  for (let seen = held.seen; ; seen = undefined) {
    const record = seen ?? (await readRecord(dependencies, key, call));
    if (!isLeased(record) || record.execution !== execution) return { outcome: 'other' };
    // Redriven since, it may have been answered with this very grant, under a version that this call has read only now.
    const judge = await judgeOf(dependencies, { ...held, grants: [record] }, call);
    const ended = judge(record);
    if (ended === undefined) return { outcome: 'spared' };
    const current = { ...record, execution };
    const { target } = record;
    const work = await workOf(dependencies, { target, ...ended }, call);
    if (work === 'unknown') return { outcome: 'kept' };
    if (work === 'running') {
      if (target === undefined || !(await passToTarget(dependencies, { record: current, target }, call))) continue;
      // It may have ended before it had the lease, and its own event found nothing.
      const hasEnded = (await executionState(dependencies, target, call)) === 'ended';
      return hasEnded ? releaseHeldBy(dependencies, { key, execution: target, settled }, call) : { outcome: 'passed' };
    }
    const graceUntil = graceEnd(dependencies, endingOf(record), work);
    if (graceUntil !== undefined) {
      if (await giveGrace(dependencies, { record: current, until: graceUntil }, call)) return { outcome: 'graced' };
      continue;
    }
    const granted = await endHeld(dependencies, current, call);
    if (granted !== undefined) return { outcome: 'freed', granted };
  }
}

/** A lease that an execution holds. */
type OfExecution = Leased & { execution: string };

/** @returns how many tasks were granted the lease then; undefined if the lease has changed */
async function endHeld(dependencies: LeaseDependencies, record: OfExecution, call: Call): Promise<number | undefined> {
  const condition = all(isStillHeld(record), isOfExecution(record.execution), isUnmarked);
  const ending = 'executionEnded';
  const forget = { last: endedBefore(record, ending, { now: dependencies.clock.now() }) };
  const outcome = await endLease(dependencies, { key: record.key, condition, forget }, call);
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
  const expires = dependencies.clock.now() + BOUND_SECONDS * 1000;
  const values = {
    ':target': text(target),
    ':next': text(version),
    ...(isBound(record) && { ':expires': integer(expires), ':seconds': integer(Math.ceil(expires / 1000)) }),
  };
  // The target may have begun late, and run for longer than is left.
  const renewed = isBound(record) ? ', expires_at = :expires, lease_expiry = :seconds' : '';
  const expression = `SET execution = :target, lease_version = :next${renewed} REMOVE target`;
  return (await updateLease(dependencies, { key, expression, condition, values, version }, call)).won;
}
