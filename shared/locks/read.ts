import type { Call } from '../aws/call.ts';
import { lookUpLease, type WaitedForView } from '../leases/read.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import type { PoolView } from '../permits/views.ts';
import type { KeyPage, ListInput } from './listed-keys.ts';
import { byRecord } from './route.ts';

/** With a key, what that key is used as. Otherwise a page of the list of all keys. */
export interface ReadInput extends ListInput {
  key?: string | undefined;
  /** With `key`: whether to list the tasks and callers in line. */
  waiters?: boolean | undefined;
}

/** Reads one key, or lists the keys. @throws HoldfastError InvalidRequest (cursor), Throttled, Unavailable */
export function lookUp(dependencies: LeaseDependencies) {
  const readOne = byRecord(dependencies, {
    lease: lookUpLease,
    permit: async () => (await import('../permits/read.ts')).lookUpPool,
  });
  return async ({ key, ...query }: ReadInput, call: Call): Promise<WaitedForView | PoolView | KeyPage> => {
    if (key !== undefined) return readOne({ ...query, key }, call);
    const { listKeys } = await import('./listed-keys.ts');
    return listKeys(dependencies)(query, call);
  };
}
