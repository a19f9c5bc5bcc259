import { integer, text } from '../aws/attributes.ts';
import type { Call } from '../aws/call.ts';
import type { Item } from '../aws/dynamodb.ts';
import type { HoldfastError } from '../errors.ts';
import type { HeartbeatInput, LeaseGrant } from '../line/calls.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import { otherEnd } from '../line/executions/bound-grant.ts';
import { BOUND_SECONDS } from '../line/times.ts';
import type { GrantRequest } from './grant.ts';
import { readRecord } from './read-record.ts';
import type { Leased } from './record.ts';
import { isBound, isOver, lostReason } from './rules.ts';
import { grantView, leaseLost } from './views.ts';

type Terms = Pick<GrantRequest, 'bound' | 'execution' | 'target' | 'graceSeconds'>;

/** Whether a lease goes on for the grace of the execution that asks again for a bound one, because it was redriven. */
export const isRedriven = (record: Leased, { bound, execution }: Terms): boolean =>
  bound === true && record.execution === undefined && record.endedExecution === execution && execution !== undefined;

/** The error for a request that has a lease which ends otherwise than this call asks for (docs/protocols/bound.md#the-same-request-again). */
export const otherTerms = (record: Leased, asked: Terms): HoldfastError | undefined =>
  isRedriven(record, asked) ? undefined : otherEnd(asked, isBound(record) ? record.execution : undefined);

interface Again {
  set: Item;
  removed: string[];
}

/**
 * What a write sets that answers the request of a lease again. A bound lease notes the time. A request for a bound lease whose lease goes on for its grace
 * has been redriven since, and the lease is bound to its execution again.
 */
export function boundAgain(record: Leased, asked: Terms, now: number): Again {
  const { execution, target, graceSeconds } = asked;
  if (isBound(record)) return { set: { bound_at: integer(now) }, removed: [] };
  if (execution === undefined || !isRedriven(record, asked)) return { set: {}, removed: [] };
  return {
    set: {
      ...{ execution: text(execution), bound_at: integer(now), heartbeat_at: integer(now) },
      ...{ ttl_ms: integer(BOUND_SECONDS * 1000), ttl_seconds: integer(BOUND_SECONDS) },
      expires_at: integer(now + BOUND_SECONDS * 1000),
      lease_expiry: integer(Math.ceil(now / 1000) + BOUND_SECONDS),
      ...(target !== undefined && { target: text(target) }),
      ...(graceSeconds && { grace_ms: integer(graceSeconds * 1000) }),
    },
    removed: ['ended_execution', ...(graceSeconds ? [] : ['grace_ms'])],
  };
}

/**
 * The answer to the heartbeat of a bound lease, which extends nothing.
 * @throws HoldfastError LeaseLost, Throttled, Unavailable
 */
export async function stillHeld(
  dependencies: LeaseDependencies,
  { key, leaseId }: HeartbeatInput,
  call: Call,
): Promise<LeaseGrant> {
  const record = await readRecord(dependencies, key, call);
  if (record.leaseId === leaseId && !isOver(record)) return grantView(record, dependencies.clock.now());
  throw leaseLost(key, lostReason(record, leaseId), record);
}
