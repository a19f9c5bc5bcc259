import { type Core, insist } from './attempt.ts';
import { interruptible } from './surroundings.ts';

/** Milliseconds for a release, its retries included. */
export const RELEASE_MS = 5000;

/** Waits for a promise that does not fail, but no longer than so many milliseconds. */
export const atMost = ({ by }: Core, ms: number, promise: Promise<void>) =>
  interruptible<void>(undefined, (resolve) => {
    promise.then(resolve);
    return by.after(ms, resolve);
  });

/** Releases as well as it can in so many milliseconds. @returns whether the service confirmed it */
export async function giveBack(
  core: Core,
  { key, leaseId }: { key: string; leaseId: string },
  timeoutMs: number,
): Promise<boolean> {
  try {
    const { released } = await insist(
      core,
      'release',
      { key, leaseId },
      { timeoutMs, tryMs: Math.max(1, timeoutMs / 2) },
    );
    core.emit({ type: 'released', key, confirmed: released });
    return released;
  } catch (error) {
    core.emit({ type: 'released', key, confirmed: false, error });
    return false;
  }
}
