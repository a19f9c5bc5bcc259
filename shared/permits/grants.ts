import { integer, text } from '../aws/attributes.ts';
import type { Call } from '../aws/call.ts';
import { all, type Condition } from '../aws/condition.ts';
import type { Item } from '../aws/dynamodb.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import { OURS } from '../line/kind.ts';
import type { Staying } from '../line/waiters.ts';
import {
  hasNoEntry,
  hasRoom,
  hasRoomAsSeen,
  hasUsed,
  isFenceBelow,
  isNotRemembered,
  isUnmarked,
  markUnchanged,
  stillStand,
  wasNotFreedAfter,
} from './conditions.ts';
import { isStillFree, leftovers } from './free-lease.ts';
import { keptMark, type Mark, newMark, removedMark } from './marks.ts';
import { entryOf, entryOfNew, MOST_FENCE, type NewPermit, type PoolEntry, type PoolRecord } from './record.ts';
import { weightOf } from './room.ts';
import { updatePool, type Written } from './write.ts';

/** DynamoDB limits an expression to 4 KB. */
export const MOST_ENDED = 40;

interface Grants {
  key: string;
  /** In the order in which they enter. */
  permits: readonly NewPermit[];
  /** The expired entries whose places they take. */
  ended: readonly PoolEntry[];
  /** Epoch milliseconds. */
  now: number;
  /** Undefined for a request that was in no line. */
  line?: LineLeft | undefined;
  /** The record as a call outside the line has seen it. Undefined for a first try. */
  seen?: PoolRecord | undefined;
  /** The record of a free lease that the key was until now. */
  over?: Item | undefined;
}

interface GrantsWritten extends Written {
  landed: boolean;
  versions: ReadonlyMap<string, string>;
}

/** What the write does with the mark. */
interface Removal {
  set: string[];
  remove: string[];
  conditions: Condition[];
}

interface LineLeft {
  /** The record as it was before the line was read. */
  seen: PoolRecord;
  /** Whether others are in line behind the new holders. If not, the mark goes. */
  others: boolean;
  /** The rows that stay in line when the mark is removed. */
  staying: Staying;
  /** The ticket of the first of them, as far as it was looked for. */
  next: string | undefined;
  /** Those of the first of them, with it, as far as they were looked for. */
  first?: readonly string[] | undefined;
}

/**
 * Grants permits in one write, in the places of expired ones (docs/protocols/pools.md#acquire).
 * @returns `landed`: the grants stand, perhaps by a try of the SDK before the one that lost. Then others may have changed an entry since, and it has
 * another version than the one in `versions`, by name
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export async function grantPermits(
  dependencies: LeaseDependencies,
  { key, permits, ended, now, line, seen, over }: Grants,
  call: Call,
): Promise<GrantsWritten> {
  const freed = weightOf(ended);
  const weight = permits.reduce((sum, one) => sum + one.weight, 0);
  const except = permits.map(({ name }) => name);
  const fence = 'if_not_exists(#fence, :first)';
  const room = tightest(permits) + freed;
  const cut = now - dependencies.clockSkewMs;
  const named = namedLimit(permits);
  const entries = permits.map((permit, nth) => ({ ...entryOfNew(dependencies, { permit, now }), nth }));
  const mark = markAfter(line, { granted: permits.length, value: newMark(dependencies) });
  const written = await updatePool(
    dependencies,
    {
      key,
      now,
      set: [
        ...permits.flatMap((_, nth) => [`#g${nth} = :g${nth}`, `#n${nth} = ${fence} + :n${nth}`]),
        `#fence = ${fence} + :n${permits.length - 1}`,
        '#used = if_not_exists(#used, :zero) + :weight',
        '#lease_version = :ours',
        ...named.set,
        ...mark.set,
      ],
      remove: [...removed(ended, except), ...leftovers(over).remove, ...mark.remove],
      condition: all(
        line ? hasRoomAsSeen(line.seen, room) : over ? isStillFree(over) : hasRoom(room, cut),
        isFenceBelow(line ? MOST_FENCE : latestFence(dependencies, { seen: over ? undefined : seen, over, now })),
        // A grant from the line comes after a read of the line. Only the try of a call outside the line may be older than a release.
        ...(line ? [] : [wasNotFreedAfter(latestRelease(dependencies, { seen, now }))]),
        ...permits.map(({ name }, nth) => isNotRemembered(name, nth)),
        ...permits.flatMap(({ name }, nth) => (ended.some((one) => one.name === name) ? [] : [hasNoEntry(name, nth)])),
        ...stillStand(ended),
        ...mark.conditions,
      ),
      names: {
        ...Object.assign(
          {},
          ...entries.map(({ name, nth }) => ({ [`#g${nth}`]: `h${name}`, [`#n${nth}`]: `f${name}` })),
        ),
        ...namesOf(ended, except),
        ...{ '#fence': 'fence', '#used': 'used', '#lease_version': 'lease_version' },
        ...leftovers(over).names,
        ...named.names,
        ...mark.names,
      },
      values: {
        ...Object.assign(
          {},
          ...entries.map(({ item, nth }) => ({ [`:g${nth}`]: item, [`:n${nth}`]: integer(nth + 1) })),
        ),
        ...{ ':first': integer(now - 1), ':zero': integer(0), ':weight': integer(weight - freed), ':ours': text(OURS) },
        ...named.values,
        ...mark.values,
      },
    },
    call,
  );
  // They enter together or not at all.
  const landed = permits.some(({ name }, nth) => entryOf(written.record, name)?.id === entries[nth]?.id);
  return { ...written, landed, versions: new Map(entries.map(({ name, version }) => [name, version])) };
}

/** The latest release that a try may meet. If the release is later, the caller may have received LeaseHeld in the meantime. */
export const latestRelease = (
  { clockSkewMs }: Pick<LeaseDependencies, 'clockSkewMs'>,
  { seen, now }: Pick<Grants, 'now' | 'seen'>,
): number => Math.max(now + clockSkewMs, seen?.freedAt ?? 0);

