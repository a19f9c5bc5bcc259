import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import type { Call } from '../aws/call.ts';
import { type Operation, reading, writing } from '../aws/send.ts';
import type { Clock } from '../surroundings/clock.ts';
import type { Ids } from '../surroundings/ids.ts';
import type { Alias } from './alias.ts';
import type { PointerStyle } from './pointers.ts';

/** Everything that the nameservice calls need from outside. */
export interface NameserviceDependencies {
  dynamodb: DynamoDBClient;
  clock: Clock;
  ids: Ids;
  table: string;
  /** Which attributes are written for commit and index addresses; both are read. */
  pointerStyle: PointerStyle;
}

/** The request behind a write, by which a repeat finds it again. */
export interface WriteRequest {
  /** Sent by the caller or made here. */
  requestId: string;
  principal: string | undefined;
  /** The operation with its alias and all its fields, as text. It is the same for a repeat, whenever that comes. */
  content: string;
}

/** The dependencies of every write to an alias. */
export interface AliasWrite {
  dependencies: NameserviceDependencies;
  alias: Alias;
  request: WriteRequest;
  call: Call;
}

export const readingTable = (table: string): Operation => reading(`table ${table}`);

/** Its `OutcomeUnknown` names the request's id, so that a repeat is found again. */
export const writingTable = (table: string, { requestId }: WriteRequest): Operation =>
  writing(`table ${table}`, { requestId });
