import type { Call } from '../aws/call.ts';
import { withdrawableLease } from '../leases/withdraw.ts';
import type { CancelInput } from '../line/calls.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import { lineKeyOf } from '../line/waiters.ts';
import { type Cancelled, cancelByTicket, type WithdrawableLock, withdrawRequest } from '../line/withdrawal.ts';
import type { WithdrawInput } from './inputs.ts';
import { lockOf } from './lock-of.ts';

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
    const asked = { key, requestId, holder, ticket, principal: call.principal };
    const withdraw = (line: string) =>
      withLock(dependencies, { line, work: (lock) => withdrawRequest(dependencies, { asked, lock }, call) }, call);
    // A request does not say of what: a key names a lease or a pool, and usually a lease.
    const hasPools = dependencies.poolsTable !== undefined;
    const cancelled = (await withdraw(key)) || (hasPools && (await withdraw(lineKeyOf(key))));
    return cancelled ? { key, requestId, cancelled } : { key, requestId, cancelled, reason: 'unknown' };
  };
}

/** Takes a task or a call out of the line of a lease or of a pool (docs/protocols/queue.md#cancel). @throws as `cancelByTicket` */
export function cancelWaiter(dependencies: LeaseDependencies) {
  return ({ key, ticket, pool }: CancelInput, call: Call): Promise<Cancelled> =>
    withLock(
      dependencies,
      { line: pool ? lineKeyOf(key) : key, work: (lock) => cancelByTicket(dependencies, { ticket, lock }, call) },
      call,
    );
}

interface OnLock<Answer> {
  line: string;
  work<Rec>(lock: WithdrawableLock<Rec>): Promise<Answer>;
}

const withLock = <Answer>(dependencies: LeaseDependencies, { line, work }: OnLock<Answer>, call: Call) =>
  lockOf(dependencies, line, {
    lease: () => work(withdrawableLease(dependencies, line, call)),
    pool: async (pools, key) => work((await import('../permits/withdraw.ts')).withdrawablePool(pools, key, call)),
  });
