import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'vitest';
import type { Holdfast } from '../../../client/src/holdfast.ts';

interface Grant {
  key: string;
  leaseId: string;
  fence: number;
}

/**
 * Extends a grant again and again. A deployment ends calls that are under way: the client tries those again.
 * @param timeoutMs how long the client tries one heartbeat
 */
export function heartbeats(holdfast: Holdfast, { key, leaseId, fence }: Grant, timeoutMs: number) {
  let good = 0;
  let stopped = false;
  const ended = (async () => {
    for (; !stopped; await delay(100)) {
      expect((await holdfast.heartbeat({ key, leaseId }, { timeoutMs })).fence).toBe(fence);
      good += 1;
    }
  })();
  return {
    /** Until some that began after this call have come through. @throws what a heartbeat threw */
    more: async () => {
      for (const enough = good + 3; good < enough; ) await Promise.race([delay(50), ended]);
    },
    end: async () => {
      stopped = true;
      await ended;
    },
  };
}
