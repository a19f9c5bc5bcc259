import { UpdateItemCommand } from '@aws-sdk/client-dynamodb';
import { integer, text } from '../aws/attributes.ts';
import type { Call } from '../aws/call.ts';
import { all, type Condition, conditionFields } from '../aws/condition.ts';
import { conditionalWrite, type Item } from '../aws/dynamodb.ts';
import { writing } from '../aws/send.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import type { Staying } from '../line/waiters.ts';
import { isLease } from './conditions.ts';
import { type LeaseRecord, parseRecord } from './record.ts';

/** The outcome of a write. */
export interface Written {
  won: boolean;
  /** The record as it is now: after the write, or as it kept the write from happening. */
  record: LeaseRecord;
  /** Whether the write was lost after a try of the SDK that got no answer: that try may have landed before others wrote over it. */
  unanswered?: boolean;
}

interface Update {
  key: string;
  expression: string;
  condition: Condition;
  names?: Record<string, string>;
  values?: Item;
  /** The version that the update gives the record. It shows a try of the SDK that landed before the one that lost. */
  version?: string | undefined;
}

/**
 * One conditional update of a lease record, and no read.
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export async function updateLease(
  { dynamodb, table }: LeaseDependencies,
  { key, expression, condition, version, ...more }: Update,
  call: Call,
): Promise<Written> {
  const command = new UpdateItemCommand({
    TableName: table,
    Key: { key: text(key) },
    UpdateExpression: expression,
    ...conditionFields(all(isLease, condition), more),
    ReturnValues: 'ALL_NEW',
    ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
  });
  const outcome = await conditionalWrite(dynamodb, { command, operation: writing(`table ${table}`) }, call);
  const item = (outcome.won ? outcome.item : outcome.old) ?? { key: text(key) };
  const record = parseRecord(item, !outcome.won && outcome.unanswered);
  const won = outcome.won || (version !== undefined && record.version === version);
  return { won, record, ...(!outcome.won && { unanswered: outcome.unanswered }) };
}

/** The assignments of an update, and their values. */
export function assigning(set: Item): { assigned: string; values: Item } {
  const names = Object.keys(set);
  return {
    assigned: names.map((name) => `${name} = :${name}`).join(', '),
    values: Object.fromEntries(Object.entries(set).map(([name, value]) => [`:${name}`, value])),
  };
}

/** The mark, and the hints that go with it. */
const MARK_ATTRIBUTES = ['waiters', 'next_ticket', 'next_tickets', 'turn_ms', 'pace_ms', 'line_out', 'line_until'];

/**
 * The part of a write that removes the mark. Callers that may come back stay counted: `line_out` below zero is their number, so that the next mark
 * begins with them. Each of them raises both when it asks again.
 */
export function removedMark({ count, until }: Staying): { set: Item; removed: string[] } {
  const set: Item = count === 0 ? {} : { line_out: integer(-count), line_until: integer(until) };
  return { set, removed: MARK_ATTRIBUTES.filter((name) => !(name in set)) };
}
