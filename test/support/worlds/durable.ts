import { Holdfast } from '../../../clients/typescript/src/index.ts';
import { REGION } from '../../../infrastructure/logical-ids.ts';
import { durableFunctions } from '../../../shared/aws/durable-functions.ts';
import type { Quotas } from '../../../shared/locks/dependencies.ts';
import { ANY_EXECUTION } from '../../../shared/locks/executions/allowed.ts';
import { systemClock } from '../../../shared/surroundings/clock.ts';
import { durableFunctionsOver, type StartBackend } from '../emulators/durable-functions.ts';
import { lambdaContext } from '../stack/adapters.ts';
import { startApi } from '../stack/api.ts';
import { leaseWorld } from './leases.ts';
import { rateHandlers } from './rates.ts';

const CREDENTIALS = { accessKeyId: 'local', secretAccessKey: 'local' };

/** Durable functions over a backend, the service that answers their callbacks, and a client. */
export async function durableWorld(startBackend: StartBackend, quotas?: Quotas) {
  const functions = await durableFunctionsOver(startBackend, ({ execution, status, endedAt }) =>
    world.handlers.executionEnded({ execution, status, stopDate: endedAt }, lambdaContext()),
  );
  const world = await leaseWorld({
    clock: systemClock,
    durableFunctions: async () =>
      durableFunctions({ endpoint: functions.endpoint, region: REGION, credentials: CREDENTIALS }),
    executions: { ...ANY_EXECUTION, durableFunctions: '*' },
    clockSkewMs: 0,
    ...(quotas && { quotas }),
  });
  const api = await startApi({ ...world.handlers, ...rateHandlers(world.dependencies) });
  const holdfast = new Holdfast({ endpoint: api.url, holder: 'durable' });
  return {
    ...{ functions, world, api, holdfast },
    waiting: async (key: string) => (await holdfast.readLease(key)).waiting,
    /** The state of a key, or how much of its limit is in use. */
    stateOf: async (key: string) => {
      const read = await holdfast.readLease(key);
      return read.limit === null ? read.state : read.used;
    },
    stop: async () => {
      await functions.stop();
      await api.stop();
    },
  };
}
