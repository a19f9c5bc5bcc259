import { SFNClient, type SFNClientConfig } from '@aws-sdk/client-sfn';

/** Opens a new connection for each request. */
const FRESH = { keepAlive: false };

/**
 * The client of Step Functions, which sends each request a single time. The danger of a second try: if SendTaskSuccess
 * lands and its reply is lost, Step Functions answers the second try that the task is gone, and Holdfast would pass the
 * lease to another task while this task holds it. Each request has a new connection, because the only try would fail on
 * an idle connection that was closed while Lambda had frozen the function.
 */
export function stepFunctionsClient(overrides: SFNClientConfig = {}): SFNClient {
  return new SFNClient({
    maxAttempts: 1,
    requestHandler: {
      ...{ connectionTimeout: 1000, requestTimeout: 3000, throwOnRequestTimeout: true },
      ...{ httpAgent: FRESH, httpsAgent: FRESH },
    },
    ...overrides,
  });
}
