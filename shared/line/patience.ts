import type { Ids } from '../surroundings/ids.ts';

// The pace of a call in line, for leases and permits. No promise depends on the pace, only time.

/** Shortest and longest pause in milliseconds: of the next waiter if turns are short, of the next waiter otherwise, and of all others until a turn ends. */
export const FAST_MS = [5, 8] as const;
export const NEXT_MS = [25, 35] as const;
export const OTHERS_MS = [150, 250] as const;

/** How much earlier a number of turns may end by chance, per square root of that number. */
export const CHANCE = 0.4;

/** The time from the end of a turn to the beginning of the next turn: two requests and a look, if a request takes a millisecond. */
const BETWEEN_MS = 12;
/** One slow answer must not make a call oversleep. */
export const MAX_REQUEST_MS = 15;

/** The mean of the measured requests and of one more request. The last requests count most. */
export const meanOf = (before: number | undefined, requestMs: number): number =>
  before === undefined ? requestMs : (before + requestMs) / 2;

/**
 * The time of a hand-off, which is longer if requests are slow. Only one of its requests counts. If all counted, callers would oversleep, because turns
 * contain slow requests too.
 */
export const betweenMs = ({ requestMs = 0 }: { requestMs?: number | undefined }): number =>
  BETWEEN_MS + Math.max(0, Math.min(requestMs, MAX_REQUEST_MS) - 1);

/** Turns that are shorter let the next waiter look more often. */
export const SHORT_TURN_MS = 50;
/** The longest pause of the next waiter, and of all others: less than the window, so that no call sleeps through its turn. */
export const MAX_NEXT_MS = 250;
export const MAX_OTHERS_MS = 1500;

/** The first turn alone may be a long one. */
const MAX_FIRST_MS = 100;

/** What a record says about turns: how long the last one took, and how long turns take in general. */
export interface Turns {
  turnMs?: number | undefined;
  paceMs?: number | undefined;
  mark?: unknown;
}

/** How long turns last, before a claim has noted that. */
export const firstPace = ({ turnMs }: Turns): number | undefined =>
  turnMs === undefined ? undefined : Math.min(turnMs, MAX_FIRST_MS);

/**
 * How long turns last, as a claim writes it. It follows a shorter turn at once, and a longer one slowly, at most doubling itself: a call that
 * looks too early pays a request, but one that looks too late makes the whole line behind it wait.
 * @returns undefined if that is not known, or the line is empty
 */
export function paceAfter({ mark, turnMs, paceMs }: Turns): number | undefined {
  if (mark === undefined || turnMs === undefined) return undefined;
  if (!paceMs) return firstPace({ turnMs });
  const change = turnMs < paceMs ? (turnMs - paceMs) / 2 : (Math.min(turnMs, 2 * paceMs) - paceMs) / 8;
  return Math.round(paceMs + change);
}

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

/** The tickets and the marks of a crowd that comes at once have different orders. */
const APART_MS = 100;

const millisecondsOf = (ticket: string): number => Number(ticket.slice(0, 15));

/** Whether the number of an arrival says how far behind an earlier ticket it is. */
export const isApart = (ticket: string, before: string): boolean =>
  millisecondsOf(ticket) - millisecondsOf(before) > APART_MS;

/** A grant from the line, and how long a hand-off takes. All in milliseconds. */
interface Begun {
  grantedAt: number;
  isClaimed: boolean;
  betweenMs: number;
  now: number;
}

/** When the turn of a holder begins, or began. A caller that has not claimed its grant by then sleeps too long, perhaps for as long again. */
export function beginOf({ grantedAt, isClaimed, betweenMs: between, now }: Begun): number {
  if (isClaimed) return grantedAt;
  const lateMs = now - grantedAt - between;
  return lateMs > 0 ? now + lateMs / 2 : grantedAt + between;
}

/** The name of a ticket in hints: the first part of its UUID. */
export const shortName = (ticket: string): string => ticket.slice(16, 20);

/** The hint that names the first in line. @param tickets in their order, as many as the page of a hand-off shows */
export const namesOf = (tickets: readonly string[]): string => tickets.map(shortName).join(' ');

/** How many waiters the hint names, and the position of a ticket by the hint. 1 is next, and undefined is not named. */
export function placeIn(hint: string | undefined, ticket: string): { named: number; position: number | undefined } {
  const names = hint?.split(' ').filter(Boolean) ?? [];
  const index = names.indexOf(shortName(ticket));
  return { named: names.length, position: index < 0 ? undefined : index + 1 };
}
