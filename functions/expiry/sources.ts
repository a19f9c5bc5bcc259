import { COMMITS, UPLOADS } from '../../shared/commits/expired.ts';
import type { Sources } from '../../shared/expiry/kinds.ts';
import { LOCKS, WAITERS } from '../../shared/locks/expired.ts';
import { NAMESERVICE } from '../../shared/nameservice/expired.ts';

/** Where the report finds expired records, in the order of reading. The names stand in stored reports. */
export const SOURCES = {
  leases: LOCKS,
  commits: COMMITS,
  nameservice: NAMESERVICE,
  waiters: WAITERS,
  uploads: UPLOADS,
} as const satisfies Sources;
