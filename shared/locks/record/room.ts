import { type HoldfastError, invalidRequest } from '../../errors.ts';
import type { EndedGrant } from '../calls/types.ts';
import { roomUnder } from './cap-rules.ts';
import { capAt, capEndsAt } from './capped.ts';
import { EXCLUSIVE_WEIGHT } from './identity.ts';
import { byEnd, entryOf, type HolderEntry, type KeyRecord, type NewGrant } from './record.ts';

export interface RoomRequest {
  /** The name of the request on the record (`nameOfRequest`). */
  name: string;
  weight: number;
  /** How much weight may be in use before the grant, if there is no cap. */
  room: number;
}

export const weightOf = (entries: readonly HolderEntry[]): number =>
  entries.reduce((sum, { weight }) => sum + weight, 0);

/** The first millisecond at which another grant may replace an entry. */
export const takeOverAt = ({ expiresAt }: HolderEntry, clockSkewMs: number): number => expiresAt + clockSkewMs + 1;

/** The first millisecond at which a grant may replace the lease of a third-party client. */
const thirdPartyUntil = ({ thirdParty }: Pick<KeyRecord, 'thirdParty'>, clockSkewMs: number): number =>
  thirdParty ? thirdParty.endsAt + clockSkewMs : Number.NEGATIVE_INFINITY;

interface Moment {
  now: number;
  clockSkewMs: number;
}

/** The weight in use. A third-party client counts as an exclusive holder until its lease has expired. */
export const weightInUse = (record: KeyRecord, { now, clockSkewMs }: Moment): number =>
  thirdPartyUntil(record, clockSkewMs) > now ? EXCLUSIVE_WEIGHT : record.used;

/**
 * The entries in the order in which a take-over ends them: the request's own entry first, and then the earliest expiry.
 */
const inTakeOverOrder = ({ entries }: KeyRecord, ownEntry: HolderEntry | undefined): HolderEntry[] => [
  ...(ownEntry ? [ownEntry] : []),
  ...entries.filter((entry) => entry !== ownEntry).toSorted(byEnd),
];

/**
 * The expired entries that must end to make room for a request, as few as possible (docs/protocols/locks.md#take-over).
 * @returns undefined if there is no room even without them, or if the request has a grant that has not expired
 */
export function entriesToEnd(
  record: KeyRecord,
  request: RoomRequest,
  { now, clockSkewMs }: Moment,
): HolderEntry[] | undefined {
  const used = weightInUse(record, { now, clockSkewMs });
  const room = roomUnder(capAt(record, { now, clockSkewMs }), request);
  const ownEntry = entryOf(record, request.name);
  if (ownEntry && takeOverAt(ownEntry, clockSkewMs) > now) return undefined;
  const ended: HolderEntry[] = [];
  for (const entry of inTakeOverOrder(record, ownEntry)) {
    const isNeeded = entry === ownEntry || used - weightOf(ended) > room;
    if (isNeeded && takeOverAt(entry, clockSkewMs) <= now) ended.push(entry);
  }
  return used - weightOf(ended) > room ? undefined : ended;
}

/**
 * When there will be room for a request: when enough grants have expired, or the cap has ended, provided that no holder
 * extends its grant. Infinite if that never makes enough room.
 */
export function roomFreeFrom(record: KeyRecord, request: RoomRequest, clockSkewMs: number): number {
  const { cap } = record;
  const roomFrom = roomFreeUnder(record, request, clockSkewMs);
  if (!cap) return roomFrom;
  const capped = roomFreeUnder(record, { ...request, room: roomUnder(cap, request) }, clockSkewMs);
  return Math.min(capped, Math.max(roomFrom, capEndsAt(cap, clockSkewMs)));
}

function roomFreeUnder(record: KeyRecord, { name, room }: RoomRequest, clockSkewMs: number): number {
  const ownEntry = entryOf(record, name);
  let roomFrom = ownEntry ? takeOverAt(ownEntry, clockSkewMs) : thirdPartyUntil(record, clockSkewMs);
  let used = record.used - (ownEntry?.weight ?? 0);
  for (const entry of record.entries.toSorted(byEnd)) {
    if (used <= room) return roomFrom;
    if (entry === ownEntry) continue;
    used -= entry.weight;
    roomFrom = Math.max(roomFrom, takeOverAt(entry, clockSkewMs));
  }
  return used <= room ? roomFrom : Number.POSITIVE_INFINITY;
}

