import type { Call } from '../../aws/call.ts';
import { outcomeUnknown, writing } from '../../aws/send.ts';
import { HoldfastError } from '../../errors.ts';
import { canSleep, type LeaseDependencies } from '../dependencies.ts';
import { failTask, failTaskOrThrow, type NotifyOutcome } from '../line/notify.ts';
import { errorOfFlagged, getWaiter, isTask, placeKeyOf, type WaitingTask } from '../line/waiters.ts';
import { flagOwnWaiters, flagRow, flagTicket, type RequestOfCaller } from '../line/waiting-calls.ts';
import { nameOfRequest } from '../record/identity.ts';
import { endOfRequest, entryOf, type HolderEntry, type KeyRecord } from '../record/record.ts';
import { readKey } from '../record/requests.ts';
import type { CancelInput, WithdrawInput } from './inputs.ts';
import { endGrant, handOffToLine } from './release.ts';

/** `unknown`: the request has neither a waiter nor a grant now. */
export type Withdrawn =
  | { key: string; requestId: string; cancelled: true }
  | { key: string; requestId: string; cancelled: false; reason: 'unknown' };

/**
 * Withdraws a request of the caller: its calls in line, or its grant (docs/protocols/queue.md#withdraw). A call that is
 * not in line yet is not stopped. If the request had a grant, later calls of the request are refused as after a
 * release. The record does not remember a request without a grant, so a call of such a request that arrives later is a
 * new acquisition.
 * @throws HoldfastError Throttled, OutcomeUnknown, Unavailable (Step Functions may have given no answer about a
 * task that has not been notified of its grant)
 */
export function withdrawOwnRequest(dependencies: LeaseDependencies) {
  return async ({ ticket, ...identity }: WithdrawInput, call: Call): Promise<Withdrawn> => {
    const { key, requestId } = identity;
    const cancelled = await withdraw(dependencies, { ...identity, ticket, principal: call.principal }, call);
    return cancelled ? { key, requestId, cancelled } : { key, requestId, cancelled, reason: 'unknown' };
  };
}

/** @returns true if there was something to withdraw */
async function withdraw(
  dependencies: LeaseDependencies,
  { ticket: namedTicket, ...asker }: RequestOfCaller & { ticket?: string | undefined },
  call: Call,
): Promise<boolean> {
  const { key } = asker;
  const name = nameOfRequest(asker);
  const { tickets, waiter } = await flagOwnWaiters(dependencies, { ...asker, ticket: namedTicket }, call);
  let hadWaiter = waiter !== undefined;
  /** Whether a write without an answer may have ended the grant of the request. */
  let isInDoubt = false;
  for (;;) {
    // The order matters: this call flags the ticket and then reads the record, and a claim writes the record and then
    // reads the ticket.
    const record = await readKey(dependencies, key, call);
    const entry = entryOf(record, name);
    if (!entry) {
      // A try without an answer may have ended the grant. The record forgets that when eight other grants have ended
      // since.
      if (isInDoubt && !hadWaiter && endOfRequest(record, name) === undefined)
        throw outcomeUnknown(writing(`table ${dependencies.table}`), undefined, { key });
      // A waiter behind this one may be next now.
      if (waiter) await handOffToLine(dependencies, { record }, call);
      return hadWaiter;
    }
    const { ticket } = entry;
    if (ticket !== undefined && !tickets.has(ticket))
      hadWaiter = (await withdrawWaiter(dependencies, { asker, ticket }, call)) || hadWaiter;
    const end = await endOwn(dependencies, { key, entry }, call);
    if (end === 'ended') return true;
    isInDoubt ||= end === 'inDoubt';
  }
}

/**
 * Withdraws a waiter that received its grant after this call had flagged the line. A call must receive the answer that
 * it was withdrawn, not that its wait is over. Without the error, a task would never end, because no call would
 * notify it of its grant.
 * @returns whether the row of the waiter was still there
 * @throws HoldfastError Throttled, OutcomeUnknown, Unavailable (Step Functions may have given no answer about the task)
 */
