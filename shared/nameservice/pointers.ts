import type { Item } from '../aws/dynamodb.ts';
import { invalidRequest } from '../errors.ts';
import { isCid } from './cid.ts';
import { numberOf } from './values.ts';

/** What an alias points to: the head of its commits, or of its index. */
export type Ref = 'commit' | 'index';

/** Unborn: address null, t 0. */
export interface Pointer {
  address: string | null;
  /** The watermark: a whole number that publishing only ever raises. */
  t: number;
}

export const UNBORN: Pointer = { address: null, t: 0 };

/** `commit_address` and `index_address`, or `commit_id` and `index_id`, whose values are content identifiers. */
export const POINTER_STYLES = ['address', 'id'] as const;
export type PointerStyle = (typeof POINTER_STYLES)[number];

/** The attributes of a ref. An address is written under one name and read under both. */
export interface PointerNames {
  written: string;
  alsoRead: string;
  t: string;
}

export function pointerNames(ref: Ref, style: PointerStyle): PointerNames {
  const other = style === 'address' ? 'id' : 'address';
  return { written: `${ref}_${style}`, alsoRead: `${ref}_${other}`, t: `${ref}_t` };
}

/**
 * On an index item: a new UUID with each write that replaces the address without raising t. A write that raises t
 * removes it. Clients that do not know it leave it as it is.
 */
export const INDEX_REVISION = 'index_revision';

/** Reads what any client wrote. An absent address, or a NULL, is an unborn one. */
export function pointerOf(item: Item | undefined, ref: Ref, style: PointerStyle): Pointer {
  const { written, alsoRead, t } = pointerNames(ref, style);
  return { address: item?.[written]?.S ?? item?.[alsoRead]?.S ?? null, t: numberOf(item?.[t]) ?? 0 };
}

export const samePointer = (a: Pointer, b: Pointer): boolean => a.address === b.address && a.t === b.t;

/**
 * Clients that read `commit_id` ignore a default context that is not a content identifier.
 * @throws HoldfastError InvalidRequest naming the field
 */
export function checkContext(
  payload: { defaultContextAddress?: string | undefined } | null,
  style: PointerStyle,
): void {
  const { defaultContextAddress } = payload ?? {};
  if (defaultContextAddress !== undefined)
    checkAddress(defaultContextAddress, 'next.payload.defaultContextAddress', style);
}

/**
 * Clients that read `commit_id` crash on anything that is not a content identifier, so it must never get there.
 * @throws HoldfastError InvalidRequest naming the field
 */
export function checkAddress(address: string, path: string, style: PointerStyle): void {
  if (style === 'id' && !isCid(address)) throw invalidRequest([{ path, message: 'must be a CIDv1 in base32' }]);
}
