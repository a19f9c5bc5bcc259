import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import type { SFNClient } from '@aws-sdk/client-sfn';
import type { Call } from '../aws/call.ts';
import type { Clock } from '../clock.ts';
import type { Ids } from '../ids.ts';
import type { ExecutionRules } from './executions.ts';
import type { Quotas } from './quotas.ts';

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
  /** Any execution of the account and region, if they are absent. */
  executions?: ExecutionRules;
  /** How much callers may take; the defaults if they are absent. */
  quotas?: Quotas;
  /** Holds the tickets of callers and tasks in line. */
  waitersTable: string;
  /** Holds the permits of pools. Undefined in a deployment, or of a client, that has no such table. */
  poolsTable?: string | undefined;
  /** Makes the client on first use, so that plain calls pay nothing for the queue. */
  stepFunctions: () => Promise<SFNClient>;
  /**
   * Has the queue of a key repaired a while later. Best effort, and absent if there is nothing to send with: the schedule comes within
   * a minute.
   */
  repairLater?: ((message: RepairMessage, call: Call) => Promise<void>) | undefined;
}

export interface RepairMessage {
  key: string;
  delaySeconds: number;
}
