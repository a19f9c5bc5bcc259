import { systemClock } from '../../../shared/surroundings/clock.ts';
import { commitWorld } from './commits.ts';
import { expiryWorld } from './expiry.ts';
import { leaseWorld } from './leases.ts';
import { nameserviceWorld } from './nameservice.ts';

/**
 * Every function, on the clock of this machine, over tables and a bucket of their own.
 * @param reportClock the clock of reports and clean-ups
 */
export async function allWorlds(reportClock = systemClock) {
  const clock = systemClock;
  const [leases, commits, names] = await Promise.all([
    leaseWorld({ clock }),
    commitWorld({ clock }),
    nameserviceWorld({ clock }),
  ]);
  const tables = { leasesTable: leases.table, commitsTable: commits.table, nameserviceTable: names.table };
  const places = { ...tables, waitersTable: undefined, bucket: commits.bucket };
  const expired = await expiryWorld({ clock: reportClock, places });
  return { leases, handlers: { ...leases.handlers, ...commits.handlers, ...names.handlers, ...expired.handlers() } };
}
