import { type Core, insist } from './attempt.ts';

/** Milliseconds for a release, its retries included. */
export const RELEASE_MS = 5000;

/** Releases as well as it can in so many milliseconds. @returns whether the service confirmed it */
export async function giveBack(
  core: Core,
  { key, leaseId }: { key: string; leaseId: string },
  timeoutMs: number,
): Promise<boolean> {
  let confirmed = false;
  let error: unknown;
  try {
    confirmed = (await insist(core, 'release', { key, leaseId }, { timeoutMs, ms: timeoutMs / 2 })).released;
  } catch (reason) {
    error = reason;
  }
  core.emit({ type: 'released', key, confirmed, error });
  return confirmed;
}
