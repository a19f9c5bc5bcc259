import { ScanCommand } from '@aws-sdk/client-dynamodb';
import type { Call } from '../aws/call.ts';
import type { Item } from '../aws/dynamodb.ts';
import { send } from '../aws/send.ts';
import type { Segment } from './checkpoint.ts';
import { type ReportDependencies, reads } from './dependencies.ts';
import type { ExpiredRow } from './rows.ts';
import type { TableSource } from './table-source.ts';
import { aliases, TABLES, type TableName } from './tables.ts';
import { uploadPage } from './uploads.ts';

export interface Page {
  rows: ExpiredRow[];
  scanned: number;
  readUnits: number;
  /** Where the next page begins; undefined after the last one. */
  after: Item | string | undefined;
}

/** One page of a segment. @throws HoldfastError Throttled, Unavailable */
export function readPage(
  dependencies: ReportDependencies,
  segment: Pick<Segment, 'source' | 'segment' | 'of'>,
  after: Item | string | undefined,
  call: Call,
): Promise<Page> {
  const { source } = segment;
  return source === 'uploads'
    ? pageOfUploads(dependencies, after, call)
    : pageOfTable(dependencies, { ...segment, source }, after, call);
}

async function pageOfUploads(
  { s3, places, pageRows, clock }: ReportDependencies,
  after: Item | string | undefined,
  call: Call,
): Promise<Page> {
  const from = typeof after === 'string' ? after : undefined;
  const page = await uploadPage({ s3, bucket: places.bucket, pageRows }, from, clock.now(), call);
  return { rows: page.rows, scanned: page.scanned, readUnits: 0, after: page.lastPath };
}

async function pageOfTable(
  { dynamodb, places, pageRows, clock, margins }: ReportDependencies,
  { source, segment, of }: { source: TableName; segment: number; of: number },
  after: Item | string | undefined,
  call: Call,
): Promise<Page> {
  const found: TableSource = TABLES[source];
  const table = found.table(places);
  const now = clock.now();
  const read = [...found.key, ...found.attributes];
  const command = new ScanCommand({
    TableName: table,
    // One alone is a plain scan; the local emulator is slow at segments.
    ...(of > 1 && { Segment: segment, TotalSegments: of }),
    Limit: pageRows,
    FilterExpression: found.filter,
    ProjectionExpression: read.map((name) => `#${name}`).join(', '),
    ExpressionAttributeNames: aliases([...read, ...found.filtered]),
    ExpressionAttributeValues: found.values(now, margins),
    ReturnConsumedCapacity: 'TOTAL',
    ...(typeof after === 'object' && { ExclusiveStartKey: after }),
  });
  const output = await send(dynamodb, command, reads(`table ${table}`), call);
  return {
    rows: (output.Items ?? []).map((item) => found.row(item, now, margins)),
    scanned: output.ScannedCount ?? 0,
    readUnits: output.ConsumedCapacity?.CapacityUnits ?? 0,
    after: output.LastEvaluatedKey,
  };
}
