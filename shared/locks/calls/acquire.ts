import type { Json } from '../../aws/attributes.ts';
import type { Call } from '../../aws/call.ts';
import { addRetryWith } from '../../aws/send.ts';
import type { HoldfastError } from '../../errors.ts';
import {
  canSleep,
  DEFAULT_PARK_SECONDS,
  deadlineOf,
  type LeaseDependencies,
  namesEarlierTicket,
} from '../dependencies.ts';
import { ANY_EXECUTION, refuseForeignExecutions } from '../executions/allowed.ts';
import type { Lock } from '../line/lock.ts';
import type { ParkedBy } from '../line/waiters.ts';
import { firstTry } from '../record/first-try.ts';
import { EXCLUSIVE_PATH, EXCLUSIVE_WEIGHT, MAX_LIMIT, nameOfRequest } from '../record/identity.ts';
import { grantView, sharedTerms } from '../record/outcomes.ts';
import { entryOf, type HolderEntry, isBound, type KeyRecord } from '../record/record.ts';
import { type GrantOnRecord, type GrantRequest, previousOf, type TryOutcome } from '../record/room.ts';
import { noteMark, sawMark } from '../record/seen-marks.ts';
import type { AcquireInput } from './inputs.ts';
import { type Acquired, durations, type Mode, type Parked, previousView } from './types.ts';

/**
 * The input of a call that does not park a task. The schema (locks/calls/inputs.ts) has checked which fields go
 * together.
 */
export type GrantInput = Omit<AcquireInput, 'fair' | 'sleepMs' | 'taskToken' | 'callbackId' | 'parkSeconds'> &
  Partial<Pick<AcquireInput, 'fair' | 'sleepMs'>>;

/** A caller that names neither a limit nor a mode wants the key alone. */
const modeAsked = ({ limit, mode }: Pick<GrantInput, 'limit' | 'mode'>): Mode =>
  mode ?? (limit === undefined ? 'exclusive' : 'shared');

/**
 * Acquires a key with one conditional UpdateItem, or with two if expired holders are in the way
 * (docs/protocols/locks.md#acquire). With `waitSeconds`, the call waits, but no longer than the deployment allows.
 * @throws HoldfastError LeaseHeld, LeaseLost (the request's own grant was released or broken), Throttled,
 * OutcomeUnknown, Unavailable (a third-party client may have written a record that no condition fits)
 */
export function acquireGrant(dependencies: LeaseDependencies) {
  const { clock, ids, clockSkewMs } = dependencies;
  return async (input: GrantInput, call: Call): Promise<Acquired> => {
    const { waitSeconds, requestId = ids.uuid(), fair = true, ticket, sleepMs = 0 } = input;
    const request = grantRequest({ ...input, requestId }, call);
    const arrivedAt = clock.now();
    const asking = {
      ...{ key: request.key, waitSeconds, fair, ticket, arrivedAt, sleepMs },
      attempt: () => tryOrTake(dependencies, { request, ticket }, call),
      look: async (record: KeyRecord) =>
        record.entries.some(isBound) &&
        (await import('../executions/look.ts')).lookForRefusedCall(dependencies, record, call),
      lock: async () => new (await import('../line/lock.ts')).Lock(dependencies, request, call),
      heldError: async (record: KeyRecord) => {
        const { leaseHeld } = await import('../record/refusals.ts');
        return leaseHeld(record, { request: request, now: clock.now(), clockSkewMs });
      },
    };
    const granted = await tryThenWait(dependencies, asking, call).catch(addRetryWith({ requestId }));
    const { record: current, repeated, ended = [], previous } = granted;
    const entry = entryOf(current, request.name) as HolderEntry;
    const expired = ended.map((former) => ({ entry: former, how: 'expired' as const }));
    const now = clock.now();
    return {
      ...grantView(request.key, entry, now),
      ...durations({ since: arrivedAt, expiresAt: entry.expiresAt, now }),
      repeated,
      previous: previousView(previous ?? previousOf(expired, now)[0]),
      ...(entry.path !== EXCLUSIVE_PATH &&
        sharedTerms(entry, {
          used: current.used,
          limit: request.limit,
          // Another grant may have named a limit between the first answer and a repeat.
          limitBefore: entry.ticket !== undefined || repeated ? entry.limitBefore : current.limitBefore,
        })),
    };
  };
}

