import type { Answer } from '../../../test/support/stack/adapters.ts';
import { rustClient } from '../../../test/support/worlds/rust-lease.ts';
import type { Caller, WorldFacts } from '../caller.ts';
import { AFTERWARDS, type Capability, stuck } from '../capability.ts';
import { type Entry, isUnknown, saysNothing, type Violation } from '../history.ts';
import type { Landed } from '../landed.ts';
import { linearize } from '../linearizability.ts';
import { CLOCK_SKEW_MS } from '../service.ts';
import { beliefs } from './beliefs.ts';
import { WHOLE_LEASE, wholeForCallers, windowKept } from './bounds.model.ts';
import { cleaningsOf } from './expiry.model.ts';
import { freeLeaseIsHad } from './free.model.ts';
import { leaseModel, leaseOperations } from './leases.model.ts';
import { overtaken } from './line.model.ts';
import { liftCaps, operatorOn, replaceOf } from './operators.ts';
import { placeRules } from './places.model.ts';
import { recordRules } from './record.model.ts';
import { sleepersOn, sleepMsOf } from './sleepers.ts';

/** The keys of this capability. The fences of the first one are also those of the first path of the commits. */
export const LEASE_KEYS = ['k0', 'k1'];
const TTLS = [2, 3, 5, 10];
const MAX_TTL_MS = 10_000;

export interface KnownGrant {
  key: string;
  leaseId: string;
  fence: number;
}

interface Memory {
  /** All grants of this caller, the latest last. */
  grants: KnownGrant[];
  /** The fences that this caller was shown. */
  fences: { key: string; fence: number }[];
  /** An acquisition whose outcome this caller does not know. */
  pending: Readonly<Record<string, unknown>> | undefined;
}

/** After a restart, a caller only knows the request that it had written down. */
const memoryOf = (caller: Caller) =>
  caller.memory<Memory>('leases', (previous) => ({ grants: [], fences: [], pending: previous?.pending }));

export const grantsOf = (caller: Caller): KnownGrant[] => memoryOf(caller).grants;

export const leases: Capability = {
  name: 'leases',

  act: (caller) => actOn(caller, LEASE_KEYS),
  actForeign: (caller) => actForeignOn(caller, LEASE_KEYS),
  others: [sleepersOn('sleepers of leases', LEASE_KEYS), operatorOn('operator of leases', LEASE_KEYS)],

  settle: (caller) => settleLeases(caller, LEASE_KEYS),

  check: (history, facts) => brokenOfLeases(history, facts, LEASE_KEYS),
};

/** Each key is free again when the last grant has ended, and the last caller has it. */
export async function settleLeases(caller: Caller, names: readonly string[]): Promise<void> {
  await liftCaps(caller, names);
  await caller.sleep(MAX_TTL_MS + 2000 + CLOCK_SKEW_MS + caller.world.facts.spreadMs);
  for (const name of names) await acquireAfterwards(caller, name);
}

/** The promises about keys that the history breaks. */
export function brokenOfLeases(history: readonly Entry[], facts: WorldFacts, names: readonly string[]): Violation[] {
  const entries = history.filter(({ call }) => LEASE_CALLS.has(call) || call === 'clean');
  const keys = keysOf(entries, names);
  return [
    ...keys.flatMap((key) => {
      const ofKey = [...entries.filter(({ input }) => input.key === key), ...cleaningsOf(entries, key)];
      return [
        ...(facts.withinBound ? exclusive(ofKey) : []),
        ...fencesRise(ofKey, facts, history),
        ...fencesNeverDown(ofKey, facts.foreignLeases || (facts.sweeps && !facts.withinBound)),
        ...falselyLost(ofKey),
        ...previousAnswered(ofKey, facts),
        ...recordRules(history, { key, grants: ofKey }, facts),
        ...overtaken(history, { key, mayLoseMark: facts.foreignLeases || facts.sweeps }, facts),
        ...placeRules(history, { key, mayLoseMark: facts.foreignLeases || facts.sweeps }, facts),
        ...answersAgree([...ofKey, ...handOffsOf(history, key)], facts, history),
        ...wholeForCallers(history, key, WHOLE_LEASE),
        ...(facts.foreignLeases || facts.sweeps ? [] : windowKept(history, key, facts)),
        ...freeLeaseIsHad(history, key, facts),
      ];
    }),
    ...stuck(
      entries.filter(({ input }) => keys.includes(String(input.key))),
      'no key is stuck',
    ),
  ];
}

