import type { Call } from '../../aws/call.ts';
import type { LeaseDependencies } from '../dependencies.ts';
import type { LeaseRecord } from '../record.ts';
import { isLeased, takeoverAt } from '../rules.ts';
import { isOverdue, isTask, ticketsOf } from './tickets.ts';
import { WINDOW_SECONDS } from './transfer.ts';

/** SQS delays no message for longer. */
const MAX_DELAY_SECONDS = 900;
/** While a holder extends its lease, its line is looked at no more often. */
const AGAIN_AFTER_SECONDS = 10;
/** A line with so many callers in front of its first task is left to the callers, who look themselves. */
const MAX_READ = 100;

/**
 * Sends a message that looks again, after a caller has received the lease in front of a task (docs/protocols/queue.md#a-message-looks-again). If
 * the caller does not claim the lease, only the schedule would look. The message arrives one to two seconds after the window and the margin.
 */
export async function repairLater(
  { repairLater: send, clockSkewMs }: LeaseDependencies,
  key: string,
  call: Call,
): Promise<void> {
  await send?.({ key, delaySeconds: WINDOW_SECONDS + Math.ceil(clockSkewMs / 1000) + 1 }, call);
}

/**
 * Sends a message that looks one to two seconds after the permit of a pool can be taken over, or after a quarter of an hour.
 * @param at `endsAt`: epoch milliseconds
 */
export async function repairAfter(
  { repairLater: send, clock, clockSkewMs }: LeaseDependencies,
  { key, endsAt }: { key: string; endsAt: number },
  call: Call,
): Promise<void> {
  await send?.({ key, delaySeconds: delayUntil(endsAt + clockSkewMs, clock.now()) }, call);
}

const delayUntil = (at: number, now: number, least = 0): number =>
  Math.min(MAX_DELAY_SECONDS, Math.max(1, least, Math.ceil((at - now) / 1000) + 1));

/**
 * Sends a message that looks at the end of this grant, because a task waits behind it. If its holder dies, no call looks. The message arrives one to two seconds
 * after the lease can be taken over, or after a quarter of an hour.
 * @param least seconds
 */
export async function repairAtTheEnd(
  { repairLater: send, clock, clockSkewMs }: LeaseDependencies,
  record: LeaseRecord,
  { call, least = 0 }: { call: Call; least?: number },
): Promise<void> {
  const at = takeoverAt(record, clockSkewMs);
  if (!send || !isLeased(record) || !Number.isFinite(at)) return;
  await send({ key: record.key, fence: record.fence, delaySeconds: delayUntil(at, clock.now(), least) }, call);
}

/** The same for a grant that a message has just looked at, and that was extended, if a task still waits behind it. @throws HoldfastError Throttled, Unavailable */
export async function repairAgainAtTheEnd(
  dependencies: LeaseDependencies,
  record: LeaseRecord,
  call: Call,
): Promise<void> {
  const { key, ticket: own } = record;
  let read = 0;
  for await (const ticket of ticketsOf(dependencies, { key, firstPage: 10 }, call)) {
    if (isTask(ticket) && ticket.ticket !== own && !isOverdue(ticket, dependencies.clock.now()))
      return repairAtTheEnd(dependencies, record, { call, least: AGAIN_AFTER_SECONDS });
    if (++read === MAX_READ) return;
  }
}
