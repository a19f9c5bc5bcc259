import type { Call } from '../../aws/call.ts';
import { HoldfastError } from '../../errors.ts';
import type { LeaseDependencies } from '../dependencies.ts';
import type { CancelInput } from '../inputs.ts';
import { isLeased } from '../rules.ts';
import { leaseLost } from '../views.ts';
import { flagCancelled } from './caller-tickets.ts';
import { notifyFailed } from './delivery.ts';
import { readRecord } from './record.ts';
import { deleteTicket, getTicket, isTask } from './tickets.ts';

/** `granted`: the ticket has the lease by now. `gone`: its task or call no longer waits. `unknown`: there is no such ticket, or no longer. */
export type Cancelled =
  | { key: string; ticket: string; cancelled: true }
  | { key: string; ticket: string; cancelled: false; reason: 'granted' | 'gone' | 'unknown' };

/**
 * Takes a task or a call out of the queue, by its ticket. The task or call fails with LeaseLost and the reason `cancelled`
 * (docs/protocols/queue.md#cancel).
 * @throws HoldfastError Throttled, Unavailable (also if Step Functions gave no answer: the ticket stays), OutcomeUnknown
 */
export function canceller(dependencies: LeaseDependencies) {
  return async ({ key, ticket }: CancelInput, call: Call): Promise<Cancelled> => {
    const not = (reason: 'granted' | 'gone' | 'unknown') => ({ key, ticket, cancelled: false, reason }) as const;
    const isGranted = async () => {
      const record = await readRecord(dependencies, key, call);
      return record.ticket === ticket && isLeased(record);
    };
    const row = await getTicket(dependencies, { key, ticket }, call);
    if (row && !isTask(row)) {
      if (!(await flagCancelled(dependencies, { name: row }, call)))
        return not((await isGranted()) ? 'granted' : 'gone');
      // The call sees the flag when it claims the lease, or leaves. A call that has claimed the lease may have looked before.
      const { ticket: granted, version, claimTtlMs } = await readRecord(dependencies, key, call);
      if (granted === ticket && version !== undefined && claimTtlMs === undefined) return not('granted');
      return { key, ticket, cancelled: true };
    }
    if (await isGranted()) return not('granted');
    if (!row) return not('unknown');
    const delivery = await notifyFailed(
      dependencies,
      { ticket: row, error: leaseLost(key, 'cancelled', undefined) },
      call,
    );
    if (delivery === 'unanswered')
      throw new HoldfastError('Unavailable', 'Step Functions gave no answer; the ticket may still be parked', {
        retryAfterMs: 1000,
      });
    await deleteTicket(dependencies, row, call);
    if (delivery === 'delivered') return { key, ticket, cancelled: true };
    return not((await isGranted()) ? 'granted' : 'gone');
  };
}
