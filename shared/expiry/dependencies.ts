import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import type { S3Client } from '@aws-sdk/client-s3';
import type { Operation } from '../aws/send.ts';
import type { Clock } from '../clock.ts';
import type { Ids } from '../ids.ts';
import type { Summary } from './summary.ts';

/** Where expired records may lie. */
export interface Places {
  leasesTable: string;
  commitsTable: string;
  nameserviceTable: string;
  /** Undefined in a deployment without a queue. */
  waitersTable: string | undefined;
  bucket: string;
}

/** How a row's age is judged. */
export interface Margins {
  /** How far the service's clocks may stand apart. */
  clockSkewMs: number;
  /** How long a released lease record stays; the clean-up deletes nothing that expired less long ago. */
  fenceRetentionSeconds: number;
  /** How much faster the fastest writer of commits counts than the slowest. */
  maxClockSkewRate: number;
}

/** What reading a report needs. */
export interface ReportStoreDependencies {
  s3: S3Client;
  places: Places;
}

/** What the clean-up needs. */
export interface CleanDependencies extends ReportStoreDependencies {
  dynamodb: DynamoDBClient;
  clock: Clock;
  margins: Margins;
}

/** What a report needs. */
export interface ReportDependencies extends CleanDependencies {
  ids: Ids;
  /** Of each table, and scanned at once; a report that has begun keeps its own. */
  segments: number;
  /** Over all segments; 0 for no limit. */
  readUnitsPerSecond: number;
  /** Rows read by one request. */
  pageRows: number;
  /** Rows in one object of the report. */
  partRows: number;
  /** A report that has not come to its end after this time is given up. */
  giveUpAfterMs: number;
  /** Puts the summary of a complete report on the event bus. Called again where it failed. @throws Error */
  announce(summary: Summary, signal: AbortSignal): Promise<void>;
  /** Writes the metrics of a complete report. */
  measure(summary: Summary): void;
}

export const reads = (resource: string): Operation => ({ kind: 'read', resource });
export const writes = (resource: string): Operation => ({ kind: 'write', resource });
