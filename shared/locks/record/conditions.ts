import { integer, text } from '../../aws/attributes.ts';
import { all, any, type Condition, not } from '../../aws/condition.ts';
import { ALONE, EXCLUSIVE_WEIGHT, type Proof, RING_ATTRIBUTES } from './identity.ts';
import { type HolderEntry, type KeyRecord, MOST_FENCE, type ThirdParty } from './record.ts';

// The conditions that make a write on a key safe (docs/protocols/locks.md).

/** The attribute of an entry. */
export const entryAt = (path: string): Record<string, string> => ({ '#h': path });

export const hasUsed: Condition = { expression: 'attribute_exists(used)' };

/** Never compare by equality with a limit. Once callers disagree about it, that would admit without bound. */
const isUsedAtMost = (room: number): Condition => ({ expression: 'used <= :room', values: { ':room': integer(room) } });

/** No grant has ended since the record was seen, and none has come. */
export const isUsedAsSeen = ({ used }: Pick<KeyRecord, 'used'>): Condition => ({
  expression: 'used = :usedSeen',
  values: { ':usedSeen': integer(used) },
});

const isUnused: Condition = { expression: 'attribute_not_exists(used)' };
const isUnversioned: Condition = { expression: 'attribute_not_exists(lease_version)' };

/**
 * There is room, or there is no record, only a mark, or the record of a third-party client whose lease has expired.
 * @param cut epoch milliseconds: now, less the margin of the clocks
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

/** No grant has come since the record was seen: each raises the fence. */
export const hasFenceAsSeen = ({ fence }: Pick<KeyRecord, 'fence'>): Condition =>
  fence === undefined
    ? { expression: 'attribute_not_exists(fence)' }
    : { expression: 'fence = :seenFence', values: { ':seenFence': integer(fence) } };

/** There is room, and no grant has come since the record was seen. */
export const hasRoomAsSeen = ({ fence, hasUsed, thirdParty }: SeenFence, room: number): Condition =>
  all(
    hasFenceAsSeen({ fence }),
    ...(hasUsed ? [isUsedAtMost(room)] : [isUnused, thirdParty ? isStillOf(thirdParty) : isUnversioned]),
  );

type SeenFence = Pick<KeyRecord, 'fence' | 'hasUsed' | 'thirdParty'>;

/** The third-party client has not extended its lease since it was seen. */
const isStillOf = ({ version }: ThirdParty): Condition => ({
  expression: 'lease_version = :theirs',
  values: { ':theirs': version },
});

/**
 * The fence can rise, and is below this one. A value of another type than a number is not lower either, so no fence comes from it.
 * @param most above each fence that the try may meet. A lease in the meantime has left a higher fence, and the record may not remember
 * the requests from before
 */
export const isFenceBelow = (most: number): Condition => ({
  expression: 'attribute_not_exists(fence) OR fence < :most',
  values: { ':most': integer(Math.min(most, MOST_FENCE)) },
});

/** The request has no grant with others. */
export const hasNoSharedEntry = (name: string): Condition => ({
  expression: 'attribute_not_exists(#g0)',
  names: { '#g0': `h${name}` },
});

/** The request has no grant. */
export const hasNoEntry = (name: string): Condition =>
  all(
    hasNoSharedEntry(name),
    not({ expression: '#alone.m = :m', names: { '#alone': ALONE }, values: { ':m': text(name) } }),
  );

/**
 * A request stands for one acquisition. A late duplicate of a released one must not receive another grant. The last exclusive holder is known by its entry,
 * and so is one that an operator has broken.
 */
export const isNotRemembered = (name: string): Condition =>
  not({
    expression: `:m IN (${RING_ATTRIBUTES}) OR (#alone.m = :m AND (attribute_not_exists(#alone.i) OR attribute_exists(#alone.s)))`,
    names: { '#alone': ALONE },
    values: { ':m': text(name) },
  });

/** The ring does not name the request. */
export const isNotInRing = (name: string): Condition =>
  not({ expression: `:m IN (${RING_ATTRIBUTES})`, values: { ':m': text(name) } });

/**
 * No caller has the key, or an exclusive holder has it whose grant has expired.
 * @param cut as of `hasRoom`
 */
export const isToBeHadAlone = (cut: number): Condition =>
  any(hasRoom(0, cut), {
    expression: 'used = :all AND #alone.e < :cut',
    names: { '#alone': ALONE },
    values: { ':all': integer(EXCLUSIVE_WEIGHT), ':cut': integer(cut) },
  });

/** No grant was released or broken after this instant. */
export const wasNotFreedAfter = (epochMs: number): Condition => ({
  expression: 'attribute_not_exists(freed_at) OR freed_at <= :latest',
  values: { ':latest': integer(epochMs) },
});

/** While a caller or a task is in line, only the line makes grants. */
export const isUnmarked: Condition = { expression: 'attribute_not_exists(mark)' };

/** No request that joined with `replace` may come back. */
export const hasNoLatest: Condition = { expression: 'attribute_not_exists(latest)' };

/** The line has not grown since the record was seen. */
export const markUnchanged = ({ mark }: Pick<KeyRecord, 'mark'>): Condition =>
  mark === undefined ? isUnmarked : { expression: 'mark = :seenMark', values: { ':seenMark': mark } };

/** No call has extended or ended the grant since it was seen. */
export const isStill = ({ path, version }: Pick<HolderEntry, 'path' | 'version'>): Condition => ({
  expression: '#h.v = :seen',
  names: entryAt(path),
  values: { ':seen': text(version) },
});

export const hasLeaseId = ({ path, id }: Pick<Proof, 'path' | 'id'>): Condition => ({
  expression: '#h.i = :id',
  names: entryAt(path),
  values: { ':id': text(id) },
});

/** A heartbeat never shortens a grant, so a delayed duplicate of an earlier one changes nothing. */
export const beatBefore = (path: string, epochMs: number): Condition => ({
  expression: '#h.b < :now',
  names: entryAt(path),
  values: { ':now': integer(epochMs) },
});

/** The same for a heartbeat with a ttl of its own. */
export const expiresBefore = (path: string, epochMs: number): Condition => ({
  expression: '#h.e < :expires',
  names: entryAt(path),
  values: { ':expires': integer(epochMs) },
});

/** No operator has marked the grant as ending. */
export const hasNoEndMark = (path: string): Condition => ({
  expression: 'attribute_not_exists(#h.s)',
  names: entryAt(path),
});

/** Its caller has claimed the grant, and no other grant may replace it yet. @param cut epoch milliseconds: now, less the margin of the clocks */
export const isInUse = (path: string, cut: number): Condition => ({
  expression: 'attribute_not_exists(#h.c) AND #h.e >= :cut',
  names: entryAt(path),
  values: { ':cut': integer(cut) },
});

/** No call has extended or ended any of them since they were seen. */
export const stillStand = (ended: readonly HolderEntry[]): Condition[] =>
  ended.map(({ path, version }, nth) => ({
    expression: `#h${nth}.v = :v${nth}`,
    names: { [`#h${nth}`]: path },
    values: { [`:v${nth}`]: text(version) },
  }));
