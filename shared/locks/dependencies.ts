import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import type { SFNClient } from '@aws-sdk/client-sfn';
import type { Call } from '../aws/call.ts';
import type { DurableFunctions } from '../aws/durable-functions.ts';
import { dynamodbClient } from '../aws/dynamodb.ts';
import type { PutEvents } from '../aws/event-bus.ts';
import { requiredString, wholeNumber } from '../aws/variables.ts';
import { type Clock, systemClock } from '../surroundings/clock.ts';
import { type Ids, systemIds } from '../surroundings/ids.ts';
import type { ExecutionRules } from './executions/allowed.ts';

export interface LeaseDependencies {
  dynamodb: DynamoDBClient;
  clock: Clock;
  ids: Ids;
  table: string;
  /**
   * The clock skew margin: how far the clocks of two functions may differ. Another caller may take over an expired
   * lease only after this margin.
   */
  clockSkewMs: number;
  /** The highest `waitSeconds`. A call that asks for more waits for `maxWaitSeconds`. */
  maxWaitSeconds: number;
  /** How long a released record stays, so that the next grant can raise its fence. */
  fenceRetentionSeconds: number;
  /** Which executions may hold leases. If absent, all of the account and region. */
  executions?: ExecutionRules;
  /** The quotas of callers. If absent, the defaults. */
  quotas?: Quotas;
  waitersTable: string;
  /** Creates the client at the first use, so that plain calls do not load it. */
  stepFunctions: () => Promise<SFNClient>;
  /** As `stepFunctions`, for callbacks of durable functions. Absent in a process that cannot complete them. */
  durableFunctions?: (() => Promise<DurableFunctions>) | undefined;
  /**
   * Sends a delayed repair of a key. Best effort, and absent without a queue, because the schedule repairs each line
   * too.
   */
  repairLater?: ((message: RepairMessage, call: Call) => Promise<void>) | undefined;
  /** Puts events about long waits. Absent if the deployment puts no events, and in every function but the repair. */
  waitEvents?: WaitEvents | undefined;
}

/** Puts events about waiters that have waited for long (docs/events.md). */
export interface WaitEvents {
  /**
   * After how many milliseconds the schedule puts an event about a waiter. It puts another one after each further
   * period of this length.
   */
  overdueMs: number;
  put: PutEvents;
}

export interface RepairMessage {
  key: string;
  delaySeconds: number;
}

/** How much callers may take, so that an accident of one caller does not stop the others. */
export interface Quotas {
  waitersPerKey: number;
  /** How many tasks and calls may be in line for all keys of a namespace, as the repair counts them. */
  waitersPerNamespace: number;
  /** How many calls may wait inside the service at the same time. If absent, all may, and callers never sleep. */
  maxHeldCalls?: number | undefined;
}

export const DEFAULT_QUOTAS: Quotas = { waitersPerKey: 10_000, waitersPerNamespace: 100_000 };

/** Whether callers may sleep, which gives them places. */
export const canSleep = ({ quotas }: Pick<LeaseDependencies, 'quotas'>): boolean => quotas?.maxHeldCalls !== undefined;

/** How long a caller has to claim its grant: the grant window. */
export const WINDOW_SECONDS = 2;
export const WINDOW_MS = WINDOW_SECONDS * 1000;

/** How often a call in line reads its own row of the waiters table. */
export const ROW_EVERY_MS = 1000;

export const DEFAULT_PARK_SECONDS = 86_400;

export const DEFAULT_TTL_SECONDS = 60;

/**
 * The stored ttl of a bound grant (docs/protocols/bound.md). It is longer than any execution, which lasts
 * 366 days at most, so only a look ends the grant.
 */
export const BOUND_SECONDS = 400 * 86_400;

/** The shortest time between two looks at the executions of a key's grants. */
export const ASK_EVERY_MS = 30_000;

/**
 * How much time a call must have left to hand off. With less, it only ends the grant, and leaves the hand-off to other
 * calls.
 */
export const MIN_HAND_OFF_TIME_MS = 2000;

/** How much time of its invocation a call that waits leaves for a last write. */
const LAST_WRITE_MS = 500;

