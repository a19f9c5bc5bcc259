import { integer, text } from '../../aws/attributes.ts';
import type { Call } from '../../aws/call.ts';
import { all, type Condition } from '../../aws/condition.ts';
import type { Item } from '../../aws/dynamodb.ts';
import { endedItem } from '../calls/types.ts';
import type { LeaseDependencies } from '../dependencies.ts';
import { roomUnder } from './cap-rules.ts';
import { capAt, isUnderCap } from './capped.ts';
import {
  areEntriesAsSeen,
  hasNoLatest,
  hasNoSharedEntry,
  hasRoom,
  hasRoomAsSeen,
  hasUsedAttribute,
  isFenceBelow,
  isFreeForExclusive,
  isNotRemembered,
  isUnmarked,
  wasNotFreedAfter,
} from './conditions.ts';
import {
  EXCLUSIVE_PATH,
  EXCLUSIVE_WEIGHT,
  fencePathOf,
  HOLDFAST_LEASE_VERSION,
  RING_SIZE,
  remember,
} from './identity.ts';
import { entryOfNew } from './new-entries.ts';
import { entryOf, type HolderEntry, isExclusiveGrant, type KeyRecord, type NewGrant } from './record.ts';
import {
  endExclusive,
  ringAfter,
  secondsAttribute,
  ttlAfter,
  updateKey,
  type WritePart,
  type Written,
} from './requests.ts';
import { type GrantToEnd, isRemembered, weightOf } from './room.ts';

/** How many grants a write ends at most, because DynamoDB limits an expression to 4 KB. */
export const MAX_ENDED = 40;

interface Grants {
  key: string;
  /** The new grants, in the order of the line. */
  grants: readonly NewGrant[];
  toEnd: readonly GrantToEnd[];
  /** Epoch milliseconds. */
  now: number;
  /** Undefined for a request that does not come from the line. */
  line?: LineLeft | undefined;
  /** The record as a call outside the line has read it. Undefined for a first try. */
  record?: KeyRecord | undefined;
}

export interface GrantsWritten extends Written {
  /**
   * Whether the grants are on record: by this write, or by an earlier try of the SDK, after which other calls may have
   * changed the entries.
   */
  landed: boolean;
  /** The version that this call gave to each grant, by the name of its request. */
  versions: ReadonlyMap<string, string>;
  /** The record that an exclusive first try replaced. */
  before?: KeyRecord | undefined;
}

interface LineLeft {
  /** The record as it was before the line was read. */
  record: KeyRecord;
  /** Whether others are in line behind the new holders. */
  hasOthers: boolean;
  /** The part of the write that keeps or removes the mark. It comes from mark.ts, which a plain call does not load. */
  mark: Partial<WritePart>;
  conditions?: readonly Condition[];
}

/**
 * Writes new grants and ends the grants that they replace, in one write (docs/protocols/locks.md#acquire).
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export async function writeGrants(
  dependencies: LeaseDependencies,
  { key, grants, toEnd, now, line, record }: Grants,
  call: Call,
): Promise<GrantsWritten> {
  const metNoFence = line !== undefined && line.record.fence === undefined;
  const entries = grants.map((grant, nth) => ({
    ...entryOfNew(dependencies, { grant, now, hasOthers: line?.hasOthers, metNoFence }),
    nth,
  }));
  const exclusive = grants.find(isExclusiveGrant);
  const isBlind = exclusive !== undefined && line === undefined && toEnd.length === 0;
  const write = { grants, entries, toEnd, now, line, record };
  const parts: Partial<WritePart>[] = [
    entriesOf(write),
    exclusive ? totalsOfExclusive(write, exclusive) : totalsOfShared(write),
    endsOf(write),
    namedLimit(grants),
    line?.mark ?? {},
  ];
  const { before, ...written } = await updateKey(
    dependencies,
    {
      key,
      set: parts.flatMap(({ set = [] }) => set),
      remove: parts.flatMap(({ remove = [] }) => remove),
      condition: conditionOf(dependencies, { ...write, isBlind }),
      names: Object.assign({}, ...parts.map(({ names }) => names)),
      values: Object.assign({}, ...parts.map(({ values }) => values)),
      ttl: exclusive ? secondsAttribute(now + exclusive.ttlMs) : ttlAfter(now),
      ...(isBlind && { returns: 'ALL_OLD' as const }),
    },
    call,
  );
  // The grants are made together or not at all, so one of them shows whether all are.
  const landed = grants.some(({ name }, nth) => entryOf(written.record, name)?.id === entries[nth]?.id);
  return { ...written, before, landed, versions: new Map(entries.map(({ name, version }) => [name, version])) };
}

interface GrantsWrite extends Omit<Grants, 'key'> {
  entries: (ReturnType<typeof entryOfNew> & { nth: number })[];
}

const entriesOf = ({ entries }: GrantsWrite): Partial<WritePart> => ({
  set: ['lease_version = :ours', ...entries.map(({ nth }) => `#g${nth} = :g${nth}`)],
  names: Object.fromEntries(entries.map(({ path, nth }) => [`#g${nth}`, path])),
  values: {
    ':ours': text(HOLDFAST_LEASE_VERSION),
    ...Object.fromEntries(entries.map(({ item, nth }) => [`:g${nth}`, item])),
  },
});

/**
 * The fence of an exclusive grant: the clock, or the last known fence + 1 if that is higher. So every
 * late try of an earlier call has a lower fence.
 */
