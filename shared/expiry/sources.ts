import { COMMITS, UPLOADS } from '../commits/expired.ts';
import type { ExpirySource } from '../expired/source.ts';
import { LOCKS, WAITERS } from '../locks/expired.ts';
import { NAMESERVICE } from '../nameservice/expired.ts';
import type { Kind } from './kinds.ts';

/** The sources of a report, in the order of their reading. Segments and parts have these names. */
export const SOURCES = {
  leases: LOCKS,
  commits: COMMITS,
  nameservice: NAMESERVICE,
  waiters: WAITERS,
  uploads: UPLOADS,
} as const satisfies Record<string, ExpirySource<Kind>>;

export type SourceName = keyof typeof SOURCES;

/** The source that has records of a kind. */
export function sourceOf(kind: Kind): ExpirySource<Kind> {
  const source = Object.values<ExpirySource<Kind>>(SOURCES).find(({ kinds }) => kinds.includes(kind));
  if (!source) throw new TypeError(`no source has records of the kind ${kind}`);
  return source;
}
