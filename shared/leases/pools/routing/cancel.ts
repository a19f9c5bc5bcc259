import type { LeaseDependencies } from '../../dependencies.ts';
import type { CancelInput } from '../../inputs.ts';
import type { Cancelled } from '../../queue/cancel.ts';
import { withPools } from '../dependencies.ts';
import type { Run } from './run.ts';

/** @param plain what takes a ticket out of the line of a lease */
export const cancelPermitOr =
  (dependencies: LeaseDependencies, plain: Run<CancelInput, Cancelled>): Run<CancelInput, Cancelled> =>
  async (input, call) => {
    if (!input.pool) return plain(input, call);
    const { permitCanceller } = await import('../queue/cancel.ts');
    return permitCanceller(withPools(dependencies))(input, call);
  };
