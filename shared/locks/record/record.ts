import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import { type Json, jsonOfText, number } from '../../aws/attributes.ts';
import type { Item } from '../../aws/dynamodb.ts';
import { HoldfastError } from '../../errors.ts';
import { isInstant } from '../../surroundings/clock.ts';
import { ENDINGS, type EndedGrant, parseEnded, type Replace } from '../calls/types.ts';
import { type Cap, parseCap } from './capped.ts';
import { ALONE, EXCLUSIVE_WEIGHT, type LastTerms, lastHolderOf, lastTermsOf, RING_SLOTS } from './identity.ts';

/** The grant of one holder. Instants are epoch milliseconds. */
export interface HolderEntry {
  name: string;
  /** The attribute of the entry. */
  path: string;
  id: string;
  version: string;
  holder: string;
  expiresAt: number;
  ttlMs: number;
  acquiredAt: number;
  /** `expiresAt - ttlMs`: the moment of the grant or of its last heartbeat. */
  beatAt: number;
  weight: number;
  fence: number;
  data?: Json | undefined;
  /** The ARN of the execution that holds the grant. Its end frees the grant. */
  execution?: string | undefined;
  /** The ARN of the execution that works under the grant. */
  target?: string | undefined;
  /** How long the grant goes on after an abnormal end of its execution, in milliseconds. */
  graceMs?: number | undefined;
  /** Whether the grant lasts as long as `execution`. */
  bound?: boolean | undefined;
  /** The version that a bound grant had when the schedule found its task gone. A later write on the grant sets another version, so the two differ then. */
  unnotifiedVersion?: string | undefined;
  /** The ARN of the execution that ended while it held the grant, which goes on as an ordinary grant (`giveGrace` in ../executions/ended.ts). */
  endedExecution?: string | undefined;
  /** The ticket that received a grant from the line. */
  ticket?: string | undefined;
  /** The holder before a grant from the line, for the call that answers. */
  previous?: EndedGrant | undefined;
  /** Whether the grant met no fence, so that its own may be too low (docs/protocols/locks.md#late-grants). */
  metNoFence?: boolean | undefined;
  /** The ttl that a call in line asked for, until it claims its grant. */
  claimTtlMs?: number | undefined;
  /** When a call was answered with a grant from the line, or a task of the request received it. Each repeat writes it too if the grant names an execution. */
  answeredAt?: number | undefined;
  /** Of a grant from the line: the limit on record before, if it was another. */
  limitBefore?: number | undefined;
  /** Whether an operator has marked it as ending: no call extends it, and it stays until its holder releases it or its ttl ends. */
  isEnding?: boolean;
  /** When an operator broke the grant with `wait`, and which authenticated operator. */
  endingAt?: number | undefined;
  brokenBy?: string | undefined;
  /** `running`: a newer request may ask the holder to stop. */
  replace?: Replace | undefined;
  /** The holder of the newer request that has asked this one to stop. The grant is then ending. */
  newer?: string | undefined;
}

/** A grant that lasts as long as its execution. */
export type BoundEntry = HolderEntry & { execution: string };

export const isBound = (entry: HolderEntry): entry is BoundEntry =>
  entry.execution !== undefined && entry.bound === true;

/** Perhaps no task was notified of the grant. */
export const isUnnotified = (entry: HolderEntry): entry is BoundEntry =>
  isBound(entry) && entry.unnotifiedVersion === entry.version;

/** The lease of a third-party client, such as the Rust crate, on a record without holders of ours. */
export interface ThirdParty {
  version: AttributeValue;
  /** The first millisecond after its lease. The crate compares whole seconds. Infinite if the record does not say. */
  endsAt: number;
}