export interface GrantRequest extends Omit<NewGrant, 'ticket' | 'claimTtlMs' | 'previous'> {
  key: string;
  requestId: string;
  principal: string | undefined;
}

/**
 * The error for a duplicate call that asks for another weight or mode than the grant of its request
 * has. An answer with that grant would mislead it.
 */
export const otherWeightError = ({ weight }: GrantRequest, ownEntry: HolderEntry): HoldfastError | undefined =>
  ownEntry.weight === weight
    ? undefined
    : invalidRequest([
        {
          path: 'requestId',
          message:
            'has a grant of another weight or mode: send the weight and mode of that grant, or another requestId',
        },
      ]);

/** @throws HoldfastError InvalidRequest, as `otherWeightError` */
export function refuseOtherWeight(request: GrantRequest, ownEntry: HolderEntry): void {
  const error = otherWeightError(request, ownEntry);
  if (error) throw error;
}

export interface GrantOnRecord {
  record: KeyRecord;
  /** True if an earlier try of the request received the grant. */
  repeated: boolean;
  /** The holder before, for an exclusive grant or a grant from the line. */
  previous?: EndedGrant | undefined;
  /** The expired entries that the grant replaced. */
  ended?: readonly HolderEntry[];
}

/**
 * The result of a try: a grant, or the record that refused it. `isLeftToSleepers`: the key is free, but left to callers
 * that sleep.
 */
export type TryOutcome =
  | (GrantOnRecord & { won: true })
  | { won: false; record: KeyRecord; isLeftToSleepers?: boolean };

/**
 * How a grant ends in the write that gives its room to others. If a task holds an `expired` grant, the task may never
 * have been notified; the task of a `neverNotified` grant was gone. After `expired`, `neverNotified` and
 * `executionEnded`, the record does not remember the request, which may ask again. Only an exclusive grant is
 * `released` or `broken` in this write, because the end of a shared grant is a write of its own.
 */
export type HowEnded = 'expired' | 'neverNotified' | 'executionEnded' | 'released' | 'broken';

export interface GrantToEnd {
  entry: HolderEntry;
  how: HowEnded;
  operator?: string | undefined;
}

/**
 * The holders that new grants replace, the latest end first (docs/protocols/locks.md#previous). If no caller received
 * one of the grants that end, its own `previous` stands in its place. Otherwise a caller that exited in line would hide
 * a holder that left its work half done.
 */
export const previousOf = (toEnd: readonly GrantToEnd[], now: number): EndedGrant[] =>
  toEnd
    .flatMap((grant) => formerHolder(grant, now) ?? [])
    .toSorted((one, other) => other.at - one.at || other.fence - one.fence);

function formerHolder({ entry, how, operator }: GrantToEnd, now: number): EndedGrant | undefined {
  const { holder, fence, expiresAt, claimTtlMs, previous, isEnding, brokenBy = operator, newer } = entry;
  if (claimTtlMs !== undefined || how === 'neverNotified') return previous;
  // A holder that releases its grant because it was asked to stop may leave its work half done. So the end counts as
  // broken or superseded.
  const by = how === 'released' ? newer : undefined;
  if (how === 'broken' || (how === 'released' && isEnding))
    return { holder, fence, ended: by === undefined ? 'broken' : 'superseded', at: now, by: by ?? brokenBy };
  return { holder, fence, ended: how, at: how === 'expired' ? expiresAt : now };
}

/** The holder before an exclusive grant that does not end shared grants. @param record the record before the grant */
export const previousOfExclusive = (record: KeyRecord, now: number): EndedGrant | undefined => {
  const [replaced] = record.entries;
  return replaced ? formerHolder({ entry: replaced, how: 'expired' }, now) : (record.last ?? record.previous);
};

/** Whether the record remembers the request after this end. After every other end, the request may ask again. */
export const isRemembered = (how: HowEnded): how is 'released' | 'broken' => how === 'released' || how === 'broken';
