import { hash } from 'node:crypto';
import { integer, type Json, jsonOfText, number, text } from '../../aws/attributes.ts';
import type { Item } from '../../aws/dynamodb.ts';
import { isInstant } from '../../surroundings/clock.ts';
import { ENDINGS, type EndedGrant, type Mode } from '../calls/types.ts';

/** What identifies one acquisition: the request, and who sent it. */
export interface RequestIdentity {
  holder: string;
  requestId: string;
  principal?: string | undefined;
}

/** How many requests a record remembers after their grants have ended. */
export const RING_SIZE = 8;

/**
 * The name of a request in the record of its key, which no other request has
 * (docs/protocols/records.md#the-record-of-a-key).
 */
export function nameOfRequest({ holder, requestId, principal = '' }: RequestIdentity): string {
  const identity = JSON.stringify([holder, requestId, principal]);
  return hash('sha256', identity, 'base64url').slice(0, 16);
}

/**
 * The `lease_version` of a key that Holdfast holds. A third-party client reads such a record as the lease of another
 * client.
 */
export const HOLDFAST_LEASE_VERSION = 'holdfast';

/**
 * The path of the entry of an exclusive holder. It is always the same, so a write can replace an expired holder without
 * a read.
 */
export const EXCLUSIVE_PATH = 'h';

/** The path of an entry: the attribute that stores it. @param requestName the name of the request */
export const pathOf = (requestName: string, isExclusive: boolean): string =>
  isExclusive ? EXCLUSIVE_PATH : `h${requestName}`;

/** The attribute that stores the fence of a shared holder. An exclusive holder has the fence of the record. */
export const fencePathOf = (path: string): string => path.replace(/^h/, 'f');

/** The contents of a lease id. */
export interface Proof {
  name: string;
  path: string;
  /** The secret that proves the grant. */
  id: string;
}

/**
 * The last character of the id of a grant that was made while others were in line. In the lease id, the
 * ticket of the grant follows, for a quick release.
 */
export const IN_LINE_SUFFIX = '+';

export const leaseIdOf = ({ name, path, id, ticket = '' }: Proof & { ticket?: string | undefined }): string =>
  path === EXCLUSIVE_PATH ? `e.${name}.${id}${id.endsWith(IN_LINE_SUFFIX) ? ticket : ''}` : `p.${name}.${id}`;

const SHARED_ID = /^p\.([\w-]{16})\.([\da-f-]{36})$/;
const EXCLUSIVE_ID = /^[eo]\.([\w-]{16})\.([\da-f-]{36}\+?)(?:(?<=\+)[\w-]*)?$/;

/**
 * @returns undefined for an id that this service cannot have issued. Check every id: its parts become names of
 * attributes
 */
export function proofOf(leaseId: string): Proof | undefined {
  const isExclusive = !leaseId.startsWith('p.');
  const [, name, id] = (isExclusive ? EXCLUSIVE_ID : SHARED_ID).exec(leaseId) ?? [];
  return name && id ? { name, path: pathOf(name, isExclusive), id } : undefined;
}

/** The ticket in the lease id of an exclusive grant that was made while others were in line. */
export const ticketOfLeaseId = (leaseId: string): string | undefined => leaseId.split(IN_LINE_SUFFIX)[1];

/** The value of a slot of the ring without a request, or without a fence. */
const NONE = '-';

/**
 * The numbers of the slots: the attributes `r0` to `r7` hold the names of requests, and `b0` to `b7` how they ended.
 */
export const RING_INDEXES = Array.from({ length: RING_SIZE }, (_, slot) => slot);

/** The attributes that hold the names, as an expression lists them. */
export const RING_ATTRIBUTES = RING_INDEXES.map((slot) => `r${slot}`).join(', ');

/** Moves each request to the next slot. DynamoDB computes every value from the record as it was before the write. */
const SHIFTED = RING_INDEXES.flatMap((slot) =>
  slot === 0
    ? ['r0 = :name', 'b0 = :how']
    : ['r', 'b'].map((letter) => `${letter}${slot} = if_not_exists(${letter}${slot - 1}, :none)`),
);

