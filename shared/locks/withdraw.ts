import type { Call } from '../aws/call.ts';
import { outcomeUnknown, writing } from '../aws/send.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import { endTask } from '../line/notify.ts';
import { getWaiter, isTask, withdrawn } from '../line/waiters.ts';
import { type Asker, flagCancelled, flagOwnWaiters } from '../line/waiting-calls.ts';
import { requestName } from '../permits/identity.ts';
import { readPool } from '../permits/read.ts';
import { ending, entryOf, type PoolEntry } from '../permits/record.ts';
import { endGrant, handOffToLine } from '../permits/release.ts';
import type { WithdrawInput } from './inputs.ts';

/** `unknown`: there is no such call in line and no such grant, or no longer. */
export type Withdrawn =
  | { key: string; requestId: string; cancelled: true }
  | { key: string; requestId: string; cancelled: false; reason: 'unknown' };

/**
 * Withdraws an acquisition of the caller's own: its calls in line, or its grant (docs/protocols/queue.md#withdraw). Does not stop a call that is not in line
 * yet. A request that had a grant is refused from then on, as one that was released. The record does not remember a request that had none, so a try of it
 * that arrives later is a new acquisition.
 * @throws HoldfastError Throttled, Unavailable (also if Step Functions gave no answer about a task that has not been notified of its grant),
 * OutcomeUnknown
 */
export function withdrawOwnRequest(dependencies: LeaseDependencies) {
  return async ({ ticket, ...asked }: WithdrawInput, call: Call): Promise<Withdrawn> => {
    const { key, requestId } = asked;
    const cancelled = await withdraw(dependencies, { ...asked, ticket, principal: call.principal }, call);
    return cancelled ? { key, requestId, cancelled } : { key, requestId, cancelled, reason: 'unknown' };
  };
}

/** @returns true if there was something to withdraw */
async function withdraw(
  dependencies: LeaseDependencies,
  { ticket: asked, ...asker }: Asker & { ticket?: string | undefined },
  call: Call,
): Promise<boolean> {
  const { key } = asker;
  const name = requestName(asker);
  const { seen, waiter } = await flagOwnWaiters(dependencies, { ...asker, ticket: asked }, call);
  let hadWaiter = waiter !== undefined;
  /** Whether a write without an answer may have ended the grant of the request. */
  let inDoubt = false;
  for (;;) {
    // The flag comes first, and the record second: a claim writes first, and looks at its ticket second.
    const record = await readPool(dependencies, key, call);
    const entry = entryOf(record, name);
    if (!entry) {
      // If the record does not remember the end, a try without an answer may have ended the grant, and eight others have ended since.
      if (inDoubt && !hadWaiter && ending(record, name) === undefined)
        throw outcomeUnknown(writing(`table ${dependencies.table}`), undefined, { key });
      // Those behind the waiters of the request may be next now.
      if (waiter) await handOffToLine(dependencies, { record }, call);
      return hadWaiter;
    }
    const { ticket } = entry;
    if (ticket !== undefined && !seen.has(ticket))
      hadWaiter = (await withdrawWaiter(dependencies, { asker, ticket }, call)) || hadWaiter;
    const end = await endOwn(dependencies, { key, entry }, call);
    if (end === 'ended') return true;
    inDoubt ||= end === 'inDoubt';
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

/** @returns `changed`: another call has changed the grant. `inDoubt`: the same, but a try without an answer may have ended it */
async function endOwn(
  dependencies: LeaseDependencies,
  { key, entry }: { key: string; entry: PoolEntry },
  call: Call,
): Promise<'ended' | 'changed' | 'inDoubt'> {
  const { name, ticket } = entry;
  const { won, record, unanswered, isHandedOff } = await endGrant(dependencies, { key, proof: entry }, call);
  // A try of the SDK's own may have landed before the one that lost.
  if (!won && !(unanswered && ending(record, name) === 'released')) return unanswered ? 'inDoubt' : 'changed';
  if (!isHandedOff) await handOffToLine(dependencies, { record, ticket }, call);
  return 'ended';
}
