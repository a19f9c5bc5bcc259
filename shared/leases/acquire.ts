import { GetItemCommand, PutItemCommand } from '@aws-sdk/client-dynamodb';
import type { Call } from '../aws/call.ts';
import { all, either } from '../aws/conditions.ts';
import { conditionalWrite } from '../aws/dynamodb.ts';
import { naming, send } from '../aws/send.ts';
import type { Ids } from '../ids.ts';
import { fenceRises, isExpired, isFree, isUnmarked } from './conditions.ts';
import { type LeaseDependencies, leaseTable } from './dependencies.ts';
import type { AcquireInput } from './inputs.ts';
import type { HandedOff } from './queue/hand-off.ts';
import { type Grant, grantItem, integer, type Json, type LeaseRecord, parseRecord, text, unusable } from './record.ts';
import { endReason, isLeased, isOwn, isRepeatable, risingFence, takeoverAt } from './rules.ts';
import { grantView, type LeaseGrant, leaseHeld, leaseLost } from './views.ts';

export interface Acquired extends LeaseGrant {
  /** From the arrival of the call to its last try: deadline = sentAt + waitedMs + remainingMs on the caller's clock. */
  waitedMs: number;
  /** True where this request had been granted before: a retry, or a lost reply. */
  repeated: boolean;
}

/** Without a task to park. */
type PlainAcquire = Omit<AcquireInput, 'taskToken' | 'parkSeconds'>;

/** A request that knows its own id, sent or made here. */
type Request = Omit<PlainAcquire, 'requestId'> & {
  requestId: string;
  principal: string | undefined;
};

/** Only a fence at or ahead of our clock is tried again with, and each such try loses to a new grant. */
const MAX_FENCE_TRIES = 5;

/** Waiting callers look this often: first after about the former, then less and less, down to the latter. */
const MIN_PAUSE_MS = 25;
const MAX_PAUSE_MS = 250;

/** What a write needs at the end of an invocation, so that waiting stops before it. */
const LAST_WRITE_MS = 500;

/**
 * Takes a lease with one conditional PutItem; an expired one is taken over on the first call, unless somebody is parked
 * for it. With `waitSeconds`, waits inside the call for the lease to come free, but no longer than the
 * deployment allows (`maxWaitSeconds`).
 * @throws HoldfastError LeaseHeld, LeaseLost (the request's own grant was released), Throttled, OutcomeUnknown, Unavailable (also for a
 * record of another client that no condition fits)
 */
export function acquirer(dependencies: LeaseDependencies) {
  const { clock, ids, maxWaitSeconds } = dependencies;
  return async (input: PlainAcquire, call: Call): Promise<Acquired> => {
    const request = { ...input, requestId: input.requestId ?? ids.uuid(), principal: call.principal };
    const arrivedAt = clock.now();
    const pauses = jitteredPauses(ids);
    const waitMs = Math.min(request.waitSeconds, maxWaitSeconds) * 1000;
    const patienceMs = () => Math.min(arrivedAt + waitMs - clock.now(), call.timeLeftMs() - LAST_WRITE_MS);
    for (;;) {
      const triedAt = clock.now();
      const outcome = await tryOnce(dependencies, request, call).catch(naming({ requestId: request.requestId }));
      if ('granted' in outcome) {
        const { granted, repeated } = outcome;
        return { ...grantView(granted, clock.now()), waitedMs: Math.max(0, triedAt - arrivedAt), repeated };
      }
      await untilItLooksFree(dependencies, request, outcome.heldBy, { pauses, patienceMs }, call);
    }
  };
}

type Outcome = { granted: LeaseRecord; repeated: boolean } | { heldBy: LeaseRecord };

/** One write, or two where the key's fence is at or ahead of our clock (same millisecond, or the clock stepped back). */
async function tryOnce(dependencies: LeaseDependencies, request: Request, call: Call): Promise<Outcome> {
  let previous: LeaseRecord = { key: request.key };
  let queueSeenEmpty = false;
  for (let tries = 1; ; tries++) {
    const now = dependencies.clock.now();
    const grant = newGrant(dependencies, request, risingFence(previous, now), now);
    const outcome = await put(dependencies, grant, call);
    if (outcome.won) return { granted: parseRecord(grantItem(grant)), repeated: false };

    const standing = parseRecord(outcome.old ?? { key: text(request.key) });
    if (isOwn(standing, request) && !isLeased(standing)) throw leaseLost(request.key, endReason(standing), standing);
    if (isRepeatable(standing, request, now)) {
      const told = await toldToRepeat(dependencies, standing, call);
      if (told || tries === MAX_FENCE_TRIES) return told ? { granted: told, repeated: true } : { heldBy: standing };
      continue;
    }
    const couldBeHad = !isLeased(standing) || takeoverAt(standing, dependencies.clockSkewMs) <= now;
    if (!couldBeHad || tries === MAX_FENCE_TRIES) return { heldBy: standing };
    if (standing.waiters !== undefined) {
      const { end, standing: after } = await toThoseParked(dependencies, standing, call);
      if (end !== 'empty' || queueSeenEmpty) return { heldBy: after };
      queueSeenEmpty = true;
    } else if (standing.malformed !== undefined) throw unusable(standing);
    previous = standing;
  }
}

