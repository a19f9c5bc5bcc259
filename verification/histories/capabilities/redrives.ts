import type { Caller, WorldFacts } from '../caller.ts';
import { type Capability, stuck } from '../capability.ts';
import type { Entry, Violation } from '../history.ts';
import { grantNotifiedInTime, notifiedInTime, windowKept } from './bounds.model.ts';
import { deadHolderGone } from './dead-holders.model.ts';
import { acquireAfterwards, exclusive, fencesRise, keysOf, LEASE_CALLS } from './leases.ts';
import { overtaken } from './line.model.ts';
import { startLife } from './lives.ts';
import { foundAgain, neverTooHeavy } from './permits.model.ts';
import { placeRules } from './places.model.ts';
import { asGrants, forgotten, oneTaskForEach } from './queue.model.ts';
import { neverTooManyPermits, recordKept, timeIsKept } from './record.model.ts';
import { boundIsRefused, claimedInTime, leaseIsKept, waitsBehindDead } from './redrives.model.ts';
import { idFor, repairUntilNobodyWaits, schedule } from './schedule.ts';
import { sleepersOn } from './sleepers.ts';

/** The keys of these executions: exclusive grants on the first, shared ones on the second. */
const LEASE = 'x0';
const SHARED = 'x1';

/** Longer than any task of these executions waits, and longer than their longest ttl. */
const MAX_MINUTES = 20;
const MAX_WAIT_SECONDS = 20;
/** A call gives up a question that takes longer. */
const LATE_MS = 9000;

/** A status is at most this old, and a ttl at most this long. */
const SURE_MS = 120_000;

/**
 * Executions that end and are redriven a moment later, and executions that go on after they have lost a grant, beside callers who wait behind their
 * grants. Step Functions is slow at times, and some callers cannot ask it.
 */
export const redrives: Capability = {
  name: 'redrives',
  occasional: 0.2,

  act: (caller) => (caller.random() < 0.05 ? askForBound(caller) : wait(caller, {})),

  others: [
    { name: 'executions of redrives', steps: 3, act: (caller) => start(caller) },
    { name: 'caller without Step Functions', steps: 3, share: 0.3, act: (caller) => wait(caller, { directly: true }) },
    { name: 'slow Step Functions', steps: 3, share: 0.4, act: slowDown },
    { name: 'end of all faults', steps: 1, act: calmDown },
    schedule('schedule of redrives', 10),
    sleepersOn('sleepers of redrives', [LEASE, SHARED], {
      terms: (_, key) => termsOf(key.endsWith(SHARED) ? SHARED : LEASE),
    }),
  ],

  async settle(caller) {
    caller.world.service.questions.maxMs = 0;
    await repairUntilNobodyWaits(caller, { min: 5, max: MAX_MINUTES });
    await caller.sleep(SURE_MS + caller.world.facts.spreadMs);
    for (const name of [LEASE, SHARED]) await acquireAfterwards(caller, name, termsOf(name));
  },

  check(history, facts) {
    const calls = history.filter(({ call }) => CALLS.has(call));
    const keys = keysOf(
      calls.filter(({ call }) => call !== 'repairQueues'),
      [LEASE, SHARED],
    );
    return [
      ...keys.flatMap((key) => {
        const ofKey = calls.filter(({ input }) => input.key === key);
        const grants = asGrants(ofKey);
        const isShared = key.endsWith(SHARED);
        const ofMode = isShared
          ? [
              ...(facts.withinBound ? neverTooHeavy(grants) : []),
              ...recordKept(history, key, facts),
              ...neverTooManyPermits(history, key),
              ...timeIsKept(history, { key, grants }, facts),
              ...foundAgain(grants, facts),
            ]
          : [
              ...(facts.withinBound ? exclusive(grants) : []),
              ...fencesRise(grants, facts, history),
              ...windowKept(history, key, facts),
              ...leaseIsKept(history, { key, grants }, facts),
            ];
        return [
          ...ofMode,
          ...(facts.withinBound ? inTime(history, key, { ofKey, facts }) : []),
          ...claimedInTime(history, key, facts),
          ...boundIsRefused(ofKey),
          ...deadHolderGone(history, key, facts),
          ...overtaken(history, { key, mayLoseMark: facts.sweeps, isShared }, facts),
          ...placeRules(history, { key, mayLoseMark: facts.sweeps }, facts),
          ...oneTaskForEach(ofKey),
          ...grantNotifiedInTime(history, key, facts),
        ];
      }),
      ...stuck(
        calls.filter(({ input, call }) =>
          facts.withinBound ? keys.includes(String(input.key)) || call === 'repairQueues' : call === 'repairQueues',
        ),
        'no key is stuck',
      ),
    ];
  },
};

