import { integer, text } from '../../aws/attributes.ts';
import type { Call } from '../../aws/call.ts';
import { all, type Condition } from '../../aws/condition.ts';
import type { Item } from '../../aws/dynamodb.ts';
import { endedItem } from '../calls/types.ts';
import type { LeaseDependencies } from '../dependencies.ts';
import { roomUnder } from './cap-rules.ts';
import { capAt, isUnderCap } from './capped.ts';
import {
  hasNoLatest,
  hasNoSharedEntry,
  hasRoom,
  hasRoomAsSeen,
  hasUsed,
  isFenceBelow,
  isNotRemembered,
  isToBeHadAlone,
  isUnmarked,
  stillStand,
  wasNotFreedAfter,
} from './conditions.ts';
import { ALONE, EXCLUSIVE_WEIGHT, fencePathOf, OURS, RING, remember } from './identity.ts';
import { entryOfNew } from './new-entries.ts';
import { entryOf, type HolderEntry, isAloneIn, type KeyRecord, type NewGrant } from './record.ts';
import { endAlone, ringAfter, secondsOf, ttlAfter, updateKey, type WritePart, type Written } from './requests.ts';
import { type Going, isRemembered, weightOf } from './room.ts';

/** DynamoDB limits an expression to 4 KB. */
export const MOST_ENDED = 40;

interface Grants {
  key: string;
  /** In the order in which they enter. */
  grants: readonly NewGrant[];
  /** The grants that they replace. */
  ended: readonly Going[];
  /** Epoch milliseconds. */
  now: number;
  /** Undefined for a request that was in no line. */
  line?: LineLeft | undefined;
  /** The record as a call outside the line has seen it. Undefined for a first try. */
  seen?: KeyRecord | undefined;
}

export interface GrantsWritten extends Written {
  landed: boolean;
  versions: ReadonlyMap<string, string>;
  /** Of an exclusive first try: the record that it replaced. */
  before?: KeyRecord | undefined;
}

interface LineLeft {
  /** The record as it was before the line was read. */
  seen: KeyRecord;
  /** Whether others are in line behind the new holders. */
  others: boolean;
  /** What the write does with the mark (mark.ts, which a plain call does not load). */
  mark: Partial<WritePart>;
  /** What the write demands besides. */
  also?: readonly Condition[];
}

/**
 * Writes new grants and ends the grants that they replace, in one write (docs/protocols/locks.md#acquire).
 * @returns `landed`: the grants stand, perhaps by a try of the SDK before the one that lost. Other calls may then have changed an entry,
 * which has another version than in `versions` (by name)
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export async function writeGrants(
  dependencies: LeaseDependencies,
  { key, grants, ended, now, line, seen }: Grants,
  call: Call,
): Promise<GrantsWritten> {
  const metNoFence = line !== undefined && line.seen.fence === undefined;
  const entries = grants.map((grant, nth) => ({
    ...entryOfNew(dependencies, { grant, now, others: line?.others, metNoFence }),
    nth,
  }));
  const alone = grants.find(isAloneIn);
  const isBlind = alone !== undefined && line === undefined && ended.length === 0;
  const granting = { grants, entries, ended, now, line, seen };
  const parts: Partial<WritePart>[] = [
    entriesOf(granting),
    alone ? placeAlone(granting, alone) : placesOfShared(granting),
    endsOf(granting),
    namedLimit(grants),
    line?.mark ?? {},
  ];
  const { before, ...written } = await updateKey(
    dependencies,
    {
      key,
      set: parts.flatMap(({ set = [] }) => set),
      remove: parts.flatMap(({ remove = [] }) => remove),
      condition: conditionOf(dependencies, { ...granting, isBlind }),
      names: Object.assign({}, ...parts.map(({ names }) => names)),
      values: Object.assign({}, ...parts.map(({ values }) => values)),
      ttl: alone ? secondsOf(now + alone.ttlMs) : ttlAfter(now),
      ...(isBlind && { returns: 'ALL_OLD' as const }),
    },
    call,
  );
  // They enter together or not at all.
  const landed = grants.some(({ name }, nth) => entryOf(written.record, name)?.id === entries[nth]?.id);
  return { ...written, before, landed, versions: new Map(entries.map(({ name, version }) => [name, version])) };
}

interface GrantsWrite extends Omit<Grants, 'key'> {
  entries: (ReturnType<typeof entryOfNew> & { nth: number })[];
}

const entriesOf = ({ entries }: GrantsWrite): Partial<WritePart> => ({
  set: ['lease_version = :ours', ...entries.map(({ nth }) => `#g${nth} = :g${nth}`)],
  names: Object.fromEntries(entries.map(({ path, nth }) => [`#g${nth}`, path])),
  values: { ':ours': text(OURS), ...Object.fromEntries(entries.map(({ item, nth }) => [`:g${nth}`, item])) },
});

/** The clock, or the fence that was seen + 1 if that is higher. So every late try of an earlier call has a lower fence. */
const fenceAlone = ({ line, seen, now }: Pick<GrantsWrite, 'line' | 'seen' | 'now'>): number =>
  Math.max((line?.seen.fence ?? seen?.fence ?? 0) + 1, now);

