import type { Released } from '../../leases/release.ts';
import type { LeaseDependencies } from '../../line/dependencies.ts';
import { withPools } from '../../permits/dependencies.ts';
import { isOfPermit } from '../../permits/names.ts';
import type { ReleaseInput } from '../inputs.ts';
import type { Run } from './run.ts';

/** @param plain what gives a lease back */
export const releasePermitOr =
  (dependencies: LeaseDependencies, plain: Run<ReleaseInput, Released>): Run<ReleaseInput, Released> =>
  async (input, call) => {
    if (!isOfPermit(input.leaseId)) return plain(input, call);
    const { permitReleaser } = await import('../../permits/release.ts');
    return permitReleaser(withPools(dependencies))(input, call);
  };
