import { SFNClient, type SFNClientConfig } from '@aws-sdk/client-sfn';

/** A connection for each request. */
const FRESH = { keepAlive: false };

/**
 * The client of the queue. Always a single try: if SendTaskSuccess lands and its reply is lost, Step Functions answers a second
 * try that the task is gone, and the lease would pass to another task while this one holds it. So no request may meet a connection that was
 * closed while it was idle, as happens to an environment that Lambda froze: its failure would be the only try.
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
