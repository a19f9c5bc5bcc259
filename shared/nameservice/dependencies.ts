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

/** Who asks, for writes that a repeat must find again. */
export interface Request {
  /** Sent by the caller or made here. */
  requestId: string;
  principal: string | undefined;
}

export const nameserviceTable = (table: string, kind: Operation['kind'], request?: Request): Operation => ({
  kind,
  resource: `table ${table}`,
  ...(request && { retryWith: { requestId: request.requestId } }),
});
