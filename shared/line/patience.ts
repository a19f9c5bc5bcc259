import type { Ids } from '../surroundings/ids.ts';

// The pace of a call in line, for leases and permits. No promise depends on the pace, only time.

/** Shortest and longest pause in milliseconds: of the next waiter if turns are short, of the next waiter otherwise, and of all others until a turn ends. */
export const FAST_MS = [5, 8] as const;
export const NEXT_MS = [25, 35] as const;
export const OTHERS_MS = [150, 250] as const;

/** How much earlier a number of turns may end by chance, per square root of that number. */
export const CHANCE = 0.4;

/** This many waiters at the front look more often: all other waiters may have exited, or turns before them may be shorter than the present turn. */
export const FAST_POLL_POSITIONS = 4;

/** The time from the end of a turn to the beginning of the next turn: two requests and a look, if a request takes a millisecond. */
const BETWEEN_MS = 12;
/** One slow answer must not make a call oversleep. */
const MAX_REQUEST_MS = 15;

/** The mean of the measured requests and of one more request. The last requests count most. */
export const meanOf = (before: number | undefined, requestMs: number): number =>
  before === undefined ? requestMs : (before + requestMs) / 2;

/**
 * The time of a hand-off, which is longer if requests are slow. Only one of its requests counts. If all counted, callers would oversleep, because turns
 * contain slow requests too.
 */
export const betweenMs = ({ requestMs = 0 }: { requestMs?: number | undefined }): number =>
  BETWEEN_MS + Math.max(0, Math.min(requestMs, MAX_REQUEST_MS) - 1);

const MIN_PATIENCE_MS = 50;
const MAX_PATIENCE_MS = 500;

/**
 * How long a call that is not next leaves a free lock to the waiters before it, because all of them may have exited. The jitter separates calls of one
 * rank.
 * @param rank the position. Infinite if the position is not known
 */
export function patienceMs(rank: number, ids: Ids): number {
  if (rank === Number.POSITIVE_INFINITY) return MIN_PATIENCE_MS + (MAX_PATIENCE_MS - MIN_PATIENCE_MS) * ids.random();
  return Math.min(MAX_PATIENCE_MS, MIN_PATIENCE_MS * (Math.max(2, rank) - 1 + ids.random()));
}

/** The name of a ticket in hints: the first part of its UUID. */
export const shortName = (ticket: string): string => ticket.slice(16, 20);