/** What a grant to an exclusive holder sets beside its entry. Removes what the exclusive holder before has left. */
function placeAlone(granting: GrantsWrite, { previous, execution }: NewGrant): Partial<WritePart> {
  const { now, ended } = granting;
  const kept: Item = {
    ...(previous && endedItem(previous)),
    ...(execution !== undefined && { execution: text(execution) }),
  };
  const turn = ended.find(({ entry, how }) => how === 'released' && entry.claimTtlMs === undefined);
  const numbers: Item = {
    ...{ fence: integer(fenceAlone(granting)), used: integer(EXCLUSIVE_WEIGHT) },
    ...(turn && { turn_ms: integer(Math.max(0, now - turn.entry.acquiredAt)) }),
  };
  const set = { ...kept, ...numbers };
  const stale = previous && previous.by === undefined ? ['prev_by'] : [];
  return {
    set: Object.keys(set).map((name) => `${name} = :${name}`),
    remove: [...stale, ...(execution === undefined ? ['execution'] : [])],
    values: Object.fromEntries(Object.entries(set).map(([name, value]) => [`:${name}`, value])),
  };
}

/** What grants to shared holders set beside their entries. DynamoDB adds up weights and fences, so that grants to different callers do not conflict. */
function placesOfShared({ grants, entries, ended, now }: GrantsWrite): WritePart {
  const fence = 'if_not_exists(fence, :first)';
  const weight = grants.reduce((sum, one) => sum + one.weight, 0) - weightOf(ended.map(({ entry }) => entry));
  // The entry of a last exclusive holder goes. If the exclusive holder still has its grant, that grant is in `ended`.
  const former = ['execution', ...(ended.some(({ entry }) => entry.path === ALONE) ? [] : [ALONE])];
  return {
    set: [
      ...entries.map(({ nth }) => `#n${nth} = ${fence} + :n${nth}`),
      `fence = ${fence} + :n${grants.length - 1}`,
      'used = if_not_exists(used, :zero) + :weight',
    ],
    remove: former,
    names: Object.fromEntries(entries.map(({ path, nth }) => [`#n${nth}`, fencePathOf(path)])),
    values: {
      ...Object.fromEntries(entries.map(({ nth }) => [`:n${nth}`, integer(nth + 1)])),
      ...{ ':first': integer(now - 1), ':zero': integer(0), ':weight': integer(weight) },
    },
  };
}

/** Removes the entries of grants that end, except those that the same write replaces. */
function endsOf({ ended, entries, line }: GrantsWrite): Partial<WritePart> {
  const gone = removed(
    ended.map(({ entry }) => entry),
    entries.map(({ path }) => path),
  );
  const last = ended.find(({ how }) => isRemembered(how));
  return { ...gone, ...(last ? ringAfter(last) : line && ringAfterLast(line.seen)) };
}

/** Moves the request of the last exclusive holder to the ring, because its entry goes. */
function ringAfterLast({ ring: [last, ...slots] }: KeyRecord): ReturnType<typeof ringAfter> | undefined {
  return last?.name !== undefined && slots.length === RING ? remember(last.name, last.broken) : undefined;
}

