import { cancelLeaseWaiter } from '../leases/cancel.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import { byRecord } from './route.ts';

/** Takes a task or a call out of the line of a key. @throws HoldfastError as line/cancel.ts */
export const cancelWaiter = (dependencies: LeaseDependencies) =>
  byRecord(dependencies, {
    lease: cancelLeaseWaiter,
    permit: async () => (await import('../permits/cancel.ts')).cancelPermitWaiter,
  });
