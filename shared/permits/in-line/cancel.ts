import type { Call } from '../../aws/call.ts';
import type { CancelInput } from '../../line/calls.ts';
import { type Cancelled, cancelByTicket, type GrantOfWaiter } from '../../line/cancel.ts';
import { lineKeyOf } from '../../line/waiters.ts';
import type { PoolDependencies } from '../dependencies.ts';
import { readPool } from '../read.ts';
import type { PoolRecord } from '../record.ts';
import { handOffToLine } from '../release.ts';

/**
 * Takes a task or a call out of the line of a pool, by its ticket (docs/protocols/pools.md#cancel). Those behind it may fit by then.
 * @throws HoldfastError Throttled, Unavailable (also if Step Functions gave no answer: the ticket stays), OutcomeUnknown
 */
export function cancelPermitWaiter(dependencies: PoolDependencies) {
  return async ({ key, ticket }: Omit<CancelInput, 'pool'>, call: Call): Promise<Cancelled> => {
    let record: PoolRecord | undefined;
    const granted = async (): Promise<GrantOfWaiter> => {
      record = await readPool(dependencies, key, call);
      const entry = record.entries.find((one) => one.ticket === ticket);
      if (!entry) return 'none';
      return entry.claimTtlMs === undefined ? 'whole' : 'unclaimed';
    };
    const outcome = await cancelByTicket(dependencies, { line: lineKeyOf(key), ticket, granted }, call);
    if (outcome.cancelled)
      await handOffToLine(dependencies, { record: record ?? (await readPool(dependencies, key, call)) }, call);
    return outcome;
  };
}
