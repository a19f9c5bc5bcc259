import { integer } from '../aws/attributes.ts';
import type { Call } from '../aws/call.ts';
import { all, type Condition } from '../aws/condition.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import { delayUntil } from '../line/repair/later.ts';
import { isOverdue, isTask, readWaiters } from '../line/waiters.ts';
import { isHeld } from './conditions.ts';
import type { LeaseRecord } from './record.ts';
import { isBound, isLeased, takeoverAt } from './rules.ts';
import { updateLease } from './write.ts';

/** While a holder extends its lease, its line is looked at no more often. */
const AGAIN_AFTER_SECONDS = 10;
/** A message may arrive by a clock that is behind the one by which it was sent. */
const EARLY_MS = (AGAIN_AFTER_SECONDS * 1000) / 2;
/** A line with this many callers in front of its first task is left to the callers, which look themselves. */
const MAX_READ = 100;

/**
 * Sends a message that looks at the end of this grant, because a task waits behind it. The schedule ends a bound grant. If the holder exits, no call looks. The message arrives one to
 * two seconds after the lease can be taken over, or after a quarter of an hour.
 */
export async function repairAtTheEnd(
  dependencies: LeaseDependencies,
  record: LeaseRecord,
  { call }: { call: Call },
): Promise<void> {
  const delaySeconds = delayToTheEnd(dependencies, record);
  if (delaySeconds === undefined) return;
  await dependencies.repairLater?.({ key: record.key, fence: record.fence, delaySeconds }, call);
}

/** @returns undefined if nothing is to be sent */
function delayToTheEnd(
  { repairLater: send, clock, clockSkewMs }: LeaseDependencies,
  record: LeaseRecord,
  least = 0,
): number | undefined {
  const at = takeoverAt(record, clockSkewMs);
  if (!send || !isLeased(record) || isBound(record) || !Number.isFinite(at)) return undefined;
  return delayUntil(at, clock.now(), least);
}

/**
 * Looks later at an extended grant that a message has just looked at, if a task still waits behind it. SQS may deliver a message twice. If each copy
 * sent the next message, their number would only grow. So the record notes when the next message arrives, and a copy that finds such a note sends none.
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export async function repairAgainAtTheEnd(
  dependencies: LeaseDependencies,
  record: LeaseRecord,
  call: Call,
): Promise<void> {
  const { key, fence } = record;
  const delaySeconds = delayToTheEnd(dependencies, record, AGAIN_AFTER_SECONDS);
  const now = dependencies.clock.now();
  if (delaySeconds === undefined || (record.lookAt ?? 0) > now + EARLY_MS) return;
  if (!(await isTaskWaiting(dependencies, record, call))) return;
  const lookAt = integer(now + delaySeconds * 1000);
  const isNext: Condition = {
    expression: 'fence = :fence AND (attribute_not_exists(look_at) OR look_at <= :soon)',
    values: { ':fence': integer(Number(fence)), ':soon': integer(now + EARLY_MS) },
  };
  const noted = { key, expression: 'SET look_at = :lookAt', values: { ':lookAt': lookAt } };
  const {
    won,
    record: current,
    unanswered,
  } = await updateLease(dependencies, { ...noted, condition: all(isHeld, isNext) }, call);
  // A try of the SDK may have landed before the one that lost.
  if (won || (unanswered && current.lookAt === Number(lookAt.N)))
    await dependencies.repairLater?.({ key, fence, delaySeconds }, call);
}

async function isTaskWaiting(
  dependencies: LeaseDependencies,
  { key, ticket: own }: LeaseRecord,
  call: Call,
): Promise<boolean> {
  let read = 0;
  for await (const waiter of readWaiters(dependencies, { key, firstPage: 10 }, call)) {
    if (isTask(waiter) && waiter.ticket !== own && !isOverdue(waiter, dependencies.clock.now())) return true;
    if (++read === MAX_READ) return false;
  }
  return false;
}
