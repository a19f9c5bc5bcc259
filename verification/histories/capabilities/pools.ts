import type { Caller } from '../caller.ts';
import { AFTERWARDS, type Capability } from '../capability.ts';
import { grantToldInTime, toldInTime, toldWholeToCallers, WHOLE_PERMIT } from './bounds.model.ts';
import { deadHolderGone } from './dead-holders.model.ts';
import { askInTheNameOfATask, startExecution } from './executions.ts';
import { deadTaskCostsNothing, roomBesideLine } from './free.model.ts';
import { falselyLost, keysOf } from './leases.ts';
import { overtaken } from './line.model.ts';
import { fencesRiseInPool, foundAgain, neverTooHeavy } from './pools.model.ts';
import {
  neverTooManyPermits,
  recordKept,
  roomIsHad,
  roomIsNoticed,
  ticketsGone,
  timeIsKept,
  withdrawalTold,
} from './pools.record.ts';
import { asGrants, cancelledForGood, forgotten, oneTaskForEach, toldWhole } from './queue.model.ts';
import { cancelOne, idFor, parkJunk, schedule, settleLines, stuckOn } from './schedule.ts';
import { TTLS } from './work.ts';

/** Of the first, permits with weights; of the second, readers and writers. Few, so that they meet. */
const POOL_KEYS = ['p0', 'p1'];

const SHORT_TTLS = [2, 3, 5, 10];

/** What a caller asks for: where limits differ, some of them are lower than what is in use. */
function termsFor(caller: Caller, key: string): { limit?: number; weight?: number; mode?: string } {
  const dice = caller.random();
  if (key.endsWith('p1')) {
    if (dice < 0.35) return { mode: 'exclusive' };
    return dice < 0.8 ? { mode: 'shared' } : { mode: 'shared', limit: 2 };
  }
  if (dice < 0.06) return { mode: 'exclusive' };
  const limit = caller.pick([1, 2, 2, 2, 3]);
  return caller.random() < 0.3 ? { limit, weight: 1 + Math.floor(caller.random() * limit) } : { limit };
}

interface KnownPermit {
  key: string;
  leaseId: string;
}

interface Memory {
  /** Everything that this caller was ever granted. */
  permits: KnownPermit[];
  /** What it has heard of permits, its own and others'. */
  fences: { key: string; fence: number }[];
  /** An acquisition that it does not know the outcome of. */
  pending: Readonly<Record<string, unknown>> | undefined;
}

/** A caller that begins again knows nothing but the request that it had written down. */
const memoryOf = (caller: Caller) =>
  caller.memory<Memory>('pools', (previous) => ({ permits: [], fences: [], pending: previous?.pending }));

