import { integer, text } from '../../aws/attributes.ts';
import { all, any, type Condition, not } from '../../aws/condition.ts';
import { EXCLUSIVE_PATH, EXCLUSIVE_WEIGHT, type Proof, RING_ATTRIBUTES } from './identity.ts';
import { type HolderEntry, type KeyRecord, MAX_FENCE, type ThirdParty } from './record.ts';

// The conditions that make a write on a key safe (docs/protocols/locks.md). These are the times of an entry:
//
//   acquired    last heartbeat                 expires        + margin
//      a              b                           e
//   ---|--------------|---------------------------|---------------|-------------> now
//                     |<---------- ttl ---------->|<-- margin --->|
//      |   the holder works and sends heartbeats  |               |
//      |   no other grant may replace the entry: e >= cut ------->|   take-over: e < cut
//
// `cut` is now minus the clock skew margin. A holder whose clock is behind may still work within the margin, so a
// take-over waits until the margin is over. A heartbeat extends even an expired grant, as long as no other caller has
// taken over.

/** The name that expressions have for the attribute of an entry. */
export const entryAt = (path: string): Record<string, string> => ({ '#h': path });

export const hasUsedAttribute: Condition = { expression: 'attribute_exists(used)' };

/**
 * Never compare for equality with a limit: once callers name different limits, any number of holders would be admitted.
 */
const isUsedAtMost = (room: number): Condition => ({ expression: 'used <= :room', values: { ':room': integer(room) } });

export const isUsedAsSeen = ({ used }: Pick<KeyRecord, 'used'>): Condition => ({
  expression: 'used = :usedSeen',
  values: { ':usedSeen': integer(used) },
});

const isUnused: Condition = { expression: 'attribute_not_exists(used)' };
const isUnversioned: Condition = { expression: 'attribute_not_exists(lease_version)' };

/**
 * There is room, or there is no grant of ours: no record, only a mark, or the expired lease of a third-party client.
 * @param cut epoch milliseconds
 */
export const hasRoom = (room: number, cut: number): Condition =>
  any(
    isUsedAtMost(room),
    all(
      isUnused,
      any(isUnversioned, {
        expression: 'lease_expiry < :cutSeconds',
        values: { ':cutSeconds': integer(Math.floor(cut / 1000)) },
      }),
    ),
  );

/** The fence is as it was read. Each grant raises it, so no grant has been made since then. */
export const hasFenceAsSeen = ({ fence }: Pick<KeyRecord, 'fence'>): Condition =>
  fence === undefined
    ? { expression: 'attribute_not_exists(fence)' }
    : { expression: 'fence = :seenFence', values: { ':seenFence': integer(fence) } };

/** There is room, and no grant has been made since the record was read. */
export const hasRoomAsSeen = ({ fence, hasUsed, thirdParty }: SeenFence, room: number): Condition =>
  all(
    hasFenceAsSeen({ fence }),
    ...(hasUsed ? [isUsedAtMost(room)] : [isUnused, thirdParty ? isThirdPartyAsSeen(thirdParty) : isUnversioned]),
  );

type SeenFence = Pick<KeyRecord, 'fence' | 'hasUsed' | 'thirdParty'>;

/** The third-party client has not extended its lease since the record was read. */
const isThirdPartyAsSeen = ({ version }: ThirdParty): Condition => ({
  expression: 'lease_version = :theirs',
  values: { ':theirs': version },
});

/**
 * The fence on record is lower than this one, and can still rise. Otherwise a lease has come and gone since the call
 * began, and the record may have forgotten this request. A fence that is not a number does not pass.
 * @param ceiling higher than every fence that the write can meet, unless a lease came in the meantime
 */
export const isFenceBelow = (ceiling: number): Condition => ({
  expression: 'attribute_not_exists(fence) OR fence < :bound',
  values: { ':bound': integer(Math.min(ceiling, MAX_FENCE)) },
});

export const hasNoSharedEntry = (requestName: string): Condition => ({
  expression: 'attribute_not_exists(#g0)',
  names: { '#g0': `h${requestName}` },
});

