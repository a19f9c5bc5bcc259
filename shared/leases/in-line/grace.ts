import { integer, text } from '../../aws/attributes.ts';
import type { Call } from '../../aws/call.ts';
import { all } from '../../aws/condition.ts';
import type { LeaseDependencies } from '../../line/dependencies.ts';
import type { Work } from '../../line/executions/state.ts';
import { repairAtTheEnd } from '../../line/repair/later.ts';
import { isOfExecution, isStillHeld } from '../conditions.ts';
import type { Leased } from '../record.ts';
import { endsAt } from '../rules.ts';
import { updateLease } from '../write.ts';

/** A grant of a lease or a permit whose execution has ended. */
interface Ending {
  /** Epoch milliseconds. */
  endsAt: number;
  graceMs?: number | undefined;
  claimTtlMs?: number | undefined;
}

/**
 * The instant until which such a grant goes on (docs/protocols/queue.md#grace). Step Functions stops no function that an execution has started, so
 * after an abnormal end that function may still work, and count on the expiry that it was told. No call has been answered with a grant that was
 * not claimed, so nothing works under that grant.
 * @returns undefined if the grant ends at once
 */
export function graceEnd(
  { clock, clockSkewMs }: LeaseDependencies,
  grant: Ending,
  work: Exclude<Work, 'running' | 'unknown'>,
): number | undefined {
  const now = clock.now();
  const { graceMs = 0, claimTtlMs, endsAt: expiry } = grant;
  const isOver = expiry + clockSkewMs < now;
  if (work !== 'failed' || graceMs <= 0 || claimTtlMs !== undefined || isOver) return undefined;
  return Math.min(expiry, now + graceMs);
}

/**
 * Lets a lease go on until then, as an ordinary lease that no end of an execution ends any more. The beat stays as it is, so that a late duplicate of
 * an earlier heartbeat does not bring the longer expiry back.
 * @returns false if the lease has changed since it was read
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export async function giveGrace(
  dependencies: LeaseDependencies,
  { record, until }: { record: Leased & { execution: string }; until: number },
  call: Call,
): Promise<boolean> {
  const { key, execution } = record;
  const version = dependencies.ids.uuid();
  const expression =
    'SET lease_version = :next, expires_at = :expires, lease_expiry = :seconds, ended_execution = :execution ' +
    'REMOVE execution, target, grace_ms';
  const values = {
    ':next': text(version),
    ':expires': integer(until),
    ':seconds': integer(Math.ceil(until / 1000)),
  };
  const condition = all(isStillHeld(record), isOfExecution(execution));
  const { won, standing } = await updateLease(dependencies, { key, expression, condition, values, version }, call);
  if (won && standing.waiters !== undefined) await repairAtTheEnd(dependencies, standing, { call });
  return won;
}

/** The grant of a lease, as `graceEnd` takes it. */
export const endingOf = (record: Leased): Ending => ({
  endsAt: endsAt(record),
  graceMs: record.graceMs,
  claimTtlMs: record.claimTtlMs,
});
