import type { Caller } from '../caller.ts';
import { AFTERWARDS, type Capability } from '../capability.ts';
import { CLOCK_SKEW_MS } from '../service.ts';
import {
  atWork,
  freedByEvent,
  grantNotifiedInTime,
  notifiedInTime,
  WHOLE_LEASE,
  WHOLE_PERMIT,
  wholeForCallers,
  windowKept,
} from './bounds.model.ts';
import { Execution } from './executions.ts';
import { deadTaskCostsNothing, freeLeaseIsHad, roomBesideLine } from './free.model.ts';
import { exclusive, fencesRise, keysOf, LEASE_CALLS } from './leases.ts';
import { overtaken } from './line.model.ts';
import { fencesRiseByRequest, foundAgain, neverTooHeavy } from './permits.model.ts';
import { placeRules } from './places.model.ts';
import { asGrants, oneTaskForEach } from './queue.model.ts';
import { neverTooManyPermits, recordKept, roomIsHad, timeIsKept } from './record.model.ts';
import { idFor, repairUntilNobodyWaits, schedule } from './schedule.ts';
import { sleepersOn } from './sleepers.ts';

/** Keys that only this capability uses. The first has one holder at a time, the second two. */
const LEASE = 'u0';
const SHARED = 'u1';

const MAX_TTL_MS = 120_000;
const MAX_GRACE_SECONDS = 40;

/**
 * Parties that take long or cannot be notified: tasks that no message reaches, executions whose functions go on after the execution has
 * ended, and callers that must receive what is free beside these. The checks are about bounds in time.
 */
export const patience: Capability = {
  name: 'patience',
  occasional: 0.2,

  act: (caller) => askPlainly(caller),

  others: [
    { name: 'unreachable tasks', steps: 3, act: parkUnreachable },
    { name: 'working executions', steps: 4, act: startWork },
    schedule('schedule of patience', 4),
    sleepersOn('sleepers of patience', [LEASE, SHARED], {
      cancels: true,
      terms: (_, key) => termsOf(key.endsWith(SHARED) ? SHARED : LEASE),
    }),
  ],

  async settle(caller) {
    await repairUntilNobodyWaits(caller, { min: 4, max: 4 });
    await caller.sleep(MAX_TTL_MS + 2000 + CLOCK_SKEW_MS + caller.world.facts.spreadMs);
    for (const name of [LEASE, SHARED]) await acquire(caller, name, `${AFTERWARDS}-${name}`);
  },

  check(history, facts) {
    const calls = history.filter(({ call }) => CALLS.has(call));
    const ofKey = (key: string) => calls.filter(({ input }) => input.key === key);
    return [
      ...keysOf(calls, [LEASE]).flatMap((key) => {
        const grants = asGrants(ofKey(key));
        return [
          ...(facts.withinBound ? exclusive(grants) : []),
          ...fencesRise(grants, facts, history),
          ...oneTaskForEach(ofKey(key)),
          ...overtaken(history, { key, mayLoseMark: facts.sweeps }, facts),
          ...placeRules(history, { key, mayLoseMark: facts.sweeps }, facts),
          ...atWork(ofKey(key), facts),
          ...notifiedInTime(history, key, facts),
          ...grantNotifiedInTime(history, key, facts),
          ...wholeForCallers(history, key, WHOLE_LEASE),
          ...(facts.sweeps ? [] : windowKept(history, key, facts)),
          ...freeLeaseIsHad(history, key, facts),
          ...freedByEvent([...ofKey(key), ...history.filter(({ call }) => call === 'executionEnded')], facts),
        ];
      }),
      ...keysOf(calls, [SHARED]).flatMap((key) => {
        const grants = asGrants(ofKey(key));
        return [
          ...(facts.withinBound ? neverTooHeavy(grants) : []),
          ...fencesRiseByRequest(grants, facts),
          ...foundAgain(grants, facts),
          ...recordKept(history, key, facts),
          ...neverTooManyPermits(history, key),
          ...timeIsKept(history, { key, grants }, facts),
          ...overtaken(history, { key, mayLoseMark: false, isShared: true }, facts),
          ...placeRules(history, { key, mayLoseMark: false }, facts),
          ...roomIsHad(history, key, facts),
          ...notifiedInTime(history, key, facts),
          ...grantNotifiedInTime(history, key, facts),
          ...wholeForCallers(history, key, WHOLE_PERMIT),
          ...roomBesideLine(history, key, facts),
          ...deadTaskCostsNothing(history, key, facts),
        ];
      }),
    ];
  },
};

const CALLS = new Set([...LEASE_CALLS, 'task', 'work', 'executionEnds', 'executionRedriven', 'cancelWaiter']);

const nameFor = (caller: Caller): string => (caller.random() < 0.6 ? LEASE : SHARED);

