import { integer, text } from '../aws/attributes.ts';
import { aliased, all, any, type Condition, not } from '../aws/condition.ts';
import { type Proof, RING } from './identity.ts';
import { MOST_FENCE, type PoolEntry, type PoolRecord, type ThirdParty } from './record.ts';

// The conditions that make a write on a pool a rule (docs/protocols/pools.md).

/** The attributes of a request's entry. */
export const attributesOf = (name: string): Record<string, string> => ({ '#h': `h${name}`, '#f': `f${name}` });

const entry = (name: string) => ({ '#h': `h${name}` });

export const hasUsed: Condition = aliased('attribute_exists(#used)');

/** Never compare by equality with a limit. Once callers disagree about it, that would admit without bound. */
const isUsedAtMost = (room: number): Condition => aliased('#used <= :room', { ':room': integer(room) });

/** No lease of Holdfast, nor a line for one. */
export const isNoLease: Condition = aliased('attribute_not_exists(#lease_id) AND attribute_not_exists(#waiters)');

const isUnused: Condition = all(aliased('attribute_not_exists(#used)'), isNoLease);
const isUnversioned: Condition = aliased('attribute_not_exists(#lease_version)');

/**
 * There is room, or there is no record, only a mark, or the record of a third-party client whose lease has expired.
 * @param cut epoch milliseconds: now, less the margin of the clocks
 */
export const hasRoom = (room: number, cut: number): Condition =>
  any(
    isUsedAtMost(room),
    all(
      isUnused,
      any(isUnversioned, aliased('#lease_expiry < :cutSeconds', { ':cutSeconds': integer(Math.floor(cut / 1000)) })),
    ),
  );

/** There is room, and no grant has come since the record was seen: each raises the fence. */
export const hasRoomAsSeen = ({ fence, hasUsed, thirdParty }: Seen, room: number): Condition =>
  all(
    fence === undefined
      ? aliased('attribute_not_exists(#fence)')
      : aliased('#fence = :seenFence', { ':seenFence': integer(fence) }),
    ...(hasUsed ? [isUsedAtMost(room)] : [isUnused, thirdParty ? isStillOf(thirdParty) : isUnversioned]),
  );

type Seen = Pick<PoolRecord, 'fence' | 'hasUsed' | 'thirdParty'>;

/** The third-party client has not extended its lease since it was seen. */
const isStillOf = ({ version }: ThirdParty): Condition => aliased('#lease_version = :theirs', { ':theirs': version });

/**
 * The fence can rise, and is below this one. A value of another type than a number is not lower either, so no fence comes from it.
 * @param most above each fence that the try may meet. A key that has been a lease in the meantime has a higher fence, and its record does not remember
 * which requests had permits before
 */
export const isFenceBelow = (most: number): Condition =>
  aliased('attribute_not_exists(#fence) OR #fence < :most', { ':most': integer(Math.min(most, MOST_FENCE)) });

/** @param nth of the requests that one write grants */
export const hasNoEntry = (name: string, nth: number): Condition => ({
  expression: `attribute_not_exists(#g${nth})`,
  names: { [`#g${nth}`]: `h${name}` },
});

const SLOTS = Array.from({ length: RING }, (_, slot) => `#r${slot}`).join(', ');

/** A request stands for one acquisition. A late duplicate of a released one must not take another permit. */
export const isNotRemembered = (name: string, nth = 0): Condition =>
  not(aliased(`:m${nth} IN (${SLOTS})`, { [`:m${nth}`]: text(name) }));

/** No permit was released or broken after this instant, as for a lease (leases/conditions.ts). */
export const wasNotFreedAfter = (epochMs: number): Condition =>
  aliased('attribute_not_exists(#freed_at) OR #freed_at <= :latest', { ':latest': integer(epochMs) });

/** While a caller or a task is in line, only the line grants permits. */
export const isUnmarked: Condition = aliased('attribute_not_exists(#mark)');

/** The line has not grown since the record was seen. */
export const markUnchanged = ({ mark }: Pick<PoolRecord, 'mark'>): Condition =>
  mark === undefined ? isUnmarked : aliased('#mark = :seenMark', { ':seenMark': mark });

/** No call has extended or ended the permit since it was seen. */
export const isStill = ({ name, version }: Pick<PoolEntry, 'name' | 'version'>): Condition => ({
  expression: '#h.v = :seen',
  names: entry(name),
  values: { ':seen': text(version) },
});

export const isOf = ({ name, id }: Pick<Proof, 'name' | 'id'>): Condition => ({
  expression: '#h.i = :id',
  names: entry(name),
  values: { ':id': text(id) },
});

/** A heartbeat never shortens a permit, so a delayed duplicate of an earlier one changes nothing. */
export const beatBefore = (name: string, epochMs: number): Condition => ({
  expression: '#h.b < :now',
  names: entry(name),
  values: { ':now': integer(epochMs) },
});

/** The same for a heartbeat with a ttl of its own. */
export const expiresBefore = (name: string, epochMs: number): Condition => ({
  expression: '#h.e < :expires',
  names: entry(name),
  values: { ':expires': integer(epochMs) },
});

/** No operator has marked the permit as ending. */
export const hasNoEndMark = (name: string): Condition => ({
  expression: 'attribute_not_exists(#h.s)',
  names: entry(name),
});

/** Its caller has claimed it, and no other caller may take its place yet. @param cut epoch milliseconds: now, less the margin of the clocks */
export const isInUse = (name: string, cut: number): Condition => ({
  expression: 'attribute_not_exists(#h.c) AND #h.e >= :cut',
  names: entry(name),
  values: { ':cut': integer(cut) },
});

/** No call has extended or ended any of them since they were seen. */
export const stillStand = (ended: readonly PoolEntry[]): Condition[] =>
  ended.map(({ name, version }, nth) => ({
    expression: `#h${nth}.v = :v${nth}`,
    names: { [`#h${nth}`]: `h${name}` },
    values: { [`:v${nth}`]: text(version) },
  }));