function conditionOf(
  dependencies: LeaseDependencies,
  { grants, ended, line, seen, now, isBlind }: GrantsWrite & { isBlind: boolean },
): Condition {
  const going = ended.map(({ entry }) => entry);
  const record = line?.seen ?? seen;
  const cap = record && capAt(record, { now, clockSkewMs: dependencies.clockSkewMs });
  const room = tightest(grants.map((grant) => ({ ...grant, room: roomUnder(cap, grant) }))) + weightOf(going);
  const underCap = isUnderCap(record?.cap, grants);
  const still = stillStand(going);
  // The fence that was seen proves that no grant has come since. So no request of the line has had a grant either.
  if (line) return all(hasRoomAsSeen(line.seen, room), underCap, ...still, ...(line.also ?? []));
  const cut = now - dependencies.clockSkewMs;
  const isAlone = grants.some(isAloneIn);
  const names = grants.map(({ name }) => name);
  const most = isAlone ? fenceAlone({ line, seen, now }) : latestFence(dependencies, { seen, now });
  return all(
    isUnmarked,
    underCap,
    isBlind ? isToBeHadAlone(cut) : hasRoom(room, cut),
    isFenceBelow(most),
    wasNotFreedAfter(latestRelease(dependencies, { seen, now })),
    ...names.map(isNotRemembered),
    // Its own expired grant may be one of those that end.
    ...(isAlone || going.some(({ name }) => names.includes(name)) ? [] : names.map(hasNoSharedEntry)),
    ...still,
    ...(grants.some(({ replace }) => replace) ? [hasNoLatest] : []),
  );
}

/** The latest release that a try may meet. If the release is later, the caller may have received LeaseHeld in the meantime. */
export const latestRelease = (
  { clockSkewMs }: Pick<LeaseDependencies, 'clockSkewMs'>,
  { seen, now }: Pick<Grants, 'now' | 'seen'>,
): number => Math.max(now + clockSkewMs, seen?.freedAt ?? 0);

/** How many grants may come between a look at a record whose fence is ahead of the clock, and the try after the look. */
const MOST_BESIDE = 1000;

/** Above each fence that a try may meet: fences start at the clock, and are behind the clock from then on, unless an operator lifts them. */
const latestFence = (
  { clockSkewMs }: Pick<LeaseDependencies, 'clockSkewMs'>,
  { seen, now }: Pick<Grants, 'now' | 'seen'>,
): number => Math.max(now + clockSkewMs, seen?.fence === undefined ? 0 : seen.fence + MOST_BESIDE);

/** What the record remembers of the last limit: who named it, and which limit it replaced. */
function namedLimit(grants: readonly NewGrant[]): Partial<WritePart> {
  const last = grants.findLast(({ limit }) => limit !== null);
  if (!last || last.limit === null) return {};
  return {
    set: ['limit_before = if_not_exists(last_limit, :limit)', 'last_limit = :limit', 'limit_by = :limit_by'],
    values: { ':limit': integer(last.limit), ':limit_by': text(last.holder) },
  };
}

/** Each one enters after those before it. */
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
  ended: readonly Going[];
  now: number;
  /** What the write does with the mark, and what it demands for that. */
  line?: { mark: Partial<WritePart>; also?: readonly Condition[] } | undefined;
}

/**
 * Ends grants, and makes none.
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export function writeEnds(
  dependencies: LeaseDependencies,
  { key, ended, now, line }: EndsWrite,
  call: Call,
): Promise<Written> {
  const mark = line?.mark;
  // The record of a third-party client, or one with a mark alone, must not get a weight.
  const isEnding = ended.length > 0;
  const going = ended.map(({ entry }) => entry);
  const record = isEnding ? [hasUsed, ...stillStand(going)] : [];
  const [first = hasUsed, ...conditions] = [...record, ...(line?.also ?? [])];
  const alone = ended.find(({ entry }) => entry.path === ALONE);
  const last = alone && endAlone(dependencies, { key, ...alone, now }, `#h${ended.indexOf(alone)}`);
  const gone = removed(going, alone ? [ALONE] : []);
  return updateKey(
    dependencies,
    {
      key,
      set: [...(isEnding ? ['used = used - :freed'] : []), ...(last?.set ?? []), ...(mark?.set ?? [])],
      remove: [...gone.remove, ...(last?.remove ?? []), ...(mark?.remove ?? [])],
      condition: all(first, ...conditions),
      names: { ...gone.names, ...last?.names },
      values: { ...(isEnding && { ':freed': integer(weightOf(going)) }), ...last?.values, ...mark?.values },
    },
    call,
  );
}

/** @param except those whose entries are written again */
function removed(ended: readonly HolderEntry[], except: readonly string[]): Pick<WritePart, 'remove' | 'names'> {
  const gone = ended.flatMap(({ path }, nth) => (except.includes(path) ? [] : [{ path, nth }]));
  const shared = gone.filter(({ path }) => path !== ALONE);
  return {
    remove: [...gone.map(({ nth }) => `#h${nth}`), ...shared.map(({ nth }) => `#f${nth}`)],
    names: Object.fromEntries(shared.map(({ path, nth }) => [`#f${nth}`, fencePathOf(path)])),
  };
}
