import { integer } from '../../aws/attributes.ts';
import type { Call } from '../../aws/call.ts';
import { all } from '../../aws/condition.ts';
import { type LeaseDependencies, WINDOW_SECONDS } from '../dependencies.ts';
import { hasFenceAsSeen } from '../record/conditions.ts';
import { isBound, type KeyRecord } from '../record/record.ts';
import { updateKey } from '../record/requests.ts';
import { type Asked, roomAt } from '../record/room.ts';
import { newGrantOf } from './next.ts';
import { isOverdue, isTask, readWaiters, type Waiter } from './waiters.ts';

// Messages that look at a key when its holders have expired, because a task waits, and no call looks if they exit.

/** While holders extend their grants, messages look at their line at most this often. */
const AGAIN_AFTER_SECONDS = 10;
/** A message may arrive by a clock that is behind the one by which it was sent. */
const EARLY_MS = (AGAIN_AFTER_SECONDS * 1000) / 2;
/** A line with this many callers in front of its first task is left to the callers, which look themselves. */
const MAX_CALLERS_READ = 100;

interface Watched {
  record: KeyRecord;
  asked: Asked;
}

/**
 * When enough grants will have expired for a waiter. Infinite if no expiry makes enough room. The schedule ends bound grants, and looks at keys that
 * third-party clients hold.
 */
const endOfHolders = ({ record, asked }: Watched): number =>
  record.thirdParty
    ? Number.POSITIVE_INFINITY
    : roomAt({ ...record, entries: record.entries.filter((entry) => !isBound(entry)) }, asked, 0);

/** Sends a message that looks again when enough grants have expired for a waiter. Sends none if there is room already. */
export async function repairAtRoom(dependencies: LeaseDependencies, watched: Watched, call: Call): Promise<void> {
  const endsAt = endOfHolders(watched);
  if (Number.isFinite(endsAt)) await repairAfter(dependencies, { key: watched.record.key, endsAt }, call);
}

/**
 * Looks later at grants that a message has just looked at and that their holders have extended, if a task still waits behind them. SQS may deliver a message
 * twice. If each copy sent the next message, their number would only grow. So the record notes when the next message arrives, and a copy that finds such a
 * note sends none.
 * @param next the first in line
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export async function repairAtTheEnd(
  dependencies: LeaseDependencies,
  { record, next }: { record: KeyRecord; next: Waiter },
  call: Call,
): Promise<void> {
  const { clock, clockSkewMs, repairLater } = dependencies;
  const { key } = record;
  const endsAt = endOfHolders({ record, asked: newGrantOf(next) });
  if (!repairLater || !Number.isFinite(endsAt)) return;
  const now = clock.now();
  const delaySeconds = delayUntil(endsAt + clockSkewMs, now, AGAIN_AFTER_SECONDS);
  const at = now + delaySeconds * 1000;
  // A message that arrives much later than the end, such as one about an earlier grant, does not count.
  const isNoted = ({ lookAt = 0 }: KeyRecord) => lookAt > now + EARLY_MS && lookAt <= at + EARLY_MS;
  if (isNoted(record) || !(await isTaskWaiting(dependencies, record, call))) return;
  const update = {
    key,
    set: ['look_at = :lookAt'],
    condition: all(hasFenceAsSeen(record), {
      expression: 'attribute_not_exists(look_at) OR look_at <= :soon OR look_at > :late',
    }),
    values: { ':lookAt': integer(at), ':soon': integer(now + EARLY_MS), ':late': integer(at + EARLY_MS) },
  };
  const { won, record: current, unanswered } = await updateKey(dependencies, update, call);
  // A try of the SDK may have landed before the one that lost.
  if (won || (unanswered && current.lookAt === at)) await repairLater({ key, delaySeconds }, call);
}

async function isTaskWaiting(
  dependencies: LeaseDependencies,
  { key, entries }: KeyRecord,
  call: Call,
): Promise<boolean> {
  const granted = new Set(entries.map(({ ticket }) => ticket));
  let read = 0;
  for await (const waiter of readWaiters(dependencies, { key, firstPage: 10 }, call)) {
    if (isTask(waiter) && !granted.has(waiter.ticket) && !isOverdue(waiter, dependencies.clock.now())) return true;
    if (++read === MAX_CALLERS_READ) return false;
  }
  return false;
}

/** SQS delays no message for longer. */
const MAX_DELAY_SECONDS = 900;

/**
 * Sends a message that looks again, after a caller has received the grant in front of a task (docs/protocols/tasks.md#a-message-looks-again). If
 * the caller does not claim the grant, only the schedule would look. The message arrives one to two seconds after the window and the margin.
 */
export const repairLater = (dependencies: LeaseDependencies, key: string, call: Call): Promise<void> =>
  repairAfter(dependencies, { key, endsAt: dependencies.clock.now() + WINDOW_SECONDS * 1000 }, call);

/**
 * Sends a message that looks one to two seconds after a grant can be taken over, or after a quarter of an hour.
 * @param at `endsAt`: epoch milliseconds
 */
export async function repairAfter(
  { repairLater: send, clock, clockSkewMs }: LeaseDependencies,
  { key, endsAt }: { key: string; endsAt: number },
  call: Call,
): Promise<void> {
  await send?.({ key, delaySeconds: delayUntil(endsAt + clockSkewMs, clock.now()) }, call);
}

/** How long a message is delayed that looks one to two seconds after an instant, which is in epoch milliseconds. */
const delayUntil = (at: number, now: number, least = 0): number =>
  Math.min(MAX_DELAY_SECONDS, Math.max(1, least, Math.ceil((at - now) / 1000) + 1));
