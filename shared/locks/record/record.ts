import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import { type Json, jsonOfText, number } from '../../aws/attributes.ts';
import type { Item } from '../../aws/dynamodb.ts';
import { HoldfastError } from '../../errors.ts';
import { isInstant } from '../../surroundings/clock.ts';
import { ENDINGS, type EndedGrant, parseEnded, type Replace } from '../calls/types.ts';
import { type Cap, parseCap } from './capped.ts';
import {
  EXCLUSIVE_PATH,
  EXCLUSIVE_WEIGHT,
  type LastTerms,
  lastHolderOf,
  lastTermsOf,
  RING_INDEXES,
} from './identity.ts';

/** The grant of one holder. Instants are epoch milliseconds. */
export interface HolderEntry {
  /** The name of the request on the record (`nameOfRequest`). */
  name: string;
  /** The attribute that stores this entry (`pathOf`). */
  path: string;
  /** The secret in the lease id. */
  id: string;
  version: string;
  holder: string;
  expiresAt: number;
  ttlMs: number;
  acquiredAt: number;
  /** When the grant was made or last extended: `expiresAt - ttlMs`. */
  heartbeatAt: number;
  weight: number;
  fence: number;
  data?: Json | undefined;
  /** The ARN of the execution that holds the grant. The grant ends with that execution. */
  execution?: string | undefined;
  /** The ARN of the execution that works under the grant. */
  target?: string | undefined;
  /** How long the grant lasts after its execution has ended abnormally, in milliseconds. */
  graceMs?: number | undefined;
  /** Whether the grant has no ttl, and lasts as long as `execution`. */
  bound?: boolean | undefined;
  /**
   * The version that a bound grant had when the schedule found its task gone. Any later write changes `version`, so the
   * grant counts as unnotified only while the two are equal.
   */
  unnotifiedVersion?: string | undefined;
  /** The ARN of an execution that held the grant and has ended. Since then the grant has a ttl (`giveGrace`). */
  endedExecution?: string | undefined;
  /** The ticket of the waiter that received the grant, if the grant came from the line. */
  ticket?: string | undefined;
  /** The holder before. The hand-off stores it, because another call answers with the grant. */
  previous?: EndedGrant | undefined;
  /** Whether the record had no fence, so the grant's may be too low (docs/protocols/locks.md#late-grants). */
  metNoFence?: boolean | undefined;
  /** The ttl that a call in line asked for. Absent once the call has claimed its grant. */
  claimTtlMs?: number | undefined;
  /**
   * When a call last answered with the grant, or a task received it. Stored only if the grant came from the line or
   * names an execution.
   */
  answeredAt?: number | undefined;
  /** The limit on record before the grant, if the grant came from the line and named another limit. */
  limitBefore?: number | undefined;
  /** Whether an operator or a newer request has asked the holder to stop. From then on no call extends the grant. */
  isEnding?: boolean;
  endingAt?: number | undefined;
  /** The authenticated operator that broke the grant with `wait`. */
  brokenBy?: string | undefined;
  /** `running` if a newer request may ask the holder to stop. */
  replace?: Replace | undefined;
  /** The holder of the newer request that has asked this holder to stop. */
  newer?: string | undefined;
}

export type BoundEntry = HolderEntry & { execution: string };

export const isBound = (entry: HolderEntry): entry is BoundEntry =>
  entry.execution !== undefined && entry.bound === true;

/** Whether the task of a bound grant may not have been notified of it. */
export const isUnnotified = (entry: HolderEntry): entry is BoundEntry =>
  isBound(entry) && entry.unnotifiedVersion === entry.version;

/** The lease that a third-party client, such as the Rust crate, has on the record. Such a record has no entries. */
export interface ThirdParty {
  version: AttributeValue;
  /** The first millisecond after the lease, which the crate counts in seconds. Infinite if the record does not say. */
  endsAt: number;
}

