import type { Broken } from '../../leases/views.ts';
import type { LeaseDependencies } from '../../line/dependencies.ts';
import { withPools } from '../../permits/dependencies.ts';
import type { BreakInput } from '../inputs.ts';
import type { Run } from './run.ts';

/** @param plain what breaks a lease */
export const breakPermitOr =
  (dependencies: LeaseDependencies, plain: Run<BreakInput, Broken>): Run<BreakInput, Broken> =>
  async (input, call) => {
    if (!input.pool) return plain(input, call);
    const { permitBreaker } = await import('../../permits/break.ts');
    return permitBreaker(withPools(dependencies))(input, call);
  };
