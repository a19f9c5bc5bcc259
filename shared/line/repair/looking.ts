import type { Questions } from '../executions/questions.ts';

/** What a run of the repair has done so far (locks/repair.ts). */
export interface Counts {
  /** Tasks and callers that received a grant whose holder had disappeared. */
  granted: number;
  /** Tasks that were notified of a grant on record. */
  told: number;
  /** Tasks about which Step Functions gave no answer. The next run tries again. */
  unanswered: number;
}

/** One key with a line, and what the run may still do for it. */
export interface Looking {
  key: string;
  repaired: Counts;
  /** With less time left than this, the rest of a long line is left to the next run. */
  spareMs: number;
  questions: Questions;
  /** Whether a message asks for this look. If the key stays held, another message follows. */
  isMessage: boolean;
}