/**
 * Acquires a lease, or a permit if the request names a limit or the mode `shared`. With a `taskToken` or a
 * `callbackId`, grants the key to that task or callback, or parks it.
 * @throws HoldfastError InvalidRequest (the caller may not name the execution, or the deployment serves no durable
 * functions), and as `acquireGrant` and line/park.ts
 */
export function acquire(dependencies: LeaseDependencies) {
  const acquireNow = acquireGrant(dependencies);
  return async (received: AcquireInput, call: Call): Promise<Acquired | Parked> => {
    const named =
      received.callbackId === undefined
        ? received
        : (await import('../line/park.ts')).withRequestOfCallback(dependencies, received);
    const { taskToken, callbackId, parkSeconds = DEFAULT_PARK_SECONDS, ...input } = named;
    const { key, execution, target, requestId = dependencies.ids.uuid() } = input;
    refuseForeignExecutions(dependencies.executions ?? ANY_EXECUTION, { execution, target }, call);
    // An index finds exclusive holders by their execution. A shared holder needs a row of its execution, written first.
    if (execution !== undefined && modeAsked(input) === 'shared') {
      const { noteExecution } = await import('../executions/execution-rows.ts');
      await noteExecution(dependencies, { key, execution }, call).catch(addRetryWith({ requestId }));
    }
    const identified = { ...input, requestId };
    const notifyBy = parkedBy({ taskToken, callbackId });
    if (!notifyBy) return acquireNow(identified, call);
    const request = grantRequest(identified, call);
    const [{ park }, { Lock }] = [await import('../line/park.ts'), await import('../line/lock.ts')];
    return park(dependencies, { lock: new Lock(dependencies, request, call), notifyBy, parkSeconds }, call);
  };
}

/** The request of a caller, in the units and with the defaults of the record. */
export function grantRequest(
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
    replace,
  }: GrantInput & { requestId: string },
  { principal }: Call,
): GrantRequest {
  const name = nameOfRequest({ holder, requestId, principal });
  // The schema has checked that data is JSON.
  const terms = { key, holder, requestId, principal, execution, target, graceMs: graceSeconds * 1000, bound };
  const request = { ...terms, name, ttlMs: ttlSeconds * 1000, data: data as Json | undefined };
  if (modeAsked({ limit, mode }) === 'exclusive')
    return { ...request, limit: null, weight: EXCLUSIVE_WEIGHT, room: 0, replace };
  return { ...request, limit: limit ?? MAX_LIMIT, weight, room: (limit ?? MAX_LIMIT) - weight };
}

/**
 * Tries without waiting. If the key is left free for callers that sleep, and they have had time to come back, takes the
 * key as a caller in line.
 */
async function tryOrTake(
  dependencies: LeaseDependencies,
  { request, ticket }: { request: GrantRequest; ticket: string | undefined },
  call: Call,
): Promise<TryOutcome> {
  const outcome = await firstTry(dependencies, request, call);
  if (outcome.won || !outcome.isLeftToSleepers) return outcome;
  const [{ takeFromSleepers }, { Lock }] = [await import('../line/hold-or-sleep.ts'), await import('../line/lock.ts')];
  const lock = new Lock(dependencies, request, call);
  return takeFromSleepers({ dependencies, lock, call }, { record: outcome.record, ticket });
}

// The rest of this file is about calls that wait. It imports the line only when a call needs it, because a plain call
// must not load it.

