import { HoldfastError } from '../errors.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';

/** The dependencies of the calls on pools. */
export interface PoolDependencies extends LeaseDependencies {
  poolsTable: string;
}

/** @throws HoldfastError Unavailable if the deployment has no table of pools */
export function withPools(dependencies: LeaseDependencies): PoolDependencies {
  if (hasPools(dependencies)) return dependencies;
  throw new HoldfastError('Unavailable', 'no table of pools is configured', { retryAfterMs: 1000 });
}

const hasPools = (dependencies: LeaseDependencies): dependencies is PoolDependencies =>
  dependencies.poolsTable !== undefined;