export const LEASE_CALLS = new Set([
  'acquire',
  'heartbeat',
  'release',
  'breakLease',
  'readLeases',
  'rustAcquire',
  'rustExtend',
  'rustRelease',
  'withdraw',
]);

/** The calls of operators that hand off. */
const handOffsOf = (history: readonly Entry[], key: string): Entry[] =>
  history.filter(({ call, input }) => (call === 'capKey' || call === 'runNext') && input.key === key);

/** The keys of this capability that the entries name. */
export const keysOf = (entries: readonly Entry[], names: readonly string[]): string[] =>
  [...new Set(entries.map(({ input }) => String(input.key)))].filter((key) =>
    names.some((name) => key.endsWith(`-${name}`)),
  );

/** What a plain client does with leases, on few keys. @param terms what its requests ask for besides */
export async function actOn(
  caller: Caller,
  keys: readonly string[],
  terms: (caller: Caller, key: string) => object = () => ({}),
): Promise<void> {
  const memory = memoryOf(caller);
  const key = caller.world.prefix + caller.pick(keys);
  const dice = caller.random();
  if (memory.pending && dice < 0.55) return acquire(caller, memory.pending);
  if (memory.pending && dice < 0.65) return withdraw(caller, memory.pending);
  const own = memory.grants.filter((one) => one.key === key);
  const grant = caller.random() < 0.8 ? own.at(-1) : caller.pick(own);
  if (grant && dice < 0.3) {
    const ttl = caller.random() < 0.5 ? {} : { ttlSeconds: caller.pick(TTLS) };
    const beat = { key, leaseId: grant.leaseId, ...ttl };
    await caller.call('heartbeat', beat);
    // A heartbeat is often sent while the one before is still under way.
    if (caller.random() < 0.3) await caller.call('heartbeat', { key, leaseId: grant.leaseId });
    return;
  }
  if (grant && dice < 0.55) return void (await caller.call('release', { key, leaseId: grant.leaseId }));
  if (caller.random() < 0.1) return noteFence(caller, key, await caller.call('readLeases', { key }));
  const seen = memory.fences.findLast((one) => one.key === key);
  if (seen && caller.random() < 0.1) return void (await caller.call('breakLease', { key, fence: seen.fence }));
  const lot = Math.floor(caller.random() * 1e9);
  const id = lot.toString(36);
  const sleeps = lot % 3 === 0 && { sleepMs: sleepMsOf(lot / 1e9) };
  const waitSeconds = 1 + Math.floor(caller.random() * 5);
  const waits = { waitSeconds, ...(caller.random() < 0.2 ? { fair: false } : sleeps) };
  const wait = caller.random() < 0.4 ? waits : {};
  const request = { key, holder: `${caller.name}/${id}`, requestId: id, ttlSeconds: caller.pick(TTLS) };
  const asked = { ...request, ...wait, ...terms(caller, key) };
  return acquire(caller, { ...asked, ...replaceOf(lot, asked) });
}

