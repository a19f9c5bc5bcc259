/** Something of AWS's that runs on this machine. */
export interface Emulator {
  endpoint: string;
  /** Ends it, and waits until it has ended. */
  stop(): Promise<void>;
}

/** What listens where the environment says by `variable`, and is not stopped; else what `start` starts. */
export async function givenOr(variable: string, start: () => Promise<Emulator>): Promise<Emulator> {
  const given = process.env[variable];
  return given ? { endpoint: given, stop: async () => {} } : start();
}
