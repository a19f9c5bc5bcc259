import type { Kind } from '../kind.ts';
import type { End } from './state.ts';

/** What the end of an execution has done. */
export interface ExecutionEnded {
  execution: string;
  /** Tickets that were taken out of their lines. */
  tickets: number;
  /** Leases and permits that ended here. */
  freed: number;
  /** Leases and permits that go on for their grace, because the execution did not end with SUCCEEDED. */
  graced: number;
  /** Leases and permits that stay, because the execution's target works under them or may be about to. */
  kept: number;
}

/** An execution that has ended, and the key or pool that it leaves. */
export interface EndedExecution {
  key: string;
  /** The kind of what the execution has probably asked for. */
  kind: Kind;
  execution: string;
  /** The names of the execution's tickets that were in the index. */
  tickets: string[];
  /** The second pass: every call of the execution has ended, so a target that does not exist will never start. */
  settled: boolean;
  /** The status that the event has, if it has one. */
  status?: string | undefined;
  /** When it ended, in epoch milliseconds, if the event says so. */
  stoppedAt?: number | undefined;
  /**
   * Grants and tickets from after this instant (epoch milliseconds) are left alone. They belong to a redriven execution, or to a call that was under way
   * at the end: the second pass finds those of the latter.
   */
  until: number;
  /** Asks Step Functions once in a pass. @returns undefined if the execution goes on */
  end(): Promise<End | undefined>;
  /** The counts so far. */
  ended: ExecutionEnded;
}
