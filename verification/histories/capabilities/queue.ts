import type { WorldFacts } from '../caller.ts';
import type { Capability } from '../capability.ts';
import type { Entry } from '../history.ts';
import {
  freedByEvent,
  grantNotifiedInTime,
  notifiedInTime,
  WHOLE_LEASE,
  wholeForCallers,
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
  previousAnswered,
} from './leases.ts';
import { overtaken } from './line.model.ts';
import { liftCaps, operatorOn } from './operators.ts';
import { placeRules } from './places.model.ts';
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
  wholeForTasks,
} from './queue.model.ts';
import { recordRules, ticketsGone } from './record.model.ts';
import { cancelOne, parkJunk, schedule, settleLines, stuckOn } from './schedule.ts';
import { sleepersOn } from './sleepers.ts';
import { TTLS } from './work.ts';
import { startWrapper } from './wrappers.ts';

/** Keys that only this capability uses, on which all tasks park. They are few, so that tasks meet. */
const QUEUE_KEYS = ['q0', 'q1'];

export const queue: Capability = {
  name: 'queue',

  async act(caller) {
    const dice = caller.random();
    const name = caller.random() < 0.7 ? QUEUE_KEYS[0] : QUEUE_KEYS[1];
    const all = QUEUE_KEYS.map((one) => `${caller.world.prefix}${one}`);
    const key = `${caller.world.prefix}${name}`;
    if (dice < 0.35) startExecution(caller, caller.random() < 0.25 ? all : [key]);
    else if (dice < 0.55) startWrapper(caller, key);
    else if (dice < 0.6) await parkJunk(caller, key, TTLS);
    else if (dice < 0.65) await cancelOne(caller, key);
    else await actOn(caller, QUEUE_KEYS);
  },

  actForeign: (caller) => actForeignOn(caller, QUEUE_KEYS),

  others: [
    schedule('schedule', 4),
    sleepersOn('sleepers', QUEUE_KEYS, { cancels: true }),
    { name: 'second client of tasks', steps: 6, share: 0.3, act: (caller) => askInTheNameOfATask(caller, QUEUE_KEYS) },
    operatorOn('operator of the queue', QUEUE_KEYS),
  ],

  async settle(caller) {
    await liftCaps(caller, QUEUE_KEYS);
    await settleLines(caller, 4);
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
          ...wholeForTasks(ofKey),
          ...falselyLost(asGrants(ofKey)),
          ...fencesRise(asGrants(ofKey), facts, history),
          ...fencesFollowGrants(ofKey, facts),
          ...fencesNeverDown(asGrants(ofKey), facts.foreignLeases || (facts.sweeps && !facts.withinBound)),
          ...recordRules(history, { key, grants: asGrants(ofKey) }, facts),
          ...ticketsGone(history, key),
          ...inOrder(ofKey, facts),
          ...overtaken(history, { key, mayLoseMark: facts.foreignLeases || facts.sweeps }, facts),
          ...placeRules(history, { key, mayLoseMark: facts.foreignLeases || facts.sweeps }, facts),
          ...previousAnswered(asGrants(ofKey), facts),
          ...oneTaskForEach(ofKey),
          ...cancelledForGood(ofKey),
          ...refusedForGood(ofKey, facts),
          ...refusedAndBound(history, key),
          ...forgotten(withoutRedriven(ofKey, facts)),
          ...notifiedInTime(withoutRedriven(history, facts), key, facts),
          ...grantNotifiedInTime(history, key, facts),
          ...wholeForCallers(history, key, WHOLE_LEASE),
          ...(facts.foreignLeases || facts.sweeps ? [] : windowKept(history, key, facts)),
          ...freeLeaseIsHad(history, key, facts),
          ...deadHolderGone(history, key, facts),
        ];
      }),
      ...freedByEvent(entries, facts),
      ...stuckOn(withoutRedriven(entries, facts), keys),
    ];
  },
};

/**
 * The history without the tasks that may wait for themselves. Clocks decide whether a ticket is from before a redrive, so a redriven execution may take
 * its new ticket for an old one if they differ by more than the bound.
 */
function withoutRedriven(history: readonly Entry[], { withinBound }: WorldFacts): readonly Entry[] {
  if (withinBound) return history;
  const redriven = new Set(history.flatMap(({ call, input }) => (call === 'executionRedriven' ? [input.holder] : [])));
  return history.filter(({ call, input }) => call !== 'task' || !redriven.has(input.holder));
}

const OWN_CALLS = new Set([
  'task',
  'target',
  'executionEnds',
  'executionRedriven',
  'cancelWaiter',
  'runNext',
  'repairQueues',
  'executionEnded',
]);

/** The rules that hold over all keys together. */
const isForAll = ({ call }: Entry) => call === 'repairQueues' || call === 'executionEnded';
