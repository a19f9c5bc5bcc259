import type { LeaseDependencies } from '../line/dependencies.ts';
import { poolOfLine } from '../line/waiters.ts';
import { type PoolDependencies, withPools } from '../permits/dependencies.ts';

/** What a call does with the lock of a line. */
interface Work<Answer> {
  lease(): Promise<Answer>;
  /** Imports what only pools need. Each call writes this import itself, so that no function bundles the code of another. */
  pool(dependencies: PoolDependencies, key: string): Promise<Answer>;
}

/** Works on the lease or the pool that a line stands before. @throws HoldfastError Unavailable for a pool, if the deployment has no table of pools */
export async function lockOf<Answer>(
  dependencies: LeaseDependencies,
  line: string,
  { lease, pool }: Work<Answer>,
): Promise<Answer> {
  const key = poolOfLine(line);
  return key === undefined ? lease() : pool(withPools(dependencies), key);
}
