import type { LeaseDependencies } from '../../../shared/line/dependencies.ts';
import { systemClock } from '../../../shared/surroundings/clock.ts';
import { commitWorld } from './commits.ts';
import { expiryWorld } from './expiry.ts';

import { nameserviceWorld } from './nameservice.ts';
import { onceHandlers, onceWorld } from './once.ts';

/**
 * Every function, on the clock of this machine, over tables and a bucket of their own.
 * @param reportClock the clock of reports and clean-ups
 * @param overrides what is different for the leases
 */
export async function allWorlds(reportClock = systemClock, overrides: Partial<LeaseDependencies> = {}) {
  const clock = systemClock;
  const [leases, commits, names] = await Promise.all([
    onceWorld({ clock, ...overrides }),
    commitWorld({ clock }),
    nameserviceWorld({ clock }),
  ]);
  const tables = { leasesTable: leases.table, commitsTable: commits.table, nameserviceTable: names.table };
  const places = { ...tables, waitersTable: undefined, bucket: commits.bucket };
  const expired = await expiryWorld({ clock: reportClock, places });
  const once = onceHandlers(leases.dependencies);
  const handlers = { ...leases.handlers, ...once, ...commits.handlers, ...names.handlers, ...expired.handlers() };
  return { leases, commits, handlers };
}