/** The record of a key (docs/protocols/records.md#the-record-of-a-key). */
export interface KeyRecord {
  key: string;
  hasRecord: boolean;
  /** The weight of all entries, expired ones included. */
  used: number;
  /** False if there is no record, if it has only a mark, or if a third-party client wrote it. */
  hasUsed: boolean;
  thirdParty: ThirdParty | undefined;
  /**
   * Whether third-party clients may take the key too. They may after the end of an exclusive grant, but not after the
   * last shared grant.
   */
  isFreeForThirdParties: boolean;
  /** The fence of the last grant. */
  fence: number | undefined;
  entries: HolderEntry[];
  /** The last holder, if its grant was exclusive and has ended. */
  last: EndedGrant | undefined;
  lastTerms: LastTerms | undefined;
  /** The holder before the current exclusive holder, if the record names one. */
  previous: EndedGrant | undefined;
  /**
   * The requests that the record remembers, and how they ended: `broken` is the fence of a grant that an operator
   * broke, `newer` the holder whose newer request superseded this one. With neither, the grant was released.
   */
  ring: { name: string | undefined; broken: number | undefined; newer?: string | undefined }[];
  /** The newest request that joined the line with `replace` (../line/replace.ts reads it). */
  latest: Item | undefined;
  /** The limit that the last shared grant named. `limitBy` is its holder, and `limitBefore` the limit before. */
  lastLimit: number | undefined;
  limitBy: string | undefined;
  limitBefore: number | undefined;
  /** The mark, as it was read. Present while a caller or a task is in line, and different after each arrival. */
  mark: AttributeValue | undefined;
  /** A hint: how many waiters have joined since the mark was last removed. */
  arrivals: number | undefined;
  /** A hint: the ticket of the next waiter. */
  nextTicket: string | undefined;
  /** A hint: the short names of the first waiters, the next waiter first. */
  nextTickets: string | undefined;
  /** Hints: how long the last holder kept its grant until the release, and how long holders keep theirs. */
  turnMs: number | undefined;
  paceMs: number | undefined;
  /** Hints: the usual turn, which a few long turns hardly change, and the mean turn. */
  usualMs: number | undefined;
  meanMs: number | undefined;
  /** When a grant was last released or broken. */
  freedAt: number | undefined;
  /** Hints: the `freedAt` before the last release, and the weight in use before it. */
  freedBefore: number | undefined;
  usedBefore: number | undefined;
  /** When a call last looked at the executions of holders, and the lowest fence of the last execution in that look. */
  lookedAt: number | undefined;
  lookedToFence: number | undefined;
  /** When the latest delayed repair starts (../line/delayed-repair.ts). */
  repairAt: number | undefined;
  /** A hint: how many of the arrivals have left. Without a mark, minus the number of callers that may come back. */
  lineOut: number | undefined;
  /** A hint: until when those callers may come back. */
  lineUntil: number | undefined;
  /** The ticket of the waiter that an operator has moved to the front, and the operator. */
  moved: string | undefined;
  movedBy: string | undefined;
  movedAt: number | undefined;
  cap: Cap | undefined;
  /** When an operator last set or lifted a cap. */
  capAt: number | undefined;
  /** The first attribute that conditions compare and that another client wrote with a wrong type. */
  malformed: string | undefined;
}

const ENTRY = /^h([\w-]{16})$/;

/**
 * Parses the record of a key. An attribute of another shape counts as absent.
 * @param found undefined if the key has no record
 */
export function parseKey(key: string, found: Item | undefined): KeyRecord {
  const item = found ?? {};
  return {
    key,
    hasRecord: found !== undefined,
    used: number(item, 'used') ?? 0,
    hasUsed: item.used !== undefined,
    thirdParty: thirdPartyOf(item),
    isFreeForThirdParties: item.lease_version === undefined,
    fence: number(item, 'fence'),
    entries: [
      ...(parseExclusive(item) ?? []),
      ...Object.entries(item).flatMap(([path, value]) => {
        const name = ENTRY.exec(path)?.[1];
        return (name && parseEntry({ name, path }, value.M, number(item, `f${name}`))) || [];
      }),
    ],
    last: lastHolderOf(item),
    lastTerms: lastTermsOf(item),
    previous: previousIn(item),
    ring: [
      ...lastRequest(item),
      ...RING_INDEXES.map((slot) => {
        const how = `b${slot}`;
        return {
          name: item[`r${slot}`]?.S,
          broken: number(item, how),
          newer: item[how]?.S?.match(/^s(.*)/s)?.[1],
        };
      }),
    ],
    latest: item.latest?.M,
    lastLimit: number(item, 'last_limit'),
    limitBy: item.limit_by?.S,
    limitBefore: number(item, 'limit_before'),
    mark: item.mark,
    arrivals: number(item, 'arrivals'),
    nextTicket: item.next_ticket?.S,
    nextTickets: item.next_tickets?.S,
    turnMs: lastTurnMs(item),
    paceMs: number(item, 'pace_ms'),
    usualMs: number(item, 'usual_ms'),
    meanMs: number(item, 'mean_ms'),
    freedAt: number(item, 'freed_at'),
    freedBefore: number(item, 'freed_before'),
    usedBefore: number(item, 'used_before'),
    lookedAt: number(item, 'looked_at'),
    lookedToFence: number(item, 'looked_to'),
    repairAt: number(item, 'repair_at'),
    lineOut: number(item, 'line_out'),
    lineUntil: number(item, 'line_until'),
    moved: item.moved?.S,
    movedBy: item.moved_by?.S,
    movedAt: number(item, 'moved_at'),
    cap: parseCap(item),
    capAt: number(item, 'cap_at'),
    malformed: found && malformedAttribute(found),
  };
}

