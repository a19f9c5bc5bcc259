import type { S3Client } from '@aws-sdk/client-s3';
import type { Clock } from '../clock.ts';
import type { Margins, Places, SourceReader, Stores } from '../expired/source.ts';
import type { Ids } from '../ids.ts';
import type { Summary } from './summary.ts';

/** What reading a report needs. */
export interface ReportStoreDependencies {
  s3: S3Client;
  places: Places;
}

/** What the clean-up needs. */
export interface CleanDependencies extends ReportStoreDependencies, Stores {
  clock: Clock;
  margins: Margins;
}

/** What a report needs. */
export interface ReportDependencies extends CleanDependencies, SourceReader {
  ids: Ids;
  /** Of each table, and scanned at once; a report that has begun keeps its own. */
  segments: number;
  /** Over all segments; 0 for no limit. */
  readUnitsPerSecond: number;
  /** Rows in one object of the report. */
  partRows: number;
  /** A report that has not come to its end after this time is given up. */
  giveUpAfterMs: number;
  /** Puts the summary of a complete report on the event bus. Called again where it failed. @throws Error */
  announce(summary: Summary, signal: AbortSignal): Promise<void>;
  /** Writes the metrics of a complete report. */
  measure(summary: Summary): void;
}