const exclusiveFence = ({ line, record, now }: Pick<GrantsWrite, 'line' | 'record' | 'now'>): number =>
  Math.max((line?.record.fence ?? record?.fence ?? 0) + 1, now);

/**
 * The attributes that an exclusive grant sets beside its entry. Removes what the previous exclusive holder left there.
 */
function totalsOfExclusive(write: GrantsWrite, { previous, execution }: NewGrant): Partial<WritePart> {
  const { now, toEnd } = write;
  const ofHolders: Item = {
    ...(previous && endedItem(previous)),
    ...(execution !== undefined && { execution: text(execution) }),
  };
  const turn = toEnd.find(({ entry, how }) => how === 'released' && entry.claimTtlMs === undefined);
  const numbers: Item = {
    ...{ fence: integer(exclusiveFence(write)), used: integer(EXCLUSIVE_WEIGHT) },
    ...(turn && { turn_ms: integer(Math.max(0, now - turn.entry.acquiredAt)) }),
  };
  const set = { ...ofHolders, ...numbers };
  const stale = previous && previous.by === undefined ? ['prev_by'] : [];
  return {
    set: Object.keys(set).map((name) => `${name} = :${name}`),
    remove: [...stale, ...(execution === undefined ? ['execution'] : [])],
    values: Object.fromEntries(Object.entries(set).map(([name, value]) => [`:${name}`, value])),
  };
}

/**
 * The attributes that shared grants set beside their entries. DynamoDB adds up weights and fences,
 * so grants to different callers do not conflict.
 */
function totalsOfShared({ grants, entries, toEnd, now }: GrantsWrite): WritePart {
  const fence = 'if_not_exists(fence, :first)';
  const weight = grants.reduce((sum, grant) => sum + grant.weight, 0) - weightOf(toEnd.map(({ entry }) => entry));
  // The entry of a last exclusive holder goes too. If an exclusive holder still has its grant, `toEnd` has that grant
  // already.
  const stale = ['execution', ...(toEnd.some(({ entry }) => entry.path === EXCLUSIVE_PATH) ? [] : [EXCLUSIVE_PATH])];
  return {
    set: [
      ...entries.map(({ nth }) => `#n${nth} = ${fence} + :n${nth}`),
      `fence = ${fence} + :n${grants.length - 1}`,
      'used = if_not_exists(used, :zero) + :weight',
    ],
    remove: stale,
    names: Object.fromEntries(entries.map(({ path, nth }) => [`#n${nth}`, fencePathOf(path)])),
    values: {
      ...Object.fromEntries(entries.map(({ nth }) => [`:n${nth}`, integer(nth + 1)])),
      ...{ ':first': integer(now - 1), ':zero': integer(0), ':weight': integer(weight) },
    },
  };
}

/** Removes the entries of grants that end, except those that the same write sets again. */
function endsOf({ toEnd, entries, line }: GrantsWrite): Partial<WritePart> {
  const gone = removed(
    toEnd.map(({ entry }) => entry),
    entries.map(({ path }) => path),
  );
  const last = toEnd.find(({ how }) => isRemembered(how));
  return { ...gone, ...(last ? ringAfter(last) : line && ringAfterLast(line.record)) };
}

/** Moves the request of the last exclusive holder to the ring, because the entry that remembers it goes. */
function ringAfterLast({ ring: [last, ...slots] }: KeyRecord): ReturnType<typeof ringAfter> | undefined {
  return last?.name !== undefined && slots.length === RING_SIZE ? remember(last.name, last.broken) : undefined;
}

function conditionOf(
  dependencies: LeaseDependencies,
  { grants, toEnd, line, record, now, isBlind }: GrantsWrite & { isBlind: boolean },
): Condition {
  const endedEntries = toEnd.map(({ entry }) => entry);
  const known = line?.record ?? record;
  const cap = known && capAt(known, { now, clockSkewMs: dependencies.clockSkewMs });
  const room = tightest(grants.map((grant) => ({ ...grant, room: roomUnder(cap, grant) }))) + weightOf(endedEntries);
  const underCap = isUnderCap(known?.cap, grants);
  const areAsSeen = areEntriesAsSeen(endedEntries);
  // If the fence is as seen, no grant has been made since. So no request of the line has received a grant in the
  // meantime either.
  if (line) return all(hasRoomAsSeen(line.record, room), underCap, ...areAsSeen, ...(line.conditions ?? []));
  const cut = now - dependencies.clockSkewMs;
  const isExclusive = grants.some(isExclusiveGrant);
  const names = grants.map(({ name }) => name);
  const fencesBelow = isExclusive ? exclusiveFence({ line, record, now }) : fenceBound(dependencies, { record, now });
  return all(
    isUnmarked,
    underCap,
    isBlind ? isFreeForExclusive(cut) : hasRoom(room, cut),
    // The try is not late: since the call began, no lease has come and gone, and no grant was released.
    isFenceBelow(fencesBelow),
    wasNotFreedAfter(latestRelease(dependencies, { record, now })),
    ...names.map(isNotRemembered),
    // The request's own expired grant may be one of those that end.
    ...(isExclusive || endedEntries.some(({ name }) => names.includes(name)) ? [] : names.map(hasNoSharedEntry)),
    ...areAsSeen,
    ...(grants.some(({ replace }) => replace) ? [hasNoLatest] : []),
  );
}

