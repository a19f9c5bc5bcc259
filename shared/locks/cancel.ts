import type { Call } from '../aws/call.ts';
import { HoldfastError } from '../errors.ts';
import type { CancelInput } from '../line/calls.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import { failTask } from '../line/notify.ts';
import { getWaiter, isTask, withdrawn } from '../line/waiters.ts';
import { flagCancelled } from '../line/waiting-calls.ts';
import { readPool } from '../permits/read.ts';
import type { PoolRecord } from '../permits/record.ts';
import { handOffToLine } from '../permits/release.ts';

/** `granted`: the ticket already has its grant. `gone`: its task or call no longer waits. `unknown`: there is no such ticket, or no longer. */
export type Cancelled =
  | { key: string; ticket: string; cancelled: true }
  | { key: string; ticket: string; cancelled: false; reason: 'granted' | 'gone' | 'unknown' };

/**
 * Takes a task or a call out of a line, by its ticket, and serves those behind it (docs/protocols/queue.md#cancel). The task or call fails with
 * LeaseLost and the reason `cancelled`.
 * @throws HoldfastError Throttled, Unavailable (also if Step Functions gave no answer: the ticket stays), OutcomeUnknown
 */
export function cancelWaiter(dependencies: LeaseDependencies) {
  return async ({ key, ticket }: CancelInput, call: Call): Promise<Cancelled> => {
    const not = (reason: 'granted' | 'gone' | 'unknown') => ({ key, ticket, cancelled: false, reason }) as const;
    const waiter = await getWaiter(dependencies, { key, ticket }, call);
    const isFlagged =
      waiter !== undefined && !isTask(waiter) && !!(await flagCancelled(dependencies, { name: waiter }, call));
    const record = await readPool(dependencies, key, call);
    const grant = grantOf(record, ticket);
    // A call sees the flag when it claims its grant, or leaves. A call that has claimed it may have looked before.
    if (grant && !(isFlagged && grant.claimTtlMs !== undefined)) return not('granted');
    if (!waiter) return not('unknown');
    if (!isTask(waiter) && !isFlagged) return not('gone');
    if (isTask(waiter)) {
      const delivery = await failTask(dependencies, { waiter, error: withdrawn(key) }, call);
      if (delivery === 'unanswered')
        throw new HoldfastError(
          'Unavailable',
          'Step Functions did not respond, and the task may still wait: send the call again',
          { retryAfterMs: 1000 },
        );
      if (delivery === 'gone')
        return not(grantOf(await readPool(dependencies, key, call), ticket) ? 'granted' : 'gone');
    }
    await handOffToLine(dependencies, { record }, call);
    return { key, ticket, cancelled: true };
  };
}

const grantOf = ({ entries }: PoolRecord, ticket: string) => entries.find((one) => one.ticket === ticket);
