import {
  DeleteItemCommand,
  GetItemCommand,
  PutItemCommand,
  QueryCommand,
  type QueryCommandInput,
} from '@aws-sdk/client-dynamodb';
import { integer, type Json, jsonOfText, number, text } from '../../aws/attributes.ts';
import type { Call } from '../../aws/call.ts';
import { conditionFields } from '../../aws/condition.ts';
import { conditionalWrite, type Item } from '../../aws/dynamodb.ts';
import { reading, send, writing } from '../../aws/send.ts';
import { HoldfastError } from '../../errors.ts';
import { REPLACES, type Replace } from '../calls/types.ts';
import type { LeaseDependencies } from '../dependencies.ts';
import { leaseLost } from '../record/refusals.ts';
import { superseded } from './superseded.ts';

/**
 * A row of the waiters table: a task or a call in line (docs/protocols/records.md#waiters). Instants are epoch
 * milliseconds.
 */
export type Waiter = WaitingTask | WaitingCall;

interface WaiterRow {
  key: string;
  /** The id of the waiter. Tickets sort by arrival, by the clock of the service. */
  ticket: string;
  holder: string;
  ttlSeconds: number;
  requestId: string;
  principal?: string | undefined;
  /** The namespace of the caller. The message to a task names the key as the caller wrote it, without the namespace. */
  namespace?: string | undefined;
  execution?: string | undefined;
  target?: string | undefined;
  graceSeconds?: number | undefined;
  /** Whether the grant lasts as long as `execution`. */
  bound?: boolean | undefined;
  data?: Json | undefined;
  /** The terms of a shared grant. Absent if the waiter wants the key alone. */
  permit?: { limit: number | null; weight: number } | undefined;
  replace?: Replace | undefined;
  parkedAt: number;
  /** When the wait ends with LeaseHeld. */
  deadline: number;
}

/** A parked waiter: a task of Step Functions, or the callback of a durable function. */
export type WaitingTask = WaiterRow & ParkedBy;

/** The name of a parked waiter at AWS. Each is a secret, because every caller that has it can end the wait. */
export type ParkedBy = { taskToken: string; callbackId?: undefined } | { callbackId: string; taskToken?: undefined };

/** The row of a call of acquire that waits. */
export interface WaitingCall extends WaiterRow {
  taskToken?: undefined;
  callbackId?: undefined;
  /** The row stays until this moment. The waiter can be served only until the deadline. */
  keepUntil: number;
  /**
   * When the request was withdrawn or superseded, or an operator cancelled the ticket. The call must see that before
   * the row goes.
   */
  cancelledAt?: number | undefined;
  /** The holder of the newer request, if the request was superseded. */
  supersededBy?: string | undefined;
  /** A hint: the number of the arrival. */
  number?: number | undefined;
  /** When a caller that sleeps is due at the latest. Only a place has it (docs/protocols/places.md#records). */
  awakeAt?: number | undefined;
}

/** The fields of a waiter's row that describe the request. `key` is the key of the line. */
export type WaiterRequest = Omit<
  WaitingCall,
  | 'ticket'
  | 'parkedAt'
  | 'deadline'
  | 'keepUntil'
  | 'cancelledAt'
  | 'supersededBy'
  | 'number'
  | 'awakeAt'
  | 'taskToken'
  | 'callbackId'
>;

/**
 * The sort key of a place. Places sort after all rows in line, which begin with a digit, and before the rows of
 * executions.
 */
export const placeKeyOf = (ticket: string): string => `${PLACE_PREFIX}${ticket}`;
const PLACE_PREFIX = 'p';

/** Whether the row is a place, which keeps the position of a caller that sleeps. */
export const isPlace = (waiter: Waiter): waiter is WaitingCall & { awakeAt: number } =>
  'awakeAt' in waiter && waiter.awakeAt !== undefined;

/** The key of a row in the waiters table. The `ticket` of a place has the prefix here. */
export type WaiterKey = Pick<Waiter, 'key' | 'ticket'>;

