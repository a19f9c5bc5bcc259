import {
  DeleteItemCommand,
  GetItemCommand,
  PutItemCommand,
  QueryCommand,
  type QueryCommandInput,
} from '@aws-sdk/client-dynamodb';
import { integer, text } from '../../aws/attributes.ts';
import type { Call } from '../../aws/call.ts';
import type { Item } from '../../aws/dynamodb.ts';
import { reading, send, writing } from '../../aws/send.ts';
import type { LeaseDependencies } from '../dependencies.ts';
import { type Json, json, number } from '../record.ts';

/** One row of the waiters table: a parked task. Instants are epoch milliseconds. */
export interface Ticket {
  key: string;
  /** Its place: sorts by the service's clock. */
  ticket: string;
  /** A secret: anybody who has it can end the task. */
  taskToken: string;
  holder: string;
  ttlSeconds: number;
  requestId: string;
  principal?: string | undefined;
  execution?: string | undefined;
  target?: string | undefined;
  data?: Json | undefined;
  parkedAt: number;
  /** When waiting ends with LeaseHeld. */
  deadline: number;
}

/** TTL comes long after the deadline: if it deleted a row before that, the task would wait for ever. */
const TTL_AFTER_DEADLINE_SECONDS = 86_400;

/** Fifteen digits last until the year 33658, so text sorts as the milliseconds do. */
export const ticketName = (now: number, uuid: string): string => `${String(now).padStart(15, '0')}-${uuid}`;

/** How many tasks may be parked for one key. */
export const MAX_PARKED = 1000;

/**
 * Whether more than MAX_PARKED tasks are parked, by an eventually consistent count: half a read unit for each 4 KiB of rows.
 */
export async function isQueueFull(
  { dynamodb, waitersTable }: LeaseDependencies,
  key: string,
  call: Call,
): Promise<boolean> {
  let count = 0;
  let from: Item | undefined;
  do {
    const command: QueryCommand = new QueryCommand({
      TableName: waitersTable,
      Select: 'COUNT',
      Limit: MAX_PARKED + 1 - count,
      KeyConditionExpression: '#key = :key',
      ExpressionAttributeNames: { '#key': 'key' },
      ExpressionAttributeValues: { ':key': text(key) },
      ...(from && { ExclusiveStartKey: from }),
    });
    const page = await send(dynamodb, { command, operation: reading(`table ${waitersTable}`) }, call);
    count += page.Count ?? 0;
    from = page.LastEvaluatedKey;
  } while (from && count <= MAX_PARKED);
  return count > MAX_PARKED;
}

/** Sorts after every ticket. */
export const AFTER_ALL_TICKETS = '\uffff';

export const isOverdue = (ticket: Ticket, now: number): boolean => ticket.deadline <= now;

export async function putTicket({ dynamodb, waitersTable }: LeaseDependencies, ticket: Ticket, call: Call) {
  const command = new PutItemCommand({ TableName: waitersTable, Item: ticketItem(ticket) });
  await send(dynamodb, { command, operation: writing(`table ${waitersTable}`) }, call);
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

/** The tickets of a key from the oldest on, strongly consistent. The first page has `firstPage` tickets: most callers need no more. */
export async function* ticketsOf(
  { dynamodb, waitersTable }: LeaseDependencies,
  { key, firstPage, ...options }: { key: string; firstPage?: number } & Partial<QueryCommandInput>,
  call: Call,
): AsyncGenerator<Ticket> {
  let from: Item | undefined;
  do {
    const command = new QueryCommand({
      TableName: waitersTable,
      KeyConditionExpression: '#key = :key',
      ConsistentRead: true,
      ...(from ? { ExclusiveStartKey: from } : firstPage !== undefined && { Limit: firstPage }),
      ...options,
      ExpressionAttributeNames: { '#key': 'key', ...options.ExpressionAttributeNames },
      ExpressionAttributeValues: { ':key': text(key), ...options.ExpressionAttributeValues },
    });
    const page = await send(dynamodb, { command, operation: reading(`table ${waitersTable}`) }, call);
    yield* (page.Items ?? []).map(parseTicket);
    from = page.LastEvaluatedKey;
  } while (from);
}

function ticketItem(ticket: Ticket): Item {
  return {
    key: text(ticket.key),
    ticket: text(ticket.ticket),
    task_token: text(ticket.taskToken),
    holder: text(ticket.holder),
    ttl_seconds: integer(ticket.ttlSeconds),
    request_id: text(ticket.requestId),
    ...(ticket.principal !== undefined && { principal: text(ticket.principal) }),
    ...(ticket.execution !== undefined && { execution: text(ticket.execution) }),
    ...(ticket.target !== undefined && { target: text(ticket.target) }),
    ...(ticket.data !== undefined && { data: text(JSON.stringify(ticket.data)) }),
    parked_at: integer(ticket.parkedAt),
    deadline: integer(ticket.deadline),
    ttl: integer(Math.ceil(ticket.deadline / 1000) + TTL_AFTER_DEADLINE_SECONDS),
  };
}

function parseTicket(item: Item): Ticket {
  return {
    key: item.key?.S ?? '',
    ticket: item.ticket?.S ?? '',
    taskToken: item.task_token?.S ?? '',
    holder: item.holder?.S ?? '',
    ttlSeconds: number(item, 'ttl_seconds') ?? 0,
    requestId: item.request_id?.S ?? '',
    principal: item.principal?.S,
    execution: item.execution?.S,
    target: item.target?.S,
    data: json(item.data?.S),
    parkedAt: number(item, 'parked_at') ?? 0,
    deadline: number(item, 'deadline') ?? 0,
  };
}
