import type { Caller } from '../caller.ts';
import type { Capability } from '../capability.ts';
import { grantNotifiedInTime, notifiedInTime, WHOLE_PERMIT, wholeForCallers } from './bounds.model.ts';
import { deadHolderGone } from './dead-holders.model.ts';
import { askInTheNameOfATask, startExecution } from './executions.ts';
import { deadTaskCostsNothing, roomBesideLine } from './free.model.ts';
import { acquireAfterwards, actForeignOn, actOn, falselyLost, keysOf, previousAnswered } from './leases.ts';
import { overtaken } from './line.model.ts';
import { liftCaps, operatorOn } from './operators.ts';
import { fencesRiseByRequest, foundAgain, neverTooHeavy } from './permits.model.ts';
import { placeRules } from './places.model.ts';
import { asGrants, cancelledForGood, forgotten, oneTaskForEach, wholeForTasks } from './queue.model.ts';
import { recordRules, roomIsNoticed, ticketsGone } from './record.model.ts';
import { cancelOne, parkJunk, schedule, settleLines, stuckOn } from './schedule.ts';
import { sleepersOn } from './sleepers.ts';
import { TTLS } from './work.ts';

/** The first key has permits with weights, the second readers and writers. Callers that want the key alone come to both. Two keys, so that callers meet. */
const KEYS = ['p0', 'p1'];

/** The terms that callers ask for. Their limits differ, so some are lower than the weight in use. */
function termsFor(caller: Caller, key: string): { limit?: number; weight?: number; mode?: string } {
  const dice = caller.random();
  if (key.endsWith('p1')) {
    if (dice < 0.35) return dice < 0.18 ? {} : { mode: 'exclusive' };
    return dice < 0.8 ? { mode: 'shared' } : { mode: 'shared', limit: 2 };
  }
  if (dice < 0.1) return dice < 0.07 ? {} : { mode: 'exclusive' };
  const limit = caller.pick([1, 2, 2, 2, 3]);
  return caller.random() < 0.3 ? { limit, weight: 1 + Math.floor(caller.random() * limit) } : { limit };
}

/** Keys with several holders, exclusive callers beside them, and third-party clients. */
export const permits: Capability = {
  name: 'permits',

  async act(caller) {
    const name = caller.random() < 0.6 ? 'p0' : 'p1';
    const key = caller.world.prefix + name;
    const dice = caller.random();
    if (dice < 0.15) startExecution(caller, [key], termsFor);
    else if (dice < 0.18) await parkJunk(caller, key, TTLS, () => termsFor(caller, key));
    else if (dice < 0.23) await cancelOne(caller, key);
    else await actOn(caller, [name], termsFor);
  },

  actForeign: (caller) => actForeignOn(caller, KEYS),

  others: [
    schedule('schedule of permits', 3),
    sleepersOn('sleepers of permits', KEYS, { cancels: true, terms: termsFor }),
    {
      name: 'second client of tasks of permits',
      steps: 6,
      share: 0.3,
      act: (caller) => askInTheNameOfATask(caller, KEYS),
    },
    operatorOn('operator of permits', KEYS),
  ],

  async settle(caller) {
    await liftCaps(caller, KEYS);
    await settleLines(caller, 3);
    for (const name of KEYS) {
      await acquireAfterwards(caller, name);
      await caller.call('readLeases', { key: caller.world.prefix + name, waiters: 'true' });
    }
  },

  check(history, facts) {
    const entries = history.filter(({ call }) => CALLS.has(call));
    const keys = keysOf(
      entries.filter(({ call }) => call !== 'repairQueues'),
      KEYS,
    );
    return [
      ...keys.flatMap((key) => {
        const ofKey = entries.filter(({ input }) => input.key === key);
        const grants = asGrants(ofKey);
        return [
          ...(facts.withinBound ? neverTooHeavy(grants) : []),
          ...fencesRiseByRequest(grants, facts),
          ...foundAgain(grants, facts),
          ...recordRules(history, { key, grants }, facts),
          ...previousAnswered(grants, facts),
          ...roomIsNoticed(history, key, facts),
          ...ticketsGone(history, key),
          ...falselyLost(grants),
          ...overtaken(history, { key, mayLoseMark: facts.foreignLeases || facts.sweeps, isShared: true }, facts),
          ...placeRules(history, { key, mayLoseMark: facts.foreignLeases || facts.sweeps }, facts),
          ...wholeForTasks(ofKey),
          ...oneTaskForEach(ofKey),
          ...cancelledForGood(ofKey),
          ...forgotten(ofKey),
          ...notifiedInTime(history, key, facts),
          ...grantNotifiedInTime(history, key, facts),
          ...wholeForCallers(history, key, WHOLE_PERMIT),
          ...roomBesideLine(history, key, facts),
          ...deadTaskCostsNothing(history, key, facts),
          ...deadHolderGone(history, key, facts),
        ];
      }),
      ...stuckOn(entries, keys),
    ];
  },
};

const CALLS = new Set([
  ...['acquire', 'heartbeat', 'release', 'breakLease', 'readLeases', 'cancelWaiter', 'withdraw', 'repairQueues'],
  ...['task', 'executionEnds', 'executionRedriven', 'rustAcquire', 'rustExtend', 'rustRelease'],
]);
