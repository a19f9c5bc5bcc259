import type { Call } from '../aws/call.ts';
import { HoldfastError } from '../errors.ts';
import { readRecord } from '../leases/in-line/read-record.ts';
import { isLeased } from '../leases/rules.ts';
import { leaseLost } from '../leases/views.ts';
import type { CancelInput } from '../locks/inputs.ts';
import type { LeaseDependencies } from './dependencies.ts';
import { failTask } from './notify.ts';
import { getTicket, isTask, nameOfLine } from './waiters.ts';
import { flagCancelled } from './waiting-calls.ts';

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
    const granted = async (): Promise<GrantOfTicket> => {
      const record = await readRecord(dependencies, key, call);
      if (record.ticket !== ticket || !isLeased(record)) return 'none';
      return record.claimTtlMs === undefined ? 'whole' : 'unclaimed';
    };
    return cancelTicket(dependencies, { line: key, ticket, granted }, call);
  };
}

/** What a ticket has been granted: a caller's grant is `unclaimed` at first. */
export type GrantOfTicket = 'none' | 'unclaimed' | 'whole';

interface Cancelling {
  /** The key under which the ticket stands. */
  line: string;
  ticket: string;
  /** By a consistent read of the record. */
  granted(): Promise<GrantOfTicket>;
}

/** The same in any line. @throws as `canceller` */
export async function cancelTicket(
  dependencies: LeaseDependencies,
  { line, ticket, granted }: Cancelling,
  call: Call,
): Promise<Cancelled> {
  const key = nameOfLine(line);
  const not = (reason: 'granted' | 'gone' | 'unknown') => ({ key, ticket, cancelled: false, reason }) as const;
  const isGranted = async () => (await granted()) !== 'none';
  const row = await getTicket(dependencies, { key: line, ticket }, call);
  if (row && !isTask(row)) {
    if (!(await flagCancelled(dependencies, { name: row }, call))) return not((await isGranted()) ? 'granted' : 'gone');
    // The call sees the flag when it claims its grant, or leaves. A call that has claimed it may have looked before.
    return (await granted()) === 'whole' ? not('granted') : { key, ticket, cancelled: true };
  }
  if (await isGranted()) return not('granted');
  if (!row) return not('unknown');
  const error = leaseLost(key, 'cancelled', undefined);
  const delivery = await failTask(dependencies, { ticket: row, error }, call);
  if (delivery === 'unanswered')
    throw new HoldfastError('Unavailable', 'Step Functions gave no answer; the ticket may still be parked', {
      retryAfterMs: 1000,
    });
  if (delivery === 'delivered') return { key, ticket, cancelled: true };
  return not((await isGranted()) ? 'granted' : 'gone');
}
