import type { Json } from '../aws/attributes.ts';
import type { Call } from '../aws/call.ts';
import { naming } from '../aws/send.ts';
import type { Acquired, Mode, Parked } from '../line/calls.ts';
import { durations, previousView } from '../line/calls.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import { ANY_EXECUTION, refuseForeignExecutions } from '../line/executions/allowed.ts';
import { parkedBy } from '../line/parked-by.ts';
import { DEFAULT_PARK_SECONDS } from '../line/times.ts';
import { tryThenWait } from '../line/try-then-wait.ts';
import { tryOnce } from './first-try.ts';
import { requestName } from './identity.ts';
import { EXCLUSIVE_WEIGHT, MOST_PERMITS } from './modes.ts';
import type { PermitRequest } from './permit-request.ts';
import { previousOf } from './previous.ts';
import { entryOf, isBound, type PoolEntry, type PoolRecord } from './record.ts';
import { permitGrant, permitTerms, poolHeld } from './views.ts';

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
  bound?: boolean | undefined;
  limit?: number | undefined;
  weight?: number | undefined;
  /** Without a limit, `exclusive` is the default. */
  mode?: Mode | undefined;
}

/** A caller that names neither a limit nor a mode wants the key alone. */
const modeOf = ({ limit, mode }: Pick<PermitInput, 'limit' | 'mode'>): Mode =>
  mode ?? (limit === undefined ? 'exclusive' : 'shared');

/**
 * Takes a permit of a pool with one conditional UpdateItem (docs/protocols/locks.md#acquire), or with two if it takes the place of
 * expired holders. With `waitSeconds`, the call waits, but no longer than the deployment allows.
 * @throws HoldfastError LeaseHeld, LeaseLost (the request's own permit was released or broken), Throttled, OutcomeUnknown, Unavailable
 * (also for a record of another client that no condition fits)
 */
export function acquirePermit(dependencies: LeaseDependencies) {
  const { clock, ids, clockSkewMs } = dependencies;
  return async (input: PermitInput, call: Call): Promise<Acquired> => {
    const { waitSeconds, requestId = ids.uuid(), fair = true, ticket } = input;
    const request = permitRequest({ ...input, requestId }, call);
    const arrivedAt = clock.now();
    const asking = {
      ...{ waitSeconds, fair, ticket, arrivedAt },
      attempt: () => tryOnce(dependencies, request, call),
      look: async (record: PoolRecord) =>
        record.entries.some(isBound) && (await import('./holder-look.ts')).lookBeside(dependencies, record, call),
      lock: async () => new (await import('../line/lock.ts')).Lock(dependencies, request, call),
      held: (record: PoolRecord) => poolHeld(record, { asked: request, now: clock.now(), clockSkewMs }),
    };
    const granted = await tryThenWait(dependencies, asking, call).catch(naming({ requestId }));
    const { record: current, repeated, ended = [], previous } = granted;
    const entry = entryOf(current, request.name) as PoolEntry;
    const expired = ended.map((one) => ({ entry: one, how: 'expired' as const }));
    const now = clock.now();
    return {
      ...permitGrant(request.key, entry, now),
      ...durations({ since: arrivedAt, expiresAt: entry.expiresAt, now }),
      repeated,
      previous: previousView(previous ?? previousOf(expired, now)[0]),
      ...((input.limit !== undefined || input.mode !== undefined) &&
        permitTerms(entry, {
          used: current.used,
          limit: request.limit,
          // Another grant may have named a limit between the first answer and a repeat.
          limitBefore: entry.ticket !== undefined || repeated ? entry.limitBefore : current.limitBefore,
        })),
    };
  };
}

interface ParkInput extends PermitInput {
  taskToken?: string | undefined;
  callbackId?: string | undefined;
  parkSeconds?: number | undefined;
}

/**
 * Takes a permit for the caller. With a `taskToken` or a `callbackId`, grants it to that task or callback, or parks it.
 * @throws HoldfastError InvalidRequest (line/executions/allowed.ts), and as `acquirePermit` and line/park.ts
 */
export function acquireOrParkPermit(dependencies: LeaseDependencies) {
  const acquire = acquirePermit(dependencies);
  return async (input: ParkInput, call: Call): Promise<Acquired | Parked> => {
    const { taskToken, callbackId, parkSeconds = DEFAULT_PARK_SECONDS, ...asked } = input;
    const { key, execution, target, requestId = dependencies.ids.uuid() } = asked;
    refuseForeignExecutions(dependencies.executions ?? ANY_EXECUTION, { execution, target }, call);
    // The index finds an exclusive holder by itself.
    if (execution !== undefined && modeOf(asked) === 'shared') {
      const { noteExecution } = await import('./execution-rows.ts');
      await noteExecution(dependencies, { key, execution }, call).catch(naming({ requestId }));
    }
    const plain = { ...asked, requestId };
    const parked = parkedBy({ taskToken, callbackId });
    if (!parked) return acquire(plain, call);
    const request = permitRequest(plain, call);
    const [{ park }, { Lock }] = [await import('../line/park.ts'), await import('../line/lock.ts')];
    return park(dependencies, { lock: new Lock(dependencies, request, call), parked, parkSeconds }, call);
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
    bound,
    limit,
    weight = 1,
  }: PermitInput & { requestId: string },
  { principal }: Call,
): PermitRequest {
  const name = requestName({ holder, requestId, principal });
  // The schema has checked that data is JSON.
  const asked = { key, holder, requestId, principal, execution, target, graceMs: graceSeconds * 1000, bound };
  const request = { ...asked, name, ttlMs: ttlSeconds * 1000, data: data as Json | undefined };
  if (modeOf({ limit, mode }) === 'exclusive') return { ...request, limit: null, weight: EXCLUSIVE_WEIGHT, room: 0 };
  return { ...request, limit: limit ?? MOST_PERMITS, weight, room: (limit ?? MOST_PERMITS) - weight };
}