/** What a client of the Rust crate does. */
export async function actForeignOn(caller: Caller, keys: readonly string[]): Promise<void> {
  const { service, foreignClock, prefix } = caller.world;
  const key = prefix + caller.pick(keys);
  const rust = rustClient(service.dynamodb, service.leases, foreignClock);
  const held = caller.memory<Map<string, RustLease>>('rust leases', () => new Map());
  const lease = held.get(key);
  const dice = caller.random();
  const ttlSeconds = caller.pick(TTLS);
  const startedAt = caller.world.simulation.now;
  // A call that cleaned the line may have changed the version of an expired lease.
  const isOver = () => lease !== undefined && caller.world.simulation.now >= lease.until;
  if (!lease) {
    const name = `rust/${Math.floor(caller.random() * 1e9).toString(36)}`;
    const input = { key, ttlSeconds, lease: name };
    const { version } =
      (await caller.foreign('rustAcquire', input, async () => versioned(await rust.tryAcquire(key, ttlSeconds)))) ?? {};
    if (version) held.set(key, { name, version, ttlSeconds, until: startedAt + ttlSeconds * 1000 });
  } else if (dice < 0.5) {
    // The crate's client has one ttl for all that it does.
    const input = { key, ttlSeconds: lease.ttlSeconds, lease: lease.name, version: lease.version };
    const extend = async () => {
      const version = await rust.extend(key, lease.version, lease.ttlSeconds);
      return { ...versioned(version), isOver: isOver() };
    };
    const { version } = (await caller.foreign('rustExtend', input, extend)) ?? {};
    if (version) held.set(key, { ...lease, version, until: startedAt + lease.ttlSeconds * 1000 });
    else held.delete(key);
  } else {
    held.delete(key);
    const input = { key, lease: lease.name, version: lease.version };
    const release = async () => ({ released: await rust.release(key, lease.version), isOver: isOver() });
    if (!caller.strikes('foreignDeath', 0.3)) await caller.foreign('rustRelease', input, release);
  }
}

/** A grace is at most this long, and a status is not older. */
const SURE_MS = 120_000;

/** Acquires and releases a key, once nothing should be in the way any more. */
export async function acquireAfterwards(caller: Caller, name: string, terms: object = {}): Promise<void> {
  const key = caller.world.prefix + name;
  const id = `${AFTERWARDS}-${name}`;
  const ask = () => caller.call('acquire', { key, holder: id, requestId: id, ttlSeconds: 2, ...terms });
  const first = await ask();
  // If the event was lost and no other call asked, this caller is the first to learn of the end of an execution, and the grace begins.
  if (first?.outcome !== 'ok') await caller.sleep(SURE_MS);
  const answer = first?.outcome === 'ok' ? first : await ask();
  if (answer?.outcome === 'ok') await caller.call('release', { key, leaseId: answer.body.leaseId });
}

interface RustLease {
  name: string;
  version: string;
  ttlSeconds: number;
  /** When it ends, in simulated milliseconds. */
  until: number;
}

const versioned = (version: string | undefined): { version?: string } => (version === undefined ? {} : { version });

async function acquire(caller: Caller, input: Readonly<Record<string, unknown>>): Promise<void> {
  const memory = memoryOf(caller);
  memory.pending = input; // written down before it is sent
  const answer = await caller.call('acquire', input);
  const now = memoryOf(caller);
  if (!answer || answer.outcome === 'OutcomeUnknown') return;
  // Now and then a caller repeats a request with a known outcome, as a late retry does. A caller that was in line keeps its position.
  const { retryWith } = answer.body;
  if (answer.outcome === 'LeaseHeld' && retryWith) now.pending = { ...input, ...Object(retryWith) };
  else now.pending = caller.random() < 0.1 ? input : undefined;
  noteFence(caller, String(input.key), answer);
  if (answer.outcome === 'ok')
    now.grants.push({
      key: String(input.key),
      leaseId: String(answer.body.leaseId),
      fence: Number(answer.body.fence),
    });
}

/** Disconnects, and says so. */
async function withdraw(caller: Caller, { key, requestId, holder }: Readonly<Record<string, unknown>>): Promise<void> {
  memoryOf(caller).pending = undefined;
  await caller.call('withdraw', { key, requestId, holder });
}

