import { integer } from '../../aws/attributes.ts';
import type { Call } from '../../aws/call.ts';
import { all } from '../../aws/condition.ts';
import { type LeaseDependencies, WINDOW_SECONDS } from '../dependencies.ts';
import { hasFenceAsSeen } from '../record/conditions.ts';
import { isBound, type KeyRecord } from '../record/record.ts';
import { updateKey } from '../record/requests.ts';
import { type RoomRequest, roomFreeFrom } from '../record/room.ts';
import { newGrantOf } from './next.ts';
import { isOverdue, isTask, readWaiters, type Waiter } from './waiters.ts';

// Tasks do not poll. If all holders crash, no call hands off to a task that waits, so a delayed SQS message starts the
// repair of the key.

/** While holders extend their grants, the repairs of their line are at least this far apart. */
const AGAIN_AFTER_SECONDS = 10;
/** How far a noted arrival may be from the wanted one and still count: the clocks of sender and receiver differ. */
const NOTE_TOLERANCE_MS = (AGAIN_AFTER_SECONDS * 1000) / 2;
/** How many callers before the first task make a delayed repair unnecessary: callers poll, and hand off. */
const MAX_CALLERS_READ = 100;

interface BlockedWaiter {
  record: KeyRecord;
  request: RoomRequest;
}

/**
 * When enough grants will have expired for a waiter. Infinite if no expiry makes enough room: the schedule ends bound
 * grants, and serves keys that third-party clients hold.
 */
const roomFreeAt = ({ record, request }: BlockedWaiter): number =>
  record.thirdParty
    ? Number.POSITIVE_INFINITY
    : roomFreeFrom({ ...record, entries: record.entries.filter((entry) => !isBound(entry)) }, request, 0);

/** Sends a delayed repair for when enough grants have expired for a waiter, unless no expiry makes enough room. */
export async function sendRepairAtRoom(
  dependencies: LeaseDependencies,
  waiting: BlockedWaiter,
  call: Call,
): Promise<void> {
  const endsAt = roomFreeAt(waiting);
  if (Number.isFinite(endsAt)) await sendRepairAt(dependencies, { key: waiting.record.key, endsAt }, call);
}

/**
 * Sends the next delayed repair, after a repair has found that the holders extended their grants, and a task still
 * waits behind them. SQS may deliver a message twice. If each copy sent the next message, messages would multiply. So
 * the record notes when the next message arrives, and a copy that finds the note does not send another.
 * @param next the next waiter
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export async function sendNextRepair(
  dependencies: LeaseDependencies,
  { record, next }: { record: KeyRecord; next: Waiter },
  call: Call,
): Promise<void> {
  const { clock, clockSkewMs, repairLater } = dependencies;
  const { key } = record;
  const endsAt = roomFreeAt({ record, request: newGrantOf(next) });
  if (!repairLater || !Number.isFinite(endsAt)) return;
  const now = clock.now();
  const delaySeconds = delayUntil(endsAt + clockSkewMs, now, AGAIN_AFTER_SECONDS);
  const arrivesAt = now + delaySeconds * 1000;
  // A noted message that arrives much later, for example for the end of an earlier grant, would leave the task waiting
  // for too long.
  const isNoted = ({ repairAt = 0 }: KeyRecord) =>
    repairAt > now + NOTE_TOLERANCE_MS && repairAt <= arrivesAt + NOTE_TOLERANCE_MS;
  if (isNoted(record) || !(await isTaskWaiting(dependencies, record, call))) return;
  const update = {
    key,
    set: ['repair_at = :repairAt'],
    condition: all(hasFenceAsSeen(record), {
      expression: 'attribute_not_exists(repair_at) OR repair_at <= :soon OR repair_at > :late',
    }),
    values: {
      ':repairAt': integer(arrivesAt),
      ':soon': integer(now + NOTE_TOLERANCE_MS),
      ':late': integer(arrivesAt + NOTE_TOLERANCE_MS),
    },
  };
  const { won, record: current, unanswered } = await updateKey(dependencies, update, call);
  // An earlier try of the SDK may have landed, so that the last try found the note of this very call and lost.
  if (won || (unanswered && current.repairAt === arrivesAt)) await repairLater({ key, delaySeconds }, call);
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

/** The longest delay that SQS allows. */
const MAX_DELAY_SECONDS = 900;

/**
 * Sends a delayed repair for the end of the grant window and the margin, after a caller has received the grant in front
 * of a task (docs/protocols/tasks.md#delayed-repair). If the caller does not claim the grant, only the schedule would
 * serve the task.
 */
export const sendRepairAfterWindow = (dependencies: LeaseDependencies, key: string, call: Call): Promise<void> =>
  sendRepairAt(dependencies, { key, endsAt: dependencies.clock.now() + WINDOW_SECONDS * 1000 }, call);

/**
 * Sends a delayed repair for one to two seconds after `endsAt` and the margin, or for a quarter of an hour from now if
 * that is earlier.
 */
export async function sendRepairAt(
  { repairLater: send, clock, clockSkewMs }: LeaseDependencies,
  { key, endsAt }: { key: string; endsAt: number },
  call: Call,
): Promise<void> {
  await send?.({ key, delaySeconds: delayUntil(endsAt + clockSkewMs, clock.now()) }, call);
}

/** The delay of a message that arrives one to two seconds after an instant, and after at least `least` seconds. */
const delayUntil = (at: number, now: number, least = 0): number =>
  Math.min(MAX_DELAY_SECONDS, Math.max(1, least, Math.ceil((at - now) / 1000) + 1));