export const hasNoEntry = (requestName: string): Condition =>
  all(
    hasNoSharedEntry(requestName),
    not({ expression: '#alone.m = :m', names: { '#alone': EXCLUSIVE_PATH }, values: { ':m': text(requestName) } }),
  );

/**
 * The record does not remember the end of the request. A request stands for one acquisition, so a late duplicate of a
 * released request must not receive another grant. The ring remembers requests, and so does the entry of an exclusive
 * grant that has ended or is ending.
 */
export const isNotRemembered = (requestName: string): Condition =>
  not({
    expression: `:m IN (${RING_ATTRIBUTES}) OR (#alone.m = :m AND (attribute_not_exists(#alone.i) OR attribute_exists(#alone.s)))`,
    names: { '#alone': EXCLUSIVE_PATH },
    values: { ':m': text(requestName) },
  });

export const isNotInRing = (requestName: string): Condition =>
  not({ expression: `:m IN (${RING_ATTRIBUTES})`, values: { ':m': text(requestName) } });

/**
 * There is no holder, except perhaps an exclusive one whose grant has expired.
 * @param cut epoch milliseconds
 */
export const isFreeForExclusive = (cut: number): Condition =>
  any(hasRoom(0, cut), {
    expression: 'used = :all AND #alone.e < :cut',
    names: { '#alone': EXCLUSIVE_PATH },
    values: { ':all': integer(EXCLUSIVE_WEIGHT), ':cut': integer(cut) },
  });

/** No grant was released or broken after this instant. */
export const wasNotFreedAfter = (epochMs: number): Condition => ({
  expression: 'attribute_not_exists(freed_at) OR freed_at <= :latest',
  values: { ':latest': integer(epochMs) },
});

/** While a caller or a task is in line, only the line makes grants. */
export const isUnmarked: Condition = { expression: 'attribute_not_exists(mark)' };

/** No request that joined with `replace` is waiting, or away between two calls. */
export const hasNoLatest: Condition = { expression: 'attribute_not_exists(latest)' };

/** No waiter has joined since the record was read. */
export const isMarkAsSeen = ({ mark }: Pick<KeyRecord, 'mark'>): Condition =>
  mark === undefined ? isUnmarked : { expression: 'mark = :seenMark', values: { ':seenMark': mark } };

/** No call has extended or ended the grant since the record was read. */
export const isEntryAsSeen = ({ path, version }: Pick<HolderEntry, 'path' | 'version'>): Condition => ({
  expression: '#h.v = :seen',
  names: entryAt(path),
  values: { ':seen': text(version) },
});

export const hasLeaseId = ({ path, id }: Pick<Proof, 'path' | 'id'>): Condition => ({
  expression: '#h.i = :id',
  names: entryAt(path),
  values: { ':id': text(id) },
});

/** No later heartbeat has been written. So a delayed duplicate of an earlier heartbeat cannot shorten the grant. */
export const isLastHeartbeatBefore = (path: string, epochMs: number): Condition => ({
  expression: '#h.b < :now',
  names: entryAt(path),
  values: { ':now': integer(epochMs) },
});

/** As `isLastHeartbeatBefore`, for a heartbeat that changes the ttl. */
export const expiresBefore = (path: string, epochMs: number): Condition => ({
  expression: '#h.e < :expires',
  names: entryAt(path),
  values: { ':expires': integer(epochMs) },
});

/** Neither an operator nor a newer request has asked the holder to stop. */
export const isNotEnding = (path: string): Condition => ({
  expression: 'attribute_not_exists(#h.s)',
  names: entryAt(path),
});

/** The holder has claimed the grant, and no other grant may replace it yet. @param cut epoch milliseconds */
export const isInUse = (path: string, cut: number): Condition => ({
  expression: 'attribute_not_exists(#h.c) AND #h.e >= :cut',
  names: entryAt(path),
  values: { ':cut': integer(cut) },
});

/** No call has extended or ended any of these grants since the record was read. */
export const areEntriesAsSeen = (entries: readonly HolderEntry[]): Condition[] =>
  entries.map(({ path, version }, nth) => ({
    expression: `#h${nth}.v = :v${nth}`,
    names: { [`#h${nth}`]: path },
    values: { [`:v${nth}`]: text(version) },
  }));