/** Notes the fence of the answer, or that of one of its holders. */
function noteFence(caller: Caller, key: string, answer: Answer | undefined): void {
  const { fence, holders = [] } = (answer?.body ?? {}) as {
    fence?: number | null;
    holders?: { fence: number | null }[];
  };
  const seen = holders.length > 1 ? caller.pick(holders).fence : fence;
  if (typeof seen === 'number') memoryOf(caller).fences.push({ key, fence: seen });
}

/** Promise 1: while a caller believes that it holds a key, counted as the README asks, no other caller does. */
export function exclusive(entries: readonly Entry[]): Violation[] {
  const believed = beliefs(entries).sort((a, b) => a.from - b.from);
  for (const [index, one] of believed.entries())
    for (const other of believed.slice(index + 1))
      if (other.lease !== one.lease && other.from < one.to)
        return [
          {
            promise: 'at most one holder at a time',
            detail: `${other.entry.actor} holds from ${other.from.toFixed(0)} ms while ${one.entry.actor} holds until ${one.to.toFixed(0)} ms`,
            entries: [one.entry, other.entry],
          },
        ];
  return [];
}

/** No answered grant comes between the one that `previous` names and the grant that names it. */
export function previousAnswered(entries: readonly Entry[], { foreignLeases, sweeps }: WorldFacts): Violation[] {
  if (foreignLeases || sweeps) return [];
  const grants = entries.filter(({ call, outcome }) => call === 'acquire' && outcome === 'ok');
  for (const grant of grants) {
    const previous = grant.body?.previous as { fence: number } | null | undefined;
    if (!previous) continue;
    const skipped = grants.find(({ body }) => {
      // A shared holder may outlast others that were granted the key after it.
      const isShared = String(body?.leaseId).startsWith('p.');
      return !isShared && Number(body?.fence) > previous.fence && Number(body?.fence) < Number(grant.body?.fence);
    });
    if (skipped || previous.fence >= Number(grant.body?.fence))
      return [
        {
          promise: '`previous` is the last holder that received its grant',
          detail: `${grant.actor} was answered with ${previous.fence} as previous, and ${grant.body?.fence} as its own`,
          entries: [grant, ...(skipped ? [skipped] : [])],
        },
      ];
  }
  return [];
}

/**
 * Promise 2: of two grants, the one that was written later has the higher fence, whichever was asked for first. If the writes are unknown, the one that
 * was asked for after the other was answered has it. A repeat of a grant that another call wrote does not count.
 * @param history with the calls that wrote the grants
 */
export function fencesRise(
  entries: readonly Entry[],
  facts: Pick<WorldFacts, 'foreignLeases' | 'spreadMs' | 'sweeps' | 'withinBound'>,
  history: readonly Entry[] = entries,
): Violation[] {
  const grants = entries.filter(
    ({ call, outcome, body, landed }) =>
      call === 'acquire' && outcome === 'ok' && (!body?.repeated || landed?.some((one) => isGrantOf(one, body))),
  );
  const writtenAt = new Map(grants.map((grant) => [grant, lastWrite(history, grant)]));
  const mayForget = facts.foreignLeases || (facts.sweeps && !facts.withinBound);
  const slack = mayForget ? facts.spreadMs + 1 : 0;
  for (const one of grants)
    for (const other of grants) {
      if (one === other || one.body?.leaseId === other.body?.leaseId) continue;
      const [written, writtenNext] = [writtenAt.get(one), writtenAt.get(other)];
      const follows =
        written !== undefined && writtenNext !== undefined
          ? written < writtenNext
          : one.answeredAt && one.answeredAt.moment < other.calledAt.moment;
      const [before, after] = [Number(one.body?.fence), Number(other.body?.fence)];
      const isBroken = follows ? after + slack <= before : !mayForget && after === before;
      if (isBroken)
        return [{ promise: 'fences rise with each grant', detail: `${after} after ${before}`, entries: [one, other] }];
    }
  return [];
}

