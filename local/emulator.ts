/** An AWS service that runs on this machine. */
export interface Emulator {
  endpoint: string;
  /** Ends it, and resolves when it has ended. */
  stop(): Promise<void>;
}

/** The endpoint that the environment names in `variable`, which is not stopped; otherwise what `start` starts. */
export async function givenOr(variable: string, start: () => Promise<Emulator>): Promise<Emulator> {
  const given = process.env[variable];
  return given ? { endpoint: given, stop: async () => {} } : start();
}

/**
 * Names the call that an endpoint has refused. Another service than expected may listen there, and the SDK then says only
 * `UnknownError`.
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