/**
 * The deadline of a call whose first try was refused, in epoch milliseconds. If the clock was set back during that try,
 * the wait counts from now. Otherwise the call would wait longer by that time.
 */
export function deadlineOf(
  { maxWaitSeconds }: Pick<LeaseDependencies, 'maxWaitSeconds'>,
  { waitSeconds, arrivedAt, now }: { waitSeconds: number; arrivedAt: number; now: number },
  call: Call,
): number {
  const wanted = Math.min(arrivedAt, now) + Math.min(waitSeconds, maxWaitSeconds) * 1000;
  return Math.min(wanted, now + call.timeLeftMs() - LAST_WRITE_MS);
}

/**
 * Whether a call names the ticket of an earlier call. Such a call keeps its position even if its first try took longer
 * than `waitSeconds`: it polls one time, and is answered with its position.
 */
export const namesEarlierTicket = (
  { maxWaitSeconds }: Pick<LeaseDependencies, 'maxWaitSeconds'>,
  { waitSeconds, fair, ticket }: { waitSeconds: number; fair: boolean; ticket: string | undefined },
): boolean => fair && ticket !== undefined && Math.min(waitSeconds, maxWaitSeconds) > 0;

/**
 * The dependencies of a deployed function.
 * @param dynamodb the client, if the function already has one
 * @throws Error that names the variable that is missing or wrong
 */
export function leasesFromEnvironment(
  env: NodeJS.ProcessEnv = process.env,
  dynamodb = dynamodbClient(),
): LeaseDependencies {
  return {
    dynamodb,
    clock: systemClock,
    ids: systemIds,
    table: requiredString('LEASES_TABLE', env),
    clockSkewMs: wholeNumber('CLOCK_SKEW_MS', 500, env),
    maxWaitSeconds: wholeNumber('MAX_WAIT_SECONDS', 20, env),
    fenceRetentionSeconds: wholeNumber('FENCE_RETENTION_SECONDS', 3600, env),
    executions: {
      onlyOwn: env.NAMESPACE_EXECUTIONS === 'own',
      stateMachines: env.EXECUTION_STATE_MACHINES || '*',
      durableFunctions: env.DURABLE_FUNCTIONS || undefined,
      service: env.SERVICE_NAME,
    },
    quotas: {
      waitersPerKey: wholeNumber('MAX_WAITERS_PER_KEY', DEFAULT_QUOTAS.waitersPerKey, env),
      waitersPerNamespace: wholeNumber('MAX_WAITERS_PER_NAMESPACE', DEFAULT_QUOTAS.waitersPerNamespace, env),
      maxHeldCalls: wholeNumber('MAX_HELD_CALLS', 100, env),
    },
    waitersTable: requiredString('WAITERS_TABLE', env),
    repairLater: repairLaterBy(env.REPAIR_QUEUE_URL),
    stepFunctions: memoized(async () => (await import('../aws/step-functions.ts')).stepFunctionsClient()),
    durableFunctions: memoized(async () => (await import('../aws/durable-functions.ts')).durableFunctions()),
  };
}

/** @throws Error that names the variable that is missing or wrong */
export function waitEventsFromEnvironment(env: NodeJS.ProcessEnv = process.env): WaitEvents | undefined {
  if (env.EVENTS !== 'ENABLED') return undefined;
  const service = requiredString('SERVICE_NAME', env);
  const bus = memoized(async () => (await import('../aws/event-bus.ts')).eventBus(service));
  return {
    overdueMs: wholeNumber('WAITER_OVERDUE_SECONDS', 14_400, env) * 1000,
    put: async (...events) => (await bus())(...events),
  };
}

/** @param queueUrl the queue from which the repair takes its messages. Without one, only the schedule repairs */
function repairLaterBy(queueUrl: string | undefined): LeaseDependencies['repairLater'] {
  if (queueUrl === undefined) return undefined;
  const send = memoized(async () => (await import('../aws/sqs.ts')).delayedSender(queueUrl));
  return async ({ delaySeconds, ...message }, call) => (await send())(message, delaySeconds, call);
}

export function memoized<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return () => {
    made ??= make();
    return made;
  };
}
