import type { LeaseDependencies } from '../../dependencies.ts';
import type { HeartbeatInput } from '../../inputs.ts';
import type { LeaseGrant } from '../../views.ts';
import { withPools } from '../dependencies.ts';
import { isOfPermit } from '../names.ts';
import type { Run } from './run.ts';

/** @param plain what extends a lease */
export const extendPermitOr =
  (dependencies: LeaseDependencies, plain: Run<HeartbeatInput, LeaseGrant>): Run<HeartbeatInput, LeaseGrant> =>
  async (input, call) => {
    if (!isOfPermit(input.leaseId)) return plain(input, call);
    const { permitHeartbeater } = await import('../heartbeat.ts');
    return permitHeartbeater(withPools(dependencies))(input, call);
  };