export const pools: Capability = {
  name: 'pools',

  async act(caller) {
    const key = caller.world.prefix + (caller.random() < 0.6 ? 'p0' : 'p1');
    const dice = caller.random();
    if (dice < 0.15) startExecution(caller, [key], termsFor);
    else if (dice < 0.18) await parkJunk(caller, key, TTLS, () => termsFor(caller, key));
    else if (dice < 0.23) await cancelOne(caller, key);
    else await useOne(caller, key);
  },

  others: [
    schedule('schedule of pools', 3),
    {
      name: 'second client of tasks of pools',
      steps: 6,
      share: 0.3,
      act: (caller) => askInTheNameOfATask(caller, POOL_KEYS),
    },
  ],

  async settle(caller) {
    await settleLines(caller, 3);
    for (const name of POOL_KEYS) await haveAlone(caller, caller.world.prefix + name);
  },

  check(history, facts) {
    const entries = history.filter(({ call }) => CALLS.has(call));
    const keys = keysOf(
      entries.filter(({ call }) => call !== 'repairQueues'),
      POOL_KEYS,
    );
    return [
      ...keys.flatMap((key) => {
        const ofKey = entries.filter(({ input }) => input.key === key);
        const grants = asGrants(ofKey);
        return [
          ...(facts.withinBound ? neverTooHeavy(grants) : []),
          ...fencesRiseInPool(grants, facts),
          ...foundAgain(grants, facts),
          ...recordKept(history, key, facts),
          ...neverTooManyPermits(history, key),
          ...timeIsKept(history, { key, grants }, facts),
          ...roomIsHad(history, key, facts),
          ...roomIsNoticed(history, key),
          ...falselyLost(grants),
          ...overtaken(history, { key, mayLoseMark: false, isPool: true }, facts),
          ...toldWhole(ofKey),
          ...oneTaskForEach(ofKey),
          ...cancelledForGood(ofKey),
          ...forgotten(ofKey),
          ...ticketsGone(history, key),
          ...withdrawalTold(history, key),
          ...toldInTime(history, key, facts),
          ...grantToldInTime(history, key, facts),
          ...toldWholeToCallers(history, key, WHOLE_PERMIT),
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
  ...['task', 'executionEnds', 'executionRedriven'],
]);

/** What a caller does with permits of its own, or asks for one. */
async function useOne(caller: Caller, key: string): Promise<void> {
  const memory = memoryOf(caller);
  const dice = caller.random();
  if (memory.pending && dice < 0.55) return acquire(caller, memory.pending);
  if (memory.pending && dice < 0.65) return withdraw(caller, memory.pending);
  const own = memory.permits.filter((one) => one.key === key);
  if (own.length > 0 && dice < 0.6) {
    const { leaseId } = caller.random() < 0.7 ? (own.at(-1) as KnownPermit) : caller.pick(own);
    if (dice < 0.25) return beat(caller, { key, leaseId });
    return void (await caller.call('release', { key, leaseId }));
  }
  if (caller.random() < 0.1) return look(caller, key);
  const seen = memory.fences.findLast((one) => one.key === key);
  if (seen && caller.random() < 0.1) return void (await caller.call('breakLease', { key, fence: seen.fence }));
  const id = idFor(caller);
  const waits = { waitSeconds: 1 + Math.floor(caller.random() * 5), ...(caller.random() < 0.15 && { fair: false }) };
  const wait = caller.random() < 0.5 ? waits : {};
  const terms = { ttlSeconds: caller.pick(SHORT_TTLS), ...termsFor(caller, key), ...wait };
  return acquire(caller, { key, holder: `${caller.name}/${id}`, requestId: id, ...terms });
}

async function beat(caller: Caller, permit: KnownPermit): Promise<void> {
  await caller.call('heartbeat', {
    ...permit,
    ...(caller.random() < 0.5 && { ttlSeconds: caller.pick(SHORT_TTLS) }),
  });
  // A heartbeat is often sent while the one before is still under way.
  if (caller.random() < 0.3) await caller.call('heartbeat', { ...permit });
}

async function acquire(caller: Caller, input: Readonly<Record<string, unknown>>): Promise<void> {
  memoryOf(caller).pending = input; // written down before it is sent
  const answer = await caller.call('acquire', input);
  const now = memoryOf(caller);
  if (!answer || answer.outcome === 'OutcomeUnknown') return;
  // What is known by now is still asked again at times: a retry that came too late. A caller that has waited in line keeps its place.
  const { retryWith, leaseId, fence } = answer.body;
  if (answer.outcome === 'LeaseHeld' && retryWith) now.pending = { ...input, ...Object(retryWith) };
  else now.pending = caller.random() < 0.2 ? input : undefined;
  const key = String(input.key);
  if (typeof fence === 'number') now.fences.push({ key, fence });
  if (answer.outcome === 'ok') now.permits.push({ key, leaseId: String(leaseId) });
}

/** Disconnects, and says so. */
async function withdraw(caller: Caller, { key, requestId, holder }: Readonly<Record<string, unknown>>): Promise<void> {
  memoryOf(caller).pending = undefined;
  await caller.call('withdraw', { key, requestId, holder });
}

async function look(caller: Caller, key: string): Promise<void> {
  const answer = await caller.call('readLeases', { key });
  const { holders = [] } = (answer?.body ?? {}) as { holders?: { fence: number }[] };
  if (holders.length > 0) memoryOf(caller).fences.push({ key, fence: caller.pick(holders).fence });
}

/** Takes it alone and gives it back, when nothing should be in the way any more, and looks at what is left. */
async function haveAlone(caller: Caller, key: string): Promise<void> {
  const id = `${AFTERWARDS}-${key}`;
  const asked = { key, holder: id, requestId: id, ttlSeconds: 2, mode: 'exclusive' };
  const answer = await caller.call('acquire', asked);
  if (answer?.outcome === 'ok') await caller.call('release', { key, leaseId: answer.body.leaseId });
  await caller.call('readLeases', { key, waiters: 'true' });
}
