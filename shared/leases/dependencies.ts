import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import type { SFNClient } from '@aws-sdk/client-sfn';
import type { Clock } from '../clock.ts';
import type { Ids } from '../ids.ts';

/** Everything that the lease calls need from outside. */
export interface LeaseDependencies {
  dynamodb: DynamoDBClient;
  clock: Clock;
  ids: Ids;
  table: string;
  /** How far the service's clocks may stand apart; added before a lease is taken over. */
  clockSkewMs: number;
  /** What a `waitSeconds` beyond it is cut to. */
  maxWaitSeconds: number;
  /** How long a released record stays, so that the next grant's fence rises above its own. */
  fenceRetentionSeconds: number;
  /** Where tickets are kept, of those who are parked. */
  waitersTable: string;
  /** Made when it is first needed: plain calls pay nothing for the queue. */
  stepFunctions: () => Promise<SFNClient>;
}
