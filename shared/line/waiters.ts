import {
  DeleteItemCommand,
  GetItemCommand,
  PutItemCommand,
  QueryCommand,
  type QueryCommandInput,
} from '@aws-sdk/client-dynamodb';
import { integer, type Json, json, number, text } from '../aws/attributes.ts';
import type { Call } from '../aws/call.ts';
import { conditionFields } from '../aws/condition.ts';
import { conditionalWrite, type Item } from '../aws/dynamodb.ts';
import { reading, send, writing } from '../aws/send.ts';
import { HoldfastError } from '../errors.ts';
import type { LeaseDependencies } from './dependencies.ts';

/** One row of the waiters table: a task or a call in line (docs/protocols/queue.md#records). Instants are epoch milliseconds. */
export type Ticket = TaskTicket | CallTicket;

interface Place {
  key: string;
  /** Its place in line. Tickets sort by the service's clock. */
  ticket: string;
  holder: string;
  ttlSeconds: number;
  requestId: string;
  principal?: string | undefined;
  /** The namespace of its caller, so that the message to the task names the key as the caller wrote it. */
  namespace?: string | undefined;
  execution?: string | undefined;
  target?: string | undefined;
  graceSeconds?: number | undefined;
  data?: Json | undefined;
  /** Only with a ticket for a permit of a pool. */
  permit?: { limit: number | null; weight: number } | undefined;
  parkedAt: number;
  /** When waiting ends with LeaseHeld. */
  deadline: number;
}

export interface TaskTicket extends Place {
  /** A secret: it lets its bearer end the task. */
  taskToken: string;
}

/** The ticket of a call of acquire. */
export interface CallTicket extends Place {
  taskToken?: undefined;
  /** Its place lasts until then. Its turn lasts until the deadline. */
  keepUntil: number;
  /** When its request was withdrawn. */
  cancelledAt?: number | undefined;
}

/** The line of a pool has a key that no caller can name, because a lease may have the name of the pool. */
const POOLS = 'holdfast:pool:';
export const lineOf = (pool: string): string => `${POOLS}${pool}`;

/** The pool whose line has this key. Undefined for the line of a lease. */
export const poolOfLine = (key: string): string | undefined =>
  key.startsWith(POOLS) ? key.slice(POOLS.length) : undefined;

/** The key of a line as callers name it. */
export const nameOfLine = (key: string): string => poolOfLine(key) ?? key;

export const isTask = (ticket: Ticket): ticket is TaskTicket => ticket.taskToken !== undefined;

/** TTL comes long after the deadline. If it deleted a row earlier, the task would wait for ever. */
const TTL_AFTER_DEADLINE_SECONDS = 86_400;
const TTL_AFTER_CALL_SECONDS = 3600;

/** Fifteen digits last until the year 33658, so text sorts as the milliseconds do. */
export const ticketName = (now: number, uuid: string): string => `${String(now).padStart(15, '0')}-${uuid}`;

/** When the ticket was made, in epoch milliseconds. NaN for a text that is no ticket. */
export const parkedAtOf = (ticket: string): number => Number(ticket.split('-', 1)[0]);

/** A long queue moves by one grant at a time. */
const RETRY_WHEN_FULL_MS = 5000;

export const queueFull = (key: string, limit: number): HoldfastError =>
  new HoldfastError('QueueFull', `at least ${limit} tasks and callers wait for the key`, {
    ...{ key: nameOfLine(key), quota: 'maxWaitersPerKey', limit },
    retryAfterMs: RETRY_WHEN_FULL_MS,
  });

/** The answer to a waiter whose request was withdrawn, or whose ticket was cancelled. @param line the key of the line */
export const withdrawn = (line: string): HoldfastError =>
  new HoldfastError('LeaseLost', 'the ticket was cancelled', {
    key: nameOfLine(line),
    reason: 'cancelled',
    holder: null,
  });

/** Sorts after every ticket. */
export const AFTER_ALL_TICKETS = '\uffff';

export const isOverdue = (ticket: Ticket, now: number): boolean => ticket.deadline <= now;

/** Whether its task or caller still waits. The line passes over the place of a caller that has left, or was withdrawn. */
export const isWaiting = (ticket: Ticket, now: number): boolean =>
  isTask(ticket) || (ticket.cancelledAt === undefined && !isOverdue(ticket, now));

/** So many rows of callers that are over make a pile to a call that only looks. */
const PILE = 200;

/** A hand-off that stops grants nothing, so it goes on for longer: six pages, or some fifty read units. */
export const PILE_IN_HAND_OFF = 819;

/**
 * Stops a reader at a pile of rows that are over, because no quota bounds those (docs/protocols/queue.md#rows-that-are-over).
 * @returns takes each row as it is read, and says whether to read no further
 */
export function pileMet(now: number, size = PILE): (ticket: Ticket) => boolean {
  let over = 0;
  return (ticket) => !isTask(ticket) && ticket.keepUntil <= now && ++over >= size;
}