export const waiterKey = (waiter: Waiter): WaiterKey => ({
  key: waiter.key,
  ticket: isPlace(waiter) ? placeKeyOf(waiter.ticket) : waiter.ticket,
});

/** Whether the waiter is a task or a callback, which receives its grant as a message. */
export const isTask = (waiter: Waiter): waiter is WaitingTask =>
  waiter.taskToken !== undefined || waiter.callbackId !== undefined;

/**
 * How long TTL leaves the row of a task after its deadline. If TTL deleted it before the task was notified, the task
 * would never end.
 */
const TTL_AFTER_DEADLINE_SECONDS = 86_400;
const TTL_AFTER_CALL_SECONDS = 3600;

/** The fixed width makes tickets sort by time, until the year 33658. */
export const newTicket = (now: number, uuid: string): string => `${String(now).padStart(15, '0')}-${uuid}`;

/** When the waiter of a ticket joined, in epoch milliseconds. NaN for a text that is not a ticket. */
export const parkedAtOf = (ticket: string): number => Number(ticket.replace(/^p/, '').split('-', 1)[0]);

/**
 * The delay before a retry after QueueFull. A line gets shorter by only one grant at a time, so an early retry would be
 * refused again.
 */
const RETRY_WHEN_FULL_MS = 5000;

export const queueFull = (key: string, limit: number): HoldfastError =>
  new HoldfastError('QueueFull', `at least ${limit} tasks and callers wait for the key: send the call again later`, {
    ...{ key, quota: 'maxWaitersPerKey', limit },
    retryAfterMs: RETRY_WHEN_FULL_MS,
  });

/** The error for a waiter whose request was withdrawn or superseded, or whose ticket was cancelled. */
export const errorOfFlagged = ({ key, supersededBy }: Pick<WaitingCall, 'key' | 'supersededBy'>): HoldfastError =>
  supersededBy === undefined ? leaseLost(key, 'cancelled') : superseded(key, supersededBy);

/**
 * The first letter of the sort keys of executions (locks/executions/execution-rows.ts). Their rows sort after all
 * waiters, which begin with a digit or `p`.
 */
export const EXECUTION_ROW = 'x';

/**
 * The condition of a query for the waiters of a key, with its places. It needs the values of `waiterOf` and the name
 * `#key`.
 */
export const IS_WAITER_OF = '#key = :key AND ticket < :executions';
export const waiterOf = (key: string): Item => ({ ':key': text(key), ':executions': text(EXECUTION_ROW) });

/** The value that limits `IS_WAITER_OF` to waiters that are awake. */
export const BELOW_PLACES: Item = { ':executions': text(PLACE_PREFIX) };

/** A text that sorts after every row of a key. */
export const AFTER_ALL_ROWS = '\uffff';

export const isOverdue = (waiter: Waiter, now: number): boolean => waiter.deadline <= now;

/** Whether the waiter may receive a grant: a task, or a call that has neither left nor been withdrawn. */
export const isWaiting = (waiter: Waiter, now: number): boolean =>
  isTask(waiter) || (waiter.cancelledAt === undefined && !isOverdue(waiter, now));

/**
 * Whether counts and lists show the row. Besides those that wait, they show callers that have left and may come back to
 * their positions.
 */
export const isInLine = (waiter: Waiter, now: number): boolean =>
  isTask(waiter) || (waiter.cancelledAt === undefined && waiter.keepUntil > now);

/** The rows that are still in line when the mark is removed. Lists count them while their callers may come back. */
export interface StayingRows {
  count: number;
  /** When all of these rows have expired, in epoch milliseconds. */
  until: number;
  /** Whether one of the requests came with `replace`. */
  replaces: boolean;
}

export const stayingOf = (rows: readonly Waiter[]): StayingRows => ({
  count: rows.length,
  until: Math.max(0, ...rows.map((row) => (isTask(row) ? row.deadline : row.keepUntil))),
  replaces: rows.some(({ replace }) => replace !== undefined),
});

