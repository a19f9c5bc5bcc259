import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import type { SFNClient } from '@aws-sdk/client-sfn';
import type { Call } from '../aws/call.ts';
import type { Clock } from '../surroundings/clock.ts';
import type { Ids } from '../surroundings/ids.ts';
import type { ExecutionRules } from './executions/allowed.ts';
import type { Quotas } from './limits/quotas.ts';

/** The dependencies of the calls on leases. */
export interface LeaseDependencies {
  dynamodb: DynamoDBClient;
  clock: Clock;
  ids: Ids;
  table: string;
  /** How far the clocks of the functions may differ. An expired lease is taken over only after this margin. */
  clockSkewMs: number;
  /** The service cuts a longer `waitSeconds` to this. */
  maxWaitSeconds: number;
  /** How long a released record stays, so that the next grant can raise its fence. */
  fenceRetentionSeconds: number;
  /** If they are absent, any execution of the account and region may hold leases. */
  executions?: ExecutionRules;
  /** How much callers may take. If they are absent, the defaults apply. */
  quotas?: Quotas;
  /** Holds the tickets of callers and tasks in line. */
  waitersTable: string;
  /** Holds the permits of pools. Undefined in a deployment, or of a client, that has no such table. */
  poolsTable?: string | undefined;
  /** Makes the client on first use, so that plain calls pay nothing for the line. */
  stepFunctions: () => Promise<SFNClient>;
  /**
   * Asks for a repair of a key's queue a while later. Best effort, and absent without a queue to send to: the schedule repairs within a
   * minute.
   */
  repairLater?: ((message: RepairMessage, call: Call) => Promise<void>) | undefined;
}

export interface RepairMessage {
  key: string;
  /** Of the grant at whose end the message looks. If another one stands by then, there is nothing to do. */
  fence?: number | undefined;
  delaySeconds: number;
}
