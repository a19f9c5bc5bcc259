import { parkedAtOf } from '../waiters.ts';
import type { Judge, Reported } from './judgement.ts';

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

/** An execution that has ended, and the key that it leaves. */
export interface EndedExecution extends Reported {
  key: string;
  /** The names of the execution's tickets that were in the index. */
  tickets: string[];
  /** When the pass began, in epoch milliseconds. */
  askedAt: number;
  /** Judges the tickets. Asks AWS at most once in a pass. */
  judgeTickets(): Promise<Judge>;
  /** The counts so far. */
  ended: ExecutionEnded;
}

/** A waiter as the judgement sees it: the execution was running when the call or task joined. */
export const joinedBy = (ticket: string) => ({ acquiredAt: parkedAtOf(ticket) || 0 });

/** The tickets whose calls and tasks have ended with the execution. Tickets since a redrive stay, because their calls and tasks wait. */
export async function deadTickets({ tickets, judgeTickets }: EndedExecution): Promise<string[]> {
  if (tickets.length === 0) return [];
  const judge = await judgeTickets();
  return tickets.filter((ticket) => judge(joinedBy(ticket)));
}
