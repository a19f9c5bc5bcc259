import type { Item } from '../aws/dynamodb.ts';
import type { Places } from '../expired/source.ts';
import { REPORTS_FOLDER } from '../folders.ts';
import type { SourceName } from './sources.ts';
import { addTally, noTallies, type Summary, type Tallies } from './summary.ts';

/** One of the pieces that a report scans on its own, and how far it came with it. */
export interface Segment {
  source: SourceName;
  segment: number;
  /** How many segments its source has. */
  of: number;
  done: boolean;
  /** Where a table's scan goes on, or after which object; absent at the start. */
  after?: Item | string;
  scanned: number;
  readUnits: number;
  expired: Tallies;
  neverDeletable: number;
  /** Its rows, run by run: each run's fence, and how many parts of it count. */
  runs: [fence: number, parts: number][];
}

/** A report as it is stored: between runs in CHECKPOINT, afterwards with its summary. Instants are epoch milliseconds. */
export interface Checkpoint {
  format: 1;
  reportId: string;
  startedAt: number;
  finishedAt: number | null;
  /** What it is about. */
  places: Places;
  /** The fence of the run that wrote this. */
  fence: number;
  /** Counts the writes, so that no two have the same bytes and ETag. */
  sequence: number;
  /** Complete reports whose event is not on the bus yet: those that are unannounced. */
  owed: string[];
  segments: Segment[];
}

export const CHECKPOINT = `${REPORTS_FOLDER}checkpoint.json`;
/** The last complete report. */
export const LATEST = `${REPORTS_FOLDER}latest.json`;
export const reportKey = (reportId: string) => `${REPORTS_FOLDER}${reportId}/summary.json`;

/**
 * A part belongs to one segment, one run and its place in that run. The run's fence is in its name, so that a run that
 * was thought dead writes nothing that a later one counts; and a part counts only once a checkpoint says so.
 */
export const partKey = (reportId: string, { source, segment }: Segment, [fence, part]: [fence: number, part: number]) =>
  `${REPORTS_FOLDER}${reportId}/${source}-${segment}/${fence}-${String(part).padStart(6, '0')}.ndjson`;

export function newSegment(source: Segment['source'], segment: number, of: number): Segment {
  const counts = { scanned: 0, readUnits: 0, expired: noTallies(), neverDeletable: 0 };
  return { source, segment, of, done: false, ...counts, runs: [] };
}

/** Undefined where the text is none that this version wrote. */
export function parseCheckpoint(text: string): Checkpoint | undefined {
  try {
    const value = JSON.parse(text) as Partial<Checkpoint>;
    return value.format === 1 && Array.isArray(value.segments) ? (value as Checkpoint) : undefined;
  } catch {
    return undefined;
  }
}

const instant = (epochMs: number) => new Date(epochMs).toISOString();

export function summaryOf(checkpoint: Checkpoint, bucket: string): Summary {
  const { reportId, startedAt, finishedAt, segments } = checkpoint;
  const sum = (of: (segment: Segment) => number) => segments.reduce((total, segment) => total + of(segment), 0);
  const expired = noTallies();
  for (const segment of segments)
    for (const [kind, tally] of Object.entries(segment.expired)) addTally(expired, kind as keyof Tallies, tally);
  return {
    reportId,
    startedAt: instant(startedAt),
    finishedAt: finishedAt === null ? null : instant(finishedAt),
    complete: finishedAt !== null,
    scanned: sum(({ scanned }) => scanned),
    readUnits: sum(({ readUnits }) => readUnits),
    expired,
    neverDeletable: sum(({ neverDeletable }) => neverDeletable),
    location: `s3://${bucket}/${REPORTS_FOLDER}${reportId}/`,
  };
}
