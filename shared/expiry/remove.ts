import { DeleteItemCommand } from '@aws-sdk/client-dynamodb';
import { DeleteObjectCommand } from '@aws-sdk/client-s3';
import type { Call } from '../aws/call.ts';
import { all } from '../aws/conditions.ts';
import { conditionalWrite, type Item } from '../aws/dynamodb.ts';
import { headObject } from '../aws/s3.ts';
import { attempt, toHoldfastError } from '../aws/send.ts';
import { type CleanDependencies, writes } from './dependencies.ts';
import type { ExpiredRow } from './rows.ts';
import { aliases, sourceOf } from './tables.ts';
import { text } from './values.ts';
import type { SpareReason } from './verdict.ts';

/**
 * Deletes a record if it is still the very one that was reported.
 * @returns why it was spared, or undefined where it is deleted
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export function remove(dependencies: CleanDependencies, row: ExpiredRow, call: Call): Promise<SpareReason | undefined> {
  return row.kind === 'upload' ? removeObject(dependencies, row, call) : removeItem(dependencies, row, call);
}

async function removeItem(
  { dynamodb, places }: CleanDependencies,
  { kind, key, identity }: ExpiredRow,
  call: Call,
): Promise<SpareReason | undefined> {
  const source = sourceOf(kind);
  const table = source?.table(places);
  if (!source || !table || !identity) return 'unrecognisable';
  const values: Item = {};
  const same = Object.entries(identity).map(([name, value]) => {
    if (value === null) return `attribute_not_exists(#${name})`;
    values[`:${name}`] = value;
    return `#${name} = :${name}`;
  });
  const deletable = source.deletable(kind);
  const command = new DeleteItemCommand({
    TableName: table,
    Key: Object.fromEntries(source.key.map((name) => [name, text(key[name] ?? '')])),
    ConditionExpression: all(...same, ...(deletable ? [deletable] : [])),
    ExpressionAttributeNames: aliases(Object.keys(identity)),
    ExpressionAttributeValues: values,
    ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
  });
  const outcome = await conditionalWrite(dynamodb, command, writes(`table ${table}`), call);
  if (outcome.won) return undefined;
  if (outcome.old) return 'changed';
  // Where an earlier try of ours got no answer, it is that one which deleted it.
  return outcome.unanswered ? undefined : 'gone';
}

/** S3 deletes on condition of the ETag, which is that of the same bytes uploaded again; hence a look at its time before. */
async function removeObject(
  { s3, places }: CleanDependencies,
  { key, identity }: ExpiredRow,
  call: Call,
): Promise<SpareReason | undefined> {
  const { bucket } = places;
  const { path = '' } = key;
  const [etag, modifiedAt] = [identity?.etag, identity?.modifiedAt].map((value) =>
    value && 'S' in value ? value.S : '',
  );
  if (!etag || !modifiedAt) return 'unrecognisable';
  const standing = await headObject(s3, bucket, path, call);
  if (!standing) return 'gone';
  const isSame = standing.ETag === etag && seconds(standing.LastModified) === seconds(new Date(modifiedAt));
  if (!isSame) return 'changed';
  const outcome = await attempt(s3, new DeleteObjectCommand({ Bucket: bucket, Key: path, IfMatch: etag }), call);
  if ('output' in outcome) return undefined;
  const { error, unanswered } = outcome;
  const status = error.$metadata?.httpStatusCode;
  if (status === 404) return unanswered ? undefined : 'gone';
  if (status === 412 || status === 409) return 'changed';
  throw toHoldfastError(error, writes(`bucket ${bucket}`), unanswered);
}

/** A HEAD tells whole seconds only. */
const seconds = (at: Date | undefined) => Math.floor((at?.getTime() ?? Number.NaN) / 1000);
