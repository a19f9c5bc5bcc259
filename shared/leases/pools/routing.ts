import type { Call } from '../../aws/call.ts';
import type { Acquired } from '../acquire.ts';
import type { Broken } from '../break.ts';
import type { LeaseDependencies } from '../dependencies.ts';
import type { AcquireInput, BreakInput, CancelInput, HeartbeatInput, ReadInput, ReleaseInput } from '../inputs.ts';
import type { Cancelled } from '../queue/cancel.ts';
import type { Parked } from '../queue/park.ts';
import type { LeasePage, WaitedForView } from '../read.ts';
import type { Released } from '../release.ts';
import type { LeaseGrant } from '../views.ts';
import { withPools } from './dependencies.ts';
import { isOfPermit } from './names.ts';
import type { PoolView } from './views.ts';

// Calls on permits go to their pool, and all others on. What only pools need is loaded for the former alone.

type Run<Input, Answer> = (input: Input, call: Call) => Promise<Answer>;

/** A request with a limit or a mode is for a permit. @param plain what takes a lease */
export const acquirePermitOr =
  (
    dependencies: LeaseDependencies,
    plain: Run<AcquireInput, Acquired | Parked>,
  ): Run<AcquireInput, Acquired | Parked> =>
  async (input, call) => {
    if (input.limit === undefined && input.mode === undefined) return plain(input, call);
    const { permitAcquirerOrParker } = await import('./acquire-or-park.ts');
    return permitAcquirerOrParker(withPools(dependencies))(input, call);
  };

/** @param plain what extends a lease */
export const extendPermitOr =
  (dependencies: LeaseDependencies, plain: Run<HeartbeatInput, LeaseGrant>): Run<HeartbeatInput, LeaseGrant> =>
  async (input, call) => {
    if (!isOfPermit(input.leaseId)) return plain(input, call);
    const { permitHeartbeater } = await import('./heartbeat.ts');
    return permitHeartbeater(withPools(dependencies))(input, call);
  };

/** @param plain what gives a lease back */
export const releasePermitOr =
  (dependencies: LeaseDependencies, plain: Run<ReleaseInput, Released>): Run<ReleaseInput, Released> =>
  async (input, call) => {
    if (!isOfPermit(input.leaseId)) return plain(input, call);
    const { permitReleaser } = await import('./release.ts');
    return permitReleaser(withPools(dependencies))(input, call);
  };

/** @param plain what breaks a lease */
export const breakPermitOr =
  (dependencies: LeaseDependencies, plain: Run<BreakInput, Broken>): Run<BreakInput, Broken> =>
  async (input, call) => {
    if (!input.pool) return plain(input, call);
    const { permitBreaker } = await import('./break.ts');
    return permitBreaker(withPools(dependencies))(input, call);
  };

/** @param plain what takes a ticket out of the line of a lease */
export const cancelPermitOr =
  (dependencies: LeaseDependencies, plain: Run<CancelInput, Cancelled>): Run<CancelInput, Cancelled> =>
  async (input, call) => {
    if (!input.pool) return plain(input, call);
    const { permitCanceller } = await import('./queue/cancel.ts');
    return permitCanceller(withPools(dependencies))(input, call);
  };

/** @param plain what reads leases */
export const readPoolOr =
  (
    dependencies: LeaseDependencies,
    plain: Run<ReadInput, WaitedForView | LeasePage>,
  ): Run<ReadInput, WaitedForView | LeasePage | PoolView> =>
  async (input, call) => {
    if (!input.pool || input.key === undefined) return plain(input, call);
    const { poolReader } = await import('./read.ts');
    const { key, waiters, limit } = input;
    return poolReader(withPools(dependencies))({ key, waiters, limit }, call);
  };
