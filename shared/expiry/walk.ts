import type { Call } from '../aws/call.ts';
import { HoldfastError, invalidRequest, unknownCursor } from '../errors.ts';
import { decodeCursor, encodeCursor } from '../listings/cursor.ts';
import { CHECKPOINT, type Checkpoint, LATEST, parseCheckpoint, partKey, reportKey } from './checkpoint.ts';
import type { ReportStoreDependencies } from './dependencies.ts';
import type { Kind } from './kinds.ts';
import type { ExpiredRow } from './sources/rows.ts';
import { type ReportStore, reportStore } from './store.ts';

interface ReportPosition {
  reportId: string;
  at: [segment: number, run: number, part: number, line: number];
}

const REPORT_POSITION = /^([\w-]{1,64}):(\d{1,9}):(\d{1,9}):(\d{1,9}):(\d{1,9})$/;

/** The state of a report, and its rows from a position on. */
export interface OpenReport {
  checkpoint: Checkpoint;
  /** The cursor of the first row. */
  start: string;
  /** The rows in order, each with the cursor of the next one. Only one part is in memory at a time. */
  rows(call: Call): AsyncGenerator<Step>;
}

interface Step {
  /** Undefined at the end of a part, where a reader that skips rows can stop too. */
  row: ExpiredRow<Kind> | undefined;
  /** The cursor of the next row. */
  next: string;
}

/**
 * Opens the report of the id or the cursor. Without either, it opens the last complete report, or the one under way if
 * none is complete.
 * @throws HoldfastError NotFound, InvalidRequest (cursor), Throttled, Unavailable
 */
export async function openReport(
  { s3, locations }: ReportStoreDependencies,
  { reportId, cursor }: { reportId?: string | undefined; cursor?: string | undefined },
  call: Call,
): Promise<OpenReport> {
  const position = cursor === undefined ? undefined : decodePosition(cursor);
  if (position && reportId !== undefined && position.reportId !== reportId)
    throw invalidRequest([{ path: 'cursor', message: 'belongs to another report: leave it out' }]);
  const store = reportStore(s3, locations.bucket);
  const wanted = position?.reportId ?? reportId;
  const checkpoint = await findCheckpoint(store, wanted, call);
  if (!checkpoint)
    throw new HoldfastError(
      'NotFound',
      wanted === undefined
        ? 'there is no report yet: create a report'
        : 'there is no such report: leave out reportId for the last report',
      {
        reportId: wanted ?? null,
      },
    );
  const at = position?.at ?? [0, 0, 0, 0];
  const start = encodePosition({ reportId: checkpoint.reportId, at });
  return { checkpoint, start, rows: (readingCall) => rowsFrom(store, { checkpoint, from: at }, readingCall) };
}

async function findCheckpoint(
  store: ReportStore,
  reportId: string | undefined,
  call: Call,
): Promise<Checkpoint | undefined> {
  const filed = await store.get(reportId === undefined ? LATEST : reportKey(reportId), call);
  if (filed) return parseCheckpoint(filed.text);
  const underWay = await store.get(CHECKPOINT, call);
  const checkpoint = underWay && parseCheckpoint(underWay.text);
  return reportId === undefined || checkpoint?.reportId === reportId ? checkpoint : undefined;
}

async function* rowsFrom(
  store: ReportStore,
  { checkpoint: { reportId, segments }, from }: { checkpoint: Checkpoint; from: ReportPosition['at'] },
  call: Call,
): AsyncGenerator<Step> {
  const [fromSegment, fromRun, fromPart, fromLine] = from;
  const isBefore = (segment: number, run: number, part: number) =>
    segment < fromSegment || (segment === fromSegment && (run < fromRun || (run === fromRun && part < fromPart)));
  for (const [s, segment] of segments.entries())
    for (const [r, [fence, parts]] of segment.runs.entries())
      for (let part = 0; part < parts; part++) {
        if (isBefore(s, r, part)) continue;
        const stored = await store.get(partKey(reportId, segment, [fence, part]), call);
        if (!stored)
          throw new HoldfastError('NotFound', 'the rows of this report were deleted: read the last report', {
            reportId,
          });
        const lines = stored.text.split('\n').filter(Boolean);
        const resumed = s === fromSegment && r === fromRun && part === fromPart;
        for (let line = resumed ? fromLine : 0; line < lines.length; line++)
          yield {
            row: JSON.parse(lines[line] ?? '') as ExpiredRow<Kind>,
            next: encodePosition({ reportId, at: [s, r, part, line + 1] }),
          };
        yield { row: undefined, next: encodePosition({ reportId, at: [s, r, part + 1, 0] }) };
      }
}

const encodePosition = ({ reportId, at }: ReportPosition) => encodeCursor([reportId, ...at].join(':'));

function decodePosition(cursor: string): ReportPosition {
  const [, reportId, ...numbers] = REPORT_POSITION.exec(decodeCursor(cursor)) ?? [];
  if (reportId === undefined) throw unknownCursor();
  return { reportId, at: numbers.map(Number) as ReportPosition['at'] };
}
