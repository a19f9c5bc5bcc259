import type { Call } from '../../aws/call.ts';
import type { LeaseDependencies } from '../dependencies.ts';
import { WINDOW_SECONDS } from './transfer.ts';

/**
 * A caller was granted the lease in front of a task. If it does not claim it, nobody looks but the schedule: so a message does
 * (docs/protocols/queue.md#a-message-looks-again), once the window and the margin are over, and a second for good measure.
 */
export async function repairLater(
  { repairLater: send, clockSkewMs }: LeaseDependencies,
  key: string,
  call: Call,
): Promise<void> {
  await send?.({ key, delaySeconds: WINDOW_SECONDS + Math.ceil(clockSkewMs / 1000) + 1 }, call);
}
