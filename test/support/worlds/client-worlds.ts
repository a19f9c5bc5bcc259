import { SFNClient } from '@aws-sdk/client-sfn';
import { readHealth } from '../../../functions/contract/health.ts';
import { readContract } from '../../../functions/contract/read.ts';
import { whoami } from '../../../functions/contract/whoami.ts';
import type { LeaseDependencies } from '../../../shared/locks/dependencies.ts';
import { systemClock } from '../../../shared/surroundings/clock.ts';
import { startStepFunctions } from '../emulators/step-functions.ts';
import { startApi } from '../stack/api.ts';
import { commitWorld } from './commits.ts';
import { expiryWorld } from './expiry.ts';
import { nameserviceWorld } from './nameservice.ts';
import { onceHandlers, onceWorld } from './once.ts';
import { rateHandlers } from './rates.ts';

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
  const locations = { ...tables, waitersTable: undefined, bucket: commits.bucket };
  const expired = await expiryWorld({ clock: reportClock, locations });
  const once = onceHandlers(leases.dependencies);
  const rates = rateHandlers(leases.dependencies);
  const kept = { ...commits.handlers, ...names.handlers, ...expired.handlers() };
  const handlers = { ...leases.handlers, ...once, ...rates, ...kept };
  return { leases, commits, handlers };
}

/** The documents on expired records say that two hours have passed. */
const twoHoursOn = { ...systemClock, now: () => systemClock.now() + 7_200_000 };

/** Everything that a fresh `npm start` serves, over HTTP. */
export async function wholeApi() {
  const steps = await startStepFunctions();
  const stepFunctions = async () => new SFNClient({ endpoint: steps.endpoint });
  const worlds = await allWorlds(twoHoursOn, { stepFunctions });
  const described = { readContract: readContract(), readHealth: readHealth(), whoami: whoami({}) };
  const api = await startApi({ ...worlds.handlers, ...described });
  const stop = async () => void (await Promise.all([api.stop(), steps.stop()]));
  return { url: api.url, stop, commits: worlds.commits, tasks: steps.tasks };
}
