import type { LeasePage, WaitedForView } from '../../leases/read.ts';
import type { LeaseDependencies } from '../../line/dependencies.ts';
import { withPools } from '../../permits/dependencies.ts';
import type { PoolView } from '../../permits/views.ts';
import type { ReadInput } from '../inputs.ts';
import type { Run } from './run.ts';

/** @param plain what reads leases */
export const readPoolOr =
  (
    dependencies: LeaseDependencies,
    plain: Run<ReadInput, WaitedForView | LeasePage>,
  ): Run<ReadInput, WaitedForView | LeasePage | PoolView> =>
  async (input, call) => {
    if (!input.pool || input.key === undefined) return plain(input, call);
    const { poolReader } = await import('../../permits/read.ts');
    const { key, waiters, limit } = input;
    return poolReader(withPools(dependencies))({ key, waiters, limit }, call);
  };
