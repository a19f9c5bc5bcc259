import { GetItemCommand } from '@aws-sdk/client-dynamodb';
import type { Call } from '../../aws/call.ts';
import { naming, reading, send } from '../../aws/send.ts';
import type { HoldfastError } from '../../errors.ts';
import type { Acquired } from '../acquire.ts';
import type { Ended } from '../ended.ts';
import { DEFAULT_QUOTAS } from '../quotas.ts';
import { raceFor } from '../race.ts';
import type { Json } from '../record.ts';
import { previousView } from '../views.ts';
import type { PoolDependencies } from './dependencies.ts';
import { type Granted, type PermitRequest, tryOnce } from './first-try.ts';
import { EXCLUSIVE_WEIGHT, MOST_PERMITS, type Mode } from './modes.ts';
import { requestName } from './names.ts';
import { byEnd, entryOf, keyOf, type PoolEntry, type PoolRecord, parsePool } from './record.ts';
import { roomAt } from './room.ts';
import { permitGrant, poolHeld } from './views.ts';

/** What a caller asks for. The schema (../inputs.ts) has checked which fields go together. */
interface PermitInput {
  key: string;
  holder: string;
  ttlSeconds: number;
  waitSeconds: number;
  requestId?: string | undefined;
  data?: unknown;
  limit?: number | undefined;
  weight?: number | undefined;
  mode?: Mode | undefined;
}

/** Waiting leaves this much of the invocation for a last write. */
const LAST_WRITE_MS = 500;

/**
 * Takes a permit of a pool with one conditional UpdateItem (docs/protocols/pools.md#acquire), or with two where it takes the place of
 * expired holders. With `waitSeconds`, looks and tries again inside the call, but no longer than the deployment allows.
 * @throws HoldfastError LeaseHeld, LeaseLost (the request's own permit was released or broken), Throttled, OutcomeUnknown, Unavailable
 * (also for a record of another client that no condition fits)
 */
export function permitAcquirer(dependencies: PoolDependencies) {
  const { clock, ids, maxWaitSeconds } = dependencies;
  return async (input: PermitInput, call: Call): Promise<Acquired> => {
    const { waitSeconds, requestId = ids.uuid(), mode = 'shared' } = input;
    const request = permitRequest({ ...input, requestId, mode }, call);
    const arrivedAt = clock.now();
    const deadline = arrivedAt + Math.min(waitSeconds, maxWaitSeconds) * 1000;
    const granted = await tryAndWait(dependencies, { request, deadline }, call).catch(naming({ requestId }));
    const { standing, triedAt, repeated, ended } = granted;
    const entry = entryOf(standing, request.name) as PoolEntry;
    return {
      ...permitGrant(request.key, entry, clock.now()),
      waitedMs: Math.max(0, triedAt - arrivedAt),
      repeated,
      previous: previousView(endedOf(ended)),
      mode,
      limit: request.limit,
      weight: entry.weight,
      used: standing.used,
    };
  };
}

function permitRequest(
  { key, holder, ttlSeconds, requestId, mode, data, ...asked }: PermitInput & { requestId: string },
  { principal }: Call,
): PermitRequest {
  const { limit = MOST_PERMITS, weight = 1 } = asked;
  const name = requestName({ holder, requestId, principal });
  // The schema has checked that data is JSON.
  const request = { key, name, holder, ttlMs: ttlSeconds * 1000, data: data as Json | undefined };
  return mode === 'exclusive'
    ? { ...request, limit: null, weight: EXCLUSIVE_WEIGHT, room: 0 }
    : { ...request, limit, weight, room: limit - weight };
}

/** Of several in whose place it is, the one that ended last. */
function endedOf(ended: readonly PoolEntry[]): Ended | undefined {
  const last = ended.toSorted(byEnd).at(-1);
  return last && { holder: last.holder, fence: last.fence, ended: 'expired', at: last.expiresAt };
}

async function tryAndWait(
  dependencies: PoolDependencies,
  { request, deadline }: { request: PermitRequest; deadline: number },
  call: Call,
): Promise<Granted> {
  const { clock, clockSkewMs } = dependencies;
  const outcome = await tryOnce(dependencies, request, call);
  if (outcome.won) return outcome;
  const until = Math.min(deadline, clock.now() + call.timeLeftMs() - LAST_WRITE_MS);
  const held = (standing: PoolRecord) => poolHeld(standing, { asked: request, now: clock.now(), clockSkewMs });
  if (until <= clock.now()) throw held(outcome.standing);
  const wait = () => race(dependencies, { request, heldBy: outcome.standing, deadline: until, held }, call);
  const { acquireConcurrency: concurrency } = dependencies.quotas ?? DEFAULT_QUOTAS;
  if (concurrency === undefined) return wait();
  const { countedWait } = await import('../waits.ts');
  const counted = { deadline: until, isBack: false, concurrency, held: () => held(outcome.standing) };
  return countedWait(dependencies, { ...counted, wait }, call);
}

interface Racing {
  request: PermitRequest;
  /** What kept the first try from it. */
  heldBy: PoolRecord;
  deadline: number;
  held(standing: PoolRecord): HoldfastError;
}

function race(dependencies: PoolDependencies, { request, ...racing }: Racing, call: Call): Promise<Granted> {
  const { dynamodb, poolsTable, clockSkewMs } = dependencies;
  return raceFor(dependencies, {
    ...racing,
    attempt: () => tryOnce(dependencies, request, call),
    look: async () => {
      const command = new GetItemCommand({ TableName: poolsTable, Key: keyOf(request.key) });
      const { Item: item } = await send(dynamodb, { command, operation: reading(`table ${poolsTable}`) }, call);
      return parsePool(request.key, item);
    },
    freeAt: (standing, now) => {
      const own = entryOf(standing, request.name);
      return own && own.expiresAt > now ? Number.NEGATIVE_INFINITY : roomAt(standing, request, clockSkewMs);
    },
  });
}
