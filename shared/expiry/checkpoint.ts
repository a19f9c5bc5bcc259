import type { Item } from '../aws/dynamodb.ts';
import { REPORTS_FOLDER } from '../folders.ts';
import { instant } from '../surroundings/clock.ts';
import type { ReportedLocations } from './sources/source.ts';
import { addTally, type HeldLeases, noTallies, type Summary, type Tallies } from './summary.ts';

/** A part of a source that is scanned on its own, and how far the scan has come. */
export interface Segment {
  /** The name of the source. */
  source: string;
  segment: number;
  /** How many segments the source has. */
  of: number;
  done: boolean;
  /** The scan continues after this key. Absent at the start. */
  after?: Item | string;
  scanned: number;
  readUnits: number;
  /** How many leases and permits each namespace holds. */
  held: Readonly<Record<string, number>>;
  expired: Tallies;
  neverDeletable: number;
  /** Where the rows are: for each run its fence, and how many of its parts count. */
  runs: [fence: number, parts: number][];
}

/** The format of a stored report. Raise this number if functions of an earlier version would misread the new format. */
export const FORMAT = 1;

/**
 * The state of a report: the object CHECKPOINT while runs continue it, and afterwards its own object. Times are epoch
 * milliseconds. Stored objects contain the names of these fields, so a field must not be renamed without another
 * FORMAT.
 */
export interface Checkpoint {
  format: typeof FORMAT;
  reportId: string;
  startedAt: number;
  finishedAt: number | null;
  /** The tables and the bucket that the report is about. */
  locations: ReportedLocations;
  /** The fence of the run that wrote the checkpoint. */
  fence: number;
  /** The number of the write, so that two writes never have the same bytes and ETag. */
  sequence: number;
  /** The complete reports whose event the bus has not accepted yet. */
  owed: string[];
  segments: Segment[];
}

export const CHECKPOINT = `${REPORTS_FOLDER}checkpoint.json`;
/** A copy of the last complete report. */
export const LATEST = `${REPORTS_FOLDER}latest.json`;
export const reportKey = (reportId: string) => `${REPORTS_FOLDER}${reportId}/summary.json`;

/**
 * The key of an object with rows, a part of a segment. It contains the fence of the run: if a run was frozen and has
 * lost its lease, its parts do not replace the parts of a later run. A part counts only if a checkpoint counts it.
 */
export const partKey = (reportId: string, { source, segment }: Segment, [fence, part]: [fence: number, part: number]) =>
  `${REPORTS_FOLDER}${reportId}/${source}-${segment}/${fence}-${String(part).padStart(6, '0')}.ndjson`;

/**
 * How many namespaces are counted. In a deployment without namespaces, the beginnings of keys look like namespaces, and
 * may be many.
 */
const MAX_COUNTED_NAMESPACES = 1000;

/** Adds up two counts. The result has the first thousand namespaces. */
export function addHeld(to: Segment['held'], more: Segment['held'] = {}): Record<string, number> {
  const held = new Map(Object.entries(to));
  for (const [namespace, leases] of Object.entries(more)) {
    const before = held.get(namespace);
    if (before !== undefined || held.size < MAX_COUNTED_NAMESPACES) held.set(namespace, (before ?? 0) + leases);
  }
  return Object.fromEntries(held);
}

export const MAX_NAMED_NAMESPACES = 100;

/** The namespaces that hold the most leases, the largest first. @param namespace the only namespace to list */
export function heldByNamespace({ segments }: Checkpoint, namespace?: string): HeldLeases[] {
  const sums = segments.reduce<Record<string, number>>((sum, { held }) => addHeld(sum, held), {});
  return Object.entries(sums)
    .map(([name, leases]) => ({ namespace: name, leases }))
    .filter((one) => namespace === undefined || one.namespace === namespace)
    .sort((a, b) => b.leases - a.leases || (a.namespace < b.namespace ? -1 : 1))
    .slice(0, MAX_NAMED_NAMESPACES);
}

export function newSegment(source: Segment['source'], segment: number, of: number): Segment {
  const counts = { scanned: 0, readUnits: 0, held: {}, expired: noTallies(), neverDeletable: 0 };
  return { source, segment, of, done: false, ...counts, runs: [] };
}

/** @returns undefined if the text is not a report of this format. The run then begins a new report */
export function parseCheckpoint(text: string): Checkpoint | undefined {
  try {
    const value = JSON.parse(text) as Partial<Checkpoint>;
    return value.format === FORMAT && Array.isArray(value.segments) ? (value as Checkpoint) : undefined;
  } catch {
    return undefined;
  }
}

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
    heldByNamespace: heldByNamespace(checkpoint),
    expired,
    neverDeletable: sum(({ neverDeletable }) => neverDeletable),
    location: `s3://${bucket}/${REPORTS_FOLDER}${reportId}/`,
  };
}
