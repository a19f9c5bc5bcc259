import type { Item } from '../aws/dynamodb.ts';
import { invalidRequest } from '../errors.ts';
import { isCid } from './cid.ts';
import { numberOf } from './values.ts';

/** A head of an alias: the head of its commits, or of its index. */
export type Ref = 'commit' | 'index';

export interface Pointer {
  /** Null for an unborn ref. */
  address: string | null;
  /** A whole number that publishing only raises. */
  t: number;
}

export const UNBORN: Pointer = { address: null, t: 0 };

/**
 * The attributes for addresses: `commit_address` and `index_address`, or `commit_id` and `index_id` for content
 * identifiers.
 */
export const POINTER_STYLES = ['address', 'id'] as const;
export type PointerStyle = (typeof POINTER_STYLES)[number];

/** The attributes of a ref. An address is written to one attribute, and read from both. */
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
 * The attribute of an index item that receives a new UUID with each write that replaces the address without raising t.
 * A write that raises t removes the attribute. Other clients leave it as it is.
 */
export const INDEX_REVISION = 'index_revision';

/** The pointer of an item, whichever client wrote it. The ref is unborn if the address is absent or NULL. */
export function pointerOf(item: Item | undefined, ref: Ref, style: PointerStyle): Pointer {
  const { written, alsoRead, t } = pointerNames(ref, style);
  return { address: item?.[written]?.S ?? item?.[alsoRead]?.S ?? null, t: numberOf(item?.[t]) ?? 0 };
}

export const samePointer = (a: Pointer, b: Pointer): boolean => a.address === b.address && a.t === b.t;

/**
 * Checks a default context: clients that read `commit_id` ignore one that is not a content identifier.
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
 * Checks an address: clients that read `commit_id` crash on one that is not a content identifier.
 * @throws HoldfastError InvalidRequest naming the field
 */
export function checkAddress(address: string, path: string, style: PointerStyle): void {
  if (style === 'id' && !isCid(address)) throw invalidRequest([{ path, message: 'must be a CIDv1 in base32' }]);
}
