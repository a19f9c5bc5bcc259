import type { Caller } from '../caller.ts';
import { AFTERWARDS, type Capability } from '../capability.ts';
import { deadHolderGone } from './dead-holders.model.ts';
import { startExecution } from './executions.ts';
import { fencesRiseOnRecord, neverBoth, ofKind, wrongKindIsTrue } from './kinds.model.ts';
import { actOn, exclusive, falselyLost, keysOf } from './leases.ts';
import { fencesRiseInPool, mayForget, neverTooHeavy } from './pools.model.ts';
import { neverTooManyPermits, recordKept, ticketsGone } from './pools.record.ts';
import { asGrants, cancelledForGood, forgotten, oneTaskForEach, toldWhole } from './queue.model.ts';
import { cancelOne, schedule, settleLines, stuckOn } from './schedule.ts';

/** The first is used as a lease, the second as a pool. */
const KEYS = ['m0', 'm1'];

/** Every tenth caller is wrong about the kind of the key. */
function termsFor(caller: Caller, key: string): object {
  const isWrong = caller.random() < 0.1;
  if (key.endsWith('m1') === isWrong) return {};
  return caller.random() < 0.2 ? { mode: 'exclusive' } : { limit: caller.pick([1, 2, 3]) };
}

/** Keys that callers of both kinds use. */
export const kinds: Capability = {
  name: 'kinds',

  async act(caller) {
    const key = caller.world.prefix + caller.pick(KEYS);
    const dice = caller.random();
    if (dice < 0.15) startExecution(caller, [key], termsFor);
    else if (dice < 0.2) await cancelOne(caller, key);
    else await actOn(caller, KEYS, termsFor);
  },

  others: [schedule('schedule of kinds', 3)],

  async settle(caller) {
    await settleLines(caller, 3);
    for (const name of KEYS) for (const terms of [{}, { limit: 1 }, {}]) await haveAs(caller, name, terms);
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
          ...(facts.withinBound
            ? [...neverBoth(grants), ...exclusive(ofKind(grants, 'lease')), ...neverTooHeavy(ofKind(grants, 'pool'))]
            : []),
          ...fencesRiseInPool(grants, facts),
          ...(mayForget(facts) ? [] : fencesRiseOnRecord(history, key)),
          ...recordKept(history, key, facts),
          ...neverTooManyPermits(history, key),
          ...wrongKindIsTrue(history, { key, grants }, facts),
          ...falselyLost(grants),
          ...toldWhole(ofKey),
          ...oneTaskForEach(ofKey),
          ...cancelledForGood(ofKey),
          ...forgotten(ofKey),
          ...ticketsGone(history, key),
          ...deadHolderGone(history, key, facts),
        ];
      }),
      ...stuckOn(entries, keys),
    ];
  },
};

const CALLS = new Set([
  ...['acquire', 'heartbeat', 'release', 'breakLease', 'readLeases', 'cancelWaiter', 'withdraw', 'repairQueues'],
  ...['task', 'executionEnds', 'executionRedriven'],
]);

/** Has the key as each kind, when nothing should be in the way any more. */
async function haveAs(caller: Caller, name: string, terms: object): Promise<void> {
  const key = caller.world.prefix + name;
  const id = `${AFTERWARDS}-${name}-${caller.world.entries.length}`;
  const answer = await caller.call('acquire', { key, holder: id, requestId: id, ttlSeconds: 2, ...terms });
  if (answer?.outcome === 'ok') await caller.call('release', { key, leaseId: answer.body.leaseId });
}