/** The record of a key (docs/protocols/records.md#the-record-of-a-key). */
export interface KeyRecord {
  key: string;
  hasRecord: boolean;
  /** The weight of all entries. */
  used: number;
  /** False if there is no record, only a mark, or the lease of a third-party client. */
  hasUsed: boolean;
  thirdParty: ThirdParty | undefined;
  /** Whether every client of the table may take the key: the end of an exclusive grant leaves it so. */
  isFree: boolean;
  /** The fence of the last grant. */
  fence: number | undefined;
  entries: HolderEntry[];
  /** The last exclusive holder, if its grant was the last of the key and has ended. */
  last: EndedGrant | undefined;
  /** What readers see of that holder besides. */
  lastTerms: LastTerms | undefined;
  /** The holder before the exclusive holder, if the record names one. */
  previous: EndedGrant | undefined;
  /**
   * How the requests ended that the record remembers. A slot with a fence is of a grant that an operator broke. One with a holder is of a request that
   * the newer request of that holder has superseded.
   */
  ring: { name: string | undefined; broken: number | undefined; newer?: string | undefined }[];
  /** The newest request that joined the line by `replace` (../line/replace.ts reads it). */
  latest: Item | undefined;
  /** The limit that the last grant named, the holder of that grant, and the limit before. */
  lastLimit: number | undefined;
  limitBy: string | undefined;
  limitBefore: number | undefined;
  /** The mark, as it was read. It is there while a caller or a task is in line, and each arrival gives it a new value. */
  mark: AttributeValue | undefined;
  /** A hint: how many came to the line since the mark was last removed. */
  arrivals: number | undefined;
  /** The ticket of the next in line, as it was last noted. */
  nextTicket: string | undefined;
  /** The names of the first in line, as they were last noted. */
  nextTickets: string | undefined;
  /** Hints: how long the last holder that released its grant had it, and how long holders have theirs in general. */
  turnMs: number | undefined;
  paceMs: number | undefined;
  /** Hints: the usual turn, on which a few long turns have little effect, and the mean turn. */
  usualMs: number | undefined;
  meanMs: number | undefined;
  /** When a grant was last released or broken. Hints: when the one before that was, and the weight in use before the last one. */
  freedAt: number | undefined;
  freedBefore: number | undefined;
  usedBefore: number | undefined;
  /** When a call last asked about the executions of holders, and the lowest fence of the last execution that it asked about. */
  lookedAt: number | undefined;
  lookedTo: number | undefined;
  /** When the latest message arrives that looks at the end of the holders (../line/watch.ts). */
  lookAt: number | undefined;
  /** A hint: how many of the arrivals have left the line. Without the mark, minus the number of callers that may come back. */
  lineOut: number | undefined;
  /** A hint: until when the callers that were in line when the mark was removed may come back. */
  lineUntil: number | undefined;
  /** The ticket of the waiter that an operator has moved to the front, and who that was. */
  moved: string | undefined;
  movedBy: string | undefined;
  /** When an operator last moved a waiter. */
  movedAt: number | undefined;
  cap: Cap | undefined;
  /** When an operator last set or lifted a cap. */
  capAt: number | undefined;
  /** The first attribute that conditions compare and that another client wrote with another type. */
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
    isFree: item.lease_version === undefined,
    fence: number(item, 'fence'),
    entries: [
      ...(parseAlone(item) ?? []),
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
      ...RING_SLOTS.map((slot) => {
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
    lookedTo: number(item, 'looked_to'),
    lookAt: number(item, 'look_at'),
    lineOut: number(item, 'line_out'),
    lineUntil: number(item, 'line_until'),
    ...{ moved: item.moved?.S, movedBy: item.moved_by?.S, movedAt: number(item, 'moved_at') },
    ...{ cap: parseCap(item), capAt: number(item, 'cap_at') },
    malformed: found && malformed(found),
  };
}

function thirdPartyOf(item: Item): ThirdParty | undefined {
  if (item.used !== undefined || item.lease_version === undefined) return undefined;
  const endsAt = (number(item, 'lease_expiry') ?? Number.POSITIVE_INFINITY) * 1000 + 1000;
  return { version: item.lease_version, endsAt: isInstant(endsAt) ? endsAt : Number.POSITIVE_INFINITY };
}

/** How long the last turn took. At least 0, because by clocks that differ a turn may seem to end before it began. */
function lastTurnMs(item: Item): number | undefined {
  const map = item[ALONE]?.M;
  const isReleased = map?.p?.S === 'released';
  const turnMs = isReleased ? Number(item.freed_at?.N) - Number(map.a?.N) : number(item, 'turn_ms');
  return turnMs === undefined ? undefined : Math.max(0, turnMs);
}

/** The fence of an exclusive holder is that of the record. Its execution is an attribute of the record, because an index finds it there. */
function parseAlone(item: Item): [HolderEntry] | undefined {
  const map = item[ALONE]?.M;
  const name = map?.m?.S;
  const entry = name && parseEntry({ name, path: ALONE }, map, number(item, 'fence'));
  const metNoFence = map?.f?.BOOL === true;
  return entry ? [{ ...entry, execution: item.execution?.S, previous: previousIn(item), metNoFence }] : undefined;
}

/** The holder before, of an exclusive grant from the line. Without `q`, the attributes are left over from an earlier grant. */
const previousIn = (item: Item): EndedGrant | undefined => (item[ALONE]?.M?.q ? parseEnded(item) : undefined);

/** The request of the last exclusive holder, if the record remembers it. */
function lastRequest(item: Item): KeyRecord['ring'] {
  const map = item[ALONE]?.M;
  if (!map?.m || map.i) return [];
  return [{ name: map.m.S, broken: map.p?.S === 'broken' ? number(item, 'fence') : undefined }];
}

function parseEntry(
  at: Pick<HolderEntry, 'name' | 'path'>,
  map: Item | undefined,
  fence: number | undefined,
): HolderEntry | undefined {
  const [id, version, holder] = [map?.i?.S, map?.v?.S, map?.h?.S];
  const [expiresAt, beatAt, ttlMs, acquiredAt, weight] = ['e', 'b', 't', 'a', 'w'].map((part) =>
    number(map ?? {}, part),
  );
  const isFull = [expiresAt, beatAt, ttlMs, acquiredAt].every((value) => value !== undefined && isInstant(value));
  if (!isFull || fence === undefined || weight === undefined) return undefined;
  if (id === undefined || version === undefined || holder === undefined) return undefined;
  const times = { expiresAt, ttlMs, acquiredAt, beatAt } as Pick<
    HolderEntry,
    'expiresAt' | 'ttlMs' | 'acquiredAt' | 'beatAt'
  >;
  const asked = { data: jsonOfText(map?.d?.S), execution: map?.x?.S, target: map?.y?.S };
  const grace = { graceMs: number(map ?? {}, 'n'), endedExecution: map?.g?.S };
  const bound = { bound: map?.z?.BOOL === true, unnotifiedVersion: map?.j?.S };
  const fromLine = {
    ticket: map?.k?.S,
    claimTtlMs: number(map ?? {}, 'c'),
    answeredAt: number(map ?? {}, 'r'),
    previous: parseEnder(map?.q?.M),
    limitBefore: number(map ?? {}, 'l'),
  };
  const mark = { isEnding: map?.s !== undefined, endingAt: number(map ?? {}, 's'), brokenBy: map?.o?.S };
  const replaced = { replace: map?.R && ('running' as const), newer: map?.S?.S };
  return {
    ...at,
    id,
    version,
    holder,
    ...times,
    weight,
    fence,
    ...asked,
    ...grace,
    ...bound,
    ...fromLine,
    ...mark,
    ...replaced,
  };
}

function parseEnder(map: Item = {}): EndedGrant | undefined {
  const [holder, ended] = [map.h?.S, ENDINGS.find((one) => one === map.e?.S)];
  const [fence, at] = [number(map, 'f'), number(map, 'a')];
  if (holder === undefined || ended === undefined || fence === undefined || at === undefined) return undefined;
  return isInstant(at) ? { holder, fence, ended, at } : undefined;
}

/** The attributes that the condition of a grant compares, or its update adds to. */
const malformed = (item: Item): string | undefined =>
  (
    [
      ['used', Number.POSITIVE_INFINITY],
      ...['fence', 'freed_at', 'arrivals', 'line_out', 'cap'].map((name) => [name, MOST_FENCE] as const),
    ] as const
  ).find(([name, most]) => item[name] && !(Number(item[name].N) < most))?.[0];

/** Above it, two fences could read as one number. Clocks are some thousand times lower. */
export const MOST_FENCE = Number.MAX_SAFE_INTEGER - 1000;

/**
 * No condition here ever holds on such a record, so a call that kept trying would try until its time is up.
 * @param entry the attribute at fault, if `malformed` names none
 */
export function unusable(
  { key, malformed }: Pick<KeyRecord, 'key' | 'malformed'>,
  entry = 'an attribute',
  cause?: unknown,
): HoldfastError {
  const detail = `a third-party client wrote a record that is not valid: an operator must correct ${malformed ?? entry}`;
  return new HoldfastError('Unavailable', detail, { key, retryAfterMs: 1000, ...(cause !== undefined && { cause }) });
}

export const entryOf = ({ entries }: KeyRecord, name: string): HolderEntry | undefined =>
  entries.find((entry) => entry.name === name);

/** The request's own grant. An expired one does not keep the request from the line, unless the request has yet to claim it. One that is ending does not count. */
export function ownOf(record: KeyRecord, name: string, now: number): HolderEntry | undefined {
  const own = entryOf(record, name);
  return own && !own.isEnding && (own.claimTtlMs !== undefined || own.expiresAt > now) ? own : undefined;
}

/** Sorts entries by their ends, and by their grants if they end at once. DynamoDB keeps attributes in no order. */
export const byEnd = (one: HolderEntry, other: HolderEntry): number =>
  one.expiresAt - other.expiresAt || one.fence - other.fence;

/** How the request's grant ended, if the record remembers it, or why it is ending. */
export function ending(record: KeyRecord, name: string): 'released' | 'broken' | 'superseded' | undefined {
  const entry = entryOf(record, name);
  if (entry?.isEnding) return endingOf(entry);
  const slot = record.ring.find((one) => one.name === name);
  return slot?.broken === undefined && slot?.newer === undefined ? slot && 'released' : endingOf(slot);
}

/** Why a grant is ending, or why a request has had none. */
export const endingOf = ({ newer }: Pick<HolderEntry, 'newer'>): 'broken' | 'superseded' =>
  newer === undefined ? 'broken' : 'superseded';

/** A grant that is to be made. */
export interface NewGrant {
  name: string;
  holder: string;
  ttlMs: number;
  /** Null for a caller that wants the key alone. */
  limit: number | null;
  weight: number;
  /** How much may be in use already. */
  room: number;
  data?: Json | undefined;
  execution?: string | undefined;
  target?: string | undefined;
  /** 0 and undefined mean the same. */
  graceMs?: number | undefined;
  /** Whether the grant lasts as long as `execution` (docs/protocols/bound.md). */
  bound?: boolean | undefined;
  ticket?: string | undefined;
  /** For a grant from the line: the holder before. */
  previous?: EndedGrant | undefined;
  claimTtlMs?: number | undefined;
  /** For a grant from the line: the limit on record before, if it was another. */
  limitBefore?: number | undefined;
  replace?: Replace | undefined;
}

/** Whether the holder is to have the key alone. */
export const isAloneIn = ({ weight }: Pick<NewGrant, 'weight'>): boolean => weight >= EXCLUSIVE_WEIGHT;
