import { COMMITS, UPLOADS } from '../../shared/commits/expired.ts';
import type { Sources } from '../../shared/expiry/kinds.ts';
import { LOCKS, WAITERS } from '../../shared/locks/expired.ts';
import { NAMESERVICE } from '../../shared/nameservice/expired.ts';

/** The sources of the report, in the order of reading. Stored reports contain these names, so they must not change. */
export const SOURCES = {
  leases: LOCKS,
  commits: COMMITS,
  nameservice: NAMESERVICE,
  waiters: WAITERS,
  uploads: UPLOADS,
} as const satisfies Sources;
