import type { Json } from '../aws/attributes.ts';
import type { Call } from '../aws/call.ts';
import { naming } from '../aws/send.ts';
import type { HoldfastError } from '../errors.ts';
import type { Acquired, Mode } from '../line/calls.ts';
import { durations, previousView } from '../line/calls.ts';
import { DEFAULT_QUOTAS } from '../line/limits/quotas.ts';
import { lookAtRecord } from '../line/look.ts';
import { raceFor } from '../line/race.ts';
import { deadlineOf, isBackInLine } from '../line/times.ts';
import { lineOf } from '../line/waiters.ts';
import type { PoolDependencies } from './dependencies.ts';
import { tryOnce } from './first-try.ts';
import { EXCLUSIVE_WEIGHT, MOST_PERMITS } from './modes.ts';
import { requestName } from './names.ts';
import { previousOf } from './previous.ts';
import { placeOf } from './read.ts';
import { entryOf, type PoolEntry, type PoolRecord } from './record.ts';
import type { Granted, PermitRequest } from './request.ts';
import { roomAt } from './room.ts';
import { permitGrant, permitLost, permitTerms, poolHeld } from './views.ts';

/** What a caller asks for. The schema (locks/inputs.ts) has checked which fields go together. */
export interface PermitInput {
  key: string;
  holder: string;
  ttlSeconds: number;
  waitSeconds: number;
  fair?: boolean | undefined;
  ticket?: string | undefined;
  requestId?: string | undefined;
  data?: unknown;
  execution?: string | undefined;
  target?: string | undefined;
  graceSeconds?: number | undefined;
  limit?: number | undefined;
  weight?: number | undefined;
  mode?: Mode | undefined;
}

/**
 * Takes a permit of a pool with one conditional UpdateItem (docs/protocols/pools.md#acquire), or with two if it takes the place of
 * expired holders. With `waitSeconds`, the call waits, but no longer than the deployment allows.
 * @throws HoldfastError LeaseHeld, LeaseLost (the request's own permit was released or broken), Throttled, OutcomeUnknown, Unavailable
 * (also for a record of another client that no condition fits)
 */
export function permitAcquirer(dependencies: PoolDependencies) {
  const { clock, ids } = dependencies;
  return async (input: PermitInput, call: Call): Promise<Acquired> => {
    const { waitSeconds, requestId = ids.uuid(), mode = 'shared' } = input;
    const { fair = true, ticket } = input;
    const request = permitRequest({ ...input, requestId, mode }, call);
    const arrivedAt = clock.now();
    const asking = { request, waitSeconds, arrivedAt, fair, ticket };
    const granted = await tryAndWait(dependencies, asking, call).catch(naming({ requestId }));
    const { standing, repeated, ended, previous } = granted;
    const entry = entryOf(standing, request.name) as PoolEntry;
    const expired = ended.map((one) => ({ entry: one, how: 'expired' as const }));
    const now = clock.now();
    return {
      ...permitGrant(request.key, entry, now),
      ...durations({ since: arrivedAt, expiresAt: entry.expiresAt, now }),
      repeated,
      previous: previousView(previous ?? previousOf(expired, now)[0]),
      ...permitTerms(entry, { used: standing.used, limit: request.limit }),
    };
  };
}

export function permitRequest(
  {
    key,
    holder,
    ttlSeconds,
    requestId,
    mode,
    data,
    execution,
    target,
    graceSeconds = 0,
    limit = MOST_PERMITS,
    weight = 1,
  }: PermitInput & { requestId: string },
  { principal }: Call,
): PermitRequest {
  const name = requestName({ holder, requestId, principal });
  // The schema has checked that data is JSON.
  const asked = { key, holder, requestId, principal, execution, target, graceMs: graceSeconds * 1000 };
  const request = { ...asked, name, ttlMs: ttlSeconds * 1000, data: data as Json | undefined };
  return mode === 'exclusive'
    ? { ...request, limit: null, weight: EXCLUSIVE_WEIGHT, room: 0 }
    : { ...request, limit, weight, room: limit - weight };
}

interface Asking {
  request: PermitRequest;
  waitSeconds: number;
  arrivedAt: number;
  /** Whether it waits in line. */
  fair: boolean;
  /** The place that an earlier call of the request had. */
  ticket: string | undefined;
}

async function tryAndWait(
  dependencies: PoolDependencies,
  { request, waitSeconds, arrivedAt, fair, ticket }: Asking,
  call: Call,
): Promise<Granted> {
  const { clock, clockSkewMs } = dependencies;
  const outcome = await tryOnce(dependencies, request, call);
  if (outcome.won) {
    if (ticket !== undefined) await leaveLine(dependencies, { request, ticket, granted: outcome }, call);
    return outcome;
  }
  const now = clock.now();
  const deadline = deadlineOf(dependencies, { waitSeconds, arrivedAt, now }, call);
  const held = (standing: PoolRecord) => poolHeld(standing, { asked: request, now: clock.now(), clockSkewMs });
  const isLate = deadline <= now;
  const isBack = isBackInLine(dependencies, { waitSeconds, fair, ticket });
  if (isLate && !isBack) throw held(outcome.standing);
  const wait = async () => {
    if (!fair) return race(dependencies, { request, heldBy: outcome.standing, deadline, held }, call);
    const { waitInPool } = await import('./in-line/wait.ts');
    const joining = { request, ticket, deadline: Math.max(deadline, now), fence: outcome.standing.fence };
    return waitInPool(dependencies, joining, call);
  };
  const { acquireConcurrency: concurrency } = dependencies.quotas ?? DEFAULT_QUOTAS;
  if (concurrency === undefined || isLate) return wait();
  const { countedWait } = await import('../line/limits/concurrent-waits.ts');
  const counted = {
    deadline,
    isBack,
    concurrency,
    held: () => held(outcome.standing),
  };
  return countedWait(dependencies, { ...counted, wait }, call);
}

/** A call that asks again and gets a permit at once leaves the line, unless its request was withdrawn meanwhile. */
async function leaveLine(
  dependencies: PoolDependencies,
  { request, ticket, granted }: { request: PermitRequest; ticket: string; granted: Granted },
  call: Call,
): Promise<void> {
  const { leaveOwnLine } = await import('../line/waiting-calls.ts');
  const asker = { ...request, key: lineOf(request.key) };
  const { cancelled } = await leaveOwnLine(dependencies, { ticket, asker }, call);
  if (!cancelled) return;
  const entry = entryOf(granted.standing, request.name);
  // The grant came by another place, so perhaps another call of the request has returned it.
  if (entry && !granted.repeated) {
    const { giveUp } = await import('./in-line/claim.ts');
    await giveUp(dependencies, { key: request.key, entry }, call);
  }
  throw permitLost(request.key, 'cancelled');
}

interface Racing {
  request: PermitRequest;
  /** What kept the first try from it. */
  heldBy: PoolRecord;
  deadline: number;
  held(standing: PoolRecord): HoldfastError;
}

function race(dependencies: PoolDependencies, { request, ...racing }: Racing, call: Call): Promise<Granted> {
  const { clockSkewMs } = dependencies;
  return raceFor(dependencies, {
    ...racing,
    attempt: () => tryOnce(dependencies, request, call),
    look: () => lookAtRecord(dependencies, placeOf(dependencies, request.key), call),
    freeAt: (standing, now) => {
      const own = entryOf(standing, request.name);
      return own && own.expiresAt > now ? Number.NEGATIVE_INFINITY : roomAt(standing, request, clockSkewMs);
    },
  });
}
