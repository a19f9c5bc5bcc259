import type { Call } from '../../../aws/call.ts';
import { HoldfastError } from '../../../errors.ts';
import type { CancelInput } from '../../inputs.ts';
import { flagCancelled } from '../../queue/caller-tickets.ts';
import type { Cancelled } from '../../queue/cancel.ts';
import { notifyFailed } from '../../queue/delivery.ts';
import { deleteTicket, getTicket, isTask, lineOf } from '../../queue/tickets.ts';
import type { PoolDependencies } from '../dependencies.ts';
import { readPool } from '../read.ts';
import { giveToLine } from '../release.ts';
import { permitLost } from '../views.ts';

/**
 * Takes a task or a call out of the line of a pool, by its ticket (docs/protocols/pools.md#cancel). Those behind it may fit by then.
 * @throws HoldfastError Throttled, Unavailable (also if Step Functions gave no answer: the ticket stays), OutcomeUnknown
 */
export function permitCanceller(dependencies: PoolDependencies) {
  return async ({ key, ticket }: Omit<CancelInput, 'pool'>, call: Call): Promise<Cancelled> => {
    const not = (reason: 'granted' | 'gone' | 'unknown') => ({ key, ticket, cancelled: false, reason }) as const;
    const name = { key: lineOf(key), ticket };
    const read = async () => {
      const record = await readPool(dependencies, key, call);
      return { record, entry: record.entries.find((entry) => entry.ticket === ticket) };
    };
    const row = await getTicket(dependencies, name, call);
    if (row && !isTask(row)) {
      const isFlagged = await flagCancelled(dependencies, { name }, call);
      const { record, entry } = await read();
      if (!isFlagged) return not(entry ? 'granted' : 'gone');
      // The call sees the flag when it claims its permit, or leaves. A call that has claimed the permit may have looked before.
      if (entry && entry.claimTtlMs === undefined) return not('granted');
      await giveToLine(dependencies, { record }, call);
      return { key, ticket, cancelled: true };
    }
    if ((await read()).entry) return not('granted');
    if (!row) return not('unknown');
    const delivery = await notifyFailed(dependencies, { ticket: row, error: permitLost(key, 'cancelled') }, call);
    if (delivery === 'unanswered')
      throw new HoldfastError('Unavailable', 'Step Functions gave no answer; the ticket may still be parked', {
        retryAfterMs: 1000,
      });
    await deleteTicket(dependencies, row, call);
    const { record, entry } = await read();
    if (delivery !== 'delivered') return not(entry ? 'granted' : 'gone');
    await giveToLine(dependencies, { record }, call);
    return { key, ticket, cancelled: true };
  };
}
