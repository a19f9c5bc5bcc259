import type { Caller } from '../caller.ts';
import { AFTERWARDS, type Capability, CERTAIN_AFTER_MS, stuck } from '../capability.ts';
import type { Entry } from '../history.ts';
import {
  freedByEvent,
  grantToldInTime,
  toldInTime,
  toldWholeToCallers,
  WHOLE_LEASE,
  windowKept,
} from './bounds.model.ts';
import { deadHolderGone } from './dead-holders.model.ts';
import { askInTheNameOfATask, startExecution } from './executions.ts';
import { freeLeaseIsHad } from './free.model.ts';
import {
  acquireAfterwards,
  actForeignOn,
  actOn,
  exclusive,
  falselyLost,
  fencesNeverDown,
  fencesRise,
  keysOf,
  LEASE_CALLS,
  previousTold,
} from './leases.ts';
import { overtaken } from './line.model.ts';
import {
  asGrants,
  cancelledForGood,
  fencesFollowGrants,
  forgotten,
  inOrder,
  oneTaskForEach,
  refusedAndBound,
  refusedForGood,
  targetsAlone,
  toldWhole,
} from './queue.model.ts';
import { TTLS } from './work.ts';
import { startWrapper } from './wrappers.ts';

/** Of their own: nobody but these is parked. Few, so that they meet. */
const QUEUE_KEYS = ['q0', 'q1'];

const MINUTE_MS = 60_000;
/** Each parked task may die with the lease. Its end is found a minute later. */
const MAX_QUEUE_MINUTES = 40;

export const queue: Capability = {
  name: 'queue',

  async act(caller) {
    const dice = caller.random();
    const name = caller.random() < 0.7 ? QUEUE_KEYS[0] : QUEUE_KEYS[1];
    const all = QUEUE_KEYS.map((one) => `${caller.world.prefix}${one}`);
    const key = `${caller.world.prefix}${name}`;
    if (dice < 0.35) startExecution(caller, caller.random() < 0.25 ? all : [key]);
    else if (dice < 0.55) startWrapper(caller, key);
    else if (dice < 0.6) await parkJunk(caller, key);
    else if (dice < 0.65) await cancel(caller, key);
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
    { name: 'second client of tasks', steps: 6, share: 0.3, act: (caller) => askInTheNameOfATask(caller, QUEUE_KEYS) },
  ],

  async settle(caller) {
    for (let minutes = 0; minutes < MAX_QUEUE_MINUTES; minutes++) {
      await caller.sleep(MINUTE_MS);
      await caller.call('repairQueues', {});
      if (minutes > 2 && !isAnybodyThere(caller)) break;
    }
    await caller.sleep(CERTAIN_AFTER_MS + caller.world.facts.spreadMs);
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
          ...(facts.withinBound ? [...exclusive(asGrants(ofKey)), ...targetsAlone(ofKey)] : []),
          ...toldWhole(ofKey),
          ...falselyLost(asGrants(ofKey)),
          ...fencesRise(asGrants(ofKey), { ...facts, foreignLeases: facts.foreignQueue }, history),
          ...fencesFollowGrants(ofKey, facts),
          ...fencesNeverDown(asGrants(ofKey), facts.foreignQueue || (facts.sweeps && !facts.withinBound)),
          ...inOrder(ofKey, facts),
          ...overtaken(history, { key, mayLoseMark: facts.foreignQueue || facts.sweeps }, facts),
          ...previousTold(asGrants(ofKey), { ...facts, foreignLeases: facts.foreignQueue }),
          ...oneTaskForEach(ofKey),
          ...cancelledForGood(ofKey),
          ...refusedForGood(ofKey, facts),
          ...refusedAndBound(history, key),
          ...forgotten(ofKey),
          ...toldInTime(history, key, facts),
          ...grantToldInTime(history, key, facts),
          ...toldWholeToCallers(history, key, WHOLE_LEASE),
          ...(facts.foreignQueue || facts.sweeps ? [] : windowKept(history, key, facts)),
          ...freeLeaseIsHad(history, key, facts),
          ...deadHolderGone(history, key, facts),
        ];
      }),
      ...freedByEvent(entries, facts),
      ...stuck(
        entries.filter(({ input, call }) => keys.includes(String(input.key)) || call === 'repairQueues'),
        'no key is stuck',
      ),
    ];
  },
};

const OWN_CALLS = new Set([
  'task',
  'target',
  'executionEnds',
  'executionRedriven',
  'cancelWaiter',
  'repairQueues',
  'executionEnded',
]);

/** Of all keys. */
const isForAll = ({ call }: Entry) => call === 'repairQueues' || call === 'executionEnded';

export const isAnybodyThere = ({ world }: Caller): boolean => {
  const ended = new Set<string>();
  for (const { call, actor } of world.entries)
    if (call === 'executionEnds') ended.add(actor);
    else if (call === 'executionRedriven') ended.delete(actor);
  return world.entries.some(({ call, actor }) => call === 'task' && !ended.has(actor));
};

/** A caller parks a token that no task has. Each caller that may acquire can do that. */
async function parkJunk(caller: Caller, key: string): Promise<void> {
  caller.strikes('junkTicket', 1);
  const id = Math.floor(caller.random() * 1e9).toString(36);
  const request = { key, holder: `junk/${id}`, requestId: id, ttlSeconds: caller.pick(TTLS), taskToken: `junk-${id}` };
  await caller.call('acquire', request);
}

/** An operator lists the parked tasks, and cancels one of them. */
async function cancel(caller: Caller, key: string): Promise<void> {
  const answer = await caller.call('readLeases', { key, waiters: 'true' });
  const { waiters = [] } = (answer?.body ?? {}) as { waiters?: { ticket: string }[] };
  if (waiters.length === 0 || caller.name === AFTERWARDS) return;
  await caller.call('cancelWaiter', { key, ticket: caller.pick(waiters).ticket });
}