const isGrantOf = (landed: Landed, body: Entry['body']): boolean =>
  landed.what === 'grant' && landed.leaseId !== undefined && landed.leaseId === body?.leaseId;

/** The moment of the write of an answered grant. A write that was sent twice may land twice; then it is the last one before the answer. */
function lastWrite(history: readonly Entry[], { answeredAt, body }: Entry): number | undefined {
  const moments = history.flatMap(({ landed = [] }) => landed.filter((one) => isGrantOf(one, body)));
  return moments
    .map(({ moment }) => moment)
    .filter((moment) => moment <= Number(answeredAt?.moment))
    .toSorted((a, b) => a - b)
    .at(-1);
}

/** The calls whose answers show the fence of the present grant. */
const SHOWS_FENCE = new Set(['acquire', 'heartbeat', 'readLeases']);

/**
 * A call that began after the answer of another one is not shown a lower fence.
 * @param mayForget whether the record that has the fence may have vanished: then others see the fence of a late grant before it is raised
 */
export function fencesNeverDown(entries: readonly Entry[], mayForget: boolean): Violation[] {
  if (mayForget) return [];
  const shown = entries.filter(
    ({ call, body, answeredAt }) => SHOWS_FENCE.has(call) && typeof body?.fence === 'number' && answeredAt,
  );
  for (const one of shown)
    for (const other of shown) {
      if (Number(one.answeredAt?.moment) >= other.calledAt.moment) continue;
      const [before, after] = [Number(one.body?.fence), Number(other.body?.fence)];
      if (after < before)
        return [
          { promise: 'no fence is lower than one before', detail: `${after} after ${before}`, entries: [one, other] },
        ];
    }
  return [];
}

/** Only who was answered with a grant can release it: if a request is refused as released, it or its task has been answered with a grant. */
export function falselyLost(entries: readonly Entry[]): Violation[] {
  const refused = entries.filter(
    ({ call, outcome, body }) => call === 'acquire' && outcome === 'LeaseLost' && body?.reason === 'released',
  );
  return refused.flatMap((entry) => {
    const wasGranted = entries.some(
      ({ call, outcome, input }) => call === 'acquire' && outcome === 'ok' && input.requestId === entry.input.requestId,
    );
    const isRedriven = (endedAt: number) =>
      entries.some(
        ({ call, input, calledAt }) =>
          call === 'executionRedriven' &&
          input.holder === entry.input.holder &&
          calledAt.moment > endedAt &&
          calledAt.moment < entry.calledAt.moment,
      );
    // The service itself ends a grant if it was withdrawn or cancelled, or if its execution has ended.
    const isEnded = entries.some(
      ({ call, input, calledAt }) =>
        calledAt.moment < Number(entry.answeredAt?.moment) &&
        (call === 'cancelWaiter' ||
          (call === 'withdraw' && input.requestId === entry.input.requestId) ||
          (call === 'executionEnds' && input.holder === entry.input.holder && !isRedriven(calledAt.moment))),
    );
    if (wasGranted || isEnded) return [];
    const detail = `${entry.actor} was refused as released, and had never received a lease`;
    return [{ promise: 'no caller loses what it never had', detail, entries: [entry] }];
  });
}

/** Every answer is what one lock with fences would have said. */
function answersAgree(entries: readonly Entry[], facts: WorldFacts, history: readonly Entry[]): Violation[] {
  const known = entries.filter((entry) => !(entry.call === 'readLeases' && (isUnknown(entry) || saysNothing(entry))));
  const verdict = linearize(leaseModel(facts), leaseOperations(known, facts, history));
  if (verdict.linearizable) return [];
  const explained = verdict.explained.map(({ entry }) => entry.id);
  return [
    {
      promise: 'a lease answers as one lock with fences would',
      detail: `no order explains these answers; the longest that does begins with calls ${explained.join(' ')}`,
      entries: verdict.stuckAt.map(({ entry }) => entry),
    },
  ];
}
