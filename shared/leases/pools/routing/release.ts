import type { LeaseDependencies } from '../../dependencies.ts';
import type { ReleaseInput } from '../../inputs.ts';
import type { Released } from '../../release.ts';
import { withPools } from '../dependencies.ts';
import { isOfPermit } from '../names.ts';
import type { Run } from './run.ts';

/** @param plain what gives a lease back */
export const releasePermitOr =
  (dependencies: LeaseDependencies, plain: Run<ReleaseInput, Released>): Run<ReleaseInput, Released> =>
  async (input, call) => {
    if (!isOfPermit(input.leaseId)) return plain(input, call);
    const { permitReleaser } = await import('../release.ts');
    return permitReleaser(withPools(dependencies))(input, call);
  };
