import type { Call } from '../aws/call.ts';
import type { Item } from '../aws/dynamodb.ts';
import { acquireOrParkLease } from '../leases/acquire.ts';
import type { Acquired, AcquireInput, Parked } from '../line/calls.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import { otherKind } from '../line/kind.ts';
import { byRequest, hasTerms } from './route.ts';

const isParking = ({ taskToken, callbackId }: AcquireInput): boolean => (taskToken ?? callbackId) !== undefined;

/**
 * Acquires a lease, or a permit if the request names a limit or a mode. If the key is used as the other kind and no caller has it, the key changes its
 * kind (docs/protocols/kinds.md).
 * @throws HoldfastError WrongKind, InvalidRequest (a callback, and the deployment serves no durable functions), and as leases/acquire.ts, permits/acquire.ts and line/park.ts
 */
export function acquire(dependencies: LeaseDependencies) {
  const run = byRequest<AcquireInput, Acquired | Parked, Acquired | Parked>(dependencies, {
    isForPermit: hasTerms,
    lease: acquireOrParkLease,
    permit: async () => (await import('../permits/acquire.ts')).acquireOrParkPermit,
  });
  return async (given: AcquireInput, call: Call): Promise<Acquired | Parked> => {
    const input =
      given.callbackId === undefined ? given : (await import('../line/callback.ts')).ofCallback(dependencies, given);
    const { clock } = dependencies;
    const { key } = input;
    const [arrivedAt, waitMs] = [clock.now(), input.waitSeconds * 1000];
    let over: Item | undefined;
    for (let changes = 0; ; changes++) {
      const waitSeconds = Math.max(0, waitMs - (clock.now() - arrivedAt)) / 1000;
      try {
        return await run({ ...input, waitSeconds, ...(over && { over }) }, call);
      } catch (error) {
        const { item } = otherKind(error, changes);
        const { changeKind } = await import('./change-kind.ts');
        const [to, withPermit] = [hasTerms(input) ? 'pool' : 'lease', !isParking(input)] as const;
        over = await changeKind(dependencies, { key, item, to, withPermit }, call);
      }
    }
  };
}
