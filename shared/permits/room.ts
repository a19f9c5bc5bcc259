import { EXCLUSIVE_WEIGHT } from './modes.ts';
import { byEnd, entryOf, type PoolEntry, type PoolRecord } from './record.ts';

/** A request for a permit. */
export interface Asked {
  name: string;
  /** How much may be in use already. */
  room: number;
}

export const weightOf = (entries: readonly PoolEntry[]): number => entries.reduce((sum, { weight }) => sum + weight, 0);

/** The first millisecond at which others may take the place of an entry. */
export const takeoverAt = ({ expiresAt }: PoolEntry, clockSkewMs: number): number => expiresAt + clockSkewMs + 1;

/** When others may take the place of a third-party client. */
const thirdPartyUntil = ({ thirdParty }: Pick<PoolRecord, 'thirdParty'>, clockSkewMs: number): number =>
  thirdParty ? thirdParty.endsAt + clockSkewMs : Number.NEGATIVE_INFINITY;

interface At {
  now: number;
  clockSkewMs: number;
}

/** The weight in use. A third-party client has the key alone. */
export const weightInUse = (record: PoolRecord, { now, clockSkewMs }: At): number =>
  thirdPartyUntil(record, clockSkewMs) > now ? EXCLUSIVE_WEIGHT : record.used;

/** The entries in the order in which they would go: the request's own first, and then by their ends. */
const inOrder = ({ entries }: PoolRecord, own: PoolEntry | undefined): PoolEntry[] => [
  ...(own ? [own] : []),
  ...entries.filter((entry) => entry !== own).toSorted(byEnd),
];

/**
 * The expired entries that have to go, as few as make room (docs/protocols/locks.md#take-over).
 * @returns undefined if there is no room without them either, or the request has an entry whose margin is not over
 */
export function toEnd(record: PoolRecord, asked: Asked, { now, clockSkewMs }: At): PoolEntry[] | undefined {
  const used = weightInUse(record, { now, clockSkewMs });
  const own = entryOf(record, asked.name);
  if (own && takeoverAt(own, clockSkewMs) > now) return undefined;
  const ended: PoolEntry[] = [];
  for (const entry of inOrder(record, own)) {
    const isNeeded = entry === own || used - weightOf(ended) > asked.room;
    if (isNeeded && takeoverAt(entry, clockSkewMs) <= now) ended.push(entry);
  }
  return used - weightOf(ended) > asked.room ? undefined : ended;
}

/** When enough permits will have ended, unless a holder extends one. Infinite if their ends never make enough room. */
export function roomAt(record: PoolRecord, { name, room }: Asked, clockSkewMs: number): number {
  const own = entryOf(record, name);
  let at = own ? takeoverAt(own, clockSkewMs) : thirdPartyUntil(record, clockSkewMs);
  let used = record.used - (own?.weight ?? 0);
  for (const entry of record.entries.toSorted(byEnd)) {
    if (used <= room) return at;
    if (entry === own) continue;
    used -= entry.weight;
    at = Math.max(at, takeoverAt(entry, clockSkewMs));
  }
  return used <= room ? at : Number.POSITIVE_INFINITY;
}
