import { GetItemCommand, PutItemCommand } from '@aws-sdk/client-dynamodb';
import { text } from '../aws/attributes.ts';
import type { Call } from '../aws/call.ts';
import { all, any, conditionFields } from '../aws/condition.ts';
import { conditionalWrite } from '../aws/dynamodb.ts';
import { naming, reading, send, writing } from '../aws/send.ts';
import type { Ids } from '../ids.ts';
import { isBelow, isExpired, isFreeFor, isUnmarked } from './conditions.ts';
import type { LeaseDependencies } from './dependencies.ts';
import { type Grant, type GrantRequest, grantItem, newGrant } from './grant.ts';
import type { AcquireInput } from './inputs.ts';
import type { HandedOff } from './queue/hand-off.ts';
import { type Json, type Leased, type LeaseRecord, parseRecord, unusable } from './record.ts';
import { endReason, isLeased, isOwn, isRepeatable, takeoverAt } from './rules.ts';
import { grantView, type LeaseGrant, leaseHeld, leaseLost } from './views.ts';
import type { Written } from './write.ts';

export interface Acquired extends LeaseGrant {
  /** From the arrival of the call to its last try: deadline = sentAt + waitedMs + remainingMs on the caller's clock. */
  waitedMs: number;
  /** Whether an earlier try of this request got the grant: a retry, or a lost answer. */
  repeated: boolean;
}

/** An acquire without a task to park. */
type PlainAcquire = Omit<AcquireInput, 'taskToken' | 'parkSeconds'>;

/** A request with an id, which the caller sent or this service made. */
type Request = GrantRequest & Pick<PlainAcquire, 'waitSeconds'>;

/** A try fails by its fence only where the record's is at or ahead of our clock, and again only where a new grant came first. */
const MAX_FENCE_TRIES = 5;

/** The pauses of a waiting caller grow from about the former to the latter. */
const MIN_PAUSE_MS = 25;
const MAX_PAUSE_MS = 250;

/** Waiting leaves this much of the invocation for a last write. */
const LAST_WRITE_MS = 500;

/**
 * Takes a lease with one conditional PutItem (docs/protocols/leases.md#acquire). Takes an expired one over on the first call,
 * unless a task is parked for it. With `waitSeconds`, waits inside the call for the lease to come free, but no longer
 * than the deployment allows (`maxWaitSeconds`).
 * @throws HoldfastError LeaseHeld, LeaseLost (the request's own grant was released), Throttled, OutcomeUnknown, Unavailable (also for a
 * record of another client that no condition fits)
 */
export function acquirer(dependencies: LeaseDependencies) {
  const { clock, ids, maxWaitSeconds } = dependencies;
  return async (input: PlainAcquire, call: Call): Promise<Acquired> => {
    const { requestId = ids.uuid(), data } = input;
    // The schema has checked that data is JSON.
    const request = { ...input, requestId, principal: call.principal, data: data as Json | undefined };
    const arrivedAt = clock.now();
    const pauses = jitteredPauses(ids);
    const waitMs = Math.min(request.waitSeconds, maxWaitSeconds) * 1000;
    const patienceMs = () => Math.min(arrivedAt + waitMs - clock.now(), call.timeLeftMs() - LAST_WRITE_MS);
    for (;;) {
      const triedAt = clock.now();
      const outcome = await tryOnce(dependencies, request, call).catch(naming({ requestId }));
      if (outcome.won) {
        const waitedMs = Math.max(0, triedAt - arrivedAt);
        return { ...grantView(outcome.standing, clock.now()), waitedMs, repeated: outcome.repeated };
      }
      await untilItLooksFree(dependencies, { request, heldBy: outcome.standing, pauses, patienceMs }, call);
    }
  };
}

/** `standing` is the grant, or the record that keeps the request from it. */
type Outcome = { won: true; standing: LeaseRecord; repeated: boolean } | { won: false; standing: LeaseRecord };

