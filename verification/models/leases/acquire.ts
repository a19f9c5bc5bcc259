import { lost, NOW, sleep } from '../engine/common.ts';
import { deleteRow } from '../engine/rows.ts';
import { type Config, type Item, Refused, type Request, type Self, type Steps } from '../engine/types.ts';
import { changeKind } from '../keys/change.ts';
import { isPool } from '../line/kinds.ts';
import { claim, type Granted } from './claim.ts';
import { type Answer, endReason, storedPrevious, viewOf, writeVersion } from './common.ts';
import { handOff } from './hand-off.ts';
import { release } from './release.ts';
import { waitInLine } from './wait.ts';
import * as w from './writes.ts';

const MOST_TRIES = 5;

/** leases.md#acquire, and with `wait` queue.md#wait. @throws Refused LeaseHeld, with the ticket of a call that waited; LeaseLost */
export function* acquire(request: Request, config: Config, self: Self = {}): Steps<Answer> {
  const arrivedAt: number = yield NOW;
  const first = yield* tryOnce(request, config);
  if ('granted' in first) {
    if (request.ticket !== undefined) yield* leaveLine(request, request.ticket, first.granted, config);
    return answer(first, yield NOW, arrivedAt, config);
  }
  if (!request.wait) throw new Refused('LeaseHeld');
  const until = arrivedAt + request.wait;
  const granted = yield* waitInLine(request, until, config, self);
  if (granted) return answer(granted, yield NOW, arrivedAt, config);
  // The record is of the other kind, so the call has left the line.
  if (until <= (yield NOW)) throw new Refused('LeaseHeld');
  yield sleep(config.lookNext);
  const again = { ...request, ticket: undefined, wait: Math.max(1, until - (yield NOW)) };
  const late = yield* acquire(again, config, self);
  return { ...late, waited: late.waited + until - again.wait - arrivedAt };
}

const answer = (outcome: Granted, now: number, arrivedAt: number, config: Config): Answer => ({
  ...viewOf(outcome.granted, now, config),
  waited: Math.max(0, outcome.triedAt - arrivedAt),
  repeated: outcome.repeated,
  previous: outcome.previous,
  claimed: outcome.claimed,
});

/** A call that asks again and wins its first try takes its row along, unless it was withdrawn meanwhile. */
function* leaveLine(request: Request, ticket: string, granted: Item, config: Config): Steps<void> {
  const { old } = yield w.leaveOwnRow(ticket, request);
  const isOwn = old && w.isOwn(old, request);
  if (!isOwn || old.cancelled_at === undefined) return;
  yield* release(request.key, granted.lease_id, config);
  throw lost('cancelled');
}

type First = Granted | { heldBy: Item };

function* tryOnce(request: Request, config: Config): Steps<First> {
  let before: Item = {};
  let queueSeenEmpty = false;
  for (let tries = 1; ; tries++) {
    const now: number = yield NOW;
    const grant = {
      ...request,
      ticket: undefined,
      version: config.uuid(),
      leaseId: config.uuid(),
      fence: w.risingFence(before, now),
      acquiredAt: now,
    };
    const out = yield w.acquire(grant, config);
    if (out.won) {
      const previous = w.previousOf(out.old ?? {}, 'expired', false, config);
      return { granted: out.item, repeated: false, triedAt: now, previous, claimed: false };
    }
    const standing: Item = out.old ?? { key: request.key };
    if (isPool(standing)) {
      if (tries === MOST_TRIES) throw new Refused('LeaseHeld'); // calls of the other kind change it back
      yield* changeKind(request.key, standing, config);
      before = standing;
      continue;
    }
    if (w.isOwn(standing, request) && !w.isLeased(standing)) throw lost(endReason(standing));
    if (w.isRepeatable(standing, request, now, config)) {
      const repeat = yield* repeatGrant(request, standing, grant.version, now, config);
      if (repeat) return repeat;
      if (tries === MOST_TRIES) return { heldBy: standing };
      continue;
    }
    const couldBeHad = !w.isLeased(standing) || w.takeoverAt(standing, config) <= now;
    if (!couldBeHad || tries === MOST_TRIES) return { heldBy: standing };
    const isUnclaimed = w.isLeased(standing) && standing.claim_ttl_ms !== undefined;
    if (
      (standing.waiters !== undefined && !config.bugs?.barging) ||
      (isUnclaimed && !config.bugs?.unclaimedOverwritten)
    ) {
      const handed = yield* handOff(request.key, standing, w.isLeased(standing) ? 'expired' : 'free', config);
      if (handed.end !== 'empty' || queueSeenEmpty) return { heldBy: handed.standing };
      queueSeenEmpty = true;
      before = handed.standing;
    } else before = standing;
  }
}

/** The request has a grant: it is answered with that, and claims it where nobody has. */
function* repeatGrant(
  request: Request,
  standing: Item,
  version: string,
  now: number,
  config: Config,
): Steps<Granted | undefined> {
  if (standing.claim_ttl_ms !== undefined && !config.bugs?.repeatUnclaimed) {
    const claimed = yield* claim(request, { record: standing }, undefined, config);
    return claimed && { ...claimed, repeated: true };
  }
  if (standing.ticket === undefined) {
    const repeated = standing.lease_version !== version;
    return { granted: standing, repeated, triedAt: now, previous: undefined, claimed: false };
  }
  const fresh = config.uuid();
  const { won, standing: granted } = yield* writeVersion(w.rotate(standing, fresh), fresh);
  if (!won) return undefined;
  // Its claim may have died before it deleted the row. That of a task is for the call that notifies the task.
  yield {
    ...deleteRow(request.key, standing.ticket),
    condition: 'attribute_not_exists(token) AND attribute_not_exists(cancelled_at)',
    values: {},
  };
  return { granted, repeated: true, triedAt: now, previous: storedPrevious(granted), claimed: false };
}
