import { PutItemCommand } from '@aws-sdk/client-dynamodb';
import type { Call } from '../aws/call.ts';
import { conditionalWrite } from '../aws/dynamodb.ts';
import { isUnseen } from './conditions.ts';
import { type CommitDependencies, commitTable } from './dependencies.ts';
import { type CommitRecord, integer, text } from './record.ts';

/** No client uses such a range key: theirs is `*` or begins with a quote. */
const SIGHT_PREFIX = 'holdfast:first-sight:';

/** Where a sight keeps the identity of the record that it is about; `ttl` is its own. */
const SEEN = { generation: 'generation', timeout: 'timeout', ttl: 'record_ttl' };

/**
 * When this service first saw a foreign record, in epoch milliseconds. It is kept in the commit table, so that the
 * wait for an abandoned record goes on between calls, and it begins anew with every generation of the record.
 * @throws HoldfastError Throttled, Unavailable
 */
export async function firstSight(
  dependencies: CommitDependencies,
  { path, etag }: { path: string; etag: string },
  record: CommitRecord,
  call: Call,
): Promise<number> {
  const now = dependencies.clock.now();
  const { generation, timeout, ttl } = record.identity;
  const command = new PutItemCommand({
    TableName: dependencies.table,
    Item: {
      path: text(path),
      etag: text(SIGHT_PREFIX + etag),
      ...(generation && { [SEEN.generation]: generation }),
      ...(timeout && { [SEEN.timeout]: timeout }),
      ...(ttl && { [SEEN.ttl]: ttl }),
      seen_at: integer(now),
      ttl: integer(Math.ceil((now + waitMs(dependencies, record)) / 1000) + dependencies.commitTtlSeconds),
    },
    ...isUnseen(record, SEEN),
    ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
  });
  // As a read: whether a sight was written or not, nothing of the commit was.
  const outcome = await conditionalWrite(dependencies.dynamodb, command, commitTable(dependencies.table, 'read'), call);
  return outcome.won ? now : Number(outcome.old?.seen_at?.N ?? now);
}

/**
 * How long a foreign record is left alone after its first sight. Its writer counts the timeout on its own clock,
 * hence the rate; the two instants that are compared may come from two of our clocks, hence twice the skew.
 */
export function waitMs(dependencies: CommitDependencies, record: CommitRecord): number {
  const timeoutMs = record.timeoutMs ?? dependencies.commitTimeoutMs;
  return timeoutMs * dependencies.maxClockSkewRate + 2 * dependencies.clockSkewMs;
}
