import type { Call } from '../aws/call.ts';
import type { Item } from '../aws/dynamodb.ts';
import { acquireOrParkLease } from '../leases/acquire.ts';
import type { Acquired, AcquireInput, Parked } from '../line/calls.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import { OtherKind } from '../line/kind.ts';
import { byRequest, hasTerms } from './route.ts';

/** How often a key may change its kind during one call. */
const MOST_CHANGES = 4;

/**
 * Acquires a lease, or a permit if the request names a limit or a mode. If the key is used as the other kind and no caller has it, the key changes its
 * kind (docs/protocols/kinds.md).
 * @throws HoldfastError WrongKind, and as leases/acquire.ts, permits/acquire.ts and line/park.ts
 */
export function acquire(dependencies: LeaseDependencies) {
  const run = byRequest<AcquireInput, Acquired | Parked, Acquired | Parked>(dependencies, {
    isForPermit: hasTerms,
    lease: acquireOrParkLease,
    permit: async () => (await import('../permits/acquire.ts')).acquireOrParkPermit,
  });
  return async (input: AcquireInput, call: Call): Promise<Acquired | Parked> => {
    const { clock } = dependencies;
    const { key } = input;
    const [arrivedAt, waitMs] = [clock.now(), input.waitSeconds * 1000];
    let over: Item | undefined;
    for (let changes = 0; ; changes++) {
      const waitSeconds = Math.max(0, waitMs - (clock.now() - arrivedAt)) / 1000;
      try {
        return await run({ ...input, waitSeconds, ...(over && { over }) }, call);
      } catch (error) {
        if (!(error instanceof OtherKind)) throw error;
        const { changeKind, wrongKind } = await import('./change-kind.ts');
        if (changes === MOST_CHANGES) throw wrongKind(dependencies, key, error.item);
        const [to, withPermit] = [hasTerms(input) ? 'pool' : 'lease', input.taskToken === undefined] as const;
        over = await changeKind(dependencies, { key, item: error.item, to, withPermit }, call);
      }
    }
  };
}
