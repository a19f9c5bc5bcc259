/**
 * Says which call an endpoint has refused: what listens there need not be what its variable says, and the SDK's own words
 * for that are `UnknownError`.
 * @example await client.send(command).catch(refusedBy(endpoint, 'CreateTable'))
 */
export const refusedBy =
  (endpoint: string, operation: string) =>
  (error: Error & { $metadata?: { httpStatusCode?: number }; code?: string }): never => {
    const status = error.$metadata?.httpStatusCode;
    const isNamed = !['UnknownError', 'Unknown', 'Error', 'SyntaxError'].includes(error.name);
    const what = [isNamed ? error.name : error.code, status && `HTTP ${status}`].filter(Boolean).join(', ');
    const says = error.message && error.message !== 'UnknownError' ? `: ${error.message.split('\n')[0]}` : '';
    throw new Error(`${operation} failed at ${endpoint} (${what || error.name})${says}`, { cause: error });
  };
