import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import type { Call } from '../aws/call.ts';
import { type Operation, reading, writing } from '../aws/send.ts';
import type { Clock } from '../surroundings/clock.ts';
import type { Ids } from '../surroundings/ids.ts';
import type { Alias } from './alias.ts';
import type { PointerStyle } from './pointers.ts';

export interface NameserviceDependencies {
  dynamodb: DynamoDBClient;
  clock: Clock;
  ids: Ids;
  table: string;
  /**
   * The attributes that are written for commit and index addresses. The service reads the attributes of both styles.
   */
  pointerStyle: PointerStyle;
}

/** The identity of a write's request. A repeat has the same. */
export interface WriteRequest {
  /** The id that the caller sent, or a new one. */
  requestId: string;
  principal: string | undefined;
  /** The operation with its alias and all its fields, as text. */
  content: string;
}

export interface AliasWrite {
  dependencies: NameserviceDependencies;
  alias: Alias;
  request: WriteRequest;
  call: Call;
}

export const readingTable = (table: string): Operation => reading(`table ${table}`);

/** A write to the table. Its `OutcomeUnknown` names the request id, which identifies a repeat. */
export const writingTable = (table: string, { requestId }: WriteRequest): Operation =>
  writing(`table ${table}`, { requestId });
