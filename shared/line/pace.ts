import type { Ids } from '../surroundings/ids.ts';

// What the pace of a call in line has in common for leases and permits. Nothing but time rests on it.

/** Pauses in milliseconds, from and to: of the next in line if turns are short, of the next in line otherwise, and of the others as long as no turn is known. */
export const FAST_MS = [5, 8] as const;
export const NEXT_MS = [25, 35] as const;
export const OTHERS_MS = [150, 250] as const;

/** How much earlier chance may end a number of turns, for the square root of that number. */
export const CHANCE = 0.4;

/** This many from the front look more often: one of them may be all that is alive, or turns before them may be shorter than those that last now. */
export const FAST_POLL_POSITIONS = 4;

/** From the end of a turn to the beginning of the next one: two requests, and a look. This is where a request takes a millisecond. */
const BETWEEN_MS = 12;
/** One slow answer must not make a call oversleep. */
const MAX_REQUEST_MS = 15;

/** The mean of what was measured so far and of one more request, in which the last ones count most. */
export const meanOf = (before: number | undefined, requestMs: number): number =>
  before === undefined ? requestMs : (before + requestMs) / 2;

/** With slower requests each hand-off takes longer. Only one of its requests counts. With all of them, callers would oversleep, because turns have slow ones too. */
export const betweenMs = ({ requestMs = 0 }: { requestMs?: number | undefined }): number =>
  BETWEEN_MS + Math.max(0, Math.min(requestMs, MAX_REQUEST_MS) - 1);

const MIN_PATIENCE_MS = 50;
const MAX_PATIENCE_MS = 500;

/**
 * How long a call that is not the next one leaves what can be had to those before it, which may all have exited. The jitter keeps calls of one rank
 * apart.
 * @param rank 1 is next. Infinite if it is not known
 */
export function patienceMs(rank: number, ids: Ids): number {
  if (rank === Number.POSITIVE_INFINITY) return MIN_PATIENCE_MS + (MAX_PATIENCE_MS - MIN_PATIENCE_MS) * ids.random();
  return Math.min(MAX_PATIENCE_MS, MIN_PATIENCE_MS * (Math.max(2, rank) - 1 + ids.random()));
}

/** The name of a ticket in hints: the first part of its UUID. */
export const shortName = (ticket: string): string => ticket.slice(16, 20);
