import type { Call } from '../aws/call.ts';
import type { BreakInput, Broken } from '../line/calls.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import { breakPermitByFence } from '../permits/break.ts';

/** Ends the grant of a key or, with the kind `once`, the run that an operator saw, by its fence. @throws HoldfastError as permits/break.ts */
export function breakGrant(dependencies: LeaseDependencies) {
  const run = breakPermitByFence(dependencies);
  return async ({ kind, ...input }: BreakInput & { kind?: 'once' | undefined }, call: Call): Promise<Broken> => {
    if (kind === undefined) return run(input, call);
    const { onRow } = await import('../once/row-key.ts');
    return onRow(run)(input, call);
  };
}
