import type { Item } from '../aws/dynamodb.ts';
import type { ExpiredRow } from '../expiry/sources/rows.ts';
import type { Found, Margins } from '../expiry/sources/source.ts';
import { findGrants } from '../locks/expired-grants.ts';
import { onceKeyOf } from './row-key.ts';

export const ONCE_KINDS = ['abandonedRun', 'endedRun'] as const;
export type OnceKind = (typeof ONCE_KINDS)[number];

export const isRun = <Kind extends string>(
  row: ExpiredRow<Kind | OnceKind>,
): row is ExpiredRow<Kind | OnceKind> & { kind: OnceKind } => ONCE_KINDS.some((kind) => kind === row.kind);

/**
 * Finds the expired or ended run in a record.
 * @param item a record of `once` that the filter of expired grants (locks/expired-grants.ts) let through
 */
export function findRun(item: Item, now: number, margins: Margins): Found<OnceKind> {
  const { rows, held } = findGrants(item, now, margins);
  const keepUntil = item.keep_until?.N === undefined ? null : { N: item.keep_until.N };
  return {
    held,
    rows: rows.map(({ kind, identity, ...row }) => ({
      ...row,
      kind: kind === 'abandonedLease' ? 'abandonedRun' : 'endedRun',
      key: { key: onceKeyOf(item.key?.S ?? '') },
      identity: identity && { ...identity, keep_until: keepUntil },
    })),
  };
}

/** Whether the record may still remember a slot. If the clean-up deleted it, the slot would run again. */
export function mayRemember(
  { identity }: ExpiredRow,
  { clockSkewMs }: Pick<Margins, 'clockSkewMs'>,
  now: number,
): boolean {
  const keepUntil = identity?.keep_until;
  return keepUntil != null && !('N' in keepUntil && Number(keepUntil.N) < now - clockSkewMs);
}
