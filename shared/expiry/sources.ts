import { COMMITS, UPLOADS } from '../commits/expired.ts';
import type { ExpirySource } from '../expired/source.ts';
import { LEASES, WAITERS } from '../leases/expired.ts';
import { NAMESERVICE } from '../nameservice/expired.ts';
import type { Kind } from './kinds.ts';

/** Where expired records are looked for, in this order. A report names its segments and parts by these names. */
export const SOURCES = {
  leases: LEASES,
  commits: COMMITS,
  nameservice: NAMESERVICE,
  waiters: WAITERS,
  uploads: UPLOADS,
} as const satisfies Record<string, ExpirySource<Kind>>;

export type SourceName = keyof typeof SOURCES;

/** The source that tells of records of a kind. */
export function sourceOf(kind: Kind): ExpirySource<Kind> {
  const source = Object.values<ExpirySource<Kind>>(SOURCES).find(({ kinds }) => kinds.includes(kind));
  if (!source) throw new TypeError(`no source tells of records of the kind ${kind}`);
  return source;
}
