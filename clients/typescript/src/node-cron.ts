import { type Holdfast, isHoldfastError, type OnceOptions, stayAlive } from './index.ts';
import type { BegunRun } from './once.ts';

/** The `RunCoordinator` of node-cron 4.6, so that users need no types of node-cron here. */
export interface NodeCronCoordinator {
  shouldRun(key: string, ttlMs: number): Promise<boolean>;
  onComplete(key: string): Promise<void>;
}

/** The key of a fire in node-cron: the name of the task, and the time of the fire. */
const FIRE = /^(.*):(\d{4}-\d\d-\d\dT[\d:]+\.\d{3}Z)$/s;

/** The shortest ttl of the service, in seconds. */
const LEAST_TTL_SECONDS = 2;

/** The longest ttl of the service, in seconds. The heartbeats of the client extend the lease of a run that takes longer. */
const MOST_TTL_SECONDS = 86_400;

/**
 * Lets one of several processes run each fire of a node-cron task. The key is the name of the task, and the slot is the time of the fire, so the clocks of
 * the processes may differ. A fire is skipped while an earlier run of the task still works. A fire whose run crashed is not repeated.
 * @throws Error from `shouldRun` if the service does not answer, which node-cron logs, and skips the fire
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
      const ttlSeconds = Math.min(MOST_TTL_SECONDS, Math.max(LEAST_TTL_SECONDS, Math.ceil(ttlMs / 1000)));
      // The service refuses to forget a slot before the lease of its run can end.
      const keepSeconds = options.keepSeconds && Math.max(options.keepSeconds, ttlSeconds);
      try {
        const begun = await holdfast.beginRun(name, { ...options, slot, ttlSeconds, keepSeconds });
        if (begun.outcome === 'run') running.set(key, { run: begun, stop: stayAlive(holdfast.surroundings) });
        return begun.outcome === 'run';
      } catch (error) {
        if (isHoldfastError(error, 'LeaseHeld')) return false;
        throw error;
      }
    },
    async onComplete(key) {
      const own = running.get(key);
      running.delete(key);
      own?.stop();
      await own?.run.complete(undefined);
    },
  };
}
