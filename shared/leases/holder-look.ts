import { integer } from '../aws/attributes.ts';
import type { Call } from '../aws/call.ts';
import { all, any } from '../aws/condition.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import { isDue, leftToNextLook } from '../line/executions/bound-grant.ts';
import { canAsk, type DueKey, isWorthAsking, type Looked, NOTHING } from '../line/executions/questions.ts';
import { ASK_EVERY_MS } from '../line/times.ts';
import { isStillHeld } from './conditions.ts';
import { releaseHeldBy } from './execution-ended.ts';
import type { LeaseRecord } from './record.ts';
import { isBound, isLeased } from './rules.ts';
import { updateLease } from './write.ts';

/**
 * Asks about the execution that holds a lease, unless a call has asked a moment ago, and ends the lease if that execution has ended
 * (docs/protocols/bound.md#the-look). A grant that its caller has yet to claim ends by the grant window.
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export async function look(dependencies: LeaseDependencies, record: LeaseRecord, call: Call): Promise<Looked> {
  const now = dependencies.clock.now();
  const { key, execution, claimTtlMs } = record;
  if (!isLeased(record) || execution === undefined || claimTtlMs !== undefined || !isDue(record, now)) return NOTHING;
  if (!(await canAsk(dependencies, execution))) return NOTHING;
  const isDueStill = any(
    { expression: 'attribute_not_exists(looked_at)' },
    { expression: 'looked_at < :due', values: { ':due': integer(now - ASK_EVERY_MS) } },
  );
  const note = {
    key,
    expression: 'SET looked_at = :now',
    condition: all(isStillHeld(record), isDueStill),
    values: { ':now': integer(now) },
  };
  const { won, record: current } = await updateLease(dependencies, note, call);
  if (!won || !isLeased(current)) return NOTHING;
  const { outcome, granted = 0 } = await releaseHeldBy(dependencies, { key, execution, seen: current }, call);
  return { ended: outcome === 'freed' ? 1 : 0, granted };
}

/**
 * As `look`, for a call that the lease refuses.
 * @returns whether the lease has ended, so that another try is worth it. A failure of the look does not fail the call
 */
export async function lookBeside(dependencies: LeaseDependencies, record: LeaseRecord, call: Call): Promise<boolean> {
  const { ended } = await look(dependencies, record, call).catch(leftToNextLook);
  return ended > 0;
}

/** The key of a lease about whose execution the schedule is to ask, or undefined. @param withTtl false for bound leases alone */
export function dueKeyOf(record: LeaseRecord, { withTtl, now }: { withTtl: boolean; now: number }): DueKey | undefined {
  const isMarked = withTtl && record.waiters !== undefined;
  const isWorth = isLeased(record) && isWorthAsking(record, { isBound: isBound(record), isMarked, now });
  return isWorth && isDue(record, now) ? { key: record.key, lookedAt: record.lookedAt ?? 0, most: 1 } : undefined;
}
