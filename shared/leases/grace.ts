import { integer, text } from '../aws/attributes.ts';
import type { Call } from '../aws/call.ts';
import { all } from '../aws/condition.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import type { EndingGrant } from '../line/executions/grace-end.ts';
import { isOfExecution, isStillHeld } from './conditions.ts';
import type { Leased } from './record.ts';
import { endsAt, isBound } from './rules.ts';
import { repairAtTheEnd } from './watch.ts';
import { updateLease } from './write.ts';

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
    'SET lease_version = :next, expires_at = :expires, lease_expiry = :seconds, ended_execution = :execution' +
    `${isBound(record) ? ', ttl_ms = grace_ms, ttl_seconds = :grace' : ''} REMOVE execution, target, grace_ms, bound, looked_at`;
  const values = {
    ':next': text(version),
    ':expires': integer(until),
    ':seconds': integer(Math.ceil(until / 1000)),
    ...(isBound(record) && { ':grace': integer(Math.ceil((record.graceMs ?? 0) / 1000)) }),
  };
  const condition = all(isStillHeld(record), isOfExecution(execution));
  const { won, record: current } = await updateLease(
    dependencies,
    { key, expression, condition, values, version },
    call,
  );
  if (won && current.waiters !== undefined) await repairAtTheEnd(dependencies, current, { call });
  return won;
}

/** The grant of a lease, as `graceEnd` takes it. */
export const endingOf = (record: Leased): EndingGrant => ({
  endsAt: endsAt(record),
  graceMs: record.graceMs,
  claimTtlMs: record.claimTtlMs,
});