/** Clocks decide whether a grant or a ticket is from before a redrive. If they differ by more than the bound, an execution may wait for itself. */
const inTime = (
  history: readonly Entry[],
  key: string,
  { ofKey, facts }: { ofKey: readonly Entry[]; facts: WorldFacts },
): Violation[] => [
  ...waitsBehindDead(history, key, facts),
  ...forgotten(ofKey),
  ...notifiedInTime(history, key, facts),
];

const CALLS = new Set([...LEASE_CALLS, 'task', 'executionEnds', 'executionRedriven', 'repairQueues']);

const nameFor = (caller: Caller): string => (caller.random() < 0.6 ? LEASE : SHARED);

const termsOf = (name: string): object => (name === SHARED ? { limit: 1 } : {});

const requestOf = (caller: Caller, { name, id, ttlSeconds }: { name: string; id: string; ttlSeconds: number }) => ({
  ...{ key: caller.world.prefix + name, holder: id, requestId: id, ttlSeconds },
  ...termsOf(name),
});

async function start(caller: Caller): Promise<void> {
  const name = nameFor(caller);
  startLife(caller, { key: caller.world.prefix + name, id: idFor(caller), terms: termsOf(name) });
  await caller.sleep(caller.random() * 30_000);
}

/** Waits as the client does, by one call after the other, holds the key for a moment, and releases it. */
async function wait(caller: Caller, known: object): Promise<void> {
  const { simulation } = caller.world;
  const request = requestOf(caller, {
    ...{ name: nameFor(caller), id: `${caller.name}/${idFor(caller)}`, ttlSeconds: caller.pick([2, 5, 20]) },
  });
  const untilMs = simulation.now + caller.pick([0, 5000, 30_000, 120_000]);
  for (let more: object = {}; ; ) {
    const waitSeconds = Math.min(MAX_WAIT_SECONDS, Math.ceil(Math.max(0, untilMs - simulation.now) / 1000));
    const answer = await caller.call('acquire', { ...request, ...more, waitSeconds }, known);
    if (answer?.outcome === 'ok') return holdFor(caller, request.key, answer.body.leaseId);
    if (answer?.outcome !== 'LeaseHeld' || !answer.body.retryWith || simulation.now >= untilMs) break;
    more = Object(answer.body.retryWith);
  }
  const { key, requestId, holder } = request;
  if (caller.random() < 0.5) await caller.call('withdraw', { key, requestId, holder });
}

/** A process asks for a bound grant, and must be refused: after a crash, its next try would wait for the end of its own execution. */
async function askForBound(caller: Caller): Promise<void> {
  const { ttlSeconds: _, ...request } = requestOf(caller, { name: nameFor(caller), id: idFor(caller), ttlSeconds: 0 });
  const execution = `arn:aws:states:us-east-1:000000000000:execution:machine:${caller.world.prefix}${request.requestId}`;
  await caller.call('acquire', { ...request, execution, bound: true });
}

async function holdFor(caller: Caller, key: string, leaseId: unknown): Promise<void> {
  await caller.sleep(caller.random() * 3000);
  await caller.call('release', { key, leaseId });
}

/** For a while, answers about executions come late, and some never. */
async function slowDown(caller: Caller): Promise<void> {
  const { questions } = caller.world.service;
  await caller.sleep(caller.random() * 40_000);
  if (!caller.world.calm) questions.maxMs = LATE_MS;
  await caller.sleep(10_000 + caller.random() * 50_000);
  questions.maxMs = 0;
}

/** Ends the faults while executions still live, so that their waits show what the faults have left. */
async function calmDown(caller: Caller): Promise<void> {
  await caller.sleep(90_000 + caller.random() * 120_000);
  caller.world.calm = true;
  caller.world.service.questions.maxMs = 0;
}
