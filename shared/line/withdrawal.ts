import type { Call } from '../aws/call.ts';
import { outcomeUnknown, writing } from '../aws/send.ts';
import { HoldfastError } from '../errors.ts';
import type { LeaseDependencies } from './dependencies.ts';
import { endTask, failTask } from './notify.ts';
import { getWaiter, isTask, type Waiter, withdrawn } from './waiters.ts';
import { type Asker, type FlaggedWaiters, flagCancelled, flagOwnWaiters, type Withdrawer } from './waiting-calls.ts';

/** A lock by its key alone, for a call that ends waiters and grants. */
export interface WithdrawableLock<Rec> {
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

/** The waiter of a ticket, as a cancel has found it. */
export interface Cancelling {
  key: string;
  ticket: string;
  waiter: Waiter | undefined;
  /** Whether the waiter is a call, and its row was still there to be flagged. */
  isFlagged: boolean;
}

/** Looks for the waiter of a ticket, and flags the row of a call. The kind of the key does not matter. @throws HoldfastError Throttled, Unavailable, OutcomeUnknown */
export async function beginCancel(
  dependencies: LeaseDependencies,
  { key, ticket }: { key: string; ticket: string },
  call: Call,
): Promise<Cancelling> {
  const waiter = await getWaiter(dependencies, { key, ticket }, call);
  const isCall = waiter !== undefined && !isTask(waiter);
  const flagged = isCall ? await flagCancelled(dependencies, { name: waiter }, call) : undefined;
  return { key, ticket, waiter, isFlagged: flagged !== undefined };
}

/**
 * Takes a task or a call out of a line, by its ticket, and serves those behind it (docs/protocols/queue.md#cancel). The task or call fails with
 * LeaseLost and the reason `cancelled`.
 * @throws HoldfastError Throttled, Unavailable (also if Step Functions gave no answer: the ticket stays), OutcomeUnknown
 */
export async function cancelByTicket<Rec>(
  dependencies: LeaseDependencies,
  { found, lock }: { found: Cancelling; lock: WithdrawableLock<Rec> },
  call: Call,
): Promise<Cancelled> {
  const { key, ticket, waiter, isFlagged } = found;
  const not = (reason: 'granted' | 'gone' | 'unknown') => ({ key, ticket, cancelled: false, reason }) as const;
  const record = await lock.read();
  const grant = lock.grantOf(record, ticket);
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
        {
          retryAfterMs: 1000,
        },
      );
    if (delivery === 'gone') return not(lock.grantOf(await lock.read(), ticket) ? 'granted' : 'gone');
  }
  await lock.handOffToLine(record);
  return { key, ticket, cancelled: true };
}

/** A request that the caller withdraws. If the key changes its kind during the call, the second lock receives what the first lock has found. */
export interface Withdrawal extends Asker, FlaggedWaiters {
  /** Whether the request had a waiter that this call has withdrawn. */
  hadWaiter: boolean;
  /** Whether a write without an answer may have ended the grant of the request. */
  inDoubt: boolean;
}

/** Flags the calls of a request in line. The kind of the key does not matter. @throws HoldfastError Throttled, Unavailable, OutcomeUnknown */
export async function beginWithdrawal(
  dependencies: LeaseDependencies,
  { ticket, ...asker }: Withdrawer,
  call: Call,
): Promise<Withdrawal> {
  const { seen, waiter } = await flagOwnWaiters(dependencies, { ticket, ...asker }, call);
  return { ...asker, seen, waiter, hadWaiter: waiter !== undefined, inDoubt: false };
}

/**
 * Withdraws a request of the caller's own: its calls in line, or its grant (docs/protocols/queue.md#withdraw, docs/protocols/pools.md#withdraw).
 * @returns true if there was something to withdraw
 * @throws HoldfastError Throttled, Unavailable (also if Step Functions gave no answer about a task that has not been notified of its grant),
 * OutcomeUnknown
 */
export async function withdrawRequest<Rec>(
  dependencies: LeaseDependencies,
  { asked, lock }: { asked: Withdrawal; lock: WithdrawableLock<Rec> },
  call: Call,
): Promise<boolean> {
  for (;;) {
    // The flag comes first, and the record second: a claim writes first, and looks at its ticket second.
    const record = await lock.read();
    const grant = lock.own(record, asked);
    if (!grant) {
      if (asked.inDoubt && !asked.hadWaiter && !lock.remembers(record, asked))
        throw outcomeUnknown(writing(`table ${lock.table}`), undefined, { key: asked.key });
      // Those behind the waiters of the request may be next now.
      if (asked.waiter) await lock.handOffToLine(record);
      return asked.hadWaiter;
    }
    const { ticket } = grant;
    if (ticket !== undefined && !asked.seen.has(ticket))
      asked.hadWaiter = (await withdrawWaiter(dependencies, { asker: asked, ticket }, call)) || asked.hadWaiter;
    const end = await grant.end();
    if (end === 'ended') return true;
    asked.inDoubt ||= end === 'inDoubt';
  }
}

/**
 * Withdraws the waiter of a grant that came after the look at the line. A call must be answered that it was withdrawn, and not that its wait is over.
 * A task was not notified of its grant, and would never end.
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
