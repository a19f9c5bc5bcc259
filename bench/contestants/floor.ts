import * as bare from '../bare-sdk.ts';
import { serve } from './scenarios.ts';

/** The bare SDK: one conditional write for each operation, and no waiting. */
void serve({
  caller: () => ({
    acquire: async (key) => {
      const leaseId = await bare.acquire(key);
      return { release: () => bare.release(key, leaseId), heartbeat: () => bare.heartbeat(key, leaseId) };
    },
  }),
});
