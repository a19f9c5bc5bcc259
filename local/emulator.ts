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
