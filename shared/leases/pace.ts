import {
  betweenMs,
  CHANCE,
  FAST_MS,
  FAST_POLL_POSITIONS,
  NEXT_MS,
  OTHERS_MS,
  patienceMs,
  shortName,
} from '../line/patience.ts';
import type { Ids } from '../surroundings/ids.ts';
import type { LeaseRecord } from './record.ts';
import { isLeased } from './rules.ts';

const SHORT_TURN_MS = 50;
const MAX_NEXT_MS = 250;
/** Less than the window, so that no call sleeps through its turn. */
const MAX_OTHERS_MS = 1500;
/** The tickets and the marks of a crowd that comes at once have different orders. */
const APART_MS = 100;

const millisecondsOf = (ticket: string): number => Number(ticket.slice(0, 15));

const AFTER_EXPIRY_MS = 20;

interface Sight {
  record: LeaseRecord;
  ticket: string;
  /** How many had joined by the time that this call had, with it. Undefined if that is not known. */
  arrival: number | undefined;
  now: number;
  /** The time until the lease can be taken over. Negative if it can be, infinite if that is not known. */
  toTakeoverMs: number;
  /** How long requests of this call take. Undefined if it has not measured one. */
  requestMs?: number | undefined;
}

/**
 * How long a call in line sleeps before it looks again, by its position and by how long the last holder held the lease
 * (docs/protocols/queue.md#when-to-look). Nothing but time rests on it.
 */
export function pauseMs(sight: Sight, ids: Ids): number {
  const { record, now, toTakeoverMs } = sight;
  const { turnMs, acquiredAt = now } = record;
  const paceMs = record.paceMs ?? firstPace(turnMs);
  const between = ([least, most]: readonly [number, number]) => Math.round(least + (most - least) * ids.random());
  const soonest = between(paceMs !== undefined && paceMs < SHORT_TURN_MS ? FAST_MS : NEXT_MS);
  const beginsAt = acquiredAt + (record.claimTtlMs === undefined ? 0 : betweenMs(sight));
  const left = paceMs === undefined ? 0 : Math.max(0, beginsAt + paceMs - now);
  const position = positionOf(sight);
  if (position === 1) {
    const pause = Math.min(MAX_NEXT_MS, Math.max(soonest, left));
    // The next one looks at the moment at which the holder has expired.
    return toTakeoverMs > 0 ? Math.min(pause, toTakeoverMs) : pause;
  }
  const rank = rankOf(sight);
  const untilExpiry =
    rank <= FAST_POLL_POSITIONS && toTakeoverMs > 0 ? toTakeoverMs + rank * AFTER_EXPIRY_MS : Number.POSITIVE_INFINITY;
  if (paceMs === undefined) return Math.max(soonest, Math.min(between(OTHERS_MS), firstTurnsMs(sight), untilExpiry));
  const eachMs = paceMs + betweenMs(sight);
  const expected = left + eachMs * (position - 1 - CHANCE * Math.sqrt(position));
  return Math.round(Math.min(MAX_OTHERS_MS, untilExpiry, Math.max(soonest, expected)));
}

/**
 * As long as no turn has ended, each counts as long as the first one has lasted so far, or as a hand-off if the lease is free. So a crowd that
 * has just come does not sleep through short turns.
 */
function firstTurnsMs(sight: Sight): number {
  const { record, arrival, now } = sight;
  const { acquiredAt, lineOut = 0 } = record;
  if (acquiredAt === undefined || arrival === undefined) return Number.POSITIVE_INFINITY;
  const eachMs = isLeased(record) ? now - acquiredAt : betweenMs(sight);
  return eachMs * Math.max(1, arrival - lineOut - 1);
}

/** The position that the hints give the call. Undefined if they do not name it. */
function namedPosition({ record, ticket }: Pick<Sight, 'record' | 'ticket'>): number | undefined {
  const index = namesOf(record).indexOf(shortName(ticket));
  return index < 0 ? undefined : index + 1;
}

const namesOf = ({ nextTickets }: LeaseRecord): string[] => nextTickets?.split(' ').filter(Boolean) ?? [];

/** 1 is next. The arrivals give the position of a call that the hints do not name: at least the one behind the last name. */
function positionOf(sight: Pick<Sight, 'record' | 'ticket' | 'arrival'>): number {
  const { record, ticket, arrival } = sight;
  const { nextTicket, ticket: served, lineOut = 0 } = record;
  if (nextTicket === undefined || nextTicket === ticket) return 1;
  const named = namedPosition(sight);
  if (named !== undefined) return named;
  const atLeast = Math.max(2, namesOf(record).length + 1);
  const isApart = served !== undefined && millisecondsOf(ticket) - millisecondsOf(served) > APART_MS;
  return arrival !== undefined && isApart ? Math.max(atLeast, arrival - lineOut) : atLeast;
}

/** The position by the hints if they name the call, and otherwise no position before that of its arrival. Infinite if neither is known. */
function rankOf(sight: Pick<Sight, 'record' | 'ticket' | 'arrival'>): number {
  const { record, arrival } = sight;
  if (namedPosition(sight) !== undefined) return positionOf(sight);
  return arrival === undefined
    ? Number.POSITIVE_INFINITY
    : Math.max(positionOf(sight), arrival - (record.lineOut ?? 0));
}

/** How long a call that is not the next one leaves a lease that can be had to those before it. */
export const leasePatienceMs = (sight: Pick<Sight, 'record' | 'ticket' | 'arrival'>, ids: Ids): number =>
  patienceMs(rankOf(sight), ids);

/** The first turn alone may be a long one. */
const MAX_FIRST_MS = 100;
const firstPace = (turnMs: number | undefined) => (turnMs === undefined ? undefined : Math.min(turnMs, MAX_FIRST_MS));

/**
 * How long turns last, as a claim writes it. It follows a shorter turn at once, and a longer one slowly, at most doubling itself: a call that
 * looks too early pays a request, but one that looks too late makes the whole line behind it wait.
 * @returns undefined if that is not known, or the line is empty
 */
export function paceAfter({ waiters, turnMs, paceMs }: LeaseRecord): number | undefined {
  if (waiters === undefined || turnMs === undefined) return undefined;
  if (!paceMs) return firstPace(turnMs);
  const change = turnMs < paceMs ? (turnMs - paceMs) / 2 : (Math.min(turnMs, 2 * paceMs) - paceMs) / 8;
  return Math.round(paceMs + change);
}
