import { QueryCommand } from '@aws-sdk/client-dynamodb';
import { text } from '../aws/attributes.ts';
import type { Call } from '../aws/call.ts';
import type { Item } from '../aws/dynamodb.ts';
import { send } from '../aws/send.ts';
import { type Alias, aliasText } from './alias.ts';
import { type NameserviceDependencies, readingTable } from './dependencies.ts';
import { type ItemsByConcern, itemsByConcern } from './record.ts';

/**
 * Reads the items of one alias, strongly consistent, with a Query of the sort keys from `config` to `status`. The rows
 * `commit#` that other clients write for each commit sort before these keys, so they are not read. Other rows between
 * these keys are skipped.
 * @throws HoldfastError Throttled, Unavailable
 */
export async function readRows(
  { dynamodb, table }: NameserviceDependencies,
  alias: Alias,
  call: Call,
): Promise<ItemsByConcern> {
  const items: Item[] = [];
  let startKey: Item | undefined;
  do {
    const command = new QueryCommand({
      TableName: table,
      KeyConditionExpression: 'pk = :pk AND sk BETWEEN :first AND :last',
      ExpressionAttributeValues: { ':pk': text(aliasText(alias)), ':first': text('config'), ':last': text('status') },
      ConsistentRead: true,
      ...(startKey && { ExclusiveStartKey: startKey }),
    });
    const output = await send(dynamodb, { command, operation: readingTable(table) }, call);
    items.push(...Object.values(itemsByConcern(output.Items ?? [])));
    startKey = output.LastEvaluatedKey;
  } while (startKey);
  return itemsByConcern(items);
}
