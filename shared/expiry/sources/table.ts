import { DeleteItemCommand, ScanCommand } from '@aws-sdk/client-dynamodb';
import { text } from '../../aws/attributes.ts';
import type { Call } from '../../aws/call.ts';
import { aliased, all, type Condition, conditionFields } from '../../aws/condition.ts';
import { conditionalWrite, type Item } from '../../aws/dynamodb.ts';
import { reading, send, writing } from '../../aws/send.ts';
import { namespaceOfName } from '../../namespace.ts';
import type { ExpiredRow, Identity } from './rows.ts';
import type { ExpirySource, Margins, PageStart, SourceReader, SpareReason } from './source.ts';

/** The description of the expired records of one table. */
export interface TableSource<Kind extends string = string>
  extends Deletable<Kind>,
    Pick<ExpirySource<Kind>, 'kinds' | 'untouchable' | 'reasonToSpare'> {
  /** The attributes that are read besides the key. They must not be secrets. */
  attributes: readonly string[];
  /** The condition that an expired record meets. DynamoDB selects records with it. */
  filter(now: number, margins: Margins): Condition;
  /** @param item a record that met the filter */
  row(item: Item, now: number, margins: Margins): ExpiredRow<Kind>;
}

interface Deletable<Kind extends string> extends Pick<ExpirySource<Kind>, 'location'> {
  key: readonly string[];
  /** A condition of a safe deletion, besides the identity of the record. */
  deletable?(kind: Kind): Condition;
}

/** Makes a source from the description of a table: adds the scan and the deletion. */
export const tableSource = <Kind extends string>(
  source: TableSource<Kind>,
): TableSource<Kind> & ExpirySource<Kind> => ({
  ...source,
  segmented: true,
  page: scanner(source),
  remove: remover(source),
});

function scanner<Kind extends string>(source: TableSource<Kind>): ExpirySource<Kind>['page'] {
  return async (reader, start, call) => {
    const { locations, clock, margins } = reader;
    const now = clock.now();
    const filter = source.filter(now, margins);
    const read = [...source.key, ...source.attributes];
    const { items, ...page } = await scanTable(
      reader,
      { ...start, table: source.location(locations), filter, read },
      call,
    );
    return { ...page, rows: items.map((item) => source.row(item, now, margins)) };
  };
}

interface Scan extends PageStart {
  table: string | undefined;
  filter: Condition;
  /** The attributes that are read. The default is all. */
  read?: readonly string[];
}

/** Reads one page of a table. @throws HoldfastError Throttled, Unavailable */
export async function scanTable(
  { dynamodb, pageRows }: SourceReader,
  { table, filter, read, segment, of, after }: Scan,
  call: Call,
) {
  const ProjectionExpression = read?.map((name) => `#${name}`).join(', ');
  const { ConditionExpression, ...fields } = conditionFields(filter, aliased(ProjectionExpression ?? ''));
  const command = new ScanCommand({
    TableName: table,
    // For a single segment, the scan does not name segments, because the local emulator is slow with them.
    ...(of > 1 && { Segment: segment, TotalSegments: of }),
    Limit: pageRows,
    FilterExpression: ConditionExpression,
    ...fields,
    ...(ProjectionExpression && { ProjectionExpression }),
    ReturnConsumedCapacity: 'TOTAL',
    ...(typeof after === 'object' && { ExclusiveStartKey: after }),
  });
  const output = await send(dynamodb, { command, operation: reading(`table ${table}`) }, call);
  return {
    items: output.Items ?? [],
    scanned: output.ScannedCount ?? 0,
    readUnits: output.ConsumedCapacity?.CapacityUnits ?? 0,
    after: output.LastEvaluatedKey,
  };
}

export function byNamespace(found: readonly { key: string; held: number }[]): Record<string, number> {
  const counts = new Map<string, number>();
  for (const { key, held } of found) {
    const namespace = held > 0 ? namespaceOfName(key) : undefined;
    if (namespace !== undefined) counts.set(namespace, (counts.get(namespace) ?? 0) + held);
  }
  return Object.fromEntries(counts);
}

/** The deletion of a record that still has the attributes of its identity. */
export function remover<Kind extends string>(source: Deletable<Kind>): ExpirySource<Kind>['remove'] {
  return async ({ dynamodb, locations }, { kind, key, identity }, call) => {
    const table = source.location(locations);
    if (!table || !identity) return 'unrecognisable';
    const deletable = source.deletable?.(kind);
    const command = new DeleteItemCommand({
      TableName: table,
      Key: Object.fromEntries(source.key.map((name) => [name, text(key[name] ?? '')])),
      ...conditionFields(all(hasIdentity(identity), ...(deletable ? [deletable] : []))),
      ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
    });
    const outcome = await conditionalWrite(dynamodb, { command, operation: writing(`table ${table}`) }, call);
    return outcome.won ? undefined : whySpared({ isThere: outcome.old !== undefined, ...outcome });
  };
}

/**
 * Why a record was spared if the condition of its deletion failed.
 * @param outcome `unanswered`: an earlier try got no answer
 */
export function whySpared(outcome: { isThere: boolean; unanswered: boolean }): SpareReason | undefined {
  if (outcome.isThere) return 'changed';
  // The unanswered try has deleted the record.
  return outcome.unanswered ? undefined : 'gone';
}

/** Each attribute of the identity still has its reported value, or is still absent. */
function hasIdentity(identity: Identity): Condition {
  const [first, ...others] = Object.entries(identity).map(([name, value]) => {
    if (value === null) return aliased(`attribute_not_exists(#${name})`);
    const placeholder = `:${name.replace('.', '_')}`;
    return aliased(`#${name} = ${placeholder}`, { [placeholder]: value });
  });
  if (!first) throw new TypeError('an identity names at least one attribute');
  return all(first, ...others);
}
