import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import type { SFNClient } from '@aws-sdk/client-sfn';
import type { Clock } from '../clock.ts';
import type { Ids } from '../ids.ts';

/** What the lease calls need from outside. */
export interface LeaseDependencies {
  dynamodb: DynamoDBClient;
  clock: Clock;
  ids: Ids;
  table: string;
  /** How far the clocks of the functions may differ. An expired lease is taken over only after this margin. */
  clockSkewMs: number;
  /** A longer `waitSeconds` is cut to this. */
  maxWaitSeconds: number;
  /** How long a released record stays, so that the next grant can raise its fence. */
  fenceRetentionSeconds: number;
  /** Holds the tickets of parked tasks. */
  waitersTable: string;
  /** Makes the client on first use, so that plain calls pay nothing for the queue. */
  stepFunctions: () => Promise<SFNClient>;
}
