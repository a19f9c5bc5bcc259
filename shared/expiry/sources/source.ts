import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import type { S3Client } from '@aws-sdk/client-s3';
import type { Call } from '../../aws/call.ts';
import type { Item } from '../../aws/dynamodb.ts';
import type { Clock } from '../../surroundings/clock.ts';
import type { ExpiredRow, Identity } from './rows.ts';

/** The tables and the bucket in which the report looks. */
export interface Places {
  leasesTable: string;
  commitsTable: string;
  nameserviceTable: string;
  /** Undefined in a deployment without a queue. */
  waitersTable: string | undefined;
  bucket: string;
}

/** The limits by which the age of a record is judged. */
export interface Margins {
  /** The largest difference between two clocks of the service. */
  clockSkewMs: number;
  /** How long a released lease record stays. The clean-up deletes nothing that expired more recently. */
  fenceRetentionSeconds: number;
  /** How much faster the fastest writer of commits counts than the slowest. */
  maxClockSkewRate: number;
}

/** Why a reported record was left alone. */
export type SpareReason =
  /** It expired too recently: the caller asked for older records, or its fence or its result is still kept. */
  | 'tooYoung'
  /** The record does not say when it expired. */
  | 'ageUnknown'
  /** Its TTL is faulty, so DynamoDB never deletes it, and the caller did not ask for such records by `neverDeletable`. */
  | 'neverDeletable'
  /** The repair notifies or fails parked tasks. A task whose ticket vanished would wait without end. */
  | 'leftToQueue'
  /** It is a part of a ledger's record. The other parts are of no use without it. */
  | 'partOfRecord'
  /** Without this record the fence of the next grant might not be higher. */
  | 'fenceAhead'
  /** Its attributes cannot be compared, so the clean-up could not tell it from another record. */
  | 'unrecognisable'
  /** The record has changed since the report, or the key has a line. */
  | 'changed'
  /** Another client or DynamoDB has deleted it since the report. Of a permit: its holder released it, or another grant replaced it. */
  | 'gone';

/** The dependencies of deleting a record. */
export interface Stores {
  dynamodb: DynamoDBClient;
  s3: S3Client;
  places: Places;
  holders: Holders;
}

/** When a bound grant was given, and when its holder was last answered with it, in epoch milliseconds. */
interface AnsweredGrant {
  acquiredAt: number;
  answeredAt?: number | undefined;
}

/** A grant that lasts as long as its execution. Whether the execution has ended, only AWS can say. */
export interface BoundHolding extends Pick<ExpiredRow, 'key' | 'holder'> {
  execution: string;
  grant: AnsweredGrant;
  /** Whether perhaps no task was notified of the grant. */
  isUnnotified: boolean;
  identity: Identity | null;
}

/** `unknown`: AWS says nothing about the execution. `endedAt`: when it ended, at the earliest, in epoch milliseconds. */
export type ExecutionVerdict = 'goesOn' | 'unknown' | { endedAt: number };

/** The rules of bound leases and permits (docs/protocols/executions.md#the-judgement), as the locks have them. */
export interface Holders {
  /** Asks AWS about an execution, once. The grants must be as they were read before. @throws HoldfastError Throttled */
  ask(execution: string, call: Call): Promise<(grant: AnsweredGrant) => ExecutionVerdict>;
  /**
   * Ends the lease or the permit of a row, if it is unchanged since the report and its execution has ended.
   * @returns why it was spared, or undefined if it has ended
   * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
   */
  end(row: Pick<ExpiredRow, 'key' | 'identity'>, call: Call): Promise<SpareReason | undefined>;
}

/** One question to AWS about an execution, on which rows depend. @throws HoldfastError Throttled */
export type ExecutionQuestion<Kind extends string = string> = (call: Call) => Promise<ExpiredRow<Kind>[]>;

/** The dependencies of finding records. */
export interface SourceReader extends Stores {
  clock: Clock;
  margins: Margins;
  /** How many records one request reads. */
  pageRows: number;
}

/** Where one page of a source begins. */
export interface PageStart {
  /** Of the `of` segments that the source is read in. */
  segment: number;
  of: number;
  /** The page begins after this key. Undefined at the start. */
  after: Item | string | undefined;
}

interface SourcePage<Kind extends string = string> {
  rows: ExpiredRow<Kind>[];
  /** What the rows do not say yet. The report asks as much as the quotas of AWS allow. */
  questions?: readonly ExecutionQuestion<Kind>[];
  /** How many records were read, expired or not. */
  scanned: number;
  readUnits: number;
  /** How many leases and permits each namespace holds in it. */
  held?: Readonly<Record<string, number>>;
  /** The next page begins after this key. Undefined after the last page. */
  after: Item | string | undefined;
}

/** What a report finds in one record. */
export interface Found<Kind extends string = string> {
  rows: ExpiredRow<Kind>[];
  /** The number of leases or permits that are held in the record. */
  held: number;
}

/**
 * How the report and the clean-up know the records in one table or folder (docs/protocols/expired.md#sources). Each
 * capability describes its own records in its `expired.ts`.
 */
export interface ExpirySource<Kind extends string = string> {
  kinds: readonly Kind[];
  /** The table or bucket. Undefined if the deployment has none. */
  place(places: Places): string | undefined;
  /** Whether several segments can be read at once. */
  segmented: boolean;
  /** Reads one page and returns the expired records. It changes nothing. @throws HoldfastError Throttled, Unavailable */
  page(reader: SourceReader, start: PageStart, call: Call): Promise<SourcePage<Kind>>;
  /** Why the clean-up never deletes this record, whatever its age and whatever the caller asks for. */
  untouchable?(row: ExpiredRow<Kind>): SpareReason | undefined;
  /** Why the clean-up spares a record that is old enough for the caller. */
  reasonToSpare?(row: ExpiredRow<Kind>, margins: Margins, now: number): SpareReason | undefined;
  /**
   * Deletes a record if it is unchanged since the report.
   * @returns why it was spared, or undefined if it was deleted
   * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
   */
  remove(stores: Stores, row: ExpiredRow<Kind>, call: Call): Promise<SpareReason | undefined>;
}
