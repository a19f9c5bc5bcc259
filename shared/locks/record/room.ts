import { type HoldfastError, invalidRequest } from '../../errors.ts';
import type { EndedGrant } from '../calls/types.ts';
import { roomUnder } from './cap-rules.ts';
import { capAt, capEndsAt } from './capped.ts';
import { EXCLUSIVE_WEIGHT } from './identity.ts';
import { byEnd, entryOf, type HolderEntry, type KeyRecord, type NewGrant } from './record.ts';

/** What a request needs, to be granted the key. */
export interface Asked {
  name: string;
  weight: number;
  /** How much may be in use already, without a cap. */
  room: number;
}

export const weightOf = (entries: readonly HolderEntry[]): number =>
  entries.reduce((sum, { weight }) => sum + weight, 0);

/** The first millisecond at which another grant may replace an entry. */
export const takeoverAt = ({ expiresAt }: HolderEntry, clockSkewMs: number): number => expiresAt + clockSkewMs + 1;

/** When a grant may replace the lease of a third-party client. */
const thirdPartyUntil = ({ thirdParty }: Pick<KeyRecord, 'thirdParty'>, clockSkewMs: number): number =>
  thirdParty ? thirdParty.endsAt + clockSkewMs : Number.NEGATIVE_INFINITY;

interface At {
  now: number;
  clockSkewMs: number;
}

/** The weight in use. A third-party client has the key alone. */
export const weightInUse = (record: KeyRecord, { now, clockSkewMs }: At): number =>
  thirdPartyUntil(record, clockSkewMs) > now ? EXCLUSIVE_WEIGHT : record.used;

/** The entries in the order in which they would go: the request's own first, and then by their ends. */
const inOrder = ({ entries }: KeyRecord, own: HolderEntry | undefined): HolderEntry[] => [
  ...(own ? [own] : []),
  ...entries.filter((entry) => entry !== own).toSorted(byEnd),
];

/**
 * The expired entries that have to go, as few as make room (docs/protocols/locks.md#take-over).
 * @returns undefined if there is no room without them either, or the request has an entry whose margin is not over
 */
export function toEnd(record: KeyRecord, asked: Asked, { now, clockSkewMs }: At): HolderEntry[] | undefined {
  const used = weightInUse(record, { now, clockSkewMs });
  const room = roomUnder(capAt(record, { now, clockSkewMs }), asked);
  const own = entryOf(record, asked.name);
  if (own && takeoverAt(own, clockSkewMs) > now) return undefined;
  const ended: HolderEntry[] = [];
  for (const entry of inOrder(record, own)) {
    const isNeeded = entry === own || used - weightOf(ended) > room;
    if (isNeeded && takeoverAt(entry, clockSkewMs) <= now) ended.push(entry);
  }
  return used - weightOf(ended) > room ? undefined : ended;
}

/** When enough grants will have ended, or the cap, unless a holder extends a grant. Infinite if these ends never make enough room. */
export function roomAt(record: KeyRecord, asked: Asked, clockSkewMs: number): number {
  const { cap } = record;
  const at = roomWithin(record, asked, clockSkewMs);
  if (!cap) return at;
  const capped = roomWithin(record, { ...asked, room: roomUnder(cap, asked) }, clockSkewMs);
  return Math.min(capped, Math.max(at, capEndsAt(cap, clockSkewMs)));
}

function roomWithin(record: KeyRecord, { name, room }: Asked, clockSkewMs: number): number {
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

/** A request for a grant. */
export interface GrantRequest extends Omit<NewGrant, 'ticket' | 'claimTtlMs' | 'previous'> {
  key: string;
  requestId: string;
  principal: string | undefined;
}

/** A request has one grant, by the terms of the call that received it. That grant would mislead a duplicate call that asks for another weight or mode. */
export const otherWeight = ({ weight }: GrantRequest, own: HolderEntry): HoldfastError | undefined =>
  own.weight === weight
    ? undefined
    : invalidRequest([
        {
          path: 'requestId',
          message:
            'has a grant of another weight or mode: send the weight and mode of that grant, or another requestId',
        },
      ]);

/** @throws HoldfastError InvalidRequest, as `otherWeight` */
export function refuseOtherWeight(request: GrantRequest, own: HolderEntry): void {
  const error = otherWeight(request, own);
  if (error) throw error;
}

/** A grant, and the record that shows it. */
export interface Granted {
  record: KeyRecord;
  /** True if an earlier try of the request received the grant. */
  repeated: boolean;
  /** The holder before, of an exclusive grant or of a grant from the line. */
  previous?: EndedGrant | undefined;
  /** The expired entries that it replaced. */
  ended?: readonly HolderEntry[];
}

/** A grant, or the record that keeps the request out. `isAsleep`: the key is left free for callers that sleep. */
export type TryOutcome = (Granted & { won: true }) | { won: false; record: KeyRecord; isAsleep?: boolean };

/**
 * How a grant ends in the write that gives its room to others. The task of an `expired` grant may never have been notified. The task of an `neverNotified` grant was
 * gone. After the first three, the record does not remember the request, which may ask again. Only an exclusive grant is `released` or `broken` by such a write.
 */
export type HowEnded = 'expired' | 'neverNotified' | 'executionEnded' | 'released' | 'broken';

/** A grant that is to end. */
export interface Going {
  entry: HolderEntry;
  how: HowEnded;
  /** The operator that breaks the grant. */
  operator?: string | undefined;
}

/**
 * What grants say about the holders that they replace (docs/protocols/locks.md#previous): the latest end first, and each holder once. A grant that its
 * caller did not claim, or of which no task was notified, passes on its own `previous`. Otherwise a caller that has exited in line would hide a
 * holder that left its work half done.
 */
export const previousOf = (ending: readonly Going[], now: number): EndedGrant[] =>
  ending
    .flatMap((one) => endedBefore(one, now) ?? [])
    .toSorted((one, other) => other.at - one.at || other.fence - one.fence);

function endedBefore({ entry, how, operator }: Going, now: number): EndedGrant | undefined {
  const { holder, fence, expiresAt, claimTtlMs, previous, isEnding, brokenBy = operator, newer } = entry;
  if (claimTtlMs !== undefined || how === 'neverNotified') return previous;
  // The holder released it because an operator or a newer request stopped it, and may have left its work half done.
  const by = how === 'released' ? newer : undefined;
  if (how === 'broken' || (how === 'released' && isEnding))
    return { holder, fence, ended: by === undefined ? 'broken' : 'superseded', at: now, by: by ?? brokenBy };
  return { holder, fence, ended: how, at: how === 'expired' ? expiresAt : now };
}

/** What a grant alone says about the last exclusive holder, if the grant ends no other. @param record as it was before the grant */
export const previousAlone = (record: KeyRecord, now: number): EndedGrant | undefined => {
  const [stood] = record.entries;
  return stood ? endedBefore({ entry: stood, how: 'expired' }, now) : (record.last ?? record.previous);
};

/** Whether the record remembers the request of a grant after this end. After all other ends, the request may ask again. */
export const isRemembered = (how: HowEnded): how is 'released' | 'broken' => how === 'released' || how === 'broken';
