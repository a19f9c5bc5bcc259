import { randomUUID } from 'node:crypto';
import * as domain from '../locks.domain.ts';
import { untilAcquired } from './holdfast.ts';
import { serve } from './scenarios.ts';

void serve({
  caller: (ttlSeconds) => {
    const holder = randomUUID();
    return {
      acquire: async (key) => {
        const { leaseId, expiresAt } = await untilAcquired((retryWith) =>
          domain.acquire({ key, holder, ttlSeconds, waitSeconds: 20, ...retryWith }),
        );
        return {
          expiresAt: Date.parse(expiresAt),
          release: () => domain.release(key, leaseId),
          heartbeat: () => domain.heartbeat(key, leaseId),
        };
      },
    };
  },
});
