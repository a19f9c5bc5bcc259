import { isServerError, isThrottlingError, isTransientError } from '@smithy/core/retry';
import type { Call } from '../../aws/call.ts';
import type { Attempt, SdkError } from '../../aws/send.ts';
import type { LeaseDependencies } from '../dependencies.ts';

/** A question about an execution is sent again after each of these pauses, in milliseconds: an account may ask some fifteen times a second. */
const PAUSES_MS = [400, 1200];

/** A read may be sent again, unlike a message to a task, for which the client has a single try. */
export async function askAgain<Output>(
  { clock, ids }: LeaseDependencies,
  send: () => Promise<Attempt<Output>>,
  call: Call,
): Promise<Attempt<Output>> {
  const pauses = PAUSES_MS.values();
  for (;;) {
    const tried = await send();
    if ('output' in tried || !mayPass(tried.error)) return tried;
    const { value: mostMs } = pauses.next();
    if (mostMs === undefined || call.timeLeftMs() <= mostMs) return tried;
    await clock.sleep(Math.round(mostMs * (0.5 + ids.random() / 2)));
  }
}

const mayPass = (error: SdkError): boolean =>
  [isThrottlingError, isTransientError, isServerError].some((isSuch) => isSuch(error as never));
