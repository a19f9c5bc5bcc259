import type { Call } from '../../aws/call.ts';
import { outcomeUnknown, writing } from '../../aws/send.ts';
import { HoldfastError } from '../../errors.ts';
import { canSleep, type LeaseDependencies } from '../dependencies.ts';
import { endTask, failTask, type NotifyOutcome } from '../line/notify.ts';
import { getWaiter, isTask, placeOf, type WaitingTask, withdrawn } from '../line/waiters.ts';
import { flagCancelled, flagOwnWaiters, flagTicket, type RequestOfCaller } from '../line/waiting-calls.ts';
import { requestName } from '../record/identity.ts';
import { ending, entryOf, type HolderEntry, type KeyRecord } from '../record/record.ts';
import { readKey } from '../record/requests.ts';
import type { CancelInput, WithdrawInput } from './inputs.ts';
import { endGrant, handOffToLine } from './release.ts';

/** `unknown`: there is no such call in line and no such grant. It may have ended. */
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
  { ticket: asked, ...asker }: RequestOfCaller & { ticket?: string | undefined },
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
    const record = await readKey(dependencies, key, call);
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
  { asker, ticket }: { asker: RequestOfCaller; ticket: string },
  call: Call,
): Promise<boolean> {
  const name = { key: asker.key, ticket };
  if (await flagCancelled(dependencies, { name, asker }, call)) return true;
  const row = await getWaiter(dependencies, name, call);
  if (!row || !isTask(row)) return false;
  await endTask(dependencies, { waiter: row, error: withdrawn(asker) }, call);
  return true;
}

/** @returns `changed`: another call has changed the grant. `inDoubt`: the same, but a try without an answer may have ended it */
async function endOwn(
  dependencies: LeaseDependencies,
  { key, entry }: { key: string; entry: HolderEntry },
  call: Call,
): Promise<'ended' | 'changed' | 'inDoubt'> {
  const { name, ticket } = entry;
  const { won, record, unanswered, isHandedOff } = await endGrant(dependencies, { key, proof: entry }, call);
  // A try of the SDK's own may have landed before the one that lost.
  if (!won && !(unanswered && ending(record, name) === 'released')) return unanswered ? 'inDoubt' : 'changed';
  if (!isHandedOff) await handOffToLine(dependencies, { record, ticket }, call);
  return 'ended';
}

/** `granted`: the ticket already has its grant. `gone`: its task or call no longer waits. `unknown`: there is no such ticket, or no longer. */
export type Cancelled =
  | { key: string; ticket: string; cancelled: true }
  | { key: string; ticket: string; cancelled: false; reason: 'granted' | 'gone' | 'unknown' };

/**
 * Takes a task or a call out of a line, by its ticket, and serves those behind it (docs/protocols/queue.md#cancel). The task or call fails with
 * LeaseLost and the reason `cancelled`.
 * @throws HoldfastError Throttled, Unavailable (also if Step Functions gave no answer: the ticket stays), OutcomeUnknown
 */
export function cancelWaiter(dependencies: LeaseDependencies) {
  return async ({ key, ticket }: CancelInput, call: Call): Promise<Cancelled> => {
    const not = (reason: 'granted' | 'gone' | 'unknown') => ({ key, ticket, cancelled: false, reason }) as const;
    const row = await getWaiter(dependencies, { key, ticket }, call);
    const waiter = row ?? (await sleeperAt(dependencies, { key, ticket }, call));
    const task = waiter && isTask(waiter) ? waiter : undefined;
    const flagged = waiter && !task ? await flagTicket(dependencies, { key, ticket }, call) : undefined;
    const record = await readKey(dependencies, key, call);
    const grant = entryOfTicket(record, ticket);
    // A call sees the flag when it claims its grant, or leaves. A call that has claimed it may have looked before.
    if (grant && !(flagged && grant.claimTtlMs !== undefined)) return not('granted');
    if (!task && !flagged) return not(waiter ? 'gone' : 'unknown');
    if (task && (await failParked(dependencies, task, call)) === 'gone')
      return not(entryOfTicket(await readKey(dependencies, key, call), ticket) ? 'granted' : 'gone');
    await handOffToLine(dependencies, { record }, call);
    return { key, ticket, cancelled: true };
  };
}

/** @throws HoldfastError Unavailable if Step Functions gave no answer, Throttled, OutcomeUnknown */
async function failParked(dependencies: LeaseDependencies, waiter: WaitingTask, call: Call): Promise<NotifyOutcome> {
  const outcome = await failTask(dependencies, { waiter, error: withdrawn({ key: waiter.key }) }, call);
  if (outcome !== 'unanswered') return outcome;
  const detail = 'Step Functions did not respond, and the task may still wait: send the call again';
  throw new HoldfastError('Unavailable', detail, { retryAfterMs: 1000 });
}

const sleeperAt = (dependencies: LeaseDependencies, { key, ticket }: CancelInput, call: Call) =>
  canSleep(dependencies) ? getWaiter(dependencies, { key, ticket: placeOf(ticket) }, call) : undefined;

const entryOfTicket = ({ entries }: KeyRecord, ticket: string) => entries.find((one) => one.ticket === ticket);
