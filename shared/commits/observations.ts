import { GetItemCommand, PutItemCommand } from '@aws-sdk/client-dynamodb';
import { integer, text } from '../aws/attributes.ts';
import type { Call } from '../aws/call.ts';
import { conditionFields } from '../aws/condition.ts';
import { conditionalWrite, type Item } from '../aws/dynamodb.ts';
import { reading, send } from '../aws/send.ts';
import { isUnobserved } from './conditions.ts';
import { type CommitDependencies, commitTable } from './dependencies.ts';
import { type CommitKey, type CommitRecord, recordEtag } from './record.ts';

/** No client uses such a range key: theirs is `*` or begins with a quote. */
export const OBSERVATION_PREFIX = 'holdfast:first-sight:';

/** The attributes in which an observation keeps the identity of its record. `ttl` is the observation's own. */
const SEEN_ATTRIBUTES = { generation: 'generation', timeout: 'timeout', ttl: 'record_ttl' };

/** This service's knowledge of a foreign record: see docs/protocols/commits.md, "Foreign records". */
export interface Observation {
  /** When it was first seen, in epoch milliseconds. */
  seenAt: number;
  generation: number;
  /** From this generation on, every record up to this one was seen to be foreign. */
  foreignFrom: number;
  /** When TTL may delete the record, in epoch milliseconds. */
  recordEndsAt: number;
}

/** A foreign record, and the key of its observation. */
interface ObservedRecord {
  key: CommitKey;
  record: CommitRecord;
}

const observationKey = ({ path, expectedEtag }: CommitKey): Item => ({
  path: text(path),
  etag: text(OBSERVATION_PREFIX + recordEtag(expectedEtag)),
});

/**
 * The first observation of a foreign record. It is kept in the commit table, so that the wait for an abandoned record
 * goes on between calls, and it begins again with every generation of the record.
 * @throws HoldfastError Throttled, Unavailable
 */
export async function observe(
  dependencies: CommitDependencies,
  { key, record }: ObservedRecord,
  call: Call,
): Promise<Observation> {
  const { dynamodb, clock, table } = dependencies;
  // Before generation 0 there was none, so there is nothing to learn from an earlier observation.
  const previous = record.generation > 0 ? await readObservation(dependencies, key, call) : undefined;
  const now = clock.now();
  const item = observationItem(dependencies, { key, record, previous }, now);
  const command = new PutItemCommand({
    TableName: table,
    Item: item,
    ...conditionFields(isUnobserved(record, SEEN_ATTRIBUTES)),
    ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
  });
  // As a read: whether an observation was written or not, nothing of the commit was.
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
    ttl: integer(Math.ceil((now + waitMs(dependencies, record)) / 1000) + dependencies.commitTtlSeconds),
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
 * Whether all records that a foreign one has replaced were foreign as well, so that none of them names a commit of
 * this service. Generations count up from 0 as long as no record is deleted, and each has one writer.
 */
export function provesForeign(
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

/** TTL has not deleted what ends so late, so no other record can have begun at generation 0 in its place. */
const isSurelyThere = ({ clockSkewMs }: CommitDependencies, endsAt: number, now: number): boolean =>
  now + clockSkewMs < endsAt;

/**
 * How long a foreign record is left alone after its first observation. Its writer counts the timeout on its own clock,
 * hence the rate; the two instants that are compared may come from two of our clocks, hence twice the skew.
 */
export function waitMs(dependencies: CommitDependencies, record: CommitRecord): number {
  const timeoutMs = record.timeoutMs ?? dependencies.commitTimeoutMs;
  return timeoutMs * dependencies.maxClockSkewRate + 2 * dependencies.clockSkewMs;
}
