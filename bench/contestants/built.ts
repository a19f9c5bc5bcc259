import { randomUUID } from 'node:crypto';
import { builtFunction } from '../functions.ts';
import { type Granted, untilAcquired } from './holdfast.ts';
import { serve } from './scenarios.ts';

/** The built functions in dist/, called as API Gateway calls them. */
const acquire = await builtFunction('leases/acquire');
const heartbeat = await builtFunction('leases/heartbeat');
const release = await builtFunction('leases/release');

await serve({
  caller: (ttlSeconds) => {
    const holder = randomUUID();
    return {
      acquire: async (key) => {
        const { leaseId, expiresAt } = await untilAcquired((retryWith) =>
          acquire<Granted>({ key, holder, ttlSeconds, waitSeconds: 20, ...retryWith }),
        );
        return {
          expiresAt: Date.parse(expiresAt),
          release: () => release({ key, leaseId }),
          heartbeat: () => heartbeat({ key, leaseId }),
        };
      },
    };
  },
});
