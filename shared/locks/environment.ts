import { dynamodbClient } from '../aws/dynamodb.ts';
import { requiredString, wholeNumber } from '../aws/variables.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import { DEFAULT_QUOTAS } from '../line/limits/quotas.ts';
import { systemClock } from '../surroundings/clock.ts';
import { systemIds } from '../surroundings/ids.ts';

/**
 * The dependencies of a deployed function.
 * @param dynamodb the client of the function, if the function already has a client
 * @throws Error naming the variable that is missing or wrong
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
      ownAlone: env.NAMESPACE_EXECUTIONS === 'own',
      stateMachines: env.EXECUTION_STATE_MACHINES || '*',
      durableFunctions: env.DURABLE_FUNCTIONS || undefined,
      service: env.SERVICE_NAME,
    },
    quotas: {
      waitersPerKey: wholeNumber('MAX_WAITERS_PER_KEY', DEFAULT_QUOTAS.waitersPerKey, env),
      waitersPerNamespace: wholeNumber('MAX_WAITERS_PER_NAMESPACE', DEFAULT_QUOTAS.waitersPerNamespace, env),
      acquireConcurrency: env.ACQUIRE_CONCURRENCY ? wholeNumber('ACQUIRE_CONCURRENCY', 0, env) : undefined,
    },
    waitersTable: requiredString('WAITERS_TABLE', env),
    repairLater: repairLaterBy(env.REPAIR_QUEUE_URL),
    stepFunctions: once(async () => (await import('../aws/step-functions.ts')).stepFunctionsClient()),
    durableFunctions: once(async () => (await import('../aws/durable-functions.ts')).durableFunctions()),
  };
}

/** @param queueUrl of the queue from which the repair takes its messages. Without one, only the schedule repairs */
function repairLaterBy(queueUrl: string | undefined): LeaseDependencies['repairLater'] {
  if (queueUrl === undefined) return undefined;
  const send = once(async () => (await import('../aws/sqs.ts')).delayedSender(queueUrl));
  return async ({ delaySeconds, ...message }, call) => (await send())(message, delaySeconds, call);
}

/** A function that makes its value at the first call, and returns the same value from then on. */
export function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return () => {
    made ??= make();
    return made;
  };
}
