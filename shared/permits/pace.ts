import { betweenMs, CHANCE, FAST_MS, FAST_POLL_POSITIONS, NEXT_MS, OTHERS_MS, patienceMs } from '../line/patience.ts';
import type { Ids } from '../surroundings/ids.ts';
import type { PoolRecord } from './record.ts';

/** The first arrival notes a fence that it saw a few requests before. A place that is further behind is that of another line. */
const MAX_BEHIND = 16;
/** The time of the grants so far says little about those to come, and some of those before a call may leave. */
const MAX_FAR_MS = 500;

/** What a call saw when it joined the line. */
export interface JoinedPool {
  /** The fence that its grant will have if no waiter before it leaves. Undefined if that fence is not known. */
  turn: number | undefined;
  /** That of the last grant. */
  fence: number | undefined;
  /** In epoch milliseconds. */
  at: number;
}

interface Sight {
  record: Pick<PoolRecord, 'key' | 'fence' | 'entries' | 'nextTicket'>;
  ticket: string;
  joined: JoinedPool;
  now: number;
  /** The time until an expiry makes room. Negative if there is room, infinite if that is not known. */
  toRoomMs: number;
  /** How long requests of this call take. Undefined if it has not measured one. */
  requestMs: number | undefined;
}

/**
 * How long a call in line for a permit sleeps before it looks again, by its position and by how long the holders have held their permits
 * (docs/protocols/pools.md#wait). Nothing but time rests on it.
 */
export function poolPauseMs(sight: Sight, ids: Ids): number {
  const { record, ticket, now, toRoomMs } = sight;
  const between = ([least, most]: readonly [number, number]) => Math.round(least + (most - least) * ids.random());
  const heldMs = heldFor(record, now);
  const soonest = Math.max(between(FAST_MS), Math.min(between(NEXT_MS), heldMs));
  if (record.nextTicket === ticket) return toRoomMs > 0 ? Math.min(soonest, toRoomMs) : soonest;
  const others = between(OTHERS_MS);
  const position = positionOf(sight);
  if (position === undefined) return others;
  const eachMs = sinceGrants(sight) ?? (2 * heldMs + betweenMs(sight)) / Math.max(1, record.entries.length);
  const expected = Math.round(eachMs * (position - CHANCE * Math.sqrt(position)));
  const most =
    position <= FAST_POLL_POSITIONS ? others : Math.max(others, Math.min(Math.round(expected / 2), MAX_FAR_MS));
  return Math.max(soonest, Math.min(expected, most));
}

/** How long a call that is not the next one leaves room to those before it, which may all have exited. */
export function poolPatienceMs(sight: Pick<Sight, 'record' | 'joined'>, ids: Ids): number {
  const { record, joined } = sight;
  const { fence = 0 } = record;
  const rank = positionOf(sight) === undefined ? Number.POSITIVE_INFINITY : Number(joined.turn) - fence;
  return patienceMs(rank, ids);
}

function positionOf({ record: { fence }, joined: { turn } }: Pick<Sight, 'record' | 'joined'>): number | undefined {
  if (turn === undefined || fence === undefined || turn < fence - MAX_BEHIND) return undefined;
  return Math.max(1, turn - fence);
}

/** How long a grant has taken since the call joined. */
function sinceGrants({ record: { fence = 0 }, joined, now }: Sight): number | undefined {
  const grants = joined.fence === undefined ? 0 : fence - joined.fence;
  return grants > 0 ? (now - joined.at) / grants : undefined;
}

/** How long the holder in the middle has held its permit. Half of its hold time is over, because holders come at all times. */
function heldFor({ entries }: Sight['record'], now: number): number {
  const ages = entries.map(({ acquiredAt }) => now - acquiredAt).toSorted((one, other) => one - other);
  return Math.max(0, ages[Math.floor(ages.length / 2)] ?? 0);
}
