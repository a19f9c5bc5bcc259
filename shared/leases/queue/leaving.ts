/** What the end of an execution has done. */
export interface ExecutionEnded {
  execution: string;
  /** Tickets that were taken out of their queues. */
  tickets: number;
  /** Leases and permits that ended here. */
  freed: number;
  /** Those that stay because the execution's target works under them, or may be about to. */
  kept: number;
}

/** An execution that has ended leaves a key, or a pool. */
export interface Leaving {
  key: string;
  execution: string;
  /** Those of the execution that were in the index, by name. */
  tickets: string[];
  /** The second pass: every call of the execution has ended, so a target that does not exist will never start. */
  settled: boolean;
  /** When Step Functions was asked whether it has ended. What was granted later is that of a redriven execution. */
  askedAt: number;
  /** What was done so far. */
  ended: ExecutionEnded;
}
