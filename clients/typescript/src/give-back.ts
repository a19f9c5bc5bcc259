import { type Core, insist } from './attempt.ts';

/** Time for a release including its retries, in milliseconds. */
export const RELEASE_MS = 5000;

/** Tries to release within so many milliseconds, and never throws. @returns whether the service confirmed it */
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
