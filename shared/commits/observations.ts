import { GetItemCommand, PutItemCommand } from '@aws-sdk/client-dynamodb';
import { integer, text } from '../aws/attributes.ts';
import type { Call } from '../aws/call.ts';
import { conditionFields } from '../aws/condition.ts';
import { conditionalWrite, type Item } from '../aws/dynamodb.ts';
import { reading, send } from '../aws/send.ts';
import { isUnobserved } from './conditions.ts';
import { type CommitDependencies, commitTable } from './dependencies.ts';
import { type CommitKey, type CommitRecord, recordEtag } from './record.ts';

/**
 * The beginning of the range key of an observation. Other clients do not use such a key: theirs is `*` or begins with a
 * quote.
 */
export const OBSERVATION_PREFIX = 'holdfast:first-sight:';

/**
 * The attributes of an observation that hold the identity of its record. The attribute `ttl` is the TTL of the
 * observation itself.
 */
const SEEN_ATTRIBUTES = { generation: 'generation', timeout: 'timeout', ttl: 'record_ttl' };

/** What this service knows about the record of another client. See docs/protocols/commits.md#foreign-records. */
export interface Observation {
  /** When the record was first seen, in epoch milliseconds. */
  seenAt: number;
  generation: number;
  /** The records from this generation to `generation` were all seen, and another client wrote each of them. */
  foreignFrom: number;
  /** When TTL may delete the record, in epoch milliseconds. */
  recordEndsAt: number;
}

interface ObservedRecord {
  key: CommitKey;
  record: CommitRecord;
}

const observationKey = ({ path, expectedEtag }: CommitKey): Item => ({
  path: text(path),
  etag: text(OBSERVATION_PREFIX + recordEtag(expectedEtag)),
});

/**
 * Stores when the record of another client was first seen. The observation is a row of the commit table, so that the
 * wait for an abandoned record continues across calls. The wait begins again with each generation of the record.
 * @returns the first observation, of this call or of an earlier one
 * @throws HoldfastError Throttled, Unavailable
 */
export async function observe(
  dependencies: CommitDependencies,
  { key, record }: ObservedRecord,
  call: Call,
): Promise<Observation> {
  const { dynamodb, clock, table } = dependencies;
  // A record of generation 0 does not have predecessors, so an earlier observation says nothing about it.
  const previous = record.generation > 0 ? await readObservation(dependencies, key, call) : undefined;
  const now = clock.now();
  const item = observationItem(dependencies, { key, record, previous }, now);
  const command = new PutItemCommand({
    TableName: table,
    Item: item,
    ...conditionFields(isUnobserved(record, SEEN_ATTRIBUTES)),
    ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
  });
  // Counts as a read: even if the observation was written, nothing of the commit was.
  const outcome = await conditionalWrite(dynamodb, { command, operation: reading(commitTable(table)) }, call);
  return parseObservation(outcome.won ? item : (outcome.old ?? item), now);
}

/** @throws HoldfastError Throttled, Unavailable */
export async function readObservation(
  { dynamodb, clock, table }: CommitDependencies,
  key: CommitKey,
  call: Call,
): Promise<Observation | undefined> {
  const command = new GetItemCommand({ TableName: table, Key: observationKey(key), ConsistentRead: true });
  const { Item: item } = await send(dynamodb, { command, operation: reading(commitTable(table)) }, call);
  return item && parseObservation(item, clock.now());
}

function observationItem(
  dependencies: CommitDependencies,
  { key, record, previous }: ObservedRecord & { previous: Observation | undefined },
  now: number,
): Item {
  const { generation, timeout, ttl } = record.identity;
  const isNext =
    previous?.generation === record.generation - 1 && isSurelyThere(dependencies, previous.recordEndsAt, now);
  return {
    ...observationKey(key),
    ...(generation && { [SEEN_ATTRIBUTES.generation]: generation }),
    ...(timeout && { [SEEN_ATTRIBUTES.timeout]: timeout }),
    ...(ttl && { [SEEN_ATTRIBUTES.ttl]: ttl }),
    seen_at: integer(now),
    foreign_from: integer(isNext ? previous.foreignFrom : record.generation),
    ttl: integer(Math.ceil((now + takeOverWaitMs(dependencies, record)) / 1000) + dependencies.commitTtlSeconds),
  };
}

function parseObservation(item: Item, now: number): Observation {
  const number = (name: string, otherwise: number) => Number(item[name]?.N ?? otherwise);
  const generation = number(SEEN_ATTRIBUTES.generation, 0);
  return {
    seenAt: number('seen_at', now),
    generation,
    foreignFrom: number('foreign_from', generation),
    recordEndsAt: number(SEEN_ATTRIBUTES.ttl, 0) * 1000,
  };
}

/**
 * Whether other clients wrote all the records that a record of another client has replaced, so that none of them shows
 * a try of this service. Generations count up from 0 as long as the record is not deleted, and each generation has one
 * writer.
 */
export function provesThirdParty(
  dependencies: CommitDependencies,
  { generation, foreignFrom, recordEndsAt }: Observation,
  record: CommitRecord,
): boolean {
  const now = dependencies.clock.now();
  return (
    foreignFrom === 0 &&
    generation >= record.generation - 1 &&
    isSurelyThere(dependencies, recordEndsAt, now) &&
    isSurelyThere(dependencies, Number(record.identity.ttl?.N ?? 0) * 1000, now)
  );
}

/**
 * Whether TTL cannot have deleted the record yet. If it had, another record could have begun at generation 0 in its
 * place.
 */
const isSurelyThere = ({ clockSkewMs }: CommitDependencies, endsAt: number, now: number): boolean =>
  now + clockSkewMs < endsAt;

/**
 * How long the record of another client is left alone after its first observation. The factor is there because the
 * writer counts the timeout by its own clock. The skew counts twice, because the observation and the comparison may
 * come from two clocks of this service.
 */
export function takeOverWaitMs(dependencies: CommitDependencies, record: CommitRecord): number {
  const timeoutMs = record.timeoutMs ?? dependencies.commitTimeoutMs;
  return timeoutMs * dependencies.maxClockSkewRate + 2 * dependencies.clockSkewMs;
}
