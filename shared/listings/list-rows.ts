import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { ScanCommand } from '@aws-sdk/client-dynamodb';
import { text } from '../aws/attributes.ts';
import type { Call } from '../aws/call.ts';
import { aliased, conditionFields } from '../aws/condition.ts';
import type { Item } from '../aws/dynamodb.ts';
import { reading, send } from '../aws/send.ts';
import { DEFAULT_LIMIT } from '../fields.ts';
import { decodeCursor, encodeCursor } from './cursor.ts';
import { Page, ROWS_READ_PER_PAGE } from './pages.ts';

interface ListedRows<View> {
  prefix: string;
  limit?: number | undefined;
  cursor?: string | undefined;
  /** The row as callers see it. Undefined if the row is not listed. */
  viewOf(item: Item): View | undefined;
  /** See `Page`. */
  abridged(view: View): View;
}

/**
 * Reads a page of the rows of one kind in the leases table, in the order of the scan.
 * @throws HoldfastError InvalidRequest (cursor), Throttled, Unavailable
 */
export async function listRows<View>(
  { dynamodb, table }: { dynamodb: DynamoDBClient; table: string },
  { prefix, limit = DEFAULT_LIMIT, cursor, viewOf, abridged }: ListedRows<View>,
  call: Call,
): Promise<{ keys: View[]; nextCursor: string | null }> {
  const from = cursor === undefined ? undefined : decodeCursor(cursor);
  const { ConditionExpression: FilterExpression, ...fields } = conditionFields(
    aliased('begins_with(#key, :prefix)', { ':prefix': text(prefix) }),
  );
  const command = new ScanCommand({
    TableName: table,
    Limit: ROWS_READ_PER_PAGE,
    ...(from !== undefined && { ExclusiveStartKey: { key: text(from) } }),
    FilterExpression,
    ...fields,
  });
  const output = await send(dynamodb, { command, operation: reading(`table ${table}`) }, call);
  const items = output.Items ?? [];
  const page = new Page<View>(abridged);
  let read = 0;
  for (; read < items.length && page.rows.length < limit; read++) {
    const view = viewOf(items[read] ?? {});
    if (view !== undefined && !page.add(view)) break;
  }
  // A scan can continue after any key, not only after the last key of an answer.
  const last = read < items.length ? items[read - 1]?.key?.S : output.LastEvaluatedKey?.key?.S;
  return { keys: page.rows, nextCursor: last === undefined ? null : encodeCursor(last) };
}