/**
 * Puts the request of a grant that is released or broken into the ring, which forgets the oldest of eight
 * (docs/protocols/locks.md#release).
 * @param brokenFence the fence of the grant, if an operator breaks it
 */
export const remember = (requestName: string, brokenFence?: number): { set: string[]; values: Item } => ({
  set: SHIFTED,
  values: {
    ...{ ':name': text(requestName), ':none': text(NONE) },
    ':how': brokenFence === undefined ? text(NONE) : integer(brokenFence),
  },
});

export const MODES = ['shared', 'exclusive'] as const satisfies readonly Mode[];

/**
 * The highest number of shared holders, and the limit of a shared request that does not name one. The record must
 * stay small, because each call pays for all of it.
 */
export const MAX_LIMIT = 200;

/** The weight of an exclusive holder. It is above every limit, so no other holder fits beside it. */
export const EXCLUSIVE_WEIGHT = 1_000_000;

/** The highest number of bytes in the `data` of a shared holder, because each call pays for the whole record. */
export const MAX_DATA_BYTES = 256;

/** The prefix of the stored keys of `once` (docs/protocols/once.md#record). Callers cannot acquire these keys. */
export const ONCE_KEY_PREFIX = 'holdfast:once:';

/** The prefix of the stored keys of rates (docs/protocols/rates.md#record). Callers cannot acquire these keys. */
export const RATE_KEY_PREFIX = 'holdfast:rate:';

/** The prefix of the lease ids of `once`, by which heartbeat and release find the record. */
export const ONCE_LEASE_ID_PREFIX = 'o.';

/**
 * Whether the record is one of `once`, which remembers a slot after the grant has ended. No write may make such a
 * record expire earlier: the part `u` of its entry is not the ttl, but the time from a write until DynamoDB may delete
 * the record.
 */
export const isOnceRecord = (key: string): boolean => key.startsWith(ONCE_KEY_PREFIX);

/** Whether the record is one of `once` or of a rate. Lists of keys leave such records out. */
export const isOnceOrRateRecord = (key: string): boolean => isOnceRecord(key) || key.startsWith(RATE_KEY_PREFIX);

/** What readers see of the grant of the last exclusive holder. */
export interface LastTerms {
  acquiredAt: number | undefined;
  expiresAt: number | undefined;
  heartbeatAt: number | undefined;
  brokenAt: number | undefined;
  data: Json | undefined;
}

/** The last exclusive holder. Its entry stays after the end of the grant, without `i` and `v`. */
export function lastHolderOf(item: Item): EndedGrant | undefined {
  const map = item[EXCLUSIVE_PATH]?.M;
  const [holder, how] = [map?.h?.S, ENDINGS.find((known) => known === map?.p?.S)];
  const [fence, freedAt] = [number(item, 'fence'), number(item, 'freed_at')];
  if (!map || map.i !== undefined || holder === undefined || how === undefined || fence === undefined) return undefined;
  // A holder that released its grant because it was asked to stop may have left its work half done.
  const wasAskedToStop = how === 'released' && map.s !== undefined;
  const ended = wasAskedToStop ? (map.S ? 'superseded' : 'broken') : how;
  const at = ended === 'expired' ? number(map, 'e') : freedAt;
  return at !== undefined && isInstant(at)
    ? { holder, fence, ended, at, by: (ended === 'superseded' ? map.S : map.o)?.S }
    : undefined;
}

/** The terms of the last exclusive grant. If an operator broke it with `wait`, `brokenAt` may be before its end. */
export function lastTermsOf(item: Item): LastTerms | undefined {
  const map = item[EXCLUSIVE_PATH]?.M;
  if (!map || map.i !== undefined) return undefined;
  const brokenAt = number(map, 's') ?? (map.p?.S === 'broken' ? number(item, 'freed_at') : undefined);
  const [acquiredAt, expiresAt, heartbeatAt] = ['a', 'e', 'b'].map((part) => number(map, part));
  return { acquiredAt, expiresAt, heartbeatAt, brokenAt, data: jsonOfText(map.d?.S) };
}
