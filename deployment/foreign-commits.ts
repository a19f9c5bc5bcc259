import { paginateScan } from '@aws-sdk/client-dynamodb';
import { aliased, all, conditionFields } from '../shared/aws/condition.ts';
import type { Item } from '../shared/aws/dynamodb.ts';
import { mayBeInFlight } from '../shared/commits/in-flight.ts';
import { type Aws, timeOfAws } from './aws.ts';
import { Refusal } from './failure.ts';
import type { Values } from './values.ts';

/**
 * Refuses to turn commitProtocol to native while the record of another client stands in the commits table. Its writer writes without a
 * condition, and native leaves no record that would keep it away: it could overwrite an acknowledged commit. A record stays until its ttl,
 * so its writer ended long before.
 * @param table the commits table, if there is one already
 * @throws Refusal that names the record
 */
export async function refuseForeignCommits(
  aws: Aws,
  { previous, next, table }: { previous: Values; next: Values; table: string | undefined },
): Promise<void> {
  if (!table || next.commitProtocol !== 'native' || previous.commitProtocol === 'native') return;
  const found = await foreignRecord(aws, table).catch((error: Error) => {
    if (error instanceof Refusal) throw error;
    throw new Refusal(`cannot check whether other clients commit by records in table ${table}: ${error.message}`);
  });
  if (!found) return;
  const until = found.ttl?.N ? `until ${new Date(Number(found.ttl.N) * 1000).toISOString()}` : 'without an end';
  throw new Refusal(
    [
      `commitProtocol=native: another client commits by records, and a record of ${found.path?.S} is in table ${table} ${until}.`,
      'With native, such a client could overwrite acknowledged commits. Nothing was changed. Stop all writers with',
      'aws_conditional_put=dynamo, and deploy after their records have expired. docs/commits.md has the steps.',
    ].join('\n'),
  );
}

/** TTL deletes records late, or not at all, so the filter compares the time. */
async function foreignRecord(aws: Aws, table: string): Promise<Item | undefined> {
  const now = await timeOfAws(aws, table);
  const isForeign = aliased('attribute_not_exists(#commit_id)');
  const stands = aliased('attribute_not_exists(#ttl) OR #ttl > :now', {
    ':now': { N: String(Math.floor(now / 1000)) },
  });
  const { ConditionExpression: FilterExpression, ...fields } = conditionFields(all(mayBeInFlight, isForeign, stands));
  const scan = { TableName: table, ConsistentRead: true, FilterExpression, ...fields };
  for await (const { Items = [] } of paginateScan({ client: aws.dynamodb }, scan)) if (Items[0]) return Items[0];
  return undefined;
}
