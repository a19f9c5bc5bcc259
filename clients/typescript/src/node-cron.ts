import { type Holdfast, isHoldfastError, type OnceOptions, stayAlive } from './index.ts';
import type { BegunRun } from './once.ts';

/** The `RunCoordinator` of node-cron 4.6, written out so that this package does not depend on node-cron. */
export interface NodeCronCoordinator {
  shouldRun(key: string, ttlMs: number): Promise<boolean>;
  onComplete(key: string): Promise<void>;
}

/** The keys of node-cron: the name of the task, and the time at which it fires. */
const FIRE = /^(.*):(\d{4}-\d\d-\d\dT[\d:]+\.\d{3}Z)$/s;

/** The shortest ttl of the service, in seconds. */
const MIN_TTL_SECONDS = 2;

/** The longest ttl of the service, in seconds. The heartbeats of the client extend the lease of a run that takes longer. */
const MAX_TTL_SECONDS = 86_400;

/**
 * Lets only one of several processes run a node-cron task each time that it fires. The key is the name of the task, and the slot is the time for which it
 * was scheduled, so the clocks of the processes may differ. A run is skipped while an earlier run of the task still works, and is not repeated if its
 * process crashes.
 *
 * If the service does not answer, `shouldRun` throws: node-cron logs the error, and skips the run.
 * @example
 * setRunCoordinator(nodeCronCoordinator(holdfast));
 * schedule('0 2 * * *', backup, { name: 'backup', distributed: true });
 */
export function nodeCronCoordinator(
  holdfast: Holdfast,
  options: Pick<OnceOptions, 'keepSeconds' | 'timeoutMs' | 'holder'> = {},
): NodeCronCoordinator {
  const running = new Map<string, { run: BegunRun; stop(): void }>();
  return {
    async shouldRun(key, ttlMs) {
      const [, name = key, slot] = FIRE.exec(key) ?? [];
      const ttlSeconds = Math.min(MAX_TTL_SECONDS, Math.max(MIN_TTL_SECONDS, Math.ceil(ttlMs / 1000)));
      // The service requires that a result is kept at least as long as the lease of its run.
      const keepSeconds = options.keepSeconds && Math.max(options.keepSeconds, ttlSeconds);
      try {
        const begun = await holdfast.beginRun(name, { ...options, slot, ttlSeconds, keepSeconds });
        if (begun.outcome === 'run') running.set(key, { run: begun, stop: stayAlive(holdfast.core.surroundings) });
        return begun.outcome === 'run';
      } catch (error) {
        if (isHoldfastError(error, 'LeaseHeld')) return false;
        throw error;
      }
    },
    async onComplete(key) {
      const scheduled = running.get(key);
      running.delete(key);
      scheduled?.stop();
      await scheduled?.run.complete(undefined);
    },
  };
}
