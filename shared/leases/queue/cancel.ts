import type { Call } from '../../aws/call.ts';
import { HoldfastError } from '../../errors.ts';
import type { LeaseDependencies } from '../dependencies.ts';
import type { CancelInput } from '../inputs.ts';
import { isLeased } from '../rules.ts';
import { leaseLost } from '../views.ts';
import { readRecord } from './record.ts';
import { tellFailure } from './tell.ts';
import { deleteTicket, getTicket } from './tickets.ts';

/** `granted`: it has the lease by now. `gone`: its task no longer waits. `unknown`: there is no such ticket, or no longer. */
export type Cancelled =
  | { key: string; ticket: string; cancelled: true }
  | { key: string; ticket: string; cancelled: false; reason: 'granted' | 'gone' | 'unknown' };

/**
 * Takes a task out of the queue, and tells it so: LeaseLost with the reason `cancelled`.
 * @throws HoldfastError Throttled, Unavailable (also where Step Functions gave no answer: the ticket stays)
 */
export function canceller(deps: LeaseDependencies) {
  return async ({ key, ticket }: CancelInput, call: Call): Promise<Cancelled> => {
    const not = (reason: 'granted' | 'gone' | 'unknown') => ({ key, ticket, cancelled: false, reason }) as const;
    const isGranted = async () => {
      const record = await readRecord(deps, key, call);
      return record.ticket === ticket && isLeased(record);
    };
    const row = await getTicket(deps, { key, ticket }, call);
    if (await isGranted()) return not('granted');
    if (!row) return not('unknown');
    const told = await tellFailure(deps, row, leaseLost(key, 'cancelled', undefined), call);
    if (told === 'unanswered')
      throw new HoldfastError('Unavailable', 'Step Functions gave no answer; the ticket may still be parked', {
        retryAfterMs: 1000,
      });
    await deleteTicket(deps, row, call);
    if (told === 'delivered') return { key, ticket, cancelled: true };
    return not((await isGranted()) ? 'granted' : 'gone');
  };
}
