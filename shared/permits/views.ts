import type { Json } from '../aws/attributes.ts';
import { HoldfastError } from '../errors.ts';
import { type LeaseGrant, type LostReason, type Mode, NAMELESS, type Previous, previousView } from '../line/calls.ts';
import type { WaiterView } from '../line/listed-waiters.ts';
import { ASK_EVERY_MS } from '../line/times.ts';
import { isInstant } from '../surroundings/clock.ts';
import { isRemembered } from './alone.ts';
import { ALONE, leaseIdOf } from './identity.ts';
import { EXCLUSIVE_WEIGHT } from './modes.ts';
import { byEnd, ending, isBound, type PoolEntry, type PoolRecord, type ThirdParty } from './record.ts';
import { type Asked, roomAt, weightInUse } from './room.ts';

export const KEY_STATES = ['held', 'expired', 'released', 'free'] as const;
type KeyState = (typeof KEY_STATES)[number];

/** What LeaseHeld says about each holder. A third-party client has no name, no fence, and perhaps no expiry. */
export interface HolderView {
  holder: string | null;
  fence: number | null;
  mode: Mode;
  /** 1 for an exclusive holder. */
  weight: number;
  /** ISO 8601, like all instants. */
  expiresAt: string | null;
}

/** What every reader may see of a grant. Null if the record does not say. */
interface GrantTerms {
  acquiredAt: string | null;
  remainingMs: number | null;
  /** What each heartbeat extends it by. */
  ttlSeconds: number | null;
  /** The ARN of the execution that holds it, or held it when that execution ended. */
  execution: string | null;
  /** Whether the grant lasts as long as that execution. */
  bound: boolean;
  /** Whether that execution has ended, and the grant goes on as an ordinary grant (grace.ts). */
  inGrace: boolean;
  /** Whether an operator broke it, and it stays until its holder releases it or its ttl ends. */
  ending: boolean;
  /** When an operator broke the grant, and the authenticated operator: an IAM ARN, or the subject of a JWT. Null if the record does not say. */
  brokenAt: string | null;
  brokenBy: string | null;
  data: Json;
}

/** What every reader may see of one holder. */
export interface FullHolderView extends HolderView, GrantTerms {
  state: 'held' | 'expired';
}

/**
 * A key, by the one holder that stands for all: the exclusive holder, or the shared holder whose grant ends first. Of a key without a holder, the
 * last exclusive holder.
 */
export interface KeySummary extends GrantTerms {
  key: string;
  state: KeyState;
  holder: string | null;
  fence: number | null;
  expiresAt: string | null;
}

/** How full a key is. */
interface Room {
  /** The weight of all holders, with expired holders whose room no caller has needed. An exclusive holder weighs 1. */
  used: number;
  /** The limit that the last grant named. Null if that grant was exclusive, or no grant has named a limit. */
  limit: number | null;
}

/** What every reader may see of a key. */
export interface KeyView extends KeySummary, Room {
  /** The holder whose grant named that limit. Null if the record does not say. */
  limitBy: string | null;
  /** The holders in the order of their grants. */
  holders: FullHolderView[];
  /** The holder before, if the one that stands for all was granted the key in line. Null if the record does not say. */
  previous: Previous | null;
  /** Whether the key has a record. A key without one was never used, or was last used before the retention. */
  hasRecord: boolean;
  /** How many tasks and callers are in line, counted up to 100, or up to the limit of `waiters` where that is more. */
  waiting: number;
  /** The oldest of those, if the caller asked for them. */
  waiters?: WaiterView[];
}

/** One key of a list. With the sort `held`, the oldest holder stands for all. */
export interface ListedKey extends KeySummary, Room {
  /** How many callers hold the key. */
  holders: number;
  /** Up to how many tasks and callers are in line: the hints of the record count some that have left too. A count of the line would cost a query for each row. */
  waiting: number;
}

const isAlone = (weight: number): boolean => weight >= EXCLUSIVE_WEIGHT;
const modeOf = (weight: number): Mode => (isAlone(weight) ? 'exclusive' : 'shared');
/** An exclusive holder weighs more than every limit on record, and 1 for readers. */
const weightShown = (weight: number): number => (isAlone(weight) ? 1 : weight);

const instant = (epochMs: number): string => new Date(epochMs).toISOString();
const instantOrNull = (epochMs: number | undefined): string | null =>
  epochMs !== undefined && isInstant(epochMs) ? instant(epochMs) : null;

export function permitGrant(key: string, entry: PoolEntry, now: number): LeaseGrant {
  const { version, holder, fence, acquiredAt, expiresAt, data } = entry;
  return {
    key,
    holder,
    leaseId: leaseIdOf(entry),
    version,
    fence,
    acquiredAt: instant(acquiredAt),
    expiresAt: instant(expiresAt),
    remainingMs: Math.max(0, expiresAt - now),
    ...(isBound(entry) && { bound: true }),
    ...(data !== undefined && { data }),
  };
}