/**
 * The latest release after which a try may still win. If a grant was released later, this try is late, and
 * the caller may have received LeaseHeld already.
 */
export const latestRelease = (
  { clockSkewMs }: Pick<LeaseDependencies, 'clockSkewMs'>,
  { record, now }: Pick<Grants, 'now' | 'record'>,
): number => Math.max(now + clockSkewMs, record?.freedAt ?? 0);

/**
 * How many grants may be made between the read of a record and the next try. Matters only if the fence is ahead of the
 * clock.
 */
const MAX_GRANTS_SINCE_READ = 1000;

/**
 * A number above every fence that a try can meet. Fences start at the clock and rise more slowly
 * than the clock, unless an operator has raised them.
 */
const fenceBound = (
  { clockSkewMs }: Pick<LeaseDependencies, 'clockSkewMs'>,
  { record, now }: Pick<Grants, 'now' | 'record'>,
): number => Math.max(now + clockSkewMs, record?.fence === undefined ? 0 : record.fence + MAX_GRANTS_SINCE_READ);

/** Notes the last limit, who named it, and which limit was there before. */
function namedLimit(grants: readonly NewGrant[]): Partial<WritePart> {
  const last = grants.findLast(({ limit }) => limit !== null);
  if (!last || last.limit === null) return {};
  return {
    set: ['limit_before = if_not_exists(last_limit, :limit)', 'last_limit = :limit', 'limit_by = :limit_by'],
    values: { ':limit': integer(last.limit), ':limit_by': text(last.holder) },
  };
}

/**
 * How much weight may be in use before the first of these grants, so that each still has room when the earlier ones are
 * made.
 */
function tightest(grants: readonly NewGrant[]): number {
  let [before, least] = [0, Number.POSITIVE_INFINITY];
  for (const { room, weight } of grants) {
    least = Math.min(least, room - before);
    before += weight;
  }
  return least;
}

interface EndsWrite {
  key: string;
  toEnd: readonly GrantToEnd[];
  now: number;
  /** The part of the write that removes the mark, and its conditions. */
  line?: { mark: Partial<WritePart>; conditions?: readonly Condition[] } | undefined;
}

/**
 * Ends grants without making new ones.
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export function writeEnds(
  dependencies: LeaseDependencies,
  { key, toEnd, now, line }: EndsWrite,
  call: Call,
): Promise<Written> {
  const mark = line?.mark;
  // A record of a third-party client, or with a mark alone, must not get `used`: it would then count as a record of
  // ours.
  const endsGrants = toEnd.length > 0;
  const entries = toEnd.map(({ entry }) => entry);
  const areAsSeen = endsGrants ? [hasUsedAttribute, ...areEntriesAsSeen(entries)] : [];
  const [first = hasUsedAttribute, ...conditions] = [...areAsSeen, ...(line?.conditions ?? [])];
  const exclusive = toEnd.find(({ entry }) => entry.path === EXCLUSIVE_PATH);
  const last = exclusive && endExclusive(dependencies, { key, ...exclusive, now }, `#h${toEnd.indexOf(exclusive)}`);
  const gone = removed(entries, exclusive ? [EXCLUSIVE_PATH] : []);
  return updateKey(
    dependencies,
    {
      key,
      set: [...(endsGrants ? ['used = used - :freed'] : []), ...(last?.set ?? []), ...(mark?.set ?? [])],
      remove: [...gone.remove, ...(last?.remove ?? []), ...(mark?.remove ?? [])],
      condition: all(first, ...conditions),
      names: { ...gone.names, ...last?.names },
      values: { ...(endsGrants && { ':freed': integer(weightOf(entries)) }), ...last?.values, ...mark?.values },
    },
    call,
  );
}

/** Removes entries, and the fences of shared ones. @param except the paths of entries that the same write sets again */
function removed(entries: readonly HolderEntry[], except: readonly string[]): Pick<WritePart, 'remove' | 'names'> {
  const gone = entries.flatMap(({ path }, nth) => (except.includes(path) ? [] : [{ path, nth }]));
  const shared = gone.filter(({ path }) => path !== EXCLUSIVE_PATH);
  return {
    remove: [...gone.map(({ nth }) => `#h${nth}`), ...shared.map(({ nth }) => `#f${nth}`)],
    names: Object.fromEntries(shared.map(({ path, nth }) => [`#f${nth}`, fencePathOf(path)])),
  };
}
