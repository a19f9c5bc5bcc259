import type { Call } from '../../aws/call.ts';
import type { LeaseDependencies } from '../dependencies.ts';
import { WINDOW_SECONDS } from '../times.ts';

/** SQS delays no message for longer. */
const MAX_DELAY_SECONDS = 900;

/**
 * Sends a message that looks again, after a caller has received the lease in front of a task (docs/protocols/tasks.md#a-message-looks-again). If
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

/** How long a message is delayed that looks one to two seconds after an instant, which is in epoch milliseconds. */
export const delayUntil = (at: number, now: number, least = 0): number =>
  Math.min(MAX_DELAY_SECONDS, Math.max(1, least, Math.ceil((at - now) / 1000) + 1));
