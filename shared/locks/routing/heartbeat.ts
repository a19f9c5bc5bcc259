import type { LeaseGrant } from '../../leases/views.ts';
import type { LeaseDependencies } from '../../line/dependencies.ts';
import { withPools } from '../../permits/dependencies.ts';
import { isOfPermit } from '../../permits/names.ts';
import type { HeartbeatInput } from '../inputs.ts';
import type { Run } from './run.ts';

/** @param plain what extends a lease */
export const extendPermitOr =
  (dependencies: LeaseDependencies, plain: Run<HeartbeatInput, LeaseGrant>): Run<HeartbeatInput, LeaseGrant> =>
  async (input, call) => {
    if (!isOfPermit(input.leaseId)) return plain(input, call);
    const { permitHeartbeater } = await import('../../permits/heartbeat.ts');
    return permitHeartbeater(withPools(dependencies))(input, call);
  };
