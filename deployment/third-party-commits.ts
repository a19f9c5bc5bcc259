import { paginateScan } from '@aws-sdk/client-dynamodb';
import { aliased, all, conditionFields } from '../shared/aws/condition.ts';
import type { Item } from '../shared/aws/dynamodb.ts';
import { mayBeInFlight } from '../shared/commits/in-flight.ts';
import { type Aws, timeOfAws } from './aws.ts';
import { Refusal } from './failure.ts';
import type { Values } from './values.ts';

/**
 * Refuses to change commitProtocol to native while the commits table has a record of a third-party client. Such a writer relies on records and writes to
 * S3 without a condition. With native there are no records to keep it away, so it could overwrite an acknowledged commit. Records stay until
 * their ttl, so without a record no such writer has been at work lately.
 * @param table the commits table, if it already exists
 * @throws Refusal that names the record
 */
export async function refuseThirdPartyCommits(
  aws: Aws,
  { previous, next, table }: { previous: Values; next: Values; table: string | undefined },
): Promise<void> {
  if (!table || next.commitProtocol !== 'native' || previous.commitProtocol === 'native') return;
  const found = await thirdPartyRecord(aws, table).catch((error: Error) => {
    if (error instanceof Refusal) throw error;
    throw new Refusal(
      `cannot check whether third-party clients commit with records in table ${table}: ${error.message}`,
    );
  });
  if (!found) return;
  const until = found.ttl?.N ? `until ${new Date(Number(found.ttl.N) * 1000).toISOString()}` : 'without an end';
  throw new Refusal(
    [
      `commitProtocol=native: a third-party client commits with records, and its record of ${found.path?.S} is in table ${table} ${until}.`,
      'With native, such a client could overwrite acknowledged commits. Nothing was changed. Stop all writers with',
      'aws_conditional_put=dynamo, and deploy after their records have expired. docs/commits.md lists the steps.',
    ].join('\n'),
  );
}

/** DynamoDB deletes expired records late, or never, so the filter compares the ttl itself. */
async function thirdPartyRecord(aws: Aws, table: string): Promise<Item | undefined> {
  const now = await timeOfAws(aws, table);
  const isThirdParty = aliased('attribute_not_exists(#commit_id)');
  const stands = aliased('attribute_not_exists(#ttl) OR #ttl > :now', {
    ':now': { N: String(Math.floor(now / 1000)) },
  });
  const { ConditionExpression: FilterExpression, ...fields } = conditionFields(
    all(mayBeInFlight, isThirdParty, stands),
  );
  const scan = { TableName: table, ConsistentRead: true, FilterExpression, ...fields };
  for await (const { Items = [] } of paginateScan({ client: aws.dynamodb }, scan)) if (Items[0]) return Items[0];
  return undefined;
}
