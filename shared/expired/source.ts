import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import type { S3Client } from '@aws-sdk/client-s3';
import type { Call } from '../aws/call.ts';
import type { Item } from '../aws/dynamodb.ts';
import type { Clock } from '../clock.ts';
import type { ExpiredRow } from './rows.ts';

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

/** Why a reported record was left alone. */
export type SpareReason =
  /** It expired less long ago than was asked for, or than fences are kept. */
  | 'tooYoung'
  /** The record does not say when it expired. */
  | 'ageUnknown'
  /** DynamoDB never deletes it either, by a fault of its TTL, and `neverDeletable` did not ask for it. */
  | 'neverDeletable'
  /** Parked callers are woken or failed by the queue's own repair; a ticket that vanished would leave one hanging. */
  | 'leftToQueue'
  /** A part of a ledger's record: without it the rest is broken. */
  | 'partOfRecord'
  /** The next grant's fence might not rise above this one's. */
  | 'fenceAhead'
  /** Its attributes cannot be compared, so it could not be told from another record. */
  | 'unrecognisable'
  /** It is no longer the very record reported, or somebody is parked behind it. */
  | 'changed'
  /** It was deleted meanwhile. */
  | 'gone';

/** What deleting a record needs. */
export interface Stores {
  dynamodb: DynamoDBClient;
  s3: S3Client;
  places: Places;
}

/** What finding records needs. */
export interface SourceReader extends Stores {
  clock: Clock;
  margins: Margins;
  /** Records read by one request. */
  pageRows: number;
}

/** Where one page of a source begins. */
interface PageStart {
  /** Of the `of` segments that the source is read in. */
  segment: number;
  of: number;
  /** The key behind which it begins; undefined at the start. */
  after: Item | string | undefined;
}

interface SourcePage<Kind extends string = string> {
  rows: ExpiredRow<Kind>[];
  /** Records looked at. */
  scanned: number;
  readUnits: number;
  /** Where the next page begins; undefined after the last one. */
  after: Item | string | undefined;
}

/**
 * What the report and the clean-up know of the records of one table or folder (docs/protocols/expired.md#sources). Each capability describes its own, in
 * its `expired.ts`.
 */
export interface ExpirySource<Kind extends string = string> {
  kinds: readonly Kind[];
  /** The table or bucket; undefined where the deployment has none. */
  place(places: Places): string | undefined;
  /** Whether it can be read in several segments at once. */
  segmented: boolean;
  /** Reads one page, and tells of what has expired. It changes nothing. @throws HoldfastError Throttled, Unavailable */
  page(reader: SourceReader, start: PageStart, call: Call): Promise<SourcePage<Kind>>;
  /** Why a record is left alone whatever its age and whatever is asked for. */
  untouchable?(row: ExpiredRow<Kind>): SpareReason | undefined;
  /** Why a record that is old enough for the caller is left alone all the same. */
  reasonToSpare?(row: ExpiredRow<Kind>, margins: Margins, now: number): SpareReason | undefined;
  /**
   * Deletes a record if it is still the very one that was reported.
   * @returns why it was spared, or undefined where it is deleted
   * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
   */
  remove(stores: Stores, row: ExpiredRow<Kind>, call: Call): Promise<SpareReason | undefined>;
}
