import type { Call } from '../aws/call.ts';
import { outcomeUnknown, writing } from '../aws/send.ts';
import { HoldfastError } from '../errors.ts';
import type { LeaseDependencies } from './dependencies.ts';
import { endTask, failTask } from './notify.ts';
import { getWaiter, isTask, withdrawn } from './waiters.ts';
import { type Asker, flagCancelled, flagOwnWaiters, type Withdrawer } from './waiting-calls.ts';

/** A lock by its key alone, for a call that ends waiters and grants. */
export interface WithdrawableLock<Rec> {
  key: string;
  /** The table of the record. */
  table: string;
  /** A consistent read. */
  read(): Promise<Rec>;
  /** The grant to a ticket. Until its call claims it, such a grant has the ttl that the call asked for. */
  grantOf(record: Rec, ticket: string): { claimTtlMs?: number | undefined } | undefined;
  /** The grant of a request. */
  own(record: Rec, asker: Asker): OwnGrant | undefined;
  /** True if the record, which has no grant of the request, remembers how one ended. */
  remembers(record: Rec, asker: Asker): boolean;
  /** Serves those behind a waiter that was taken out. */
  handOffToLine(record: Rec): Promise<void>;
}

interface OwnGrant {
  ticket: string | undefined;
  /** Ends the grant, and serves the next waiter. `changed`: another call has changed the grant. */
  end(): Promise<GrantEnd>;
}

/** `inDoubt`: as `changed`, but a try without an answer may have ended the grant. */
export type GrantEnd = 'ended' | 'changed' | 'inDoubt';

/** `granted`: the ticket already has the lease. `gone`: its task or call no longer waits. `unknown`: there is no such ticket, or no longer. */
export type Cancelled =
  | { key: string; ticket: string; cancelled: true }
  | { key: string; ticket: string; cancelled: false; reason: 'granted' | 'gone' | 'unknown' };

/**
 * Takes a task or a call out of a line, by its ticket, and serves those behind it (docs/protocols/queue.md#cancel). The task or call fails with
 * LeaseLost and the reason `cancelled`.
 * @throws HoldfastError Throttled, Unavailable (also if Step Functions gave no answer: the ticket stays), OutcomeUnknown
 */
export async function cancelByTicket<Rec>(
  dependencies: LeaseDependencies,
  { ticket, lock }: { ticket: string; lock: WithdrawableLock<Rec> },
  call: Call,
): Promise<Cancelled> {
  const { key } = lock;
  const not = (reason: 'granted' | 'gone' | 'unknown') => ({ key, ticket, cancelled: false, reason }) as const;
  const row = await getWaiter(dependencies, { key, ticket }, call);
  const isFlagged = row && !isTask(row) && (await flagCancelled(dependencies, { name: row }, call));
  const record = await lock.read();
  const grant = lock.grantOf(record, ticket);
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
    if (delivery === 'gone') return not(lock.grantOf(await lock.read(), ticket) ? 'granted' : 'gone');
  }
  await lock.handOffToLine(record);
  return { key, ticket, cancelled: true };
}

/**
 * Withdraws a request of the caller's own: its calls in line, or its grant (docs/protocols/queue.md#withdraw, docs/protocols/pools.md#withdraw).
 * @returns true if there was something to withdraw
 * @throws HoldfastError Throttled, Unavailable (also if Step Functions gave no answer about a task that has not been notified of its grant),
 * OutcomeUnknown
 */
export async function withdrawRequest<Rec>(
  dependencies: LeaseDependencies,
  { asked, lock }: { asked: Withdrawer; lock: WithdrawableLock<Rec> },
  call: Call,
): Promise<boolean> {
  const asker = { ...asked, key: lock.key };
  const { seen, flagged } = await flagOwnWaiters(dependencies, asker, call);
  let [hadWaiter, inDoubt] = [flagged, false];
  for (;;) {
    // The flag comes first, and the record second: a claim writes first, and looks at its ticket second.
    const record = await lock.read();
    const grant = lock.own(record, asker);
    if (!grant) {
      if (inDoubt && !hadWaiter && !lock.remembers(record, asker))
        throw outcomeUnknown(writing(`table ${lock.table}`), undefined, { key: asked.key });
      // Those behind the waiters of the request may be next now.
      if (flagged) await lock.handOffToLine(record);
      return hadWaiter;
    }
    const { ticket } = grant;
    if (ticket !== undefined && !seen.has(ticket))
      hadWaiter = (await withdrawWaiter(dependencies, { asker, ticket }, call)) || hadWaiter;
    const end = await grant.end();
    if (end === 'ended') return true;
    inDoubt ||= end === 'inDoubt';
  }
}

/**
 * Withdraws the waiter of a grant that came after the look at the line. A call must be answered that it was withdrawn, and not that its wait is over.
 * A task was not notified of its grant, and would never end.
 * @param asker with the key of the line
 * @returns whether its row was still there
 * @throws HoldfastError Throttled, OutcomeUnknown, Unavailable also if Step Functions gave no answer about the task
 */
async function withdrawWaiter(
  dependencies: LeaseDependencies,
  { asker, ticket }: { asker: Asker; ticket: string },
  call: Call,
): Promise<boolean> {
  const name = { key: asker.key, ticket };
  if (await flagCancelled(dependencies, { name, asker }, call)) return true;
  const row = await getWaiter(dependencies, name, call);
  if (!row || !isTask(row)) return false;
  await endTask(dependencies, { waiter: row, error: withdrawn(asker.key) }, call);
  return true;
}
