import type { Caller } from '../caller.ts';
import { AFTERWARDS, type Capability, stuck } from '../capability.ts';
import { BEGIN } from '../clocks.ts';
import { CLOCK_SKEW_MS } from '../service.ts';
import { pauseKept } from './caps.model.ts';
import { keysOf } from './leases.ts';
import { brokenOfOnce, ONCE_CALLS } from './once.model.ts';
import { liftCaps, operatorOn } from './operators.ts';

/** Callers of the first key name the slot. The second has a slot for each ten seconds of the service's clock. */
const NAMED = 'o0';
const TIMED = 'o1';
const KEYS = [NAMED, TIMED];
/** The key of the workers that come shortly before the end of a period. On another key, another worker would have done the slot by then. */
const LATE = 'o2';

const TTLS = [2, 3, 5];
const MAX_TTL_MS = 5000;
/** How long a timed slot lasts. */
const PERIOD_MS = 10_000;
/** How far the clock of a schedule is ahead at most. */
const MAX_EARLY_MS = 300;
/** How long a named slot lasts. */
const SLOT_MS = 4000;

interface Known {
  key: string;
  leaseId: string;
  fence: number;
}

interface Memory {
  /** All runs of this worker, the latest last. */
  runs: Known[];
  fences: { key: string; fence: number }[];
  /** A begin whose outcome this worker does not know. */
  pending: Readonly<Record<string, unknown>> | undefined;
}

const memoryOf = (caller: Caller) =>
  caller.memory<Memory>('once', (previous) => ({ runs: [], fences: [], pending: previous?.pending }));

/** Workers that are to do the same work, each slot once. Some stop half way, some complete after their time. */
export const once: Capability = {
  name: 'once',
  occasional: 0.15,

  act: work,

  others: [
    { name: 'worker c', steps: 6, act: work },
    { name: 'operator of once', steps: 2, share: 0.3, act: operate },
    { name: 'patient worker', steps: 4, share: 0.6, act: waitOverEnd },
    { name: 'second patient worker', steps: 4, share: 0.6, act: waitOverEnd },
    { name: 'early worker', steps: 4, share: 0.3, act: beginEarly },
    operatorOn('operator of pauses', KEYS, { kind: 'once', limits: [0] }),
  ],

  async settle(caller) {
    await liftCaps(caller, KEYS, { kind: 'once' });
    await caller.sleep(MAX_TTL_MS + 2000 + CLOCK_SKEW_MS + caller.world.facts.spreadMs);
    for (const name of KEYS) {
      const key = caller.world.prefix + name;
      await caller.call('onceBegin', { key, holder: AFTERWARDS, requestId: AFTERWARDS, ...slotFor(caller, name) });
    }
  },

  check(history, facts) {
    const calls = history.filter(({ call }) => ONCE_CALLS.has(call));
    const keys = keysOf(calls, [...KEYS, LATE]);
    return [
      ...keys.flatMap((key) =>
        brokenOfOnce(
          calls.filter(({ input }) => input.key === key),
          facts,
        ),
      ),
      ...keys.flatMap((key) => pauseKept(history, { key, kind: 'once' }, facts)),
      ...stuck(
        calls.filter(({ call, input }) => call === 'onceBegin' && keys.includes(String(input.key))),
        'no key is stuck',
      ),
    ];
  },
};

/** The slot that a caller names. Now and then it is an earlier one, as a caller with a slow clock would name it. */
function slotFor(caller: Caller, name: string): object {
  if (name === TIMED) return { per: '10s' };
  const { simulation } = caller.world;
  const late = caller.random() < 0.25 ? 1 + Math.floor(caller.random() * 2) : 0;
  const slot = Math.max(0, Math.floor(simulation.now / SLOT_MS) - late);
  return { slot: String(slot).padStart(6, '0') };
}

async function work(caller: Caller): Promise<void> {
  const memory = memoryOf(caller);
  const name = caller.pick(KEYS);
  const key = caller.world.prefix + name;
  const dice = caller.random();
  if (memory.pending && dice < 0.55) return begin(caller, memory.pending);
  const run = memory.runs.findLast((one) => one.key === key);
  if (run && dice < 0.2) return void (await caller.call('heartbeat', { key, leaseId: run.leaseId }));
  if (run && dice < 0.45) return complete(caller, run);
  if (run && dice < 0.55) return void (await caller.call('release', { key, leaseId: run.leaseId }));
  const zombie = memory.runs.find((one) => one.key === key);
  if (zombie && dice < 0.65) return complete(caller, zombie);
  if (caller.random() < 0.1) {
    const answer = await caller.call('readOnce', { key });
    if (answer?.outcome === 'ok' && answer.body.fence) memory.fences.push({ key, fence: Number(answer.body.fence) });
    return;
  }
  const id = Math.floor(caller.random() * 1e9).toString(36);
  const wait = caller.random() < 0.4 ? { waitSeconds: 1 + Math.floor(caller.random() * 5) } : {};
  const request = { key, holder: `${caller.name}/${id}`, requestId: id, ttlSeconds: caller.pick(TTLS), ...wait };
  await begin(caller, { ...request, ...slotFor(caller, name) });
}