function thirdPartyOf(item: Item): ThirdParty | undefined {
  if (item.used !== undefined || item.lease_version === undefined) return undefined;
  const endsAt = (number(item, 'lease_expiry') ?? Number.POSITIVE_INFINITY) * 1000 + 1000;
  return { version: item.lease_version, endsAt: isInstant(endsAt) ? endsAt : Number.POSITIVE_INFINITY };
}

/** How long the last turn took. At least 0: if two clocks differ, a turn may seem to end before it began. */
function lastTurnMs(item: Item): number | undefined {
  const entry = item[EXCLUSIVE_PATH]?.M;
  const isReleased = entry?.p?.S === 'released';
  const turnMs = isReleased ? Number(item.freed_at?.N) - Number(entry.a?.N) : number(item, 'turn_ms');
  return turnMs === undefined ? undefined : Math.max(0, turnMs);
}

/**
 * The fence and the execution of an exclusive holder are attributes of the record itself, because the index
 * `by-execution` needs the execution there.
 */
function parseExclusive(item: Item): [HolderEntry] | undefined {
  const map = item[EXCLUSIVE_PATH]?.M;
  const name = map?.m?.S;
  const entry = name && parseEntry({ name, path: EXCLUSIVE_PATH }, map, number(item, 'fence'));
  const metNoFence = map?.f?.BOOL === true;
  return entry ? [{ ...entry, execution: item.execution?.S, previous: previousIn(item), metNoFence }] : undefined;
}

/** The holder before an exclusive grant. Without `q`, the attributes are left over from an earlier grant. */
const previousIn = (item: Item): EndedGrant | undefined => (item[EXCLUSIVE_PATH]?.M?.q ? parseEnded(item) : undefined);

/** The request of the last exclusive holder, which its entry remembers in place of the ring. */
function lastRequest(item: Item): KeyRecord['ring'] {
  const map = item[EXCLUSIVE_PATH]?.M;
  if (!map?.m || map.i) return [];
  return [{ name: map.m.S, broken: map.p?.S === 'broken' ? number(item, 'fence') : undefined }];
}

function parseEntry(
  nameAndPath: Pick<HolderEntry, 'name' | 'path'>,
  map: Item | undefined,
  fence: number | undefined,
): HolderEntry | undefined {
  const [id, version, holder] = [map?.i?.S, map?.v?.S, map?.h?.S];
  const [expiresAt, heartbeatAt, ttlMs, acquiredAt, weight] = ['e', 'b', 't', 'a', 'w'].map((part) =>
    number(map ?? {}, part),
  );
  const isFull = [expiresAt, heartbeatAt, ttlMs, acquiredAt].every((value) => value !== undefined && isInstant(value));
  if (!isFull || fence === undefined || weight === undefined) return undefined;
  if (id === undefined || version === undefined || holder === undefined) return undefined;
  const times = { expiresAt, ttlMs, acquiredAt, heartbeatAt } as Pick<
    HolderEntry,
    'expiresAt' | 'ttlMs' | 'acquiredAt' | 'heartbeatAt'
  >;
  const terms = { data: jsonOfText(map?.d?.S), execution: map?.x?.S, target: map?.y?.S };
  const grace = { graceMs: number(map ?? {}, 'n'), endedExecution: map?.g?.S };
  const bound = { bound: map?.z?.BOOL === true, unnotifiedVersion: map?.j?.S };
  const fromLine = {
    ticket: map?.k?.S,
    claimTtlMs: number(map ?? {}, 'c'),
    answeredAt: number(map ?? {}, 'r'),
    previous: parsePrevious(map?.q?.M),
    limitBefore: number(map ?? {}, 'l'),
  };
  const stop = { isEnding: map?.s !== undefined, endingAt: number(map ?? {}, 's'), brokenBy: map?.o?.S };
  const replaced = { replace: map?.R && ('running' as const), newer: map?.S?.S };
  return {
    ...nameAndPath,
    id,
    version,
    holder,
    ...times,
    weight,
    fence,
    ...terms,
    ...grace,
    ...bound,
    ...fromLine,
    ...stop,
    ...replaced,
  };
}