/** How many expired rows a reader reads before it stops. */
const MAX_EXPIRED_ROWS = 200;

/**
 * How many expired rows a hand-off reads before it stops: six pages, or about fifty read units. It reads more than a
 * reader does, because if it stops, no waiter is served.
 */
export const MAX_EXPIRED_ROWS_IN_HAND_OFF = 819;

/**
 * Stops a reader after too many expired rows, because no quota bounds those rows
 * (docs/protocols/queue.md#expired-rows).
 * @returns a function that takes each row as it is read, and returns true if the reader must stop
 */
export function expiredRowLimit(now: number, size = MAX_EXPIRED_ROWS): (waiter: Waiter) => boolean {
  let expired = 0;
  return (waiter) => !isTask(waiter) && waiter.keepUntil <= now && ++expired >= size;
}

/**
 * Writes a new waiter. If the row is there already, an earlier try wrote it, and its response was lost. That row stays
 * unchanged, because the waiter may have been withdrawn since.
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export async function putWaiter(
  { dynamodb, waitersTable }: LeaseDependencies,
  waiter: Waiter,
  call: Call,
): Promise<void> {
  const command = new PutItemCommand({
    TableName: waitersTable,
    Item: waiterItem(waiter),
    ...conditionFields({ expression: 'attribute_not_exists(ticket)' }),
  });
  await conditionalWrite(dynamodb, { command, operation: writing(`table ${waitersTable}`) }, call);
}

export async function deleteWaiter(
  { dynamodb, waitersTable }: LeaseDependencies,
  { key, ticket }: WaiterKey,
  call: Call,
): Promise<void> {
  const command = new DeleteItemCommand({ TableName: waitersTable, Key: { key: text(key), ticket: text(ticket) } });
  await send(dynamodb, { command, operation: writing(`table ${waitersTable}`) }, call);
}

export async function getWaiter(
  { dynamodb, waitersTable }: LeaseDependencies,
  { key, ticket }: WaiterKey,
  call: Call,
): Promise<Waiter | undefined> {
  const command = new GetItemCommand({
    TableName: waitersTable,
    Key: { key: text(key), ticket: text(ticket) },
    ConsistentRead: true,
  });
  const { Item: item } = await send(dynamodb, { command, operation: reading(`table ${waitersTable}`) }, call);
  return item && parseWaiter(item);
}

interface WaitersQuery extends Partial<QueryCommandInput> {
  key: string;
  /**
   * The number of rows of the first page. Most readers do not need a second page. Each further page has twice as many
   * as the one before.
   */
  firstPage?: number;
}

/** Reads the rows of a line in order, with strongly consistent reads. */
export async function* readWaiters(
  { dynamodb, waitersTable }: LeaseDependencies,
  { key, firstPage, ...options }: WaitersQuery,
  call: Call,
): AsyncGenerator<Waiter> {
  let from: Item | undefined;
  let limit = firstPage;
  do {
    const command = new QueryCommand({
      TableName: waitersTable,
      KeyConditionExpression: IS_WAITER_OF,
      ConsistentRead: true,
      ...(limit !== undefined && { Limit: limit }),
      ...(from && { ExclusiveStartKey: from }),
      ...options,
      ExpressionAttributeNames: { '#key': 'key', ...options.ExpressionAttributeNames },
      ExpressionAttributeValues: { ...waiterOf(key), ...options.ExpressionAttributeValues },
    });
    const page = await send(dynamodb, { command, operation: reading(`table ${waitersTable}`) }, call);
    yield* (page.Items ?? []).map(parseWaiter);
    from = page.LastEvaluatedKey;
    limit = limit && 2 * limit;
  } while (from);
}

