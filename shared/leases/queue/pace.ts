import type { Ids } from '../../ids.ts';
import type { LeaseRecord } from '../record.ts';

/** How often the next in line looks, where turns are short and otherwise, and how often the others do where nobody knows: from and to. */
const FAST_MS = [8, 12] as const;
const NEXT_MS = [20, 30] as const;
const OTHERS_MS = [150, 250] as const;

const SHORT_TURN_MS = 50;
/** What a hand-off takes beside the turn itself: its requests and a look. */
const HAND_OFF_MS = 12;
const MAX_NEXT_MS = 250;
/** Less than the window, so that nobody sleeps through its turn. */
const MAX_OTHERS_MS = 1000;

/** As the hints name a ticket: the first part of its UUID. */
export const shortName = (ticket: string): string => ticket.slice(16, 24);

interface Sight {
  record: LeaseRecord;
  ticket: string;
  now: number;
  /** Until the lease can be taken over. Negative where it can, infinite where nobody knows. */
  toTakeoverMs: number;
}

/**
 * How long a call in line sleeps before it looks again, by its place and by how long the last turn was (docs/protocols/queue.md#wait).
 * Nothing but time rests on it.
 */
export function pauseMs({ record, ticket, now, toTakeoverMs }: Sight, ids: Ids): number {
  const between = ([least, most]: readonly [number, number]) => Math.round(least + (most - least) * ids.random());
  const { nextTicket, nextTickets = '', turnMs, acquiredAt = now } = record;
  const isNext = nextTicket === undefined || nextTicket === ticket;
  const soonest = between(turnMs !== undefined && turnMs < SHORT_TURN_MS ? FAST_MS : NEXT_MS);
  const left = Math.max(0, acquiredAt + (turnMs ?? 0) - now);
  if (isNext) {
    const pause = Math.min(MAX_NEXT_MS, Math.max(soonest, Math.round(0.8 * left)));
    // The next one is there in the moment in which the holder's time is over.
    return toTakeoverMs > 0 ? Math.min(pause, toTakeoverMs) : pause;
  }
  if (turnMs === undefined) return between(OTHERS_MS);
  const hinted = nextTickets === '' ? [] : nextTickets.split(' ');
  const index = hinted.indexOf(shortName(ticket));
  const before = index >= 0 ? index : hinted.length;
  const eachMs = turnMs + HAND_OFF_MS;
  // Earlier than the sum by what chance makes of so many turns.
  const expected = left + before * eachMs - 0.3 * eachMs * Math.sqrt(before + 1);
  return Math.round(Math.min(MAX_OTHERS_MS, Math.max(soonest, expected)));
}
