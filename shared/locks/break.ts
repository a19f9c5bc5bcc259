import { breakLeaseByFence } from '../leases/break.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import { byRecord } from './route.ts';

/** Ends the lease or the permit that an operator saw, by its fence. @throws HoldfastError as leases/break.ts and permits/break.ts */
export const breakGrant = (dependencies: LeaseDependencies) =>
  byRecord(dependencies, {
    lease: breakLeaseByFence,
    permit: async () => (await import('../permits/break.ts')).breakPermitByFence,
  });
