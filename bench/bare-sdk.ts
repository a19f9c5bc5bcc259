import { randomUUID } from 'node:crypto';
import { DynamoDBClient, UpdateItemCommand } from '@aws-sdk/client-dynamodb';
import { integer, text } from '../shared/aws/attributes.ts';
import { all, conditionFields } from '../shared/aws/condition.ts';
import { isUnderCap } from '../shared/locks/record/capped.ts';
import {
  entryAt,
  hasLeaseId,
  isFenceBelow,
  isFreeForExclusive,
  isLastHeartbeatBefore,
  isNotEnding,
  isNotRemembered,
  isUnmarked,
  wasNotFreedAfter,
} from '../shared/locks/record/conditions.ts';
import {
  EXCLUSIVE_PATH,
  EXCLUSIVE_WEIGHT,
  HOLDFAST_LEASE_VERSION,
  leaseIdOf,
  nameOfRequest,
  type Proof,
  proofOf,
} from '../shared/locks/record/identity.ts';
import { entryItem } from '../shared/locks/record/new-entries.ts';
import { endExclusive, secondsAttribute } from '../shared/locks/record/requests.ts';

/** A lease without this service: the same writes on the same conditions, and nothing around them. */
const client = new DynamoDBClient({});
const table = process.env.LEASES_TABLE;
const holder = 'bench';
const ttlMs = 60_000;

/** @returns the lease id */
export async function acquire(key: string): Promise<string> {
  const acquiredAt = Date.now();
  const proof = { name: nameOfRequest({ holder, requestId: randomUUID() }), path: EXCLUSIVE_PATH, id: randomUUID() };
  const [expiresAt, weight] = [acquiredAt + ttlMs, EXCLUSIVE_WEIGHT];
  await client.send(
    new UpdateItemCommand({
      TableName: table,
      Key: { key: text(key) },
      UpdateExpression:
        'SET lease_version = :ours, #g0 = :g0, fence = :fence, used = :used, lease_expiry = if_not_exists(cap_ttl, :lease_expiry) REMOVE execution',
      ...conditionFields(
        all(
          isUnmarked,
          isUnderCap(undefined, [{ limit: null }]),
          isFreeForExclusive(acquiredAt - 500),
          isFenceBelow(acquiredAt),
          wasNotFreedAfter(acquiredAt + 500),
          isNotRemembered(proof.name),
        ),
        {
          names: { '#g0': EXCLUSIVE_PATH },
          values: {
            ':g0': entryItem({ ...proof, version: randomUUID(), holder, expiresAt, ttlMs, acquiredAt, weight }),
            ...{ ':ours': text(HOLDFAST_LEASE_VERSION), ':fence': integer(acquiredAt), ':used': integer(weight) },
            ':lease_expiry': secondsAttribute(expiresAt),
          },
        },
      ),
      ReturnValues: 'ALL_OLD',
      ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
    }),
  );
  return leaseIdOf(proof);
}

export async function release(key: string, leaseId: string): Promise<void> {
  const proof = proven(leaseId);
  const now = Date.now();
  const end = endExclusive({ fenceRetentionSeconds: 3600 }, { key, entry: proof, how: 'released', now });
  await client.send(
    new UpdateItemCommand({
      TableName: table,
      Key: { key: text(key) },
      UpdateExpression: `SET used = used - #h.w, ${end.set.join(', ')} REMOVE ${end.remove.join(', ')}`,
      ...conditionFields(all(hasLeaseId(proof), isUnmarked), { names: end.names, values: end.values }),
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
      'SET #h.v = :version, #h.b = :now, #h.e = :now + #h.t, lease_expiry = if_not_exists(cap_ttl, :seconds) + #h.u',
    ...conditionFields(
      all(hasLeaseId(proven(leaseId)), isNotEnding(EXCLUSIVE_PATH), isLastHeartbeatBefore(EXCLUSIVE_PATH, now)),
      {
        names: entryAt(EXCLUSIVE_PATH),
        values: { ':version': text(randomUUID()), ':now': integer(now), ':seconds': secondsAttribute(now) },
      },
    ),
    ReturnValues: 'ALL_NEW',
    ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
  });
  await client.send(update).catch((error: Error) => {
    if (error.name !== 'ConditionalCheckFailedException') throw error; // two beats in one millisecond
  });
}

function proven(leaseId: string): Proof {
  const proof = proofOf(leaseId);
  if (!proof) throw new Error(`${leaseId} is not the lease id of an exclusive grant`);
  return proof;
}
