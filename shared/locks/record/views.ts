import type { Json } from '../../aws/attributes.ts';
import { instant } from '../../surroundings/clock.ts';
import { type CapView, type KEY_STATES, type Previous, previousView } from '../calls/types.ts';
import type { WaiterView } from '../line/listed-waiters.ts';
import { capAt, capView } from './capped.ts';
import { type HolderView, holderView, instantOrNull, limitOf, thirdPartyView, weightShown } from './outcomes.ts';
import { byEnd, type HolderEntry, isBound, type KeyRecord, type ThirdParty } from './record.ts';

// What readers see of a key. contract/answers/leases.ts explains each field.

type KeyState = (typeof KEY_STATES)[number];

interface GrantTerms {
  acquiredAt: string | null;
  remainingMs: number | null;
  ttlSeconds: number | null;
  execution: string | null;
  bound: boolean;
  inGrace: boolean;
  ending: boolean;
  brokenAt: string | null;
  brokenBy: string | null;
  supersededBy?: string;
  data: Json;
}

export interface FullHolderView extends HolderView, GrantTerms {
  state: 'held' | 'expired';
}

/**
 * A key with one holder shown in place of all: the exclusive holder, or the shared holder whose grant ends first. A key
 * without a holder shows the last exclusive holder.
 */
export interface KeySummary extends GrantTerms {
  key: string;
  state: KeyState;
  holder: string | null;
  fence: number | null;
  expiresAt: string | null;
}

interface KeyUse {
  used: number;
  limit: number | null;
  /** The cap of an operator, while it counts. */
  cap?: CapView;
}

export interface KeyView extends KeySummary, KeyUse {
  limitBy: string | null;
  holders: FullHolderView[];
  /** The holder before the shown one. Null unless the shown holder received its grant in line. */
  previous: Previous | null;
  hasRecord: boolean;
  /** How many tasks and callers are in line. The count stops at 100, or at the limit of `waiters` if that is more. */
  waiting: number;
  waiters?: WaiterView[];
}

/** One key of a list. It shows the oldest holder or, with the sort `expiry`, the holder whose grant ends first. */
export interface ListedKey extends KeySummary, KeyUse {
  holders: number;
  /**
   * An upper bound on how many tasks and callers are in line. The hints of the record also count some that have left;
   * an exact count would cost a query for each row.
   */
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
  ...(entry.newer !== undefined && { supersededBy: entry.newer }),
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

export interface Chosen {
  /** The name of the holder, if only one is wanted. */
  holder?: string | undefined;
  /** `end`, the default, for the holder whose grant ends first, or `age` for the oldest holder. */
  by?: 'end' | 'age' | undefined;
}

/** Chooses among the holders that have not expired, or among all if all of them have. */
function chosenEntry({ entries }: KeyRecord, now: number, { holder, by }: Chosen): HolderEntry | undefined {
  const wanted = entries.filter((entry) => holder === undefined || entry.holder === holder);
  const sorted = wanted.toSorted(by === 'age' ? byAge : byEnd);
  return sorted.find(({ expiresAt }) => expiresAt > now) ?? sorted[0];
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

/** Shows the last exclusive holder or, if there was none, only the fence of the last grant. */
function withoutHolder({ last, lastTerms, fence }: KeyRecord): Partial<KeySummary> {
  if (!last) return { fence: fence ?? null };
  const { acquiredAt, brokenAt, data = null } = lastTerms ?? {};
  return {
    ...{ state: 'released', holder: last.holder, fence: last.fence, acquiredAt: instantOrNull(acquiredAt), data },
    ...{ brokenAt: instantOrNull(brokenAt), brokenBy: last.by ?? null },
  };
}

function useOf(record: KeyRecord, now: number): KeyUse {
  const cap = capAt(record, { now, clockSkewMs: 0 });
  return {
    used: record.thirdParty ? 1 : weightShown(record.used),
    limit: limitOf(record),
    ...(cap && { cap: capView(cap) }),
  };
}

export function keyView(record: KeyRecord, now: number): Omit<KeyView, 'waiting' | 'waiters'> {
  const { entries, thirdParty, limitBy, hasRecord } = record;
  const use = useOf(record, now);
  const holders = entries.toSorted(byAge).map((entry) => fullHolderView(entry, now));
  const previous = entries.length > 0 ? chosenEntry(record, now, {})?.previous : record.previous;
  return {
    ...keySummary(record, now),
    holders: thirdParty ? [...holders, fullThirdPartyView(thirdParty, now)] : holders,
    ...use,
    limitBy: use.limit === null ? null : (limitBy ?? null),
    previous: previousView(previous),
    hasRecord,
  };
}

export const listedKey = (record: KeyRecord, now: number, chosen: Chosen): Omit<ListedKey, 'waiting'> => ({
  ...keySummary(record, now, chosen),
  ...useOf(record, now),
  holders: record.entries.length + (record.thirdParty ? 1 : 0),
});
