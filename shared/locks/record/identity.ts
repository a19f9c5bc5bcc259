import { hash } from 'node:crypto';
import { integer, type Json, jsonOfText, number, text } from '../../aws/attributes.ts';
import type { Item } from '../../aws/dynamodb.ts';
import { isInstant } from '../../surroundings/clock.ts';
import { ENDINGS, type EndedGrant, type Mode } from '../calls/types.ts';

/** One acquisition, by an authenticated caller. */
interface AuthenticatedRequest {
  holder: string;
  requestId: string;
  principal?: string | undefined;
}

/** How many requests a record remembers after their grants have ended. */
export const RING = 8;

/** The name of a request in the record of its key. No other request has this name (docs/protocols/records.md#the-record-of-a-key). */
export function requestName({ holder, requestId, principal = '' }: AuthenticatedRequest): string {
  const asked = JSON.stringify([holder, requestId, principal]);
  return hash('sha256', asked, 'base64url').slice(0, 16);
}

/** The `lease_version` of a held key. Every other client of the table takes such a record for a held lease. */
export const OURS = 'holdfast';

/** The entry of an exclusive holder. Its name is fixed, so that a write that has seen nothing can replace an expired one. */
export const ALONE = 'h';

/** The attribute of an entry. */
export const pathOf = (name: string, isAlone: boolean): string => (isAlone ? ALONE : `h${name}`);

/** The attribute with the fence of a shared holder. That of an exclusive holder is the fence of the record. */
export const fencePathOf = (path: string): string => path.replace(/^h/, 'f');

/** The contents of a grant's lease id: where its entry is, and the secret that proves it. */
export interface Proof {
  name: string;
  path: string;
  id: string;
}

/** Ends the id of a grant that was made while others were in line. The ticket of the grant follows in the lease id, for a quick release. */
export const IN_LINE = '+';

export const leaseIdOf = ({ name, path, id, ticket = '' }: Proof & { ticket?: string | undefined }): string =>
  path === ALONE ? `e.${name}.${id}${id.endsWith(IN_LINE) ? ticket : ''}` : `p.${name}.${id}`;

const SHARED_ID = /^p\.([\w-]{16})\.([\da-f-]{36})$/;
const ALONE_ID = /^[eo]\.([\w-]{16})\.([\da-f-]{36}\+?)(?:(?<=\+)[\w-]*)?$/;

/** @returns undefined for an id that this service never gave: its parts become names of attributes */
export function proofOf(leaseId: string): Proof | undefined {
  const isAlone = !leaseId.startsWith('p.');
  const [, name, id] = (isAlone ? ALONE_ID : SHARED_ID).exec(leaseId) ?? [];
  return name && id ? { name, path: pathOf(name, isAlone), id } : undefined;
}

/** The ticket that the lease id of an exclusive grant names, if others were behind it. */
export const ticketOfLeaseId = (leaseId: string): string | undefined => leaseId.split(IN_LINE)[1];

/** In a slot of the ring: no name of a request, or no fence. */
const NONE = '-';

/** The numbers of the attributes that remember requests: `r0` to `r7`. */
export const RING_SLOTS = Array.from({ length: RING }, (_, slot) => slot);

/** The same attributes, as an expression lists them. */
export const RING_ATTRIBUTES = RING_SLOTS.map((slot) => `r${slot}`).join(', ');

/** Moves each request on by a slot. DynamoDB computes every value from the record as it was before the write. */
const SHIFTED = RING_SLOTS.flatMap((slot) =>
  slot === 0
    ? ['r0 = :name', 'b0 = :broken']
    : ['r', 'b'].map((letter) => `${letter}${slot} = if_not_exists(${letter}${slot - 1}, :none)`),
);

/**
 * Remembers the request of a grant that is released or broken (docs/protocols/locks.md#release). The record forgets the oldest of eight.
 * @param brokenFence the fence of the grant, if an operator breaks it
 */
export const remember = (name: string, brokenFence?: number): { set: string[]; values: Item } => ({
  set: SHIFTED,
  values: {
    ...{ ':name': text(name), ':none': text(NONE) },
    ':broken': brokenFence === undefined ? text(NONE) : integer(brokenFence),
  },
});

export const MODES = ['shared', 'exclusive'] as const satisfies readonly Mode[];

/** The most shared holders of a key, and the limit of a shared request that names none. Every call writes the whole record, so it must stay small. */
export const MOST_PERMITS = 200;

/** The weight of a caller that has the key alone. No limit allows another holder beside it. */
export const EXCLUSIVE_WEIGHT = 1_000_000;

/** The most bytes of a holder's `data`, which is in the record that every call writes. */
export const MOST_DATA_BYTES = 256;

/** Begins the keys of the records of `once` (docs/protocols/once.md#record). No caller can acquire such a key. */
export const ONCE_ROWS = 'holdfast:once:';

/** Begins the keys of the rows of rates (docs/protocols/rates.md#record). No caller can acquire such a key either. */
export const RATE_ROWS = 'holdfast:rate:';

/** Begins the lease ids of `once`, which tells heartbeat and release on which record they are. */
export const ONCE_IDS = 'o.';

/**
 * True for a record that remembers a slot after its grant has ended. No write makes such a record end earlier: `u` of its entry is not the ttl, but the time
 * from a write until DynamoDB may delete the record.
 */
export const hasMemory = (key: string): boolean => key.startsWith(ONCE_ROWS);

/** True for a record of `once` or of a rate, each of which has a list of its own. */
export const isOfAnotherKind = (key: string): boolean => hasMemory(key) || key.startsWith(RATE_ROWS);

/** What readers see of the last exclusive holder besides its end. */
export interface LastTerms {
  acquiredAt: number | undefined;
  expiresAt: number | undefined;
  beatAt: number | undefined;
  brokenAt: number | undefined;
  data: Json | undefined;
}

/** The last exclusive holder, whose entry stays after the end of the grant, without id and version. */
export function lastHolderOf(item: Item): EndedGrant | undefined {
  const map = item[ALONE]?.M;
  const [holder, how] = [map?.h?.S, ENDINGS.find((one) => one === map?.p?.S)];
  const [fence, freedAt] = [number(item, 'fence'), number(item, 'freed_at')];
  if (!map || map.i !== undefined || holder === undefined || how === undefined || fence === undefined) return undefined;
  // The holder released it because an operator or a newer request stopped it, and may have left its work half done.
  const isEnded = how === 'released' && map.s !== undefined;
  const ended = isEnded ? (map.S ? 'superseded' : 'broken') : how;
  const at = ended === 'expired' ? number(map, 'e') : freedAt;
  return at !== undefined && isInstant(at)
    ? { holder, fence, ended, at, by: (ended === 'superseded' ? map.S : map.o)?.S }
    : undefined;
}

/** The terms of the last exclusive holder. `brokenAt` may be before the end, if an operator broke the grant with `wait`. */
export function lastTermsOf(item: Item): LastTerms | undefined {
  const map = item[ALONE]?.M;
  if (!map || map.i !== undefined) return undefined;
  const brokenAt = number(map, 's') ?? (map.p?.S === 'broken' ? number(item, 'freed_at') : undefined);
  const [acquiredAt, expiresAt, beatAt] = ['a', 'e', 'b'].map((part) => number(map, part));
  return { acquiredAt, expiresAt, beatAt, brokenAt, data: jsonOfText(map.d?.S) };
}