/** The fields of an answer to a request with a limit or a mode. */
export const permitTerms = (
  { weight }: PoolEntry,
  { used, limit, limitBefore }: { used: number; limit: number | null; limitBefore: number | undefined },
) => ({
  ...{ mode: modeOf(weight), limit, weight: weightShown(weight), used: weightShown(used) },
  ...(limit !== null &&
    limitBefore !== undefined &&
    limitBefore !== limit && { limitChanged: { from: limitBefore, to: limit } }),
});

const holderView = ({ holder, fence, weight, expiresAt }: PoolEntry): HolderView => ({
  holder,
  fence,
  mode: modeOf(weight),
  weight: weightShown(weight),
  expiresAt: instant(expiresAt),
});

/** A third-party client has the key alone, and no name. */
const thirdPartyView = ({ endsAt }: ThirdParty): HolderView => ({
  ...{ holder: null, fence: null, mode: 'exclusive', weight: 1 },
  expiresAt: instantOrNull(endsAt),
});

const fullHolderView = (entry: PoolEntry, now: number): FullHolderView => ({
  state: entry.expiresAt > now ? 'held' : 'expired',
  ...holderView(entry),
  acquiredAt: instant(entry.acquiredAt),
  remainingMs: Math.max(0, entry.expiresAt - now),
  ttlSeconds: entry.ttlMs / 1000,
  execution: entry.execution ?? entry.endedExecution ?? null,
  bound: isBound(entry),
  inGrace: entry.execution === undefined && entry.endedExecution !== undefined,
  ending: entry.isEnding === true,
  brokenAt: instantOrNull(entry.endingAt),
  brokenBy: entry.brokenBy ?? null,
  data: entry.data ?? null,
});

const NO_TERMS: GrantTerms = {
  ...{ acquiredAt: null, remainingMs: null, ttlSeconds: null, execution: null },
  ...{ bound: false, inGrace: false, ending: false, brokenAt: null, brokenBy: null, data: null },
};

const fullThirdPartyView = (client: ThirdParty, now: number): FullHolderView => ({
  state: client.endsAt > now ? 'held' : 'expired',
  ...thirdPartyView(client),
  ...NO_TERMS,
  remainingMs: Number.isFinite(client.endsAt) ? Math.max(0, client.endsAt - now) : null,
});

/** Which holder stands for all of a key. */
export interface Chosen {
  /** Only this holder. */
  holder?: string | undefined;
  /** The holder whose grant ends first, which is the default, or the oldest holder. */
  by?: 'end' | 'age' | undefined;
}

/** If a holder has not expired, it is one of those. */
function chosenEntry({ entries }: PoolRecord, now: number, { holder, by }: Chosen): PoolEntry | undefined {
  const own = entries.filter((entry) => holder === undefined || entry.holder === holder);
  const shown = own.toSorted(by === 'age' ? byAge : byEnd);
  return shown.find(({ expiresAt }) => expiresAt > now) ?? shown[0];
}

const byAge = (one: PoolEntry, other: PoolEntry): number => one.fence - other.fence;

export function keySummary(record: PoolRecord, now: number, chosen: Chosen = {}): KeySummary {
  const { key, thirdParty, entries } = record;
  const entry = chosenEntry(record, now, chosen);
  const shown = entry ? fullHolderView(entry, now) : thirdParty && fullThirdPartyView(thirdParty, now);
  if (shown) {
    const { mode: _, weight: __, ...holder } = shown;
    return { key, ...holder };
  }
  return { key, ...FREE, ...(entries.length === 0 && withoutHolder(record)) };
}

const FREE = { state: 'free' as const, holder: null, fence: null, expiresAt: null, ...NO_TERMS };

/** The last exclusive holder, or the fence of the last grant alone. */
function withoutHolder({ last, lastTerms, fence }: PoolRecord): Partial<KeySummary> {
  if (!last) return { fence: fence ?? null };
  const { acquiredAt, brokenAt, data = null } = lastTerms ?? {};
  return {
    ...{ state: 'released', holder: last.holder, fence: last.fence, acquiredAt: instantOrNull(acquiredAt), data },
    ...{ brokenAt: instantOrNull(brokenAt), brokenBy: last.by ?? null },
  };
}

/** Whether the last grant of the key was exclusive, as far as the record says. */
const wasAlone = ({ entries, last, thirdParty }: PoolRecord): boolean =>
  thirdParty !== undefined || last !== undefined || entries.some(({ path }) => path === ALONE);

const limitOf = (record: PoolRecord): number | null => (wasAlone(record) ? null : (record.lastLimit ?? null));

