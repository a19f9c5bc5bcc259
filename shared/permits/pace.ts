import {
  beginOf,
  betweenMs,
  CHANCE,
  FAST_MS,
  firstPace,
  isApart,
  MAX_NEXT_MS,
  MAX_OTHERS_MS,
  MAX_REQUEST_MS,
  NEXT_MS,
  OTHERS_MS,
  patienceMs,
  placeIn,
  SHORT_TURN_MS,
  shortName,
} from '../line/patience.ts';
import type { Ids } from '../surroundings/ids.ts';
import { ALONE } from './identity.ts';
import type { PoolRecord } from './record.ts';

interface Sight {
  record: Pick<PoolRecord, 'key' | 'entries' | 'nextTicket' | 'nextTickets' | 'lineOut' | 'turnMs' | 'paceMs'>;
  ticket: string;
  /** How many had joined by the time that this call had, with it. Undefined if that is not known. */
  arrival: number | undefined;
  now: number;
  /** What the call asks for. */
  weight?: number;
  /** How many holders there usually are. Fewer are on record while room waits for the next grants. */
  holders?: number | undefined;
  /** The time until an expiry makes room. Negative if there is room, infinite if that is not known. */
  toRoomMs: number;
  /** How long requests of this call take. Undefined if it has not measured one. */
  requestMs: number | undefined;
}

/**
 * How long a call in line for a permit sleeps before it looks again, by its position and by how long the holders have held their permits
 * (docs/protocols/queue.md#when-to-look). Nothing but time rests on it.
 */
export function poolPauseMs(sight: Sight, ids: Ids): number {
  const { record, ticket, now, toRoomMs } = sight;
  const between = ([least, most]: readonly [number, number]) => Math.round(least + (most - least) * ids.random());
  const heldMs = heldFor(record, now);
  const paceMs = record.paceMs ?? firstPace(record);
  const turnMs = Math.max(paceMs ?? 0, heldMs);
  const soonest =
    paceMs === undefined
      ? Math.max(between(FAST_MS), Math.min(between(NEXT_MS), heldMs))
      : between(turnMs < SHORT_TURN_MS ? FAST_MS : NEXT_MS);
  const left = paceMs === undefined ? 0 : untilFirstEnd(sight, turnMs);
  if (record.nextTicket === ticket) {
    const pause = Math.round(Math.min(MAX_NEXT_MS, Math.max(soonest, left)));
    return toRoomMs > 0 ? Math.min(pause, toRoomMs) : pause;
  }
  const others = between(OTHERS_MS);
  const position = positionOf(sight);
  if (position === undefined) return others;
  const holders = Math.max(1, sight.holders ?? 0, record.entries.length);
  // Until a turn has ended, each turn counts as the time that the first turns have lasted, as for a lease.
  if (paceMs === undefined)
    return Math.max(
      soonest,
      Math.min(others, Math.round(((turnMs || poolBetweenMs(sight)) * (position - 1)) / holders)),
    );
  const eachMs = (turnMs + poolBetweenMs(sight)) / holders;
  const expected = left + eachMs * (position - 1 - CHANCE * Math.sqrt(position));
  // Before the first claim, the pool may have room for many, and show few holders. The end of a heavy permit, such as a writer's, makes room for many.
  const servesMany = record.paceMs === undefined || record.entries.some(({ weight }) => weight > (sight.weight ?? 1));
  const most = servesMany ? others : MAX_OTHERS_MS;
  return Math.round(Math.min(most, Math.max(soonest, expected)));
}

/** The hand-off of a permit of many has a request more than that of an exclusive grant, because the release comes first. */
const poolBetweenMs = ({ record: { entries }, ...sight }: Pick<Sight, 'record' | 'requestMs'>): number =>
  betweenMs(sight) + (entries[0]?.path === ALONE ? 0 : Math.min(sight.requestMs ?? 1, MAX_REQUEST_MS));

/** The time until the first of the holders should have had its permit for a turn. */
function untilFirstEnd(sight: Sight, turnMs: number): number {
  const { record, now } = sight;
  const ends = record.entries.map(
    ({ acquiredAt, claimTtlMs }) =>
      turnMs +
      beginOf({ grantedAt: acquiredAt, isClaimed: claimTtlMs === undefined, betweenMs: poolBetweenMs(sight), now }),
  );
  return ends.length === 0 ? 0 : Math.max(0, Math.min(...ends) - now);
}

/** How long a call that is not the next one leaves room to those before it, which may all have exited. */
export function poolPatienceMs(sight: Pick<Sight, 'record' | 'ticket' | 'arrival' | 'requestMs'>, ids: Ids): number {
  if (sight.record.nextTicket === sight.ticket) return 2 * poolBetweenMs(sight);
  return patienceMs(positionOf(sight) ?? Number.POSITIVE_INFINITY, ids);
}

/** The names of the first in line, if they are those of the last hand-off of this version: then the first of them is a caller, and no task. */
const namesIn = ({ nextTicket, nextTickets }: Pick<PoolRecord, 'nextTicket' | 'nextTickets'>): string | undefined =>
  nextTicket !== undefined && nextTickets?.startsWith(shortName(nextTicket)) ? nextTickets : undefined;

/** Whether the next in line is a call that looks, as far as the hints say. */
export const namesCaller = (hints: Pick<PoolRecord, 'nextTicket' | 'nextTickets'>): boolean =>
  namesIn(hints) !== undefined;

function positionOf({ record, ticket, arrival }: Pick<Sight, 'record' | 'ticket' | 'arrival'>): number | undefined {
  const { named, position } = placeIn(namesIn(record), ticket);
  if (position !== undefined) return position;
  if (arrival === undefined) return undefined;
  const isKnown = record.nextTicket !== undefined && isApart(ticket, record.nextTicket);
  return isKnown || named <= 1 ? Math.max(named + 1, arrival - (record.lineOut ?? 0)) : named + 1;
}

/** How long the holder in the middle has held its permit. Half of its hold time is over, because holders come at all times. */
function heldFor({ entries }: Sight['record'], now: number): number {
  const claimed = entries.filter(({ claimTtlMs }) => claimTtlMs === undefined);
  const ages = claimed.map(({ acquiredAt }) => now - acquiredAt).toSorted((one, other) => one - other);
  return Math.max(0, ages[Math.floor(ages.length / 2)] ?? 0);
}
