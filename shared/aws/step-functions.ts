import { SFNClient, type SFNClientConfig } from '@aws-sdk/client-sfn';

/**
 * The client of the queue. One try, always: when SendTaskSuccess lands and its reply is lost, a second try learns that
 * the task is gone, and the lease would be handed on under the task that has it.
 */
export function stepFunctionsClient(overrides: SFNClientConfig = {}): SFNClient {
  return new SFNClient({
    maxAttempts: 1,
    requestHandler: { connectionTimeout: 1000, requestTimeout: 3000, throwOnRequestTimeout: true },
    ...overrides,
  });
}
