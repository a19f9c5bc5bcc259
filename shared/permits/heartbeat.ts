import { integer, text } from '../aws/attributes.ts';
import type { Call } from '../aws/call.ts';
import { all, type Condition } from '../aws/condition.ts';
import type { Item } from '../aws/dynamodb.ts';
import type { HeartbeatInput, LeaseGrant } from '../line/calls.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import { beatBefore, expiresBefore, hasNoEndMark, isOf } from './conditions.ts';
import { proofOf } from './identity.ts';
import { entryOf } from './record.ts';
import { lostReason, permitGrant, permitLost } from './views.ts';
import { updatePool } from './write.ts';

/**
 * Extends a permit to its ttl, or to a new `ttlSeconds`, with one conditional UpdateItem (docs/protocols/pools.md#heartbeat). Creates
 * nothing and never shortens. Revives an expired permit whose place no caller has needed. Extends none that an operator has marked as ending.
 * @throws HoldfastError LeaseLost, Throttled, Unavailable, OutcomeUnknown
 */
export function extendPermit(dependencies: LeaseDependencies) {
  const { clock, ids } = dependencies;
  return async ({ key, leaseId, ttlSeconds }: HeartbeatInput, call: Call): Promise<LeaseGrant> => {
    const proof = proofOf(leaseId);
    if (!proof) throw permitLost(key, 'unknown');
    const { name, id } = proof;
    const now = clock.now();
    const { condition, set, values } =
      ttlSeconds === undefined ? keepTtl(name, now) : setTtl(name, now, ttlSeconds * 1000);
    const { record } = await updatePool(
      dependencies,
      {
        key,
        now,
        set: ['#h.v = :version', '#h.b = :now', ...set],
        condition: all(isOf(proof), hasNoEndMark(name), condition),
        values: { ':version': text(ids.uuid()), ':now': integer(now), ...values },
      },
      call,
    );
    const entry = entryOf(record, name);
    if (entry?.id === id && !entry.isEnding) return permitGrant(key, entry, clock.now());
    throw permitLost(key, lostReason(record, name));
  };
}

interface Extension {
  condition: Condition;
  set: string[];
  values?: Item;
}

/** DynamoDB adds the ttl of the entry, so nothing is read first. */
const keepTtl = (name: string, now: number): Extension => ({
  condition: beatBefore(name, now),
  set: ['#h.e = :now + #h.t'],
});

const setTtl = (name: string, now: number, ttlMs: number): Extension => ({
  condition: expiresBefore(name, now + ttlMs),
  set: ['#h.e = :expires', '#h.t = :ttlMs'],
  values: { ':expires': integer(now + ttlMs), ':ttlMs': integer(ttlMs) },
});
