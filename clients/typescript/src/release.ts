import { type Core, call } from './attempt.ts';

/** How long a release with its retries may take by default, in milliseconds. */
export const RELEASE_MS = 5000;

/** Tries to release a grant, and never throws: a grant that stays expires. @returns whether the service confirmed the release */
export async function tryRelease(
  core: Core,
  { key, leaseId }: { key: string; leaseId: string },
  timeoutMs: number,
): Promise<boolean> {
  let confirmed = false;
  let error: unknown;
  try {
    confirmed = (await call(core, 'release', { key, leaseId }, { timeoutMs, ms: timeoutMs / 2 })).released;
  } catch (reason) {
    error = reason;
  }
  core.emit({ type: 'released', key, confirmed, error });
  return confirmed;
}
