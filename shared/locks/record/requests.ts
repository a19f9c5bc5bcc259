import { type AttributeValue, GetItemCommand, UpdateItemCommand } from '@aws-sdk/client-dynamodb';
import { integer, text } from '../../aws/attributes.ts';
import type { Call } from '../../aws/call.ts';
import { type Condition, conditionFields } from '../../aws/condition.ts';
import { conditionalWrite, type Item } from '../../aws/dynamodb.ts';
import { reading, send, writing } from '../../aws/send.ts';
import { HoldfastError } from '../../errors.ts';
import type { LeaseDependencies } from '../dependencies.ts';
import { EXCLUSIVE_PATH, isOnceRecord, remember } from './identity.ts';
import { type KeyRecord, parseKey, unusable } from './record.ts';
import { type HowEnded, isRemembered } from './room.ts';

/** An execution lasts a year at most, so TTL never deletes a record with a live holder. */
const RECORD_TTL_SECONDS = 400 * 86_400;

/** The TTL attribute of a record, in epoch seconds. Each grant, extension and release moves it. */
export const ttlAfter = (now: number): AttributeValue => integer(Math.ceil(now / 1000) + RECORD_TTL_SECONDS);

/**
 * The TTL of the cap if the record has one, or else `value`: a capped record must outlive its grants.
 * @param value the name of a value in epoch seconds
 */
export const capTtlOr = (value: string): string => `if_not_exists(cap_ttl, ${value})`;

/**
 * When a key was last written, in epoch milliseconds, rounded up.
 * @param ttlMs the TTL attribute of the key in milliseconds
 */
export const lastWriteOf = (ttlMs: number): number => ttlMs - RECORD_TTL_SECONDS * 1000;

export interface Written {
  won: boolean;
  /** The record after the write, or the record that refused the write. */
  record: KeyRecord;
  /** Whether an earlier try of the SDK was not answered, and so may have landed. */
  unanswered: boolean;
}

/** `before`: the record that a write with ALL_OLD has replaced. */
type Updated = Written & { before?: KeyRecord };

/**
 * Computes the record after a blind write, which sets whole attributes without a read, from the record before the
 * write. `lease_expiry` may be wrong, but is not read for a holder of Holdfast.
 */
function afterBlind(
  before: Item,
  { set, remove, names, values }: Required<Pick<KeyUpdate, 'set' | 'remove' | 'names' | 'values'>>,
): Item {
  const after = { ...before };
  for (const name of remove) delete after[names[name] ?? name];
  for (const assigned of set) {
    const [name = '', value = ''] = assigned.split(' = ');
    after[names[name] ?? name] = values[value] as AttributeValue;
  }
  return after;
}

export interface KeyUpdate {
  key: string;
  set: readonly string[];
  remove?: readonly string[];
  condition: Condition;
  names?: Record<string, string>;
  values?: Item;
  /**
   * The new TTL attribute. Absent if `set` has it, or if a third-party client wrote the record:
   * there it is the expiry of that client's lease.
   */
  ttl?: AttributeValue;
  /**
   * ALL_OLD: the caller needs the record before the write, which sets whole attributes only. NONE:
   * the caller does not need the record if the write is won.
   */
  returns?: 'ALL_NEW' | 'ALL_OLD' | 'NONE';
}

/**
 * Updates the record of a key under a condition, without a read.
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export async function updateKey(
  dependencies: LeaseDependencies,
  { key, set, remove = [], condition, names = {}, values = {}, ttl, returns = 'ALL_NEW' }: KeyUpdate,
  call: Call,
): Promise<Updated> {
  const { dynamodb, table } = dependencies;
  const sets = ttl ? [...set, `lease_expiry = ${capTtlOr(':lease_expiry')}`] : set;
  const all = { names, values: ttl ? { ...values, ':lease_expiry': ttl } : values };
  const command = new UpdateItemCommand({
    TableName: table,
    Key: { key: text(key) },
    UpdateExpression: Object.entries({ SET: sets, REMOVE: remove })
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
    return { won: outcome.won, record: parseKey(key, outcome.won ? outcome.item : outcome.old), unanswered };
  const record = parseKey(key, afterBlind(outcome.item ?? {}, { set: sets, remove, ...all }));
  return { won: true, record, unanswered, before: parseKey(key, outcome.item) };
}

/** @throws HoldfastError Throttled, Unavailable */
export async function readKey({ dynamodb, table }: LeaseDependencies, key: string, call: Call): Promise<KeyRecord> {
  const command = new GetItemCommand({ TableName: table, Key: { key: text(key) }, ConsistentRead: true });
  const { Item: item } = await send(dynamodb, { command, operation: reading(`table ${table}`) }, call);
  return parseKey(key, item);
}

