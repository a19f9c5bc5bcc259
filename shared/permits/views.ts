import type { Json } from '../aws/attributes.ts';
import { HoldfastError } from '../errors.ts';
import type { LeaseGrant, LostReason, Mode } from '../line/calls.ts';
import type { WaiterView } from '../line/listed-waiters.ts';
import { ASK_EVERY_MS } from '../line/times.ts';
import { isInstant } from '../surroundings/clock.ts';
import { leaseIdOf } from './identity.ts';
import { EXCLUSIVE_WEIGHT } from './modes.ts';
import { byEnd, ending, isBound, type PoolEntry, type PoolRecord } from './record.ts';
import { type Asked, roomAt, weightInUse } from './room.ts';

const modeOf = (weight: number): Mode => (weight < EXCLUSIVE_WEIGHT ? 'shared' : 'exclusive');

/** What LeaseHeld says about each holder. */
export interface HolderView {
  holder: string;
  fence: number;
  mode: Mode;
  weight: number;
  /** ISO 8601, like all instants. */
  expiresAt: string;
}

/** What every reader may see of one holder. */
export interface PermitView extends HolderView {
  state: 'held' | 'expired';
  acquiredAt: string;
  remainingMs: number;
  /** What each heartbeat extends it by. */
  ttlSeconds: number;
  /** The ARN of the execution that holds it, or held it when that execution ended. */
  execution: string | null;
  /** Whether the permit lasts as long as that execution. */
  bound: boolean;
  /** Whether that execution has ended, and the permit goes on as an ordinary permit (grace.ts). */
  inGrace: boolean;
  /** Whether an operator broke it, and it stays until its holder releases it or its ttl ends. */
  ending: boolean;
  /** When an operator broke the permit, and the authenticated operator: an IAM ARN, or the subject of a JWT. Null if the record does not say. */
  brokenAt: string | null;
  brokenBy: string | null;
  data: Json;
}

/** What every reader may see of a pool. */
export interface PoolView {
  kind: 'pool';
  key: string;
  /** The weight of all holders, with expired holders whose room no caller has needed. */
  used: number;
  /** The limit that the last grant named. Null if no grant has named one. */
  limit: number | null;
  /** The holder whose grant named that limit. Null if the record does not say. */
  limitBy: string | null;
  /** The holders in the order of their grants. */
  holders: PermitView[];
  /** How many tasks and callers are in line, counted up to 100, or up to the limit of `waiters` where that is more. */
  waiting: number;
  /** The oldest of those, if the caller asked for them. */
  waiters?: WaiterView[];
}

const instant = (epochMs: number): string => new Date(epochMs).toISOString();

export function permitGrant(key: string, entry: PoolEntry, now: number): LeaseGrant {
  const { name, id, version, holder, fence, acquiredAt, expiresAt, data } = entry;
  return {
    key,
    holder,
    leaseId: leaseIdOf({ name, id }),
    version,
    fence,
    acquiredAt: instant(acquiredAt),
    expiresAt: instant(expiresAt),
    remainingMs: Math.max(0, expiresAt - now),
    ...(isBound(entry) && { bound: true }),
    ...(data !== undefined && { data }),
  };
}

/** The fields of an answer that only permits have. */
export const permitTerms = (
  { weight }: PoolEntry,
  { used, limit, limitBefore }: { used: number; limit: number | null; limitBefore: number | undefined },
) => ({
  ...{ mode: modeOf(weight), limit, weight, used },
  ...(limit !== null &&
    limitBefore !== undefined &&
    limitBefore !== limit && { limitChanged: { from: limitBefore, to: limit } }),
});

const holderView = ({ holder, fence, weight, expiresAt }: PoolEntry): HolderView => ({
  holder,
  fence,
  mode: modeOf(weight),
  weight,
  expiresAt: instant(expiresAt),
});

const permitView = (entry: PoolEntry, now: number): PermitView => ({
  ...holderView(entry),
  state: entry.expiresAt > now ? 'held' : 'expired',
  acquiredAt: instant(entry.acquiredAt),
  remainingMs: Math.max(0, entry.expiresAt - now),
  ttlSeconds: entry.ttlMs / 1000,
  execution: entry.execution ?? entry.endedExecution ?? null,
  bound: isBound(entry),
  inGrace: entry.execution === undefined && entry.endedExecution !== undefined,
  ending: entry.isEnding === true,
  brokenAt: entry.endingAt !== undefined && isInstant(entry.endingAt) ? instant(entry.endingAt) : null,
  brokenBy: entry.brokenBy ?? null,
  data: entry.data ?? null,
});