function parsePrevious(map: Item = {}): EndedGrant | undefined {
  const [holder, ended] = [map.h?.S, ENDINGS.find((known) => known === map.e?.S)];
  const [fence, at] = [number(map, 'f'), number(map, 'a')];
  if (holder === undefined || ended === undefined || fence === undefined || at === undefined) return undefined;
  return isInstant(at) ? { holder, fence, ended, at } : undefined;
}

/** The first attribute with a wrong type, of those that the write of a grant compares or adds to. */
const malformedAttribute = (item: Item): string | undefined =>
  (
    [
      ['used', Number.POSITIVE_INFINITY],
      ...['fence', 'freed_at', 'arrivals', 'line_out', 'cap'].map((name) => [name, MAX_FENCE] as const),
    ] as const
  ).find(([name, most]) => item[name] && !(Number(item[name].N) < most))?.[0];

/** The highest fence. Above it, two fences could read as the same number. Clocks are some thousand times lower. */
export const MAX_FENCE = Number.MAX_SAFE_INTEGER - 1000;

/**
 * The error for a malformed record. No condition ever holds on such a record, so a call that kept trying would use up
 * its whole time.
 * @param entry the attribute at fault, if `malformed` does not name one
 */
export function unusable(
  { key, malformed }: Pick<KeyRecord, 'key' | 'malformed'>,
  entry = 'an attribute',
  cause?: unknown,
): HoldfastError {
  const detail = `a third-party client wrote a record that is not valid: an operator must correct ${malformed ?? entry}`;
  return new HoldfastError('Unavailable', detail, { key, retryAfterMs: 1000, ...(cause !== undefined && { cause }) });
}

export const entryOf = ({ entries }: KeyRecord, requestName: string): HolderEntry | undefined =>
  entries.find((entry) => entry.name === requestName);

/** The request's current grant: not ending, and not expired unless the request has yet to claim it. */
export function ownGrantOf(record: KeyRecord, requestName: string, now: number): HolderEntry | undefined {
  const ownEntry = entryOf(record, requestName);
  return ownEntry && !ownEntry.isEnding && (ownEntry.claimTtlMs !== undefined || ownEntry.expiresAt > now)
    ? ownEntry
    : undefined;
}

/** Sorts entries by their expiry and then by age, because DynamoDB does not keep attributes in an order. */
export const byEnd = (one: HolderEntry, other: HolderEntry): number =>
  one.expiresAt - other.expiresAt || one.fence - other.fence;

/** How the request's grant ended, if the record remembers that, or why it is ending. */
export function endOfRequest(record: KeyRecord, requestName: string): 'released' | 'broken' | 'superseded' | undefined {
  const entry = entryOf(record, requestName);
  if (entry?.isEnding) return whyEnding(entry);
  const slot = record.ring.find((remembered) => remembered.name === requestName);
  return slot?.broken === undefined && slot?.newer === undefined ? slot && 'released' : whyEnding(slot);
}

/** Why a grant is ending, or why a request never received one. */
export const whyEnding = ({ newer }: Pick<HolderEntry, 'newer'>): 'broken' | 'superseded' =>
  newer === undefined ? 'broken' : 'superseded';

export interface NewGrant {
  /** The name of the request on the record (`nameOfRequest`). */
  name: string;
  holder: string;
  ttlMs: number;
  /** Null if the caller wants the key alone. */
  limit: number | null;
  weight: number;
  room: number;
  data?: Json | undefined;
  execution?: string | undefined;
  target?: string | undefined;
  /** 0 and undefined mean the same. */
  graceMs?: number | undefined;
  /** Whether the grant lasts as long as `execution` (docs/protocols/bound.md). */
  bound?: boolean | undefined;
  ticket?: string | undefined;
  /** The holder before, for a grant from the line. */
  previous?: EndedGrant | undefined;
  claimTtlMs?: number | undefined;
  /** The limit on record before, for a grant from the line that names another limit. */
  limitBefore?: number | undefined;
  replace?: Replace | undefined;
}

export const isExclusiveGrant = ({ weight }: Pick<NewGrant, 'weight'>): boolean => weight >= EXCLUSIVE_WEIGHT;
