import { integer } from '../aws/attributes.ts';
import type { Call } from '../aws/call.ts';
import { all, any } from '../aws/condition.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import { isDue, leftToNextLook } from '../line/executions/bound-grant.ts';
import { endDeadHolders, lookWithin, type Questions } from '../line/executions/questions.ts';
import { ASK_EVERY_MS } from '../line/times.ts';
import { isStillHeld } from './conditions.ts';
import { releaseHeldBy } from './execution-ended.ts';
import type { LeaseRecord } from './record.ts';
import { isBound, isLeased } from './rules.ts';
import { updateLease } from './write.ts';

/**
 * Asks about the execution that holds a bound lease, unless a call has asked a moment ago, and ends the lease if that execution has ended
 * (docs/protocols/bound.md#the-look). A grant that its caller has yet to claim ends by the grant window.
 * @returns how many in line were given the lease
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export async function look(dependencies: LeaseDependencies, record: LeaseRecord, call: Call): Promise<number> {
  const now = dependencies.clock.now();
  if (!isBound(record) || record.claimTtlMs !== undefined || !isDue(record, now)) return 0;
  const { key } = record;
  const isDueStill = any(
    { expression: 'attribute_not_exists(looked_at)' },
    { expression: 'looked_at < :due', values: { ':due': integer(now - ASK_EVERY_MS) } },
  );
  const { won, record: current } = await updateLease(
    dependencies,
    {
      key,
      expression: 'SET looked_at = :now',
      condition: all(isStillHeld(record), isDueStill),
      values: { ':now': integer(now) },
    },
    call,
  );
  if (!won || !isBound(current)) return 0;
  const held = { key, execution: current.execution, seen: current };
  return (await releaseHeldBy(dependencies, held, call)).granted ?? 0;
}

/** As `look`, for a call that the lease keeps waiting, or that is refused: a failure of the look does not fail the call. */
export async function lookBeside(dependencies: LeaseDependencies, record: LeaseRecord, call: Call): Promise<void> {
  await look(dependencies, record, call).catch(leftToNextLook);
}

/**
 * Asks about the execution that holds a lease with a ticket. If the lease has a ttl, a mark is required: other callers wait. A bound lease needs no mark,
 * because the ticket may be that of the holder, a task that was not notified in time, and no ttl ends that grant.
 * @throws as `endDeadHolders`
 */
export async function endDeadHolder(
  dependencies: LeaseDependencies,
  { record, questions }: { record: LeaseRecord; questions: Questions },
  call: Call,
): Promise<number> {
  if (!isLeased(record)) return 0;
  if (isBound(record)) return lookWithin(questions, 1, () => look(dependencies, record, call));
  if (record.waiters === undefined) return 0;
  const { key } = record;
  const end = async (execution: string) => (await releaseHeldBy(dependencies, { key, execution }, call)).granted ?? 0;
  return endDeadHolders(dependencies, { grants: [record], questions, end });
}
