import type { Call } from '../aws/call.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import { type PoolDependencies, withPools } from '../permits/dependencies.ts';

type Run<Input, Answer> = (input: Input, call: Call) => Promise<Answer>;

/** One call with its two meanings. */
interface Meanings<Input, OfLease, OfPermit> {
  isForPermit(input: NoInfer<Input>): boolean;
  lease(dependencies: LeaseDependencies): Run<Input, OfLease>;
  /** Imports what only pools need. Each function writes this import itself, so that no function bundles the code of another. */
  permit(): Promise<(dependencies: PoolDependencies) => Run<NoInfer<Input>, OfPermit>>;
}

/** Passes each request to the code of a lease, or to the code of a pool. */
export function route<Input, OfLease, OfPermit>(
  dependencies: LeaseDependencies,
  { isForPermit, lease, permit }: Meanings<Input, OfLease, OfPermit>,
): Run<Input, OfLease | OfPermit> {
  const forLease = lease(dependencies);
  return async (input, call) => {
    if (!isForPermit(input)) return forLease(input, call);
    const forPermit = await permit();
    return forPermit(withPools(dependencies))(input, call);
  };
}

/** A request with a limit or a mode is for a permit. */
export const hasTerms = ({ limit, mode }: { limit?: number | undefined; mode?: string | undefined }): boolean =>
  limit !== undefined || mode !== undefined;

/** Permits have lease ids of their own (permits/identity.ts). Those of leases are UUIDs. */
export const hasPermitId = ({ leaseId }: { leaseId: string }): boolean => leaseId.startsWith('p.');

/** The caller says that the key is that of a pool. */
export const namesPool = ({ pool }: { pool?: boolean | undefined }): boolean => pool === true;
