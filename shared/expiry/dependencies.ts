import type { S3Client } from '@aws-sdk/client-s3';
import type { Clock } from '../surroundings/clock.ts';
import type { Ids } from '../surroundings/ids.ts';
import type { Sources } from './kinds.ts';
import type { Margins, Places, SourceReader, Stores } from './sources/source.ts';
import type { Summary } from './summary.ts';

/** The dependencies of reading a report. */
export interface ReportStoreDependencies {
  s3: S3Client;
  places: Places;
}

/** The dependencies of the clean-up. */
export interface CleanDependencies extends ReportStoreDependencies, Stores {
  clock: Clock;
  margins: Margins;
  sources: Sources;
}

/** The dependencies of a report. */
export interface ReportDependencies extends CleanDependencies, SourceReader {
  ids: Ids;
  /** How many segments of each table are scanned at once. A report that has begun keeps its number. */
  segments: number;
  /** The limit over all segments. 0 means no limit. */
  readUnitsPerSecond: number;
  /** How many rows one object of the report holds. */
  partRows: number;
  /** A report that is not complete after this time is abandoned. */
  giveUpAfterMs: number;
  /** Sends the summary of a complete report to the event bus. A later run calls it again if it fails. @throws Error */
  announce(summary: Summary, signal: AbortSignal): Promise<void>;
  /** Writes the metrics of a complete report. */
  measure(summary: Summary): void;
}
