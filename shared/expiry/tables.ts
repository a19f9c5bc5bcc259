import { COMMITS } from './commits.ts';
import { LEASES } from './leases.ts';
import { NAMESERVICE } from './nameservice.ts';
import type { Kind } from './rows.ts';
import type { TableSource } from './table-source.ts';
import { WAITERS } from './waiters.ts';

export const TABLES = { leases: LEASES, commits: COMMITS, nameservice: NAMESERVICE, waiters: WAITERS } as const;
export type TableName = keyof typeof TABLES;

/** The table of a kind of row; undefined for uploads, which are objects. */
export function sourceOf(kind: Kind): TableSource | undefined {
  return Object.values<TableSource>(TABLES).find(({ kinds }) => kinds.includes(kind));
}

/** Aliases for every attribute, as many of them are reserved words. */
export const aliases = (attributes: readonly string[]): Record<string, string> =>
  Object.fromEntries(attributes.map((name) => [`#${name}`, name]));
