/** What the end of an execution has done. */
export interface ExecutionEnded {
  execution: string;
  /** Tickets that were taken out of their queues. */
  tickets: number;
  /** Leases and permits that ended here. */
  freed: number;
  /** Leases and permits that stay, because the execution's target works under them or may be about to. */
  kept: number;
}

/** An execution that has ended, and the key or pool that it leaves. */
export interface Leaving {
  key: string;
  execution: string;
  /** The names of the execution's tickets that were in the index. */
  tickets: string[];
  /** The second pass: every call of the execution has ended, so a target that does not exist will never start. */
  settled: boolean;
  /** When Step Functions said that it has ended. A later grant belongs to a redriven execution. */
  askedAt: number;
  /** The counts so far. */
  ended: ExecutionEnded;
}
