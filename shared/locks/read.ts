import { lookUpLeases } from '../leases/read.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import { byRecord } from './route.ts';

/** Reads one key, or lists the keys. @throws HoldfastError InvalidRequest (cursor), Throttled, Unavailable */
export const lookUp = (dependencies: LeaseDependencies) =>
  byRecord(dependencies, {
    lease: lookUpLeases,
    permit: async () => (await import('../permits/read.ts')).lookUpPool,
  });
