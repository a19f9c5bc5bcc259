import type { Call } from '../aws/call.ts';
import { HoldfastError } from '../errors.ts';
import type { LeaseDependencies } from './dependencies.ts';
import { failTask } from './notify.ts';
import { getWaiter, isTask, withdrawn } from './waiters.ts';
import { flagCancelled } from './waiting-calls.ts';

/** `granted`: the ticket already has the lease. `gone`: its task or call no longer waits. `unknown`: there is no such ticket, or no longer. */
export type Cancelled =
  | { key: string; ticket: string; cancelled: true }
  | { key: string; ticket: string; cancelled: false; reason: 'granted' | 'gone' | 'unknown' };

/** The lock that the waiter waits for. */
interface CancelLock<Rec> {
  /** A consistent read. */
  read(): Promise<Rec>;
  /** What the ticket was granted: until its call claims it, such a grant has the ttl that the call asked for. */
  grantOf(record: Rec): { claimTtlMs?: number | undefined } | undefined;
  /** Serves those behind the waiter. */
  handOffToLine(record: Rec): Promise<void>;
}

interface Cancelling<Rec> {
  key: string;
  ticket: string;
  lock: CancelLock<Rec>;
}

/**
 * Takes a task or a call out of a line, by its ticket, and serves those behind it (docs/protocols/queue.md#cancel). The task or call fails with
 * LeaseLost and the reason `cancelled`.
 * @throws HoldfastError Throttled, Unavailable (also if Step Functions gave no answer: the ticket stays), OutcomeUnknown
 */
export async function cancelByTicket<Rec>(
  dependencies: LeaseDependencies,
  { key, ticket, lock }: Cancelling<Rec>,
  call: Call,
): Promise<Cancelled> {
  const not = (reason: 'granted' | 'gone' | 'unknown') => ({ key, ticket, cancelled: false, reason }) as const;
  const row = await getWaiter(dependencies, { key, ticket }, call);
  const isFlagged = row && !isTask(row) && (await flagCancelled(dependencies, { name: row }, call));
  const record = await lock.read();
  const grant = lock.grantOf(record);
  // A call sees the flag when it claims its grant, or leaves. A call that has claimed it may have looked before.
  if (grant && !(isFlagged && grant.claimTtlMs !== undefined)) return not('granted');
  if (!row) return not('unknown');
  if (!isTask(row) && !isFlagged) return not('gone');
  if (isTask(row)) {
    const delivery = await failTask(dependencies, { waiter: row, error: withdrawn(key) }, call);
    if (delivery === 'unanswered')
      throw new HoldfastError('Unavailable', 'Step Functions gave no answer; the ticket may still be parked', {
        retryAfterMs: 1000,
      });
    if (delivery === 'gone') return not(lock.grantOf(await lock.read()) ? 'granted' : 'gone');
  }
  await lock.handOffToLine(record);
  return { key, ticket, cancelled: true };
}