const IS_ABOUT_SIZE = /\bsize\b/i;

/**
 * Explains why DynamoDB refused a write as invalid: the record is too large, or another client has written an attribute
 * with a wrong type. DynamoDB does not name the attribute, so this function reads the record.
 * @param refused `entry`: the path of the entry that the write changes
 * @throws HoldfastError Unavailable, which names the key and the attribute; Throttled
 */
async function refusedFor(
  dependencies: LeaseDependencies,
  { key, cause, entry }: { key: string; cause: Error; entry: string | undefined },
  call: Call,
): Promise<never> {
  if (IS_ABOUT_SIZE.test(cause.message)) {
    const detail =
      'the record of the key is near the DynamoDB limit of 400 KB: wait until other holders release their permits';
    throw new HoldfastError('Unavailable', detail, { key, retryAfterMs: 1000, cause });
  }
  throw unusable(await readKey(dependencies, key, call), entry, cause);
}

// The parts of writes on the entry of an exclusive holder, which other clients of the table see
// (docs/protocols/locks.md).

/** A part of an update. One update may join several parts. */
export interface WritePart {
  set: string[];
  remove: string[];
  names: Record<string, string>;
  values: Item;
}

/** An expiry in epoch seconds, rounded up, as the Rust crate and the TTL of DynamoDB read it. */
export const secondsAttribute = (expiresAt: number) => integer(Math.ceil(expiresAt / 1000));

/**
 * A write that takes no longer than this cannot have missed other grants. For a fence to be lost, four requests must
 * fit in between: a grant, its release, a third-party lease and its deletion. Four requests take longer.
 */
const PROMPT_MS = 50;

/**
 * Whether the write took so long that other grants may have come and gone in the meantime. A grant on a record without
 * a fence then needs a higher one.
 */
export const isSlowWrite = (triedAt: number, now: number): boolean => now - triedAt > PROMPT_MS;

/** The TTL attribute after a write that sets the expiry of an entry. */
export const ttlOfRecord = (path: string, { now, expiresAt }: { now: number; expiresAt: number }): AttributeValue =>
  path === EXCLUSIVE_PATH ? secondsAttribute(expiresAt) : ttlAfter(now);

/**
 * The attribute that stores the execution of a holder. An index finds exclusive holders by it. Shared holders are found
 * by the rows of executions (../executions/execution-rows.ts).
 */
export const executionAt = (path: string): string => (path === EXCLUSIVE_PATH ? 'execution' : '#h.x');

interface ExclusiveEnd {
  key: string;
  entry: { name: string; fence?: number | undefined; claimTtlMs?: number | undefined };
  how: HowEnded;
  operator?: string | undefined;
  now: number;
}

/** Puts the request into the ring, for a write that ends an exclusive grant and replaces its entry. */
export const ringAfter = ({ entry, how }: Pick<ExclusiveEnd, 'how' | 'entry'>): Pick<WritePart, 'set' | 'values'> =>
  isRemembered(how) ? remember(entry.name, how === 'broken' ? entry.fence : undefined) : { set: [], values: {} };

/**
 * Ends an exclusive grant, and leaves the key free for every client of the table. The entry stays as the entry of the
 * last holder, for readers and for the next grant. The part uses the value `:now`.
 * @param alias the name that the update has for the entry
 */
export function endExclusive(
  { fenceRetentionSeconds }: Pick<LeaseDependencies, 'fenceRetentionSeconds'>,
  { key, entry, how, operator, now }: ExclusiveEnd,
  alias = '#h',
): WritePart {
  // No caller received the grant. So the record forgets its holder, and the next grant names the holder before it.
  const isForgotten = how === 'neverNotified' || (how === 'expired' && entry.claimTtlMs !== undefined);
  const retention = isOnceRecord(key) ? {} : { ':retention': secondsAttribute(now + fenceRetentionSeconds * 1000) };
  return {
    set: [
      'freed_at = :now',
      ...(isOnceRecord(key) ? [] : [`lease_expiry = ${capTtlOr(':retention')}`]),
      ...(isForgotten ? [] : [`${alias}.p = :ended`]),
      ...(operator === undefined ? [] : [`${alias}.o = if_not_exists(${alias}.o, :operator)`]),
    ],
    remove: [
      ...['lease_version', 'execution', `${alias}.i`, `${alias}.v`],
      ...(isForgotten ? [`${alias}.h`] : []),
      ...(isRemembered(how) ? [] : [`${alias}.m`]),
    ],
    names: { [alias]: EXCLUSIVE_PATH },
    values: {
      ...{ ':now': integer(now), ...retention },
      ...(!isForgotten && { ':ended': text(how) }),
      ...(operator !== undefined && { ':operator': text(operator) }),
    },
  };
}
