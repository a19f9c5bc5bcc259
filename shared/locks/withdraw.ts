import type { Call } from '../aws/call.ts';
import { withdrawableLease } from '../leases/withdraw.ts';
import type { CancelInput } from '../line/calls.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import { kindOf } from '../line/kind.ts';
import type { Waiter } from '../line/waiters.ts';
import {
  beginCancel,
  beginWithdrawal,
  type Cancelling,
  cancelByTicket,
  type WithdrawableLock,
  type Withdrawal,
  withdrawRequest,
} from '../line/withdrawal.ts';
import type { WithdrawInput } from './inputs.ts';
import { byRecord } from './route.ts';

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
  const run = onLock(dependencies, (lock, asked: Withdrawal, call) =>
    withdrawRequest(dependencies, { asked, lock }, call),
  );
  return async ({ key, requestId, holder, ticket }: WithdrawInput, call: Call): Promise<Withdrawn> => {
    const asked = { key, requestId, holder, ticket, principal: call.principal };
    const cancelled = await run(await beginWithdrawal(dependencies, asked, call), call);
    return cancelled ? { key, requestId, cancelled } : { key, requestId, cancelled, reason: 'unknown' };
  };
}

/** Takes a task or a call out of the line of a key (docs/protocols/queue.md#cancel). @throws as `cancelByTicket` */
export function cancelWaiter(dependencies: LeaseDependencies) {
  const run = onLock(dependencies, (lock, found: Cancelling, call) =>
    cancelByTicket(dependencies, { found, lock }, call),
  );
  return async (input: CancelInput, call: Call) => run(await beginCancel(dependencies, input, call), call);
}

/** Works on the lease or the pool of a key. The row of a waiter mostly shows which of the two the key is. */
const onLock = <Input extends { key: string; waiter: Waiter | undefined }, Answer>(
  dependencies: LeaseDependencies,
  work: <Rec>(lock: WithdrawableLock<Rec>, input: Input, call: Call) => Promise<Answer>,
) =>
  byRecord<Input, Answer, Answer>(dependencies, {
    likely: ({ waiter }) => (waiter ? kindOf(waiter) : 'lease'),
    lease: () => (input, call) => work(withdrawableLease(dependencies, input.key, call), input, call),
    permit: async () => {
      const { withdrawablePool } = await import('../permits/withdraw.ts');
      return () => (input, call) => work(withdrawablePool(dependencies, input.key, call), input, call);
    },
  });
