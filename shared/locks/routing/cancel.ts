import type { Cancelled } from '../../line/cancel.ts';
import type { LeaseDependencies } from '../../line/dependencies.ts';
import { withPools } from '../../permits/dependencies.ts';
import type { CancelInput } from '../inputs.ts';
import type { Run } from './run.ts';

/** @param plain what takes a ticket out of the line of a lease */
export const cancelPermitOr =
  (dependencies: LeaseDependencies, plain: Run<CancelInput, Cancelled>): Run<CancelInput, Cancelled> =>
  async (input, call) => {
    if (!input.pool) return plain(input, call);
    const { permitCanceller } = await import('../../permits/in-line/cancel.ts');
    return permitCanceller(withPools(dependencies))(input, call);
  };