const waiterItem = (waiter: Waiter): Item => ({
  key: text(waiter.key),
  ticket: text(waiterKey(waiter).ticket),
  holder: text(waiter.holder),
  ttl_seconds: integer(waiter.ttlSeconds),
  request_id: text(waiter.requestId),
  ...(waiter.principal !== undefined && { principal: text(waiter.principal) }),
  ...(waiter.namespace !== undefined && { namespace: text(waiter.namespace) }),
  ...(waiter.execution !== undefined && { execution: text(waiter.execution) }),
  ...(waiter.target !== undefined && { target: text(waiter.target) }),
  ...(waiter.graceSeconds && { grace_seconds: integer(waiter.graceSeconds) }),
  ...(waiter.bound && { bound: { BOOL: true } }),
  ...(waiter.data !== undefined && { data: text(JSON.stringify(waiter.data)) }),
  ...(waiter.permit && { weight: integer(waiter.permit.weight) }),
  ...(waiter.permit && waiter.permit.limit !== null && { limit: integer(waiter.permit.limit) }),
  ...(waiter.replace !== undefined && { replaces: text(waiter.replace) }),
  parked_at: integer(waiter.parkedAt),
  deadline: integer(waiter.deadline),
  ...attributesOfKind(waiter),
  ttl: integer(ttlOfWaiter(waiter)),
});

function attributesOfKind(waiter: Waiter): Item {
  if (!isTask(waiter)) {
    const { keepUntil, number: arrival, awakeAt, cancelledAt } = waiter;
    return {
      keep_until: integer(keepUntil),
      ...(arrival !== undefined && { number: integer(arrival) }),
      ...(awakeAt !== undefined && { awake_at: integer(awakeAt) }),
      ...(cancelledAt !== undefined && { cancelled_at: integer(cancelledAt) }),
    };
  }
  const { taskToken, callbackId } = waiter;
  return callbackId === undefined ? { task_token: text(taskToken) } : { callback_id: text(callbackId) };
}

/** The TTL attribute of a row, in epoch seconds. */
export const ttlOfWaiter = (waiter: WaitingTask | Pick<WaitingCall, 'keepUntil'>): number =>
  'keepUntil' in waiter
    ? Math.ceil(waiter.keepUntil / 1000) + TTL_AFTER_CALL_SECONDS
    : Math.ceil(waiter.deadline / 1000) + TTL_AFTER_DEADLINE_SECONDS;

function termsIn(item: Item): WaiterRow['permit'] {
  const weight = number(item, 'weight');
  return weight === undefined ? undefined : { weight, limit: number(item, 'limit') ?? null };
}

export function parseWaiter(item: Item): Waiter {
  const row = {
    key: item.key?.S ?? '',
    ticket: item.ticket?.S?.replace(/^p/, '') ?? '',
    holder: item.holder?.S ?? '',
    ttlSeconds: number(item, 'ttl_seconds') ?? 0,
    requestId: item.request_id?.S ?? '',
    principal: item.principal?.S,
    namespace: item.namespace?.S,
    execution: item.execution?.S,
    target: item.target?.S,
    graceSeconds: number(item, 'grace_seconds'),
    bound: item.bound?.BOOL,
    data: jsonOfText(item.data?.S),
    permit: termsIn(item),
    replace: REPLACES.find((replace) => replace === item.replaces?.S),
    parkedAt: number(item, 'parked_at') ?? 0,
    deadline: number(item, 'deadline') ?? 0,
  };
  // A row without `keep_until` is a task. The task token would show that too, but lists do not read it.
  const keepUntil = number(item, 'keep_until');
  const callbackId = item.callback_id?.S;
  if (keepUntil === undefined)
    return callbackId === undefined ? { ...row, taskToken: item.task_token?.S ?? '' } : { ...row, callbackId };
  const sleeper = { number: number(item, 'number'), awakeAt: number(item, 'awake_at') };
  const flag = { cancelledAt: number(item, 'cancelled_at'), supersededBy: item.superseded_by?.S };
  return { ...row, keepUntil, ...flag, ...sleeper };
}
