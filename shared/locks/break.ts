import type { Call } from '../aws/call.ts';
import { breakLeaseByFence } from '../leases/break.ts';
import type { BreakInput, Broken } from '../line/calls.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import { byRecord } from './route.ts';

/**
 * Ends the lease, the permit or, with the kind `once`, the run that an operator saw, by its fence.
 * @throws HoldfastError as leases/break.ts and permits/break.ts
 */
export function breakGrant(dependencies: LeaseDependencies) {
  const run = byRecord<BreakInput, Broken, Broken>(dependencies, {
    lease: breakLeaseByFence,
    permit: async () => (await import('../permits/break.ts')).breakPermitByFence,
  });
  return async ({ kind, ...input }: BreakInput & { kind?: 'once' | undefined }, call: Call): Promise<Broken> => {
    if (kind === undefined) return run(input, call);
    const { onRow } = await import('../once/row-key.ts');
    return onRow(breakLeaseByFence(dependencies))(input, call);
  };
}
