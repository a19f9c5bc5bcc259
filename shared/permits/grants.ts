import { integer, text } from '../aws/attributes.ts';
import type { Call } from '../aws/call.ts';
import { all, type Condition } from '../aws/condition.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import type { Staying } from '../line/waiters.ts';
import {
  canRise,
  formedBefore,
  hasNoEntry,
  hasRoom,
  hasUsed,
  isNotRemembered,
  isSamePool,
  isUnmarked,
  markUnchanged,
  stillStand,
  wasNotFreedAfter,
} from './conditions.ts';
import { type Mark, raisedMark, removedMark } from './marks.ts';
import { entryOf, entryOfNew, type NewPermit, type PoolEntry, type PoolRecord } from './record.ts';
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
  /** The record as this call has seen it. Undefined for a first try. */
  seen: Pick<PoolRecord, 'formed' | 'freedAt'> | undefined;
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
  seen: Pick<PoolRecord, 'waiters' | 'formed'>;
  /** Whether others are in line behind the new holders. If not, the mark goes. */
  others: boolean;
  /** The rows that stay in line when the mark goes. */
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
  { key, permits, ended, now, line, seen }: Grants,
  call: Call,
): Promise<GrantsWritten> {
  const freed = weightOf(ended);
  const weight = permits.reduce((sum, one) => sum + one.weight, 0);
  const except = permits.map(({ name }) => name);
  const fence = 'if_not_exists(#fence, :first)';
  const named = namedLimit(permits);
  const entries = permits.map((permit, nth) => ({ ...entryOfNew(dependencies, { permit, now }), nth }));
  const mark = markAfter(line, permits.length);
  const written = await updatePool(
    dependencies,
    {
      key,
      now,
      set: [
        ...permits.flatMap((_, nth) => [`#g${nth} = :g${nth}`, `#n${nth} = ${fence} + :n${nth}`]),
        `#fence = ${fence} + :n${permits.length - 1}`,
        '#used = if_not_exists(#used, :zero) + :weight',
        ...named.set,
        ...mark.set,
      ],
      remove: [...removed(ended, except), ...mark.remove],
      condition: all(
        hasRoom(tightest(permits) + freed),
        seen ? isSamePool(seen) : formedBefore(now - dependencies.clockSkewMs),
        canRise,
        // The line is read before its grants are written, so only the try of a call in no line may be older than a release.
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
        '#fence': 'fence',
        '#used': 'used',
        ...named.names,
        ...mark.names,
      },
      values: {
        ...Object.assign(
          {},
          ...entries.map(({ item, nth }) => ({ [`:g${nth}`]: item, [`:n${nth}`]: integer(nth + 1) })),
        ),
        ':first': integer(now),
        ':zero': integer(0),
        ':weight': integer(weight - freed),
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

/** The latest release that a try may meet. The caller of an older try may have received LeaseHeld in the meantime. */
export const latestRelease = (
  { clockSkewMs }: Pick<LeaseDependencies, 'clockSkewMs'>,
  { seen, now }: Pick<Grants, 'now'> & { seen: Pick<PoolRecord, 'freedAt'> | undefined },
): number => Math.max(now + clockSkewMs, seen?.freedAt ?? 0);

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

/** @param granted how many leave the line with this write */
function markAfter(line: LineLeft | undefined, granted: number): Partial<Mark> & Removal {
  if (!line) return { set: [], remove: [], conditions: [isUnmarked] };
  if (line.others)
    return {
      remove: [],
      conditions: [],
      ...raisedMark({ ticket: line.next, first: line.first, isNews: true, out: 1 + granted }),
    };
  return { ...removedMark(line.staying), conditions: [markUnchanged(line.seen)] };
}

interface Ending {
  key: string;
  ended: readonly PoolEntry[];
  now: number;
  /** If the line is empty: the record as it was before the line was read, and the rows that stay. Then the mark goes. */
  unmark?: { seen: Pick<PoolRecord, 'waiters' | 'formed'>; staying: Staying } | undefined;
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
  const record = ended.length > 0 ? [hasUsed, ...stillStand(ended)] : [];
  const [first = hasUsed, ...conditions] = [...record, ...(unmark ? [markUnchanged(unmark.seen)] : [])];
  return updatePool(
    dependencies,
    {
      key,
      now,
      set: ['#used = if_not_exists(#used, :zero) - :freed', ...(mark?.set ?? [])],
      remove: [...removed(ended), ...(mark?.remove ?? [])],
      condition: all(first, ...conditions),
      names: { ...namesOf(ended), '#used': 'used', ...mark?.names },
      values: { ':zero': integer(0), ':freed': integer(weightOf(ended)), ...mark?.values },
    },
    call,
  );
}

/** @param except those whose entries are written again */
const removed = (ended: readonly PoolEntry[], except: readonly string[] = []): string[] =>
  ended.flatMap(({ name }, nth) => (except.includes(name) ? [] : [`#h${nth}`, `#f${nth}`]));

const namesOf = (ended: readonly PoolEntry[], except: readonly string[] = []): Record<string, string> =>
  Object.fromEntries(ended.flatMap(({ name }, nth) => (except.includes(name) ? [] : [[`#f${nth}`, `f${name}`]])));
