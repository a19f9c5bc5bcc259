/** An AWS service that runs on this machine. */
export interface Emulator {
  endpoint: string;
  /** Stops the emulator, and resolves when it has stopped. */
  stop(): Promise<void>;
}

/** Uses the endpoint that an environment variable names, and never stops it. Without the variable, starts an emulator. */
export async function givenOr(variable: string, start: () => Promise<Emulator>): Promise<Emulator> {
  const given = process.env[variable];
  return given ? { endpoint: given, stop: async () => {} } : start();
}

/**
 * Adds the call and the endpoint to an error. If another service than expected listens at the endpoint, the SDK says only `UnknownError`.
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