async function withdrawWaiter(
  dependencies: LeaseDependencies,
  { asker, ticket }: { asker: RequestOfCaller; ticket: string },
  call: Call,
): Promise<boolean> {
  const rowKey = { key: asker.key, ticket };
  if (await flagRow(dependencies, { rowKey, asker }, call)) return true;
  const row = await getWaiter(dependencies, rowKey, call);
  if (!row || !isTask(row)) return false;
  await failTaskOrThrow(dependencies, { waiter: row, error: errorOfFlagged(asker) }, call);
  return true;
}

/**
 * Ends the grant of the request.
 * @returns `changed` if another call has changed the grant, `inDoubt` if a try without an answer may also have ended it
 */
async function endOwn(
  dependencies: LeaseDependencies,
  { key, entry }: { key: string; entry: HolderEntry },
  call: Call,
): Promise<'ended' | 'changed' | 'inDoubt'> {
  const { name, ticket } = entry;
  const { won, record, unanswered, hasServedLine } = await endGrant(dependencies, { key, proof: entry }, call);
  // An earlier try of the SDK may have ended the grant.
  if (!won && !(unanswered && endOfRequest(record, name) === 'released')) return unanswered ? 'inDoubt' : 'changed';
  if (!hasServedLine) await handOffToLine(dependencies, { record, ticket }, call);
  return 'ended';
}

/**
 * `granted`: the waiter already has its grant. `gone`: its task or call no longer waits. `unknown`: there is no such
 * ticket now.
 */
export type Cancelled =
  | { key: string; ticket: string; cancelled: true }
  | { key: string; ticket: string; cancelled: false; reason: 'granted' | 'gone' | 'unknown' };

/**
 * Takes the waiter with a ticket out of its line, for an operator, and serves the waiters behind it
 * (docs/protocols/queue.md#cancel). The task or call fails with LeaseLost and the reason `cancelled`.
 * @throws HoldfastError Throttled, OutcomeUnknown, Unavailable (Step Functions may have given no answer, and then the
 * ticket stays)
 */
export function cancelWaiter(dependencies: LeaseDependencies) {
  return async ({ key, ticket }: CancelInput, call: Call): Promise<Cancelled> => {
    const notCancelled = (reason: 'granted' | 'gone' | 'unknown') =>
      ({ key, ticket, cancelled: false, reason }) as const;
    const row = await getWaiter(dependencies, { key, ticket }, call);
    const waiter = row ?? (await sleeperAt(dependencies, { key, ticket }, call));
    const task = waiter && isTask(waiter) ? waiter : undefined;
    const flagged = waiter && !task ? await flagTicket(dependencies, { key, ticket }, call) : undefined;
    const record = await readKey(dependencies, key, call);
    const grant = entryOfTicket(record, ticket);
    // A call reads its flag when it claims its grant or leaves. A call that has claimed its grant
    // may have read its row before the flag was there.
    if (grant && !(flagged && grant.claimTtlMs !== undefined)) return notCancelled('granted');
    if (!task && !flagged) return notCancelled(waiter ? 'gone' : 'unknown');
    if (task && (await failParked(dependencies, task, call)) === 'gone')
      return notCancelled(entryOfTicket(await readKey(dependencies, key, call), ticket) ? 'granted' : 'gone');
    await handOffToLine(dependencies, { record }, call);
    return { key, ticket, cancelled: true };
  };
}

/** @throws HoldfastError Unavailable if Step Functions gave no answer, Throttled, OutcomeUnknown */
async function failParked(dependencies: LeaseDependencies, waiter: WaitingTask, call: Call): Promise<NotifyOutcome> {
  const outcome = await failTask(dependencies, { waiter, error: errorOfFlagged({ key: waiter.key }) }, call);
  if (outcome !== 'unanswered') return outcome;
  const detail = 'Step Functions did not respond, and the task may still wait: send the call again';
  throw new HoldfastError('Unavailable', detail, { retryAfterMs: 1000 });
}

const sleeperAt = (dependencies: LeaseDependencies, { key, ticket }: CancelInput, call: Call) =>
  canSleep(dependencies) ? getWaiter(dependencies, { key, ticket: placeKeyOf(ticket) }, call) : undefined;

const entryOfTicket = ({ entries }: KeyRecord, ticket: string) => entries.find((entry) => entry.ticket === ticket);
