import type { Acquired } from '../../leases/acquire.ts';
import type { Parked } from '../../leases/in-line/park.ts';
import type { LeaseDependencies } from '../../line/dependencies.ts';
import { withPools } from '../../permits/dependencies.ts';
import type { AcquireInput } from '../inputs.ts';
import type { Run } from './run.ts';

/** A request with a limit or a mode is for a permit. @param plain what takes a lease */
export const acquirePermitOr =
  (
    dependencies: LeaseDependencies,
    plain: Run<AcquireInput, Acquired | Parked>,
  ): Run<AcquireInput, Acquired | Parked> =>
  async (input, call) => {
    if (input.limit === undefined && input.mode === undefined) return plain(input, call);
    const { permitAcquirerOrParker } = await import('../../permits/acquire-or-park.ts');
    return permitAcquirerOrParker(withPools(dependencies))(input, call);
  };
