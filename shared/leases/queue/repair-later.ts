import type { Call } from '../../aws/call.ts';
import type { LeaseDependencies } from '../dependencies.ts';
import { WINDOW_SECONDS } from './transfer.ts';

/**
 * Sends a message that looks again, after a caller has received the lease in front of a task (docs/protocols/queue.md#a-message-looks-again). If
 * the caller does not claim the lease, only the schedule would look. The message arrives a second after the window and the margin.
 */
export async function repairLater(
  { repairLater: send, clockSkewMs }: LeaseDependencies,
  key: string,
  call: Call,
): Promise<void> {
  await send?.({ key, delaySeconds: WINDOW_SECONDS + Math.ceil(clockSkewMs / 1000) + 1 }, call);
}