/** One write, or two where the key's fence is at or ahead of our clock: in the same millisecond, or after the clock stepped back. */
async function tryOnce(dependencies: LeaseDependencies, request: Request, call: Call): Promise<Outcome> {
  let previous: LeaseRecord = { key: request.key };
  let queueSeenEmpty = false;
  for (let tries = 1; ; tries++) {
    const grant = newGrant(dependencies, request, previous);
    const outcome = await put(dependencies, grant, call);
    if (outcome.won) return { won: true, standing: parseRecord(grantItem(grant)), repeated: false };

    const standing = parseRecord(outcome.old ?? { key: text(request.key) });
    if (isOwn(standing, request) && !isLeased(standing)) throw leaseLost(request.key, endReason(standing), standing);
    if (isRepeatable(standing, request, grant.acquiredAt)) {
      const claimed = await claimRepeat(dependencies, standing, call);
      if (claimed.won) return { ...claimed, repeated: true };
      if (tries === MAX_FENCE_TRIES) return { won: false, standing };
      continue;
    }
    const couldBeHad = !isLeased(standing) || takeoverAt(standing, dependencies.clockSkewMs) <= grant.acquiredAt;
    if (!couldBeHad || tries === MAX_FENCE_TRIES) return { won: false, standing };
    if (standing.waiters !== undefined) {
      const { end, standing: after } = await handToParked(dependencies, standing, call);
      if (end !== 'empty' || queueSeenEmpty) return { won: false, standing: after };
      queueSeenEmpty = true;
    } else if (standing.malformed !== undefined) throw unusable(standing);
    previous = standing;
  }
}

/**
 * Claims the standing grant for the request that has it. If the grant came from the queue, another call may be about to
 * deliver it to a task, and would hand it on if that task is gone. A new version prevents that.
 */
async function claimRepeat(dependencies: LeaseDependencies, standing: Leased, call: Call): Promise<Written> {
  if (standing.ticket === undefined) return { won: true, standing };
  const { rotate } = await import('./queue/marks.ts');
  return rotate(dependencies, standing, call);
}

/** Gives a lease that can be had to the tasks that came before this call. */
async function handToParked(dependencies: LeaseDependencies, standing: LeaseRecord, call: Call): Promise<HandedOff> {
  const { handOff } = await import('./queue/hand-off.ts');
  return handOff(dependencies, { record: standing, ending: isLeased(standing) ? 'expired' : 'free' }, call);
}

function put({ dynamodb, table, clockSkewMs }: LeaseDependencies, grant: Grant, call: Call) {
  const cut = grant.acquiredAt - clockSkewMs;
  const command = new PutItemCommand({
    TableName: table,
    Item: grantItem(grant),
    ...conditionFields(all(isUnmarked, any(isFreeFor(grant), isExpired(cut)), isBelow(grant.fence))),
    ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
  });
  return conditionalWrite(dynamodb, { command, operation: writing(`table ${table}`) }, call);
}

/**
 * Returns when the lease looks free. Sleeps until the holder's expiry, or for a jittered pause if that is shorter, and
 * looks with an eventually consistent read, which costs half a read unit and no write on a hot item.
 * @throws HoldfastError LeaseHeld when patience ends
 */
async function untilItLooksFree(
  { dynamodb, clock, table, clockSkewMs }: LeaseDependencies,
  { request, heldBy, pauses, patienceMs }: Waiting,
  call: Call,
): Promise<void> {
  let standing = heldBy;
  for (;;) {
    const patience = patienceMs();
    if (patience <= 0) throw leaseHeld(standing, clock.now(), clockSkewMs);
    // It may be in the past: of a lease that can be had, while Step Functions cannot be reached for the tasks that are parked.
    const toTakeover = takeoverAt(standing, clockSkewMs) - clock.now();
    const pause = pauses.next().value;
    await clock.sleep(Math.min(toTakeover > 0 ? Math.min(pause, toTakeover) : pause, patience));

    const look = new GetItemCommand({ TableName: table, Key: { key: text(request.key) } });
    const { Item: item } = await send(dynamodb, { command: look, operation: reading(`table ${table}`) }, call);
    if (!item) return;
    standing = parseRecord(item);
    const now = clock.now();
    if (!isLeased(standing) || isRepeatable(standing, request, now) || takeoverAt(standing, clockSkewMs) <= now) return;
  }
}

interface Waiting {
  request: Request;
  heldBy: LeaseRecord;
  pauses: Iterator<number, never>;
  patienceMs: () => number;
}

function* jitteredPauses(ids: Ids): Generator<number, never> {
  for (let pause = MIN_PAUSE_MS; ; pause = Math.min(pause * 2, MAX_PAUSE_MS))
    yield Math.round(pause * (0.5 + ids.random() / 2));
}
