import { DeleteItemCommand, UpdateItemCommand } from '@aws-sdk/client-dynamodb';
import { integer, text } from '../../aws/attributes.ts';
import type { Call } from '../../aws/call.ts';
import { aliased, all, type Condition, conditionFields } from '../../aws/condition.ts';
import { conditionalWrite, type Item } from '../../aws/dynamodb.ts';
import { writing } from '../../aws/send.ts';
import { canSleep, type LeaseDependencies } from '../dependencies.ts';
import type { RequestIdentity } from '../record/identity.ts';
import {
  getWaiter,
  isPlace,
  isTask,
  parseWaiter,
  placeKeyOf,
  readWaiters,
  ttlOfWaiter,
  type Waiter,
  type WaiterKey,
  type WaitingCall,
  waiterKey,
} from './waiters.ts';

/** The row belongs to the request. Callers can read the request ids of others, so all three fields must match. */
const isOfRequest = ({ requestId, holder, principal }: RequestIdentity): Condition =>
  all(
    {
      expression: 'request_id = :request AND holder = :holder',
      values: { ':request': text(requestId), ':holder': text(holder) },
    },
    principal === undefined
      ? { expression: 'attribute_not_exists(principal)' }
      : { expression: 'principal = :principal', values: { ':principal': text(principal) } },
  );

type Named = { [Field in keyof RequestIdentity]?: string | undefined };

/** Whether a row that was read belongs to the request, by the rule of `isOfRequest`. */
const belongsTo = (record: Named, { requestId, holder, principal }: Named): boolean =>
  record.requestId === requestId && record.holder === holder && record.principal === principal;

/**
 * How long the row of a caller stays after the caller has received LeaseHeld, so that it may ask again at its position.
 */
export const KEEP_POSITION_MS = 5000;

/** The request of a caller, with the fields by which its rows name it. */
export interface RequestOfCaller extends RequestIdentity {
  key: string;
}

export interface Withdrawer extends RequestOfCaller {
  ticket?: string | undefined;
}

const isNotFlagged: Condition = { expression: 'attribute_not_exists(cancelled_at)' };
/** The row belongs to a call, or there is no row. */
const isCallRow: Condition = {
  expression: 'attribute_not_exists(task_token) AND attribute_not_exists(callback_id)',
};

/**
 * The row has these terms. A hand-off serves a waiter by the terms of its row, so a call with other terms needs a new
 * row.
 */
const hasTerms = (permit: Waiter['permit']): Condition => {
  if (permit === undefined) return aliased('attribute_not_exists(#weight)');
  const { limit, weight } = permit;
  return all(
    aliased('#weight = :weight', { ':weight': integer(weight) }),
    limit === null ? aliased('attribute_not_exists(#limit)') : aliased('#limit = :limit', { ':limit': integer(limit) }),
  );
};

/** The row belongs to a call of the request, not to a task. */
const isRowOfCall = (asker: RequestOfCaller): Condition => all(isOfRequest(asker), isCallRow);

/** The row belongs to the request, has the same terms, and was not flagged. */
export const isUnflaggedRowOf = (asker: RequestOfCaller & Pick<Waiter, 'permit'>): Condition =>
  all(isRowOfCall(asker), isNotFlagged, hasTerms(asker.permit));

interface Deletion {
  /** The row that was not deleted, if its request was withdrawn or superseded. */
  flagged: WaitingCall | undefined;
}

/**
 * Deletes the row of a call with a claimed grant, unless the row was flagged because the request was withdrawn or
 * superseded. Never deletes the row of a task or of a callback.
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export async function deleteUnlessFlagged(
  dependencies: LeaseDependencies,
  rowKey: WaiterKey,
  call: Call,
): Promise<Deletion> {
  const { won, old } = await deleteIf(dependencies, { rowKey, condition: all(isCallRow, isNotFlagged) }, call);
  const row = won || !old ? undefined : parseWaiter(old);
  return { flagged: row && !isTask(row) ? row : undefined };
}

/**
 * Deletes the row of a ticket that a caller names, unless the row was flagged, or the ticket belongs to another caller.
 * @throws as `deleteUnlessFlagged`
 */
export async function deleteOwnUnlessFlagged(
  dependencies: LeaseDependencies,
  { ticket, asker }: { ticket: string; asker: RequestOfCaller },
  call: Call,
): Promise<Deletion> {
  const { key } = asker;
  const condition = all(isRowOfCall(asker), isNotFlagged);
  const { won, old } = await deleteIf(dependencies, { rowKey: { key, ticket }, condition }, call);
  return { flagged: won ? undefined : flaggedIn(old, asker) };
}

/**
 * Deletes an expired row, unless its call has asked again and so extended it.
 * @returns whether the row is gone
 * @throws as `deleteUnlessFlagged`
 */
export async function deleteExpiredRow(
  dependencies: LeaseDependencies,
  waiter: WaitingCall,
  call: Call,
): Promise<boolean> {
  const condition = { expression: 'keep_until = :seen', values: { ':seen': integer(waiter.keepUntil) } };
  return (await deleteIf(dependencies, { rowKey: waiterKey(waiter), condition }, call)).won;
}

/** A row that a condition has met, if it belongs to this request, and was withdrawn or superseded. */
export function flaggedIn(item: Item | undefined, request: RequestOfCaller): WaitingCall | undefined {
  const row = item && parseWaiter(item);
  const isOwn = row !== undefined && belongsTo(row, request);
  return isOwn && !isTask(row) && row.cancelledAt !== undefined ? row : undefined;
}

interface ReturnedCall {
  asker: RequestOfCaller & Pick<Waiter, 'permit'>;
  ticket: string;
  deadline: number;
}

