import type { Call } from '../../aws/call.ts';
import type { CancelInput } from '../../line/calls.ts';
import { type Cancelled, cancelByTicket, type GrantOfWaiter } from '../../line/cancel.ts';
import type { LeaseDependencies } from '../../line/dependencies.ts';
import { readRecord } from '../read-record.ts';
import { isLeased } from '../rules.ts';

/**
 * Takes a task or a call out of the line of a lease, by its ticket (docs/protocols/queue.md#cancel).
 * @throws HoldfastError Throttled, Unavailable (also if Step Functions gave no answer: the ticket stays), OutcomeUnknown
 */
export function cancelLeaseWaiter(dependencies: LeaseDependencies) {
  return async ({ key, ticket }: CancelInput, call: Call): Promise<Cancelled> => {
    const granted = async (): Promise<GrantOfWaiter> => {
      const record = await readRecord(dependencies, key, call);
      if (record.ticket !== ticket || !isLeased(record)) return 'none';
      return record.claimTtlMs === undefined ? 'whole' : 'unclaimed';
    };
    return cancelByTicket(dependencies, { line: key, ticket, granted }, call);
  };
}