export function poolView(
  { key, used, lastLimit, limitBy, entries }: PoolRecord,
  now: number,
): Omit<PoolView, 'waiting' | 'waiters'> {
  const holders = entries.toSorted(byAge).map((entry) => permitView(entry, now));
  return { kind: 'pool', key, used, limit: lastLimit ?? null, limitBy: limitBy ?? null, holders };
}

/** Sorts permits by their ends. Those that have ended, and whose room no caller has needed, come last. */
const byNextEnd = (now: number) => (one: PoolEntry, other: PoolEntry) =>
  Number(one.expiresAt <= now) - Number(other.expiresAt <= now) || byEnd(one, other);

/** Which permit stands for all of a pool. */
export interface Chosen {
  /** Only a permit of this holder. */
  holder?: string | undefined;
  /** The permit that ends first, which is the default, or the oldest permit. */
  by?: 'end' | 'age' | undefined;
}

/** The permit that a list of keys shows of a pool. If one of them has not expired, it is one of those. */
export function chosenPermit({ key, entries }: PoolRecord, now: number, { holder, by }: Chosen) {
  const own = entries.filter((entry) => holder === undefined || entry.holder === holder);
  const shown = own.toSorted(by === 'age' ? byAge : byEnd);
  const first = shown.find(({ expiresAt }) => expiresAt > now) ?? shown[0];
  if (!first) return { ...EMPTY, key };
  const { mode: _, weight: __, ...permit } = permitView(first, now);
  return { key, ...permit };
}

const byAge = (one: PoolEntry, other: PoolEntry): number => one.fence - other.fence;

const EMPTY = {
  ...{ state: 'free' as const, holder: null, fence: null, acquiredAt: null, expiresAt: null, remainingMs: null },
  ...{ ttlSeconds: null, execution: null, bound: false, inGrace: false, ending: false },
  ...{ brokenAt: null, brokenBy: null, data: null },
};

/** LeaseHeld lists up to this many holders. */
const MOST_TOLD = 10;

interface Held {
  asked: Asked & { limit: number | null };
  now: number;
  clockSkewMs: number;
}

/** When the lease of a third-party client ends. Null if there is none, or its record does not say. */
const thirdPartyEnd = ({ thirdParty }: PoolRecord): string | null =>
  thirdParty && Number.isFinite(thirdParty.endsAt) ? instant(thirdParty.endsAt) : null;

/** `holder`, `fence` and `expiresAt` are those of the permit that ends first, or of an expired permit if all have expired. */
export function poolHeld(record: PoolRecord, { asked, now, clockSkewMs }: Held): HoldfastError {
  const holders = record.entries.toSorted(byNextEnd(now)).slice(0, MOST_TOLD);
  const [first] = holders.map(holderView);
  const room = roomAt(record, asked, clockSkewMs);
  const roomInMs = Number.isFinite(room) ? Math.max(1, room - now) : 1000;
  const most = asked.limit === null ? 'the call needs the key alone' : `the limit is ${asked.limit}`;
  const isInLine = record.mark !== undefined && room <= now;
  const why = isInLine ? 'other waiters are in line' : 'there is no room';
  // A third-party client has the key alone.
  const used = weightInUse(record, { now, clockSkewMs });
  const detail = `${why}: the holders weigh ${used}, and ${most}`;
  return new HoldfastError('LeaseHeld', detail, {
    key: record.key,
    holder: first?.holder ?? null,
    fence: first?.fence ?? null,
    expiresAt: first?.expiresAt ?? thirdPartyEnd(record),
    used,
    limit: asked.limit,
    holders: holders.map(holderView),
    // Others took the room in between, and it may be free again.
    retryAfterMs: record.entries.some(isBound) ? Math.min(roomInMs, ASK_EVERY_MS) : roomInMs,
  });
}

/** An entry that others took over leaves nothing behind. So the record knows only ends by release and break. */
export const lostReason = (record: PoolRecord, name: string): Exclude<LostReason, 'taken'> =>
  ending(record, name) ?? 'unknown';

export const permitLost = (key: string, reason: LostReason | 'cancelled'): HoldfastError =>
  new HoldfastError(
    'LeaseLost',
    reason === 'cancelled'
      ? 'an operator cancelled the waiter, or the caller withdrew it'
      : `the permit is no longer yours (${reason}): stop the work under the permit`,
    { key, reason, holder: null },
  );