/** How many grants may come between a look at a record whose fence is ahead of the clock, and the try after the look. */
const MOST_BESIDE = 1000;

/** Above each fence that a try may meet: fences start at the clock, and are behind the clock from then on, unless an operator lifts them. */
export const latestFence = (
  { clockSkewMs }: Pick<LeaseDependencies, 'clockSkewMs'>,
  { seen, over, now }: Pick<Grants, 'now' | 'seen' | 'over'>,
): number => {
  const fence = seen?.fence ?? (over?.fence && Number(over.fence.N));
  return Math.max(now + clockSkewMs, fence === undefined ? 0 : fence + MOST_BESIDE);
};

/** What the record remembers of the last limit: who named it, and which limit it replaced. */
function namedLimit(permits: readonly NewPermit[]): Partial<Mark> & Pick<Mark, 'set'> {
  const last = permits.findLast(({ limit }) => limit !== null);
  if (!last || last.limit === null) return { set: [] };
  return {
    set: ['#limit_before = if_not_exists(#last_limit, :limit)', '#last_limit = :limit', '#limit_by = :limit_by'],
    names: { '#limit_before': 'limit_before', '#last_limit': 'last_limit', '#limit_by': 'limit_by' },
    values: { ':limit': integer(last.limit), ':limit_by': text(last.holder) },
  };
}

/** Each one enters after those before it. */
function tightest(permits: readonly NewPermit[]): number {
  let [before, least] = [0, Number.POSITIVE_INFINITY];
  for (const { room, weight } of permits) {
    least = Math.min(least, room - before);
    before += weight;
  }
  return least;
}

/** @param left how many leave the line with this write */
function markAfter(line: LineLeft | undefined, left: { granted: number; value: string }): Partial<Mark> & Removal {
  if (!line) return { set: [], remove: [], conditions: [isUnmarked] };
  if (line.others) return { remove: [], conditions: [], ...keptMark(line, left) };
  return { ...removedMark(line.staying), conditions: [markUnchanged(line.seen)] };
}

interface Ending {
  key: string;
  ended: readonly PoolEntry[];
  now: number;
  /** Removes the mark if no waiter is in line: the record as it was before the line was read, and the rows that stay. */
  unmark?: { seen: PoolRecord; staying: Staying } | undefined;
}

/**
 * Ends permits, and grants none.
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export function endPermits(
  dependencies: LeaseDependencies,
  { key, ended, now, unmark }: Ending,
  call: Call,
): Promise<Written> {
  const mark = unmark && removedMark(unmark.staying);
  // The record of a third-party client, or one with a mark alone, must not get a weight.
  const isEnding = ended.length > 0;
  const record = isEnding ? [hasUsed, ...stillStand(ended)] : [];
  const [first = hasUsed, ...conditions] = [...record, ...(unmark ? [markUnchanged(unmark.seen)] : [])];
  return updatePool(
    dependencies,
    {
      key,
      now,
      set: [...(isEnding ? ['#used = #used - :freed'] : []), ...(mark?.set ?? [])],
      remove: [...removed(ended), ...(mark?.remove ?? [])],
      condition: all(first, ...conditions),
      names: { ...namesOf(ended), ...mark?.names },
      values: { ...(isEnding && { ':freed': integer(weightOf(ended)) }), ...mark?.values },
      keepsTtl: true,
    },
    call,
  );
}

/** @param except those whose entries are written again */
const removed = (ended: readonly PoolEntry[], except: readonly string[] = []): string[] =>
  ended.flatMap(({ name }, nth) => (except.includes(name) ? [] : [`#h${nth}`, `#f${nth}`]));

const namesOf = (ended: readonly PoolEntry[], except: readonly string[] = []): Record<string, string> =>
  Object.fromEntries(ended.flatMap(({ name }, nth) => (except.includes(name) ? [] : [[`#f${nth}`, `f${name}`]])));
