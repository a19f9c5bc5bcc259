import { randomUUID } from 'node:crypto';
import * as domain from '../../locks.domain.ts';
import { untilAcquired } from '../holdfast.ts';
import { serve } from '../scenarios.ts';

/** Waits in line, or polls the key and races for it. */
const fair = process.env.PERMITS !== 'race';

void serve({
  caller: (ttlSeconds, limit) => {
    const holder = randomUUID();
    return {
      acquire: async (key) => {
        const asked = { key, holder, ttlSeconds, limit, fair, waitSeconds: 20 };
        const { leaseId, expiresAt } = await untilAcquired((retryWith) => domain.acquire({ ...asked, ...retryWith }));
        return {
          expiresAt: Date.parse(expiresAt),
          release: () => domain.release(key, leaseId),
          heartbeat: () => domain.heartbeat(key, leaseId),
        };
      },
    };
  },
});
