import { type AttributeValue, UpdateItemCommand } from '@aws-sdk/client-dynamodb';
import { integer, text } from '../aws/attributes.ts';
import type { Call } from '../aws/call.ts';
import { type Condition, conditionFields } from '../aws/condition.ts';
import { conditionalWrite, type Item } from '../aws/dynamodb.ts';
import { writing } from '../aws/send.ts';
import { HoldfastError } from '../errors.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import { type PoolRecord, parsePool } from './record.ts';
import { refusedFor } from './refused.ts';

/** An execution lasts a year at most, so TTL never deletes a record with a live holder. */
const TTL_SECONDS = 400 * 86_400;

/** The TTL attribute of a pool's record, in epoch seconds. Each grant, extension and release moves it. */
export const ttlAfter = (now: number): AttributeValue => integer(Math.ceil(now / 1000) + TTL_SECONDS);

/** The time of the last write on a pool, in epoch milliseconds, rounded up. @param ttlMs its TTL attribute as a time */
export const lastWriteOf = (ttlMs: number): number => ttlMs - TTL_SECONDS * 1000;

/** `record` is the record as it is now: after the write, or as it kept the write from happening. */
export interface Written {
  won: boolean;
  record: PoolRecord;
  /** Whether an earlier try got no answer, and so may have landed. */
  unanswered: boolean;
}

/** With the record before, of a blind write that was won. */
type Updated = Written & { before?: PoolRecord };

/** The record after a write that sets and removes whole attributes. */
function afterBlind(
  before: Item,
  {
    SET,
    REMOVE,
    names,
    values,
  }: { SET: readonly string[]; REMOVE: readonly string[] } & Required<Pick<Update, 'names' | 'values'>>,
): Item {
  const after = { ...before };
  for (const name of REMOVE) delete after[names[name] ?? name];
  for (const assigned of SET) {
    const [name = '', value = ''] = assigned.split(' = ');
    after[names[name] ?? name] = values[value] as AttributeValue;
  }
  return after;
}

interface Update {
  key: string;
  set: readonly string[];
  remove?: readonly string[];
  condition: Condition;
  names?: Record<string, string>;
  values?: Item;
  /** The TTL attribute, if the write moves it alone. On the record of a third-party client, it is the expiry of that client's lease. */
  ttl?: AttributeValue;
  /** ALL_OLD: of a write that sets whole attributes, so that the answer has the record that it replaced. NONE: nothing needs the record if the write is won. */
  returns?: 'ALL_NEW' | 'ALL_OLD' | 'NONE';
}

/**
 * One conditional update of a pool's record, and no read.
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export async function updatePool(
  dependencies: LeaseDependencies,
  { key, set, remove = [], condition, names = {}, values = {}, ttl, returns = 'ALL_NEW' }: Update,
  call: Call,
): Promise<Updated> {
  const { dynamodb, table } = dependencies;
  const clauses = { SET: ttl ? [...set, 'lease_expiry = :lease_expiry'] : set, REMOVE: remove };
  const all = { names, values: ttl ? { ...values, ':lease_expiry': ttl } : values };
  const command = new UpdateItemCommand({
    TableName: table,
    Key: { key: text(key) },
    UpdateExpression: Object.entries(clauses)
      .flatMap(([clause, parts]) => (parts.length > 0 ? [`${clause} ${parts.join(', ')}`] : []))
      .join(' '),
    ...conditionFields(condition, all),
    ReturnValues: returns,
    ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
  });
  const request = { command, operation: writing(`table ${table}`) };
  const outcome = await conditionalWrite(dynamodb, request, call).catch((error) => {
    const cause: unknown = error instanceof HoldfastError && error.code === 'Unavailable' && error.cause;
    if (!(cause instanceof Error) || cause.name !== 'ValidationException') throw error;
    return refusedFor(dependencies, { key, cause, entry: condition.names?.['#h'] }, call);
  });
  const unanswered = !outcome.won && outcome.unanswered;
  if (!outcome.won || returns !== 'ALL_OLD')
    return {
      won: outcome.won,
      record: parsePool(key, outcome.won ? outcome.item : outcome.old),
      unanswered,
    };
  const before = outcome.item ?? {};
  const record = parsePool(key, afterBlind(before, { ...clauses, ...all }));
  return { won: true, record, unanswered, before: parsePool(key, outcome.item) };
}
