import type { Caller } from '../caller.ts';
import { AFTERWARDS, type Capability, stuck } from '../capability.ts';
import type { Entry } from '../history.ts';
import { CLOCK_SKEW_MS } from '../service.ts';
import { MAX_TTL_MS, startExecution } from './executions.ts';
import { acquireAfterwards, actForeignOn, actOn, exclusive, fencesRise, keysOf, LEASE_CALLS } from './leases.ts';
import {
  asGrants,
  cancelledForGood,
  fencesFollowGrants,
  forgotten,
  inOrder,
  oneTaskForEach,
  refusedForGood,
} from './queue.model.ts';

/** Of their own: nobody but these is parked. Few, so that they meet. */
const QUEUE_KEYS = ['q0', 'q1'];

const MINUTE_MS = 60_000;
/** Each who is parked may die with the lease, and be found a minute after its end. */
const MAX_QUEUE_MINUTES = 40;

export const queue: Capability = {
  name: 'queue',

  async act(caller) {
    const dice = caller.random();
    const name = caller.random() < 0.7 ? QUEUE_KEYS[0] : QUEUE_KEYS[1];
    const key = `${caller.world.prefix}${name}`;
    if (dice < 0.55) startExecution(caller, key);
    else if (dice < 0.6) await cancel(caller, key);
    else await actOn(caller, QUEUE_KEYS);
  },

  actForeign: (caller) => actForeignOn(caller, QUEUE_KEYS),

  others: [
    {
      name: 'schedule',
      steps: 4,
      async act(caller) {
        await caller.sleep(MINUTE_MS);
        await caller.call('repairQueues', {});
      },
    },
  ],

  async settle(caller) {
    for (let minutes = 0; minutes < MAX_QUEUE_MINUTES; minutes++) {
      await caller.sleep(MINUTE_MS);
      await caller.call('repairQueues', {});
      if (minutes > 2 && !isAnybodyThere(caller)) break;
    }
    await caller.sleep(MAX_TTL_MS + 2000 + CLOCK_SKEW_MS + caller.world.facts.spreadMs);
    await caller.call('repairQueues', {});
    for (const name of QUEUE_KEYS) await acquireAfterwards(caller, name);
  },

  check(history, facts) {
    const entries = history.filter(({ call }) => LEASE_CALLS.has(call) || OWN_CALLS.has(call));
    const keys = keysOf(entries, QUEUE_KEYS);
    return [
      ...keys.flatMap((key) => {
        const ofKey = entries.filter((entry) => entry.input.key === key || isForAll(entry));
        return [
          ...(facts.withinBound ? exclusive(asGrants(ofKey)) : []),
          ...fencesRise(asGrants(ofKey), facts),
          ...fencesFollowGrants(ofKey, facts),
          ...inOrder(ofKey, facts),
          ...oneTaskForEach(ofKey),
          ...cancelledForGood(ofKey),
          ...refusedForGood(ofKey, facts),
          ...forgotten(ofKey),
        ];
      }),
      ...stuck(
        entries.filter(({ input, call }) => keys.includes(String(input.key)) || call === 'repairQueues'),
        'no key is stuck',
      ),
    ];
  },
};

const OWN_CALLS = new Set(['task', 'executionEnds', 'cancelWaiter', 'repairQueues', 'executionEnded']);

/** Of all keys. */
const isForAll = ({ call }: Entry) => call === 'repairQueues' || call === 'executionEnded';

const isAnybodyThere = ({ world }: Caller): boolean => {
  const ended = new Set(world.entries.filter(({ call }) => call === 'executionEnds').map(({ actor }) => actor));
  return world.entries.some(({ call, actor }) => call === 'task' && !ended.has(actor));
};

/** An operator looks who is parked, and takes one of them out. */
async function cancel(caller: Caller, key: string): Promise<void> {
  const answer = await caller.call('readLeases', { key, waiters: 'true' });
  const { waiters = [] } = (answer?.body ?? {}) as { waiters?: { ticket: string }[] };
  if (waiters.length === 0 || caller.name === AFTERWARDS) return;
  await caller.call('cancelWaiter', { key, ticket: caller.pick(waiters).ticket });
}
