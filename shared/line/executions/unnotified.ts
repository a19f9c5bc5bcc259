import type { Call } from '../../aws/call.ts';
import type { LeaseDependencies } from '../dependencies.ts';
import { getWaiter, isTask } from '../waiters.ts';

/** A grant of a lease or a permit whose execution has ended. */
interface LineGrant {
  /** The key of the line. */
  line: string;
  ticket?: string | undefined;
  claimTtlMs?: number | undefined;
  /** When a call was answered with the grant. */
  answeredAt?: number | undefined;
  /** Epoch milliseconds. */
  endsAt: number;
}

/**
 * True if the grant may never have been delivered: no call has claimed it, or its task's waiter was still there. The schedule deletes the waiter of
 * a task that it sends LeaseHeld, so a grant that has expired and that answered no call may never have been delivered, either.
 * @param tickets those of the execution that were still there
 */
export async function mayBeUnnotified(
  dependencies: LeaseDependencies,
  { grant, tickets }: { grant: LineGrant; tickets: readonly string[] },
  call: Call,
): Promise<boolean> {
  const { line, ticket, claimTtlMs, answeredAt, endsAt } = grant;
  if (ticket === undefined || answeredAt !== undefined) return false;
  if (claimTtlMs !== undefined || endsAt <= dependencies.clock.now()) return true;
  const row = await getWaiter(dependencies, { key: line, ticket }, call);
  return row ? isTask(row) : tickets.includes(ticket);
}
