import { randomUUID } from 'node:crypto';
import { DynamoDBClient, PutItemCommand, UpdateItemCommand } from '@aws-sdk/client-dynamodb';
import { integer, text } from '../shared/aws/attributes.ts';
import { all, any, conditionFields } from '../shared/aws/condition.ts';
import {
  beatBefore,
  countsUntil,
  hasLeaseId,
  hasNoEndMark,
  isBelow,
  isClaimed,
  isExpired,
  isFreeFor,
  isHeld,
  isLease,
  isNotEndingFor,
  isUnmarked,
  wasNotReleasedAfter,
} from '../shared/leases/conditions.ts';
import { grantItem } from '../shared/leases/grant.ts';

/** What one would write without this service: the same writes on the same conditions, and nothing around them. */
const client = new DynamoDBClient({});
const table = process.env.LEASES_TABLE;

/** @returns the lease id */
export async function acquire(key: string): Promise<string> {
  const now = Date.now();
  const [leaseId, requestId] = [randomUUID(), randomUUID()];
  const holder = 'bench';
  const grant = { key, leaseId, version: randomUUID(), ttlSeconds: 60, holder, requestId, fence: now, acquiredAt: now };
  await client.send(
    new PutItemCommand({
      TableName: table,
      Item: grantItem(grant),
      ...conditionFields(
        all(
          isLease,
          isUnmarked,
          countsUntil(now, {}),
          any(isFreeFor(grant), all(isExpired(now - 500), isClaimed, isNotEndingFor(grant))),
          isBelow(now),
          wasNotReleasedAfter(now + 500),
        ),
      ),
      ReturnValues: 'ALL_OLD',
      ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
    }),
  );
  return leaseId;
}

export async function release(key: string, leaseId: string): Promise<void> {
  const now = Date.now();
  await client.send(
    new UpdateItemCommand({
      TableName: table,
      Key: { key: text(key) },
      UpdateExpression:
        'SET released_at = :now, lease_expiry = :retention REMOVE lease_version, expires_at, execution, target, grace_ms, ended_execution, heartbeat_at',
      ...conditionFields(all(hasLeaseId(leaseId), isHeld, isUnmarked), {
        values: { ':now': integer(now), ':retention': integer(Math.ceil(now / 1000) + 3600) },
      }),
      ReturnValues: 'NONE',
      ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
    }),
  );
}

export async function heartbeat(key: string, leaseId: string): Promise<void> {
  const now = Date.now();
  const update = new UpdateItemCommand({
    TableName: table,
    Key: { key: text(key) },
    UpdateExpression:
      'SET lease_version = :version, heartbeat_at = :now, expires_at = :now + ttl_ms, lease_expiry = :seconds + ttl_seconds',
    ...conditionFields(all(hasLeaseId(leaseId), isHeld, hasNoEndMark, beatBefore(now)), {
      values: { ':version': text(randomUUID()), ':now': integer(now), ':seconds': integer(Math.ceil(now / 1000)) },
    }),
    ReturnValues: 'ALL_NEW',
    ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
  });
  await client.send(update).catch((error: Error) => {
    if (error.name !== 'ConditionalCheckFailedException') throw error; // two beats in one millisecond
  });
}