/** Begins, works for a while, and then completes, releases, or just stops. */
async function begin(caller: Caller, request: Readonly<Record<string, unknown>>): Promise<void> {
  const memory = memoryOf(caller);
  memory.pending = request;
  const answer = await caller.call('onceBegin', request);
  if (!answer || answer.outcome === 'OutcomeUnknown') return;
  const now = memoryOf(caller);
  now.pending = undefined;
  if (answer.outcome !== 'ok' || answer.body.outcome !== 'run') return;
  const { leaseId, fence, slot } = answer.body;
  const key = String(request.key);
  const run = { key, leaseId: String(leaseId), fence: Number(fence) };
  now.runs.push(run);
  now.fences.push({ key, fence: run.fence });
  const ttlMs = Number(request.ttlSeconds) * 1000;
  await caller.sleep(caller.random() * (caller.random() < 0.3 ? 2.5 : 0.8) * ttlMs);
  caller.note('effect', { key, slot, fence, leaseId }).answer('ok', {});
  const end = caller.random();
  if (end < 0.6) await complete(caller, run);
  else if (end < 0.75) await caller.call('release', { key, leaseId });
}

/** Asks again and again, as the client does, until it works for the slot of its first call or that slot is done. That is often after the period has ended. */
async function waitOverEnd(caller: Caller): Promise<void> {
  const request = timedRequest(caller, LATE);
  const nowMs = BEGIN + caller.world.simulation.now;
  await caller.sleep(PERIOD_MS - (nowMs % PERIOD_MS) - 2000 - 2000 * caller.random());
  for (let tries = 0, more: object = {}; tries < 8; tries++) {
    const answer = await caller.call('onceBegin', { ...request, ...more, waitSeconds: 1 }, { isPatient: true });
    if (answer?.body.outcome === 'run') return workFor(caller, request, answer.body);
    if (answer?.outcome !== 'LeaseHeld') return;
    more = Object(answer.body.retryWith);
  }
}

/** A schedule fires at the first instant of a period, by a clock that is ahead. */
async function beginEarly(caller: Caller): Promise<void> {
  const { simulation } = caller.world;
  const nowMs = BEGIN + simulation.now;
  const nextMs = Math.ceil((nowMs + MAX_EARLY_MS) / PERIOD_MS) * PERIOD_MS;
  await caller.sleep(nextMs - nowMs - MAX_EARLY_MS * caller.random());
  const request = timedRequest(caller, TIMED);
  const firedFor = new Date(nextMs).toISOString();
  const answer = await caller.call('onceBegin', request, { firedFor });
  if (answer?.body.outcome === 'run') await workFor(caller, request, answer.body);
}

function timedRequest(caller: Caller, name: string) {
  const id = `${caller.name}/${Math.floor(caller.random() * 1e9).toString(36)}`;
  const key = caller.world.prefix + name;
  return { key, holder: id, requestId: id, per: '10s', ttlSeconds: MAX_TTL_MS / 1000 };
}

/** Works until a moment before the ttl, so that the work lasts over the end of the period. */
async function workFor(
  caller: Caller,
  { key, ttlSeconds }: { key: string; ttlSeconds: number },
  { slot, leaseId, fence }: Record<string, unknown>,
): Promise<void> {
  await caller.sleep((500 + caller.random() * 400) * ttlSeconds);
  caller.note('effect', { key, slot, fence, leaseId }).answer('ok', {});
  await complete(caller, { key, leaseId: String(leaseId), fence: Number(fence) });
}

/** Each run has a result of its own. */
const complete = async (caller: Caller, { key, leaseId, fence }: Known): Promise<void> =>
  void (await caller.call('onceComplete', { key, leaseId, result: `result of ${fence}` }));

/** Breaks a run, or forgets a slot, as it saw the key. */
async function operate(caller: Caller): Promise<void> {
  await caller.sleep(caller.random() * 10_000);
  const key = caller.world.prefix + caller.pick(KEYS);
  const answer = await caller.call('readOnce', { key });
  if (answer?.outcome !== 'ok' || !answer.body.fence) return;
  const { fence } = answer.body;
  if (caller.random() < 0.5) await caller.call('onceForget', { key, fence });
  else await caller.call('breakLease', { key, fence, kind: 'once', wait: caller.random() < 0.3 });
}