/**
 * Extends the row of a call that asks again (docs/protocols/queue.md#join).
 * @returns the row as it was before, with `cancelledAt` if it was withdrawn or superseded. Undefined if the request has
 * no such ticket, or asks for other terms
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export async function keepPosition(
  { dynamodb, waitersTable }: LeaseDependencies,
  { asker, ticket, deadline }: ReturnedCall,
  call: Call,
): Promise<WaitingCall | undefined> {
  const keepUntil = deadline + KEEP_POSITION_MS;
  const command = new UpdateItemCommand({
    TableName: waitersTable,
    Key: { key: text(asker.key), ticket: text(ticket) },
    UpdateExpression: 'SET deadline = :deadline, keep_until = :keep, #ttl = :ttl',
    ...conditionFields(isUnflaggedRowOf(asker), {
      names: { '#ttl': 'ttl' },
      values: {
        ':deadline': integer(deadline),
        ':keep': integer(keepUntil),
        ':ttl': integer(ttlOfWaiter({ keepUntil })),
      },
    }),
    ReturnValues: 'ALL_OLD',
    ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
  });
  const outcome = await conditionalWrite(dynamodb, { command, operation: writing(`table ${waitersTable}`) }, call);
  if (outcome.won) return outcome.item && (parseWaiter(outcome.item) as WaitingCall);
  return flaggedIn(outcome.old, asker);
}

/**
 * Flags the row of a call: its request was withdrawn, or an operator cancelled the ticket. The call polls its row, and
 * sees the flag.
 * `asker`: the request that withdraws, undefined for an operator
 * @returns the row, undefined if there is none
 */
export async function flagRow(
  { dynamodb, clock, waitersTable }: LeaseDependencies,
  { rowKey, asker }: { rowKey: WaiterKey; asker?: RequestOfCaller | undefined },
  call: Call,
): Promise<Waiter | undefined> {
  const isThere = all({ expression: 'attribute_exists(ticket)' }, isCallRow);
  const command = new UpdateItemCommand({
    TableName: waitersTable,
    Key: { key: text(rowKey.key), ticket: text(rowKey.ticket) },
    UpdateExpression: 'SET cancelled_at = if_not_exists(cancelled_at, :now)',
    ...conditionFields(asker ? isRowOfCall(asker) : isThere, { values: { ':now': integer(clock.now()) } }),
    ReturnValues: 'ALL_NEW',
  });
  const outcome = await conditionalWrite(dynamodb, { command, operation: writing(`table ${waitersTable}`) }, call);
  return outcome.won ? parseWaiter(outcome.item ?? {}) : undefined;
}

/**
 * Reads the row of a call.
 * @returns the row only if it was withdrawn, superseded or cancelled
 * @throws HoldfastError Throttled, Unavailable
 */
export async function getFlagged(
  dependencies: LeaseDependencies,
  rowKey: WaiterKey,
  call: Call,
): Promise<WaitingCall | undefined> {
  const row = await getWaiter(dependencies, rowKey, call);
  return row && !isTask(row) && row.cancelledAt !== undefined ? row : undefined;
}

export interface FlaggedWaiters {
  /** The tickets of the request that were in line. */
  tickets: ReadonlySet<string>;
  /** One of the rows that this call has flagged. */
  waiter: Waiter | undefined;
}

/**
 * Flags the place of a ticket, and then its row. A call that comes back writes its row first and its place second. Of
 * two such calls at the same moment, at least one therefore sees the write of the other.
 * `asker`: as in `flagRow`
 * @returns the place or the row, undefined if there is neither
 */
export async function flagTicket(
  dependencies: LeaseDependencies,
  { key, ticket, asker }: { key: string; ticket: string; asker?: RequestOfCaller | undefined },
  call: Call,
): Promise<Waiter | undefined> {
  let flagged: Waiter | undefined;
  for (const sortKey of canSleep(dependencies) ? [placeKeyOf(ticket), ticket] : [ticket])
    flagged = (await flagRow(dependencies, { rowKey: { key, ticket: sortKey }, asker }, call)) ?? flagged;
  return flagged;
}

/**
 * Flags the row that the caller names, or all rows of the request, which costs a read of the line.
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export async function flagOwnWaiters(
  dependencies: LeaseDependencies,
  { ticket, ...asker }: Withdrawer,
  call: Call,
): Promise<FlaggedWaiters> {
  const named =
    ticket === undefined ? undefined : await flagTicket(dependencies, { key: asker.key, ticket, asker }, call);
  if (named) return { tickets: new Set([named.ticket]), waiter: named };
  const own: Waiter[] = [];
  for await (const row of readWaiters(dependencies, { key: asker.key, firstPage: 100 }, call))
    if (!isTask(row) && belongsTo(row, asker)) own.push(row);
  let waiter: Waiter | undefined;
  // Places come first, for the reason that `flagTicket` gives.
  for (const row of own.toSorted((a, b) => Number(isPlace(b)) - Number(isPlace(a))))
    waiter = (await flagRow(dependencies, { rowKey: waiterKey(row), asker }, call)) ?? waiter;
  return { tickets: new Set(own.map(({ ticket }) => ticket)), waiter };
}

async function deleteIf(
  { dynamodb, waitersTable }: LeaseDependencies,
  { rowKey, condition }: { rowKey: WaiterKey; condition: Condition },
  call: Call,
): Promise<{ won: boolean; old?: Item | undefined }> {
  const command = new DeleteItemCommand({
    TableName: waitersTable,
    Key: { key: text(rowKey.key), ticket: text(rowKey.ticket) },
    ...conditionFields(condition),
    ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
  });
  return conditionalWrite(dynamodb, { command, operation: writing(`table ${waitersTable}`) }, call);
}
