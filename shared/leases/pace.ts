import {
  beginOf,
  betweenMs,
  CHANCE,
  FAST_MS,
  FAST_POLL_POSITIONS,
  firstPace,
  isApart,
  MAX_NEXT_MS,
  MAX_OTHERS_MS,
  NEXT_MS,
  OTHERS_MS,
  patienceMs,
  placeIn,
  SHORT_TURN_MS,
} from '../line/patience.ts';
import type { Ids } from '../surroundings/ids.ts';
import type { LeaseRecord } from './record.ts';
import { isLeased } from './rules.ts';

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
  const { acquiredAt = now } = record;
  const paceMs = record.paceMs ?? firstPace(record);
  const between = ([least, most]: readonly [number, number]) => Math.round(least + (most - least) * ids.random());
  const soonest = between(paceMs !== undefined && paceMs < SHORT_TURN_MS ? FAST_MS : NEXT_MS);
  const isClaimed = record.claimTtlMs === undefined;
  const beginsAt = beginOf({ grantedAt: acquiredAt, isClaimed, betweenMs: betweenMs(sight), now });
  const left = paceMs === undefined ? 0 : Math.max(0, beginsAt + paceMs - now);
  const position = positionOf(sight);
  if (position === 1) {
    const pause = Math.round(Math.min(MAX_NEXT_MS, Math.max(soonest, left)));
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

/** 1 is next. The arrivals give the position of a call that the hints do not name: at least the one behind the last name. */
function positionOf(sight: Pick<Sight, 'record' | 'ticket' | 'arrival'>): number {
  const { record, ticket, arrival } = sight;
  const { nextTicket, ticket: served, lineOut = 0 } = record;
  if (nextTicket === undefined || nextTicket === ticket) return 1;
  const { named, position } = placeIn(record.nextTickets, ticket);
  if (position !== undefined) return position;
  const atLeast = Math.max(2, named + 1);
  const isKnown = arrival !== undefined && served !== undefined && isApart(ticket, served);
  return isKnown ? Math.max(atLeast, arrival - lineOut) : atLeast;
}

/** The position by the hints if they name the call, and otherwise no position before that of its arrival. Infinite if neither is known. */
function rankOf(sight: Pick<Sight, 'record' | 'ticket' | 'arrival'>): number {
  const { record, ticket, arrival } = sight;
  if (placeIn(record.nextTickets, ticket).position !== undefined) return positionOf(sight);
  return arrival === undefined
    ? Number.POSITIVE_INFINITY
    : Math.max(positionOf(sight), arrival - (record.lineOut ?? 0));
}

/** How long a call that is not the next one leaves a lease that can be had to those before it. */
export const leasePatienceMs = (sight: Pick<Sight, 'record' | 'ticket' | 'arrival'>, ids: Ids): number =>
  patienceMs(rankOf(sight), ids);
