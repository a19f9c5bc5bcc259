import { randomUUID } from 'node:crypto';
import { DynamoDBClient, UpdateItemCommand } from '@aws-sdk/client-dynamodb';
import { integer } from '../shared/aws/attributes.ts';
import { all, conditionFields } from '../shared/aws/condition.ts';
import { isUnderCap } from '../shared/locks/record/capped.ts';
import {
  hasLeaseId,
  hasNoSharedEntry,
  hasRoom,
  isFenceBelow,
  isNotRemembered,
  isUnmarked,
  wasNotFreedAfter,
} from '../shared/locks/record/conditions.ts';
import {
  HOLDFAST_LEASE_VERSION,
  leaseIdOf,
  nameOfRequest,
  proofOf,
  remember,
} from '../shared/locks/record/identity.ts';
import { entryItem } from '../shared/locks/record/new-entries.ts';

/** A permit without this service: the same writes on the same conditions, and nothing around them. */
const client = new DynamoDBClient({});
const table = process.env.LEASES_TABLE;
const holder = 'bench';
const LIMIT = 8;
const FREED = ['freed_before = if_not_exists(freed_at, :now)', 'freed_at = :now', 'used_before = used'];
const ttlMs = 60_000;

const ttlAt = (now: number) => integer(Math.ceil(now / 1000) + 400 * 86_400);

/** @returns the lease id */
export async function acquire(key: string, requestId: string = randomUUID()): Promise<string> {
  const now = Date.now();
  const [id, version] = [randomUUID(), randomUUID()];
  const name = nameOfRequest({ holder, requestId });
  await client.send(
    new UpdateItemCommand({
      TableName: table,
      Key: { key: { S: key } },
      UpdateExpression:
        'SET lease_version = :ours, #g0 = :g0, #n0 = if_not_exists(fence, :first) + :n0, fence = if_not_exists(fence, :first) + :n0, used = if_not_exists(used, :zero) + :weight, limit_before = if_not_exists(last_limit, :limit), last_limit = :limit, limit_by = :limit_by, lease_expiry = if_not_exists(cap_ttl, :lease_expiry) REMOVE execution, h',
      ...conditionFields(
        all(
          isUnmarked,
          isUnderCap(undefined, [{ limit: LIMIT }]),
          hasRoom(LIMIT - 1, now - 500),
          isFenceBelow(now + 1500),
          wasNotFreedAfter(now + 500),
          isNotRemembered(name),
          hasNoSharedEntry(name),
        ),
        {
          names: {
            '#n0': `f${name}`,
          },
          values: {
            ':g0': entryItem({
              name,
              path: `h${name}`,
              id,
              version,
              holder,
              expiresAt: now + ttlMs,
              ttlMs,
              acquiredAt: now,
              weight: 1,
            }),
            ':n0': integer(1),
            ':first': integer(now - 1),
            ':zero': integer(0),
            ':weight': integer(1),
            ':ours': { S: HOLDFAST_LEASE_VERSION },
            ':limit': integer(LIMIT),
            ':limit_by': { S: holder },
            ':lease_expiry': ttlAt(now),
          },
        },
      ),
      ReturnValues: 'ALL_NEW',
      ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
    }),
  );
  return leaseIdOf({ name, path: `h${name}`, id });
}

export async function release(key: string, leaseId: string): Promise<void> {
  const proof = proofOf(leaseId);
  if (!proof) throw new Error(`${leaseId} is not the lease id of a permit`);
  const { name } = proof;
  const { set, values } = remember(name);
  const now = Date.now();
  await client.send(
    new UpdateItemCommand({
      TableName: table,
      Key: { key: { S: key } },
      UpdateExpression: `SET used = used - #h.w, turn_ms = :now - #h.a, ${[...FREED, ...set].join(', ')}, lease_expiry = if_not_exists(cap_ttl, :lease_expiry) REMOVE #h, #f`,
      ...conditionFields(hasLeaseId(proof), {
        names: {
          '#f': `f${name}`,
        },
        values: { ...values, ':now': integer(now), ':lease_expiry': ttlAt(now) },
      }),
      ReturnValues: 'ALL_NEW',
      ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
    }),
  );
}
