import type { Call } from '../aws/call.ts';
import { HoldfastError } from '../errors.ts';
import type { LeaseDependencies } from './dependencies.ts';
import { failTask } from './notify.ts';
import { getWaiter, isTask, keyOfLine, withdrawn } from './waiters.ts';
import { flagCancelled } from './waiting-calls.ts';

/** `granted`: the ticket already has the lease. `gone`: its task or call no longer waits. `unknown`: there is no such ticket, or no longer. */
export type Cancelled =
  | { key: string; ticket: string; cancelled: true }
  | { key: string; ticket: string; cancelled: false; reason: 'granted' | 'gone' | 'unknown' };

/** What a ticket has been granted. The grant of a caller is `unclaimed` at first. `whole`: a full grant. */
export type GrantOfWaiter = 'none' | 'unclaimed' | 'whole';

interface Cancelling {
  /** The key of the line. */
  line: string;
  ticket: string;
  /** By a consistent read of the record. */
  granted(): Promise<GrantOfWaiter>;
}

/**
 * Removes a task or a call from a line, by its ticket. The task or call fails with LeaseLost and the reason `cancelled`
 * (docs/protocols/queue.md#cancel).
 * @throws HoldfastError Throttled, Unavailable (also if Step Functions gave no answer: the ticket stays), OutcomeUnknown
 */
export async function cancelByTicket(
  dependencies: LeaseDependencies,
  { line, ticket, granted }: Cancelling,
  call: Call,
): Promise<Cancelled> {
  const key = keyOfLine(line);
  const not = (reason: 'granted' | 'gone' | 'unknown') => ({ key, ticket, cancelled: false, reason }) as const;
  const isGranted = async () => (await granted()) !== 'none';
  const row = await getWaiter(dependencies, { key: line, ticket }, call);
  if (row && !isTask(row)) {
    if (!(await flagCancelled(dependencies, { name: row }, call))) return not((await isGranted()) ? 'granted' : 'gone');
    // The call sees the flag when it claims its grant, or leaves. A call that has already claimed its grant may have looked before the flag was set.
    return (await granted()) === 'whole' ? not('granted') : { key, ticket, cancelled: true };
  }
  if (await isGranted()) return not('granted');
  if (!row) return not('unknown');
  const error = withdrawn(line);
  const delivery = await failTask(dependencies, { waiter: row, error }, call);
  if (delivery === 'unanswered')
    throw new HoldfastError('Unavailable', 'Step Functions gave no answer; the ticket may still be parked', {
      retryAfterMs: 1000,
    });
  if (delivery === 'delivered') return { key, ticket, cancelled: true };
  return not((await isGranted()) ? 'granted' : 'gone');
}