/**
 * The standing grant, for the request that has it. Where it came through the queue, another call may be about to tell it
 * to a task, and would hand it on if that task is gone: a new version keeps it from that. Undefined where the grant has changed.
 */
async function toldToRepeat(
  dependencies: LeaseDependencies,
  standing: LeaseRecord,
  call: Call,
): Promise<LeaseRecord | undefined> {
  if (standing.ticket === undefined) return standing;
  const { rotate } = await import('./queue/marks.ts');
  const rotated = await rotate(dependencies, standing, call);
  return rotated.won ? rotated.standing : undefined;
}

/** What could be had goes to those who came before. */
async function toThoseParked(dependencies: LeaseDependencies, standing: LeaseRecord, call: Call): Promise<HandedOff> {
  const { handOff } = await import('./queue/hand-off.ts');
  return handOff(dependencies, standing, isLeased(standing) ? 'expired' : 'free', call);
}

function newGrant({ ids }: LeaseDependencies, request: Request, fence: number, now: number): Grant {
  return {
    key: request.key,
    version: ids.uuid(),
    leaseId: ids.uuid(),
    ttlSeconds: request.ttlSeconds,
    holder: request.holder,
    principal: request.principal,
    requestId: request.requestId,
    fence,
    data: request.data as Json | undefined, // checked by the schema
    execution: request.execution,
    target: request.target,
    acquiredAt: now,
  };
}

function put({ dynamodb, table, clockSkewMs }: LeaseDependencies, grant: Grant, call: Call) {
  const cut = grant.acquiredAt - clockSkewMs;
  const command = new PutItemCommand({
    TableName: table,
    Item: grantItem(grant),
    ConditionExpression: all(isUnmarked, either(isFree, isExpired), fenceRises),
    ExpressionAttributeValues: {
      ':request': text(grant.requestId),
      ':holder': text(grant.holder),
      ':cut': integer(cut),
      ':cutSeconds': integer(Math.floor(cut / 1000)),
      ':fence': integer(grant.fence),
    },
    ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
  });
  return conditionalWrite(dynamodb, command, leaseTable(table, 'write'), call);
}

/**
 * Returns when the lease looks free. It sleeps to the holder's expiry, or a jittered pause if that is shorter, and
 * looks with an eventually consistent read: half a read unit, and no write on a hot item.
 * @throws HoldfastError LeaseHeld when patience ends
 */
async function untilItLooksFree(
  { dynamodb, clock, table, clockSkewMs }: LeaseDependencies,
  request: Request,
  heldBy: LeaseRecord,
  { pauses, patienceMs }: Waiting,
  call: Call,
): Promise<void> {
  let standing = heldBy;
  for (;;) {
    const patience = patienceMs();
    if (patience <= 0) throw leaseHeld(standing, clock.now(), clockSkewMs);
    // Past already where it could be had, and those parked for it could neither take it nor be told that they wait no more.
    const toTakeover = takeoverAt(standing, clockSkewMs) - clock.now();
    const pause = pauses.next().value;
    await clock.sleep(Math.min(toTakeover > 0 ? Math.min(pause, toTakeover) : pause, patience));

    const look = new GetItemCommand({ TableName: table, Key: { key: text(request.key) } });
    const { Item: item } = await send(dynamodb, look, leaseTable(table, 'read'), call);
    if (!item) return;
    standing = parseRecord(item);
    const now = clock.now();
    if (!isLeased(standing) || isRepeatable(standing, request, now) || takeoverAt(standing, clockSkewMs) <= now) return;
  }
}

interface Waiting {
  pauses: Iterator<number, never>;
  patienceMs: () => number;
}

function* jitteredPauses(ids: Ids): Generator<number, never> {
  for (let pause = MIN_PAUSE_MS; ; pause = Math.min(pause * 2, MAX_PAUSE_MS))
    yield Math.round(pause * (0.5 + ids.random() / 2));
}
