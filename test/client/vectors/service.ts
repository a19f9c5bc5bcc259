import { Holdfast, type Lease } from '../../../clients/typescript/src/index.ts';
import { systemClock } from '../../../shared/surroundings/clock.ts';
import { startApi } from '../../support/stack/api.ts';
import { onceWorld } from '../../support/worlds/once.ts';
import { rateHandlers } from '../../support/worlds/rates.ts';
import type { Service } from './conductor.ts';
import type { Fields } from './row.ts';

/** The functions of leases, of `once` and of rates behind HTTP, on the clock of this machine. `stop` must be called. */
export async function startService(): Promise<Service & { stop(): Promise<void> }> {
  const { handlers, dependencies } = await onceWorld({ clock: systemClock });
  const { url, stop } = await startApi({ ...handlers, ...rateHandlers(dependencies) });
  const other = new Holdfast({ endpoint: url, holder: 'other' });
  const held = new Map<string, Lease>();
  return {
    url,
    stop,
    others: {
      hold: async (key) => void held.set(key, await other.acquire(key, { ttlSeconds: 600 })),
      letGo: async (key) => void (await held.get(key)?.release()),
      break: async (key) => {
        const { fence } = await other.readLease(key);
        await other.breakLease({ key, fence: fence ?? 0 });
      },
    },
    waiting: async (key) => (await other.readLease(key)).waiting,
    state: async (key, call) => {
      const read = {
        lease: () => other.readLease(key),
        once: () => other.readOnce({ key }),
        rate: () => other.readRates({ key }),
      };
      return (await read[call]()) as unknown as Fields;
    },
  };
}
