import type { S3Client } from '@aws-sdk/client-s3';
import type { Clock } from '../surroundings/clock.ts';
import type { Ids } from '../surroundings/ids.ts';
import type { Sources } from './kinds.ts';
import type { Margins, ReportedLocations, SourceReader, Stores } from './sources/source.ts';
import type { Summary } from './summary.ts';

export interface ReportStoreDependencies {
  s3: S3Client;
  locations: ReportedLocations;
}

export interface CleanDependencies extends ReportStoreDependencies, Stores {
  clock: Clock;
  margins: Margins;
  sources: Sources;
}

export interface ReportDependencies extends CleanDependencies, SourceReader {
  ids: Ids;
  /** How many segments of each table are scanned at once. A report keeps the number that it began with. */
  segments: number;
  /** The most read units of all segments together. 0 means no limit. */
  readUnitsPerSecond: number;
  /** How many rows one object of the report holds. */
  partRows: number;
  /** A report that is not complete after this time is abandoned, and the next run begins a new one. */
  giveUpAfterMs: number;
  /** Sends the summary of a complete report to the event bus. If this fails, the next run tries again. @throws Error */
  announce(summary: Summary, signal: AbortSignal): Promise<void>;
  /** Writes the metrics of a complete report. */
  measure(summary: Summary): void;
}
