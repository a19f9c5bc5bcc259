import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import type { Operation } from '../aws/send.ts';
import type { Clock } from '../clock.ts';
import type { Ids } from '../ids.ts';
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

/** Who asks for what, for writes that a repeat must find again. */
export interface Request {
  /** Sent by the caller or made here. */
  requestId: string;
  principal: string | undefined;
  /** The operation, its alias and all that it says, as text: the same for a repeat, whenever that comes. */
  content: string;
}

export const nameserviceTable = (table: string, kind: Operation['kind'], request?: Request): Operation => ({
  kind,
  resource: `table ${table}`,
  ...(request && { retryWith: { requestId: request.requestId } }),
});