/**
 * Writes a new ticket. A row that is there already comes from an earlier try that landed without an answer. It may have been withdrawn since,
 * so it stays as it is.
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export async function putTicket(
  { dynamodb, waitersTable }: LeaseDependencies,
  ticket: Ticket,
  call: Call,
): Promise<void> {
  const command = new PutItemCommand({
    TableName: waitersTable,
    Item: ticketItem(ticket),
    ...conditionFields({ expression: 'attribute_not_exists(ticket)' }),
  });
  await conditionalWrite(dynamodb, { command, operation: writing(`table ${waitersTable}`) }, call);
}

export async function deleteTicket(
  { dynamodb, waitersTable }: LeaseDependencies,
  { key, ticket }: Pick<Ticket, 'key' | 'ticket'>,
  call: Call,
): Promise<void> {
  const command = new DeleteItemCommand({ TableName: waitersTable, Key: { key: text(key), ticket: text(ticket) } });
  await send(dynamodb, { command, operation: writing(`table ${waitersTable}`) }, call);
}

export async function getTicket(
  { dynamodb, waitersTable }: LeaseDependencies,
  { key, ticket }: Pick<Ticket, 'key' | 'ticket'>,
  call: Call,
): Promise<Ticket | undefined> {
  const command = new GetItemCommand({
    TableName: waitersTable,
    Key: { key: text(key), ticket: text(ticket) },
    ConsistentRead: true,
  });
  const { Item: item } = await send(dynamodb, { command, operation: reading(`table ${waitersTable}`) }, call);
  return item && parseTicket(item);
}

interface Line extends Partial<QueryCommandInput> {
  key: string;
  /** How many rows the first page has. Most callers need no more. Each further page has twice as many as the one before. */
  firstPage?: number;
}

/** The tickets of a key from the oldest on, strongly consistent. */
export async function* ticketsOf(
  { dynamodb, waitersTable }: LeaseDependencies,
  { key, firstPage, ...options }: Line,
  call: Call,
): AsyncGenerator<Ticket> {
  let from: Item | undefined;
  let limit = firstPage;
  do {
    const command = new QueryCommand({
      TableName: waitersTable,
      KeyConditionExpression: '#key = :key',
      ConsistentRead: true,
      ...(limit !== undefined && { Limit: limit }),
      ...(from && { ExclusiveStartKey: from }),
      ...options,
      ExpressionAttributeNames: { '#key': 'key', ...options.ExpressionAttributeNames },
      ExpressionAttributeValues: { ':key': text(key), ...options.ExpressionAttributeValues },
    });
    const page = await send(dynamodb, { command, operation: reading(`table ${waitersTable}`) }, call);
    yield* (page.Items ?? []).map(parseTicket);
    from = page.LastEvaluatedKey;
    limit = limit && 2 * limit;
  } while (from);
}

const ticketItem = (ticket: Ticket): Item => ({
  key: text(ticket.key),
  ticket: text(ticket.ticket),
  holder: text(ticket.holder),
  ttl_seconds: integer(ticket.ttlSeconds),
  request_id: text(ticket.requestId),
  ...(ticket.principal !== undefined && { principal: text(ticket.principal) }),
  ...(ticket.namespace !== undefined && { namespace: text(ticket.namespace) }),
  ...(ticket.execution !== undefined && { execution: text(ticket.execution) }),
  ...(ticket.target !== undefined && { target: text(ticket.target) }),
  ...(ticket.graceSeconds && { grace_seconds: integer(ticket.graceSeconds) }),
  ...(ticket.data !== undefined && { data: text(JSON.stringify(ticket.data)) }),
  ...(ticket.permit && { weight: integer(ticket.permit.weight) }),
  ...(ticket.permit && ticket.permit.limit !== null && { limit: integer(ticket.permit.limit) }),
  parked_at: integer(ticket.parkedAt),
  deadline: integer(ticket.deadline),
  ...(isTask(ticket) ? { task_token: text(ticket.taskToken) } : { keep_until: integer(ticket.keepUntil) }),
  ttl: integer(ttlOf(ticket)),
});

/** The TTL attribute of a row, in epoch seconds. */
export const ttlOf = (ticket: TaskTicket | Pick<CallTicket, 'keepUntil'>): number =>
  'keepUntil' in ticket
    ? Math.ceil(ticket.keepUntil / 1000) + TTL_AFTER_CALL_SECONDS
    : Math.ceil(ticket.deadline / 1000) + TTL_AFTER_DEADLINE_SECONDS;

function permitOf(item: Item): Place['permit'] {
  const weight = number(item, 'weight');
  return weight === undefined ? undefined : { weight, limit: number(item, 'limit') ?? null };
}

export function parseTicket(item: Item): Ticket {
  const place = {
    key: item.key?.S ?? '',
    ticket: item.ticket?.S ?? '',
    holder: item.holder?.S ?? '',
    ttlSeconds: number(item, 'ttl_seconds') ?? 0,
    requestId: item.request_id?.S ?? '',
    principal: item.principal?.S,
    namespace: item.namespace?.S,
    execution: item.execution?.S,
    target: item.target?.S,
    graceSeconds: number(item, 'grace_seconds'),
    data: json(item.data?.S),
    permit: permitOf(item),
    parkedAt: number(item, 'parked_at') ?? 0,
    deadline: number(item, 'deadline') ?? 0,
  };
  // The token would tell too, but lists do not read it.
  const keepUntil = number(item, 'keep_until');
  if (keepUntil === undefined) return { ...place, taskToken: item.task_token?.S ?? '' };
  return { ...place, keepUntil, cancelledAt: number(item, 'cancelled_at') };
}
