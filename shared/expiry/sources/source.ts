import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import type { S3Client } from '@aws-sdk/client-s3';
import type { Call } from '../../aws/call.ts';
import type { Item } from '../../aws/dynamodb.ts';
import type { Clock } from '../../surroundings/clock.ts';
import type { ExpiredRow, Identity } from './rows.ts';

export interface ReportedLocations {
  leasesTable: string;
  commitsTable: string;
  nameserviceTable: string;
  /** Undefined in a deployment without lines. */
  waitersTable: string | undefined;
  bucket: string;
}

/** The times that a report needs to judge the age of a record. */
export interface Margins {
  /** The largest difference between two clocks of the service. */
  clockSkewMs: number;
  /** How long the record of a released lease stays. The clean-up spares every record that expired more recently. */
  fenceRetentionSeconds: number;
  /** How much faster the fastest commit writer's clock may run than the slowest writer's. */
  maxClockSkewRate: number;
}

export type SpareReason =
  /** The record expired too recently: the caller asked for older records, or its fence or its result is still kept. */
  | 'tooYoung'
  /** The record does not say when it expired. */
  | 'ageUnknown'
  /**
   * DynamoDB never deletes the record because its TTL is faulty, and the caller did not ask for such records
   * (`neverDeletable`).
   */
  | 'neverDeletable'
  /** The waiter belongs to a task, which the repair notifies. Without its waiter, the task would wait forever. */
  | 'leftToQueue'
  /** The item is a part of a nameservice record, which would be incomplete without it. */
  | 'partOfRecord'
  /** Without this record the fence of the next grant might not be higher. */
  | 'fenceAhead'
  /** The attributes of the record cannot be compared, so the clean-up might delete another record. */
  | 'unrecognisable'
  /** The record has changed since the report, or the key has a line. */
  | 'changed'
  /**
   * DynamoDB or another client has deleted the record since the report. For a permit: its holder released it, or
   * another grant replaced it.
   */
  | 'gone';

export interface Stores {
  dynamodb: DynamoDBClient;
  s3: S3Client;
  locations: ReportedLocations;
  holders: Holders;
}

/** The times of a bound grant, in epoch milliseconds: when it was made, and when a call last answered its holder. */
interface AnsweredGrant {
  acquiredAt: number;
  answeredAt?: number | undefined;
}

/** A bound grant in a row. It lasts as long as its execution, so only AWS knows whether it has ended. */
export interface BoundGrantRow extends Pick<ExpiredRow, 'key' | 'holder'> {
  execution: string;
  grant: AnsweredGrant;
  /** Whether the task may not have been notified of the grant. */
  isUnnotified: boolean;
  identity: Identity | null;
}

/**
 * Whether an execution has ended. `unknown`: AWS does not know the execution. `endedAt`: the earliest time of its end,
 * in epoch milliseconds.
 */
export type ExecutionVerdict = 'goesOn' | 'unknown' | { endedAt: number };

/** The rules of bound grants (docs/protocols/executions.md#the-judgement), which the locks implement. */
export interface Holders {
  /**
   * Asks AWS about an execution. Pass grants to the result that were read before the question.
   * @throws HoldfastError Throttled
   */
  ask(execution: string, call: Call): Promise<(grant: AnsweredGrant) => ExecutionVerdict>;
  /**
   * Ends the grant of a row if the grant is unchanged since the report and its execution has ended.
   * @returns why the grant was spared, or undefined if it was ended
   * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
   */
  end(row: Pick<ExpiredRow, 'key' | 'identity'>, call: Call): Promise<SpareReason | undefined>;
}

/** Asks AWS about an execution, and returns the rows that depend on the answer. @throws HoldfastError Throttled */
export type ExecutionQuestion<Kind extends string = string> = (call: Call) => Promise<ExpiredRow<Kind>[]>;

export interface SourceReader extends Stores {
  clock: Clock;
  margins: Margins;
  /** How many records one request reads. */
  pageRows: number;
}

export interface PageStart {
  segment: number;
  /** How many segments the source has. */
  of: number;
  /** The page begins after this key. Undefined at the start of the segment. */
  after: Item | string | undefined;
}

interface SourcePage<Kind extends string = string> {
  rows: ExpiredRow<Kind>[];
  /** The questions on which further rows depend. The report asks as many as the quotas of AWS allow. */
  questions?: readonly ExecutionQuestion<Kind>[];
  /** How many records were read, expired or not. */
  scanned: number;
  readUnits: number;
  /** How many leases and permits of this page each namespace holds. */
  held?: Readonly<Record<string, number>>;
  /** The next page begins after this key. Undefined after the last page. */
  after: Item | string | undefined;
}

export interface Found<Kind extends string = string> {
  rows: ExpiredRow<Kind>[];
  /** How many leases or permits of the record are held. */
  held: number;
}

/**
 * A table or a folder, in which the report finds expired records and from which the clean-up deletes them
 * (docs/protocols/expired.md#sources). Each capability describes its records in its `expired.ts`.
 */
export interface ExpirySource<Kind extends string = string> {
  kinds: readonly Kind[];
  /** The table or the bucket. Undefined if the deployment does not have it. */
  location(locations: ReportedLocations): string | undefined;
  /** Whether several segments can be read at once. */
  segmented: boolean;
  /** Finds the expired records of one page, without changing them. @throws HoldfastError Throttled, Unavailable */
  page(reader: SourceReader, start: PageStart, call: Call): Promise<SourcePage<Kind>>;
  /** Why the clean-up never deletes the record, whatever its age and whatever the caller asks for. */
  untouchable?(row: ExpiredRow<Kind>): SpareReason | undefined;
  /** Why the clean-up spares a record that is old enough for the caller. */
  reasonToSpare?(row: ExpiredRow<Kind>, margins: Margins, now: number): SpareReason | undefined;
  /**
   * Deletes a record if it is unchanged since the report.
   * @returns why the record was spared, or undefined if it was deleted
   * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
   */
  remove(stores: Stores, row: ExpiredRow<Kind>, call: Call): Promise<SpareReason | undefined>;
}