const roomOf = (record: PoolRecord): Room => ({
  used: record.thirdParty ? 1 : weightShown(record.used),
  limit: limitOf(record),
});

export function keyView(record: PoolRecord, now: number): Omit<KeyView, 'waiting' | 'waiters'> {
  const { entries, thirdParty, limitBy, hasRecord } = record;
  const room = roomOf(record);
  const holders = entries.toSorted(byAge).map((entry) => fullHolderView(entry, now));
  const previous = entries.length > 0 ? chosenEntry(record, now, {})?.previous : record.previous;
  return {
    ...keySummary(record, now),
    holders: thirdParty ? [...holders, fullThirdPartyView(thirdParty, now)] : holders,
    ...room,
    limitBy: room.limit === null ? null : (limitBy ?? null),
    previous: previousView(previous),
    hasRecord,
  };
}

export const listedKey = (record: PoolRecord, now: number, chosen: Chosen): Omit<ListedKey, 'waiting'> => ({
  ...keySummary(record, now, chosen),
  ...roomOf(record),
  holders: record.entries.length + (record.thirdParty ? 1 : 0),
});

/** Sorts permits by their ends. Those that have ended, and whose room no caller has needed, come last. */
const byNextEnd = (now: number) => (one: PoolEntry, other: PoolEntry) =>
  Number(one.expiresAt <= now) - Number(other.expiresAt <= now) || byEnd(one, other);

/** LeaseHeld lists up to this many holders. */
const MOST_TOLD = 10;

interface Held {
  asked: Asked & { limit: number | null };
  now: number;
  clockSkewMs: number;
}

/** `holder`, `fence` and `expiresAt` are those of the grant that ends first, or of an expired grant if all have expired. */
export function poolHeld(record: PoolRecord, { asked, now, clockSkewMs }: Held): HoldfastError {
  const { entries, thirdParty } = record;
  const shown = entries.toSorted(byNextEnd(now)).slice(0, MOST_TOLD).map(holderView);
  const holders = thirdParty ? [...shown, thirdPartyView(thirdParty)] : shown;
  const { holder = null, fence = null, expiresAt = null } = holders[0] ?? {};
  const room = roomAt(record, asked, clockSkewMs);
  const roomInMs = Number.isFinite(room) ? Math.max(1, room - now) : 1000;
  return new HoldfastError('LeaseHeld', whyHeld(record, { asked, now, clockSkewMs }), {
    ...{ key: record.key, holder, fence, expiresAt },
    used: weightShown(weightInUse(record, { now, clockSkewMs })),
    limit: asked.limit ?? limitOf(record),
    holders,
    // Others took the room in between, and it may be free again.
    retryAfterMs: entries.some(isBound) ? Math.min(roomInMs, ASK_EVERY_MS) : roomInMs,
  });
}

function whyHeld(record: PoolRecord, { asked, now, clockSkewMs }: Held): string {
  const hasRoom = roomAt(record, asked, clockSkewMs) <= now;
  if (hasRoom && record.mark !== undefined) return 'other waiters are in line';
  if (hasRoom) return 'the key was held a moment ago, and may be free now: send the call again';
  const used = weightInUse(record, { now, clockSkewMs });
  const [first] = record.entries;
  if (isAlone(used))
    return `the lease is held by ${first?.holder ?? NAMELESS}${first && isBound(first) ? ' until its execution ends' : ''}`;
  const most = asked.limit === null ? 'the call needs the key alone' : `the limit is ${asked.limit}`;
  return `there is no room: the holders weigh ${used}, and ${most}`;
}

/**
 * Why a caller has lost its grant. An entry of many that others took over leaves nothing behind. But if others have or had the key alone, nobody else has it.
 * The end of an execution forgets the request, so the last holder may be the caller itself.
 */
export function lostReason(record: PoolRecord, { name, path }: Pick<PoolEntry, 'name' | 'path'>): LostReason {
  const how = ending(record, name);
  if (how) return how;
  const hadOther = record.last !== undefined && isRemembered(record.last.ended);
  const isTaken = path === ALONE && (record.entries.length > 0 || hadOther || record.thirdParty !== undefined);
  return isTaken ? 'taken' : 'unknown';
}

/** Names the present holder if it has the key alone, but not a caller that has its own grant still. */
export function permitLost(key: string, reason: LostReason | 'cancelled', record?: PoolRecord): HoldfastError {
  const holder = reason === 'broken' ? undefined : record?.entries.find(({ path }) => path === ALONE)?.holder;
  const detail =
    reason === 'cancelled'
      ? 'an operator cancelled the waiter, or the caller withdrew it'
      : `the grant is no longer yours (${reason}): stop the work under the grant`;
  return new HoldfastError('LeaseLost', detail, { key, reason, holder: holder ?? null });
}
