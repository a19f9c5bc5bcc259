import type { Call } from '../aws/call.ts';
import { withdrawLease } from '../leases/withdraw.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import type { Withdrawer } from '../line/waiting-calls.ts';
import type { WithdrawInput } from './inputs.ts';

/** `unknown`: there is no such call in line and no such grant, or no longer. */
export type Withdrawn =
  | { key: string; requestId: string; cancelled: true }
  | { key: string; requestId: string; cancelled: false; reason: 'unknown' };

/**
 * Withdraws an acquisition of the caller's own: the call that waits for a lease or a permit, or its grant (docs/protocols/queue.md#withdraw). Does
 * not stop a call that is not in line yet. A request that had a grant is refused from then on, as one that was released. The record does not remember
 * a request that had none, so a try of it that arrives later is a new acquisition.
 * @throws HoldfastError Throttled, Unavailable (also if Step Functions gave no answer about a task that has not been notified of its grant),
 * OutcomeUnknown
 */
export function withdrawOwnRequest(dependencies: LeaseDependencies) {
  return async ({ key, requestId, holder, ticket }: WithdrawInput, call: Call): Promise<Withdrawn> => {
    const asker = { key, requestId, holder, ticket, principal: call.principal };
    const cancelled =
      (await withdrawLease(dependencies, asker, call)) || (await withdrawFromPool(dependencies, asker, call));
    return cancelled ? { key, requestId, cancelled } : { key, requestId, cancelled, reason: 'unknown' };
  };
}

/** A request does not say of what: a key names a lease or a pool, and the former is the rule. */
async function withdrawFromPool(dependencies: LeaseDependencies, asker: Withdrawer, call: Call): Promise<boolean> {
  if (dependencies.poolsTable === undefined) return false;
  const [{ withPools }, { withdrawPermitRequest }] = [
    await import('../permits/dependencies.ts'),
    await import('../permits/withdraw.ts'),
  ];
  return withdrawPermitRequest(withPools(dependencies), asker, call);
}
