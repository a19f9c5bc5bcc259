import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import type { SFNClient } from '@aws-sdk/client-sfn';
import type { Call } from '../aws/call.ts';
import type { DurableFunctions } from '../aws/durable-functions.ts';
import type { Clock } from '../surroundings/clock.ts';
import type { Ids } from '../surroundings/ids.ts';
import type { ExecutionRules } from './executions/allowed.ts';
import type { Quotas } from './limits/quotas.ts';

/** The dependencies of the calls on leases and pools. */
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
  /** The quotas of callers. If they are absent, the defaults apply. */
  quotas?: Quotas;
  /** The table of the waiters. */
  waitersTable: string;
  /** Creates the client on first use, so that plain calls do not load it. */
  stepFunctions: () => Promise<SFNClient>;
  /** As `stepFunctions`, for callbacks of durable functions. Absent in a process that cannot complete them. */
  durableFunctions?: (() => Promise<DurableFunctions>) | undefined;
  /**
   * Sends the message that looks again at a key. Best effort, and absent if there is no SQS queue: the schedule repairs each line within a
   * minute.
   */
  repairLater?: ((message: RepairMessage, call: Call) => Promise<void>) | undefined;
}

export interface RepairMessage {
  key: string;
  delaySeconds: number;
}
