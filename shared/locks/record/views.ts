import type { Json } from '../../aws/attributes.ts';
import { instant, type KEY_STATES, type Previous, previousView } from '../calls/types.ts';
import type { WaiterView } from '../line/listed-waiters.ts';
import { type HolderView, holderView, instantOrNull, limitOf, thirdPartyView, weightShown } from './outcomes.ts';
import { byEnd, type HolderEntry, isBound, type KeyRecord, type ThirdParty } from './record.ts';

type KeyState = (typeof KEY_STATES)[number];

interface GrantTerms {
  acquiredAt: string | null;
  remainingMs: number | null;
  /** What each heartbeat extends it by. */
  ttlSeconds: number | null;
  /** The ARN of the execution that holds it, or held it when that execution ended. */
  execution: string | null;
  /** Whether the grant lasts as long as that execution. */
  bound: boolean;
  /** Whether that execution has ended, and the grant goes on as an ordinary grant. */
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

const fullHolderView = (entry: HolderEntry, now: number): FullHolderView => ({
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

/** Chooses among the holders that have not expired, or among all if all have. */
function chosenEntry({ entries }: KeyRecord, now: number, { holder, by }: Chosen): HolderEntry | undefined {
  const own = entries.filter((entry) => holder === undefined || entry.holder === holder);
  const shown = own.toSorted(by === 'age' ? byAge : byEnd);
  return shown.find(({ expiresAt }) => expiresAt > now) ?? shown[0];
}

const byAge = (one: HolderEntry, other: HolderEntry): number => one.fence - other.fence;

export function keySummary(record: KeyRecord, now: number, chosen: Chosen = {}): KeySummary {
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

/** Shows the last exclusive holder. If there was none, only the fence of the last grant. */
function withoutHolder({ last, lastTerms, fence }: KeyRecord): Partial<KeySummary> {
  if (!last) return { fence: fence ?? null };
  const { acquiredAt, brokenAt, data = null } = lastTerms ?? {};
  return {
    ...{ state: 'released', holder: last.holder, fence: last.fence, acquiredAt: instantOrNull(acquiredAt), data },
    ...{ brokenAt: instantOrNull(brokenAt), brokenBy: last.by ?? null },
  };
}

const roomOf = (record: KeyRecord): Room => ({
  used: record.thirdParty ? 1 : weightShown(record.used),
  limit: limitOf(record),
});

export function keyView(record: KeyRecord, now: number): Omit<KeyView, 'waiting' | 'waiters'> {
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

export const listedKey = (record: KeyRecord, now: number, chosen: Chosen): Omit<ListedKey, 'waiting'> => ({
  ...keySummary(record, now, chosen),
  ...roomOf(record),
  holders: record.entries.length + (record.thirdParty ? 1 : 0),
});
