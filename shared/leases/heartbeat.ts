import { UpdateItemCommand } from '@aws-sdk/client-dynamodb';
import { integer, text } from '../aws/attributes.ts';
import type { Call } from '../aws/call.ts';
import { all, type Condition, conditionFields } from '../aws/condition.ts';
import { conditionalWrite, type Item } from '../aws/dynamodb.ts';
import { writing } from '../aws/send.ts';
import type { HeartbeatInput, LeaseGrant } from '../line/calls.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import { beatBefore, expiresBefore, hasLeaseId, hasNoEndMark, isHeld } from './conditions.ts';
import { hasMemory } from './memory.ts';
import { parseRecord } from './record.ts';
import { isOver, lostReason } from './rules.ts';
import { grantView, leaseLost } from './views.ts';

/**
 * Extends a lease to its ttl, or to a new `ttlSeconds`, with one conditional UpdateItem (docs/protocols/leases.md#heartbeat). Creates nothing and
 * never shortens: if the current expiry is later, the current grant is the answer. Revives an expired lease under the same fence if no other caller
 * has taken it, because the key was not held in between. Extends no lease that an operator has marked as ending: its holder receives LeaseLost
 * (`broken`).
 * @throws HoldfastError LeaseLost, Throttled, Unavailable, OutcomeUnknown
 */
export function extendLease(dependencies: LeaseDependencies) {
  const { dynamodb, clock, ids, table } = dependencies;
  return async (input: HeartbeatInput, call: Call): Promise<LeaseGrant> => {
    const now = clock.now();
    const { condition, update, values } =
      input.ttlSeconds === undefined ? keepTtl(now) : setTtl(now, input.ttlSeconds, hasMemory(input.key));
    const command = new UpdateItemCommand({
      TableName: table,
      Key: { key: text(input.key) },
      UpdateExpression: `SET lease_version = :version, heartbeat_at = :now, ${update}`,
      ...conditionFields(all(hasLeaseId(input.leaseId), isHeld, hasNoEndMark, condition), {
        values: { ':version': text(ids.uuid()), ':now': integer(now), ...values },
      }),
      ReturnValues: 'ALL_NEW',
      ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
    });
    const outcome = await conditionalWrite(dynamodb, { command, operation: writing(`table ${table}`) }, call);
    const item = outcome.won ? outcome.item : outcome.old;
    const record = item && parseRecord(item);
    if (record?.leaseId === input.leaseId && !isOver(record)) return grantView(record, clock.now());
    throw leaseLost(input.key, lostReason(record, input.leaseId), record);
  };
}

interface Extension {
  condition: Condition;
  update: string;
  values: Item;
}

/** Both expiries are `now` plus a ttl attribute of the record, so DynamoDB can add them without a read. */
function keepTtl(now: number): Extension {
  return {
    condition: beatBefore(now),
    update: 'expires_at = :now + ttl_ms, lease_expiry = :seconds + ttl_seconds',
    values: { ':seconds': integer(Math.ceil(now / 1000)) },
  };
}

/** @param remembers whether the record has a memory (memory.ts), which the new ttl must not cut short */
function setTtl(now: number, ttlSeconds: number, remembers: boolean): Extension {
  const stays = remembers ? ':expirySeconds + ttl_seconds' : ':expirySeconds';
  return {
    condition: expiresBefore(now + ttlSeconds * 1000),
    update: `expires_at = :expires, lease_expiry = ${stays}, ttl_ms = :ttlMs${remembers ? '' : ', ttl_seconds = :ttlSeconds'}`,
    values: {
      ':expires': integer(now + ttlSeconds * 1000),
      ':expirySeconds': integer(Math.ceil(now / 1000) + ttlSeconds),
      ':ttlMs': integer(ttlSeconds * 1000),
      ...(!remembers && { ':ttlSeconds': integer(ttlSeconds) }),
    },
  };
}