interface WaitOptions {
  key: string;
  /** The longest sleep of the caller between two calls. 0 if it does not sleep. */
  sleepMs: number;
  /** Tries once, without waiting. */
  attempt(): Promise<TryOutcome>;
  /**
   * Looks at the executions of bound holders.
   * @returns whether the look ended a grant, so that another try may succeed
   */
  look(record: KeyRecord): Promise<boolean>;
  /** Loads the code of the line. Only a call that waits, or that leaves the line with a grant, needs it. */
  lock(): Promise<Lock>;
  heldError(record: KeyRecord): Promise<HoldfastError>;
  waitSeconds: number;
  /** True if the call waits in line. False if it races. */
  fair: boolean;
  /** The ticket of an earlier call of the request. */
  ticket: string | undefined;
  arrivedAt: number;
}

/**
 * Tries once. A call that is refused then waits in line, races, or lets its caller sleep, for no longer than the
 * deployment allows (`maxWaitSeconds`). A call that does not wait looks at bound holders instead, and tries again if
 * the look ended a grant.
 * @throws HoldfastError LeaseHeld, LeaseLost, QueueFull, Throttled, Unavailable, OutcomeUnknown
 */
async function tryThenWait(dependencies: LeaseDependencies, asking: WaitOptions, call: Call): Promise<GrantOnRecord> {
  const { clock } = dependencies;
  const { key, waitSeconds, fair, ticket, sleepMs, arrivedAt, heldError, attempt } = asking;
  const isKnownInLine = namesEarlierTicket(dependencies, { waitSeconds, fair, ticket });
  const begin = clock.now();
  // A caller that comes back may still have to sleep, and a key that had a line a moment ago would refuse the try.
  const skipsTry = isKnownInLine
    ? sleepMs > 0 && canSleep(dependencies)
    : fair && waitSeconds > 0 && sawMark(dependencies, key);
  if (skipsTry) {
    const deadline = deadlineOf(dependencies, { waitSeconds, arrivedAt, now: begin }, call);
    if (isKnownInLine || deadline > begin)
      return joinLine(dependencies, { ...asking, deadline, record: undefined }, call);
  }
  const first = await attempt();
  const now = clock.now();
  const deadline = deadlineOf(dependencies, { waitSeconds, arrivedAt, now }, call);
  const hasDeadlinePassed = deadline <= now;
  const isRefused = !first.won && hasDeadlinePassed && !isKnownInLine;
  // A call that waits looks later, beside its wait. Here, a slow answer of AWS would cost the call its position in
  // line.
  const outcome = isRefused && (await asking.look(first.record)) ? await attempt() : first;
  if (outcome.won) {
    if (ticket === undefined) return outcome;
    const { leaveAfterGrant } = await import('../line/claim.ts');
    const lock = await asking.lock();
    await leaveAfterGrant({ dependencies, lock, call }, { granted: outcome, ticket });
    return outcome;
  }
  const { record } = outcome;
  noteMark(dependencies, record);
  if (isRefused) throw await heldError(record);
  if (fair) return joinLine(dependencies, { ...asking, deadline: Math.max(deadline, now), record }, call);
  const { race } = await import('../line/wait.ts');
  const wait = async () =>
    race({ dependencies, lock: await asking.lock(), call }, { heldBy: record, deadline, attempt });
  if (!canSleep(dependencies)) return wait();
  const { inSeat } = await import('../line/held-calls.ts');
  const raced = await inSeat(dependencies, { reason: 'cannotSleep', deadline }, { wait, call });
  if (!raced) throw await heldError(record);
  return raced.result;
}

async function joinLine(
  dependencies: LeaseDependencies,
  { lock, ...asking }: WaitOptions & { deadline: number; record: KeyRecord | undefined },
  call: Call,
): Promise<GrantOnRecord> {
  const { holdOrSleep } = await import('../line/hold-or-sleep.ts');
  return holdOrSleep({ dependencies, lock: await lock(), call }, asking);
}

/**
 * The task or callback that a request parks. The schema allows only one of the two fields.
 * @returns undefined if the call itself waits
 */
function parkedBy({ taskToken, callbackId }: Pick<AcquireInput, 'taskToken' | 'callbackId'>): ParkedBy | undefined {
  if (callbackId !== undefined) return { callbackId };
  return taskToken === undefined ? undefined : { taskToken };
}