const termsOf = (name: string): object => (name === SHARED ? { limit: 2 } : {});

/** Acquires the key, with or without a wait, holds it for a moment, and releases it. */
async function askPlainly(caller: Caller): Promise<void> {
  const wait = caller.random() < 0.4 ? { waitSeconds: 1 + Math.floor(caller.random() * 19) } : {};
  await acquire(caller, nameFor(caller), `${caller.name}/${idFor(caller)}`, wait);
  await caller.sleep(caller.random() * 20_000);
}

async function acquire(caller: Caller, name: string, id: string, more: object = {}): Promise<void> {
  const key = caller.world.prefix + name;
  const asked = { key, holder: id, requestId: id, ttlSeconds: caller.pick([2, 5, 20]), ...termsOf(name), ...more };
  const answer = await caller.call('acquire', asked);
  if (answer?.outcome !== 'ok') return;
  await caller.sleep(caller.random() * 3000);
  await caller.call('release', { key, leaseId: answer.body.leaseId });
}

/** A task that no message reaches: its KMS key denies the service, or Step Functions does not answer about it. */
async function parkUnreachable(caller: Caller): Promise<void> {
  await caller.sleep(caller.random() * 30_000);
  const name = nameFor(caller);
  const [key, id] = [caller.world.prefix + name, idFor(caller)];
  const unreachable = caller.pick(['denied', 'unanswered'] as const);
  const execution = `arn:aws:states:us-east-1:000000000000:execution:machine:${caller.world.prefix}${id}`;
  const { stepFunctions } = caller.world.service;
  stepFunctions.begin(execution);
  const request = {
    ...{ key, holder: `unreachable ${id}`, requestId: id, ttlSeconds: caller.pick([3, 10]) },
    ...{ parkSeconds: caller.pick([5, 20, 60]), ...termsOf(name) },
  };
  const { entry } = caller.note('task', { ...request, token: `unreachable-${id}`, unreachable });
  stepFunctions.newTask(execution, `unreachable-${id}`, () => {}).unreachable = unreachable;
  const answer = await caller.call('acquire', { ...request, taskToken: `unreachable-${id}` });
  if (answer?.outcome !== 'ok') return;
  const { ticket, parked } = answer.body;
  entry.input = { ...entry.input, ticket, parked, parkedMs: caller.world.simulation.now };
}

async function startWork(caller: Caller): Promise<void> {
  const name = nameFor(caller);
  const key = caller.world.prefix + name;
  const id = idFor(caller);
  caller.start(`working execution ${id}`, (one) => new Working(one, key, id).run(termsOf(name)));
  await caller.sleep(caller.random() * 30_000);
}

/** An execution that starts a function under its grant. Step Functions does not stop that function when the execution ends. */
class Working extends Execution {
  override readonly eventShowsEnd = true;
  readonly #key: string;

  constructor(one: Caller, key: string, id: string) {
    super(one, [key], id);
    this.#key = key;
  }

  async run(terms: object): Promise<void> {
    const { one } = this;
    const { simulation } = one.world;
    this.begin();
    const graceSeconds = one.random() < 0.7 ? 1 + Math.floor(one.random() * MAX_GRACE_SECONDS) : undefined;
    const request = {
      ...{ key: this.#key, holder: one.name, requestId: `${this.arn} entered` },
      ...{ ttlSeconds: one.pick([5, 30, MAX_TTL_MS / 1000]), execution: this.arn },
      ...(graceSeconds && { graceSeconds }),
      ...terms,
    };
    const enteredMs = simulation.now;
    const token = `token-${this.arn}`;
    const received = await this.attempt(request, { token, timeoutMs: Number.POSITIVE_INFINITY });
    if (typeof received !== 'object' || received.outcome !== 'ok') return this.#fail();
    const { leaseId, waitedMs, remainingMs } = received.body;
    const untilMs = enteredMs + Number(waitedMs) + Number(remainingMs);
    const lastsMs = one.random() * Math.max(0, untilMs - simulation.now);
    const work = one.note('work', { key: this.#key, holder: one.name, leaseId, untilMs, graceSeconds });
    const patienceMs = one.random() < 0.4 ? one.random() * lastsMs : Number.POSITIVE_INFINITY;
    const endsAt = simulation.now + lastsMs;
    simulation.at(endsAt, () => work.answer('ok', {}));
    await one.sleep(Math.min(lastsMs, patienceMs));
    // The state has timed out, and the function works on.
    if (patienceMs < lastsMs) return this.#fail();
    if (this.isAborted) return;
    await one.call('release', { key: this.#key, leaseId });
    if (!this.isAborted) this.end('SUCCEEDED');
  }

  #fail(): void {
    if (!this.isAborted) this.end('FAILED');
  }
}
