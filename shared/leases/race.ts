import { GetItemCommand } from '@aws-sdk/client-dynamodb';
import { text } from '../aws/attributes.ts';
import type { Call } from '../aws/call.ts';
import { reading, send } from '../aws/send.ts';
import type { Ids } from '../ids.ts';
import type { LeaseDependencies } from './dependencies.ts';
import { type Granted, tryOnce } from './first-try.ts';
import type { GrantRequest } from './grant.ts';
import { type LeaseRecord, parseRecord } from './record.ts';
import { isLeased, isRepeatable, takeoverAt } from './rules.ts';
import { leaseHeld } from './views.ts';

/** The pauses of a waiting caller grow from about the former to the latter. */
const MIN_PAUSE_MS = 25;
const MAX_PAUSE_MS = 250;

interface Racing {
  request: GrantRequest;
  heldBy: LeaseRecord;
  /** When patience ends, in epoch milliseconds. */
  deadline: number;
}

/**
 * Waits outside the line (`fair: false`): looks whether the lease has come free, and tries again. Cheaper than a place, and whoever looks
 * first has it.
 * @throws HoldfastError LeaseHeld when patience ends, LeaseLost, Throttled, Unavailable, OutcomeUnknown
 */
export async function race(dependencies: LeaseDependencies, racing: Racing, call: Call): Promise<Granted> {
  const pauses = jitteredPauses(dependencies.ids);
  let { heldBy } = racing;
  for (;;) {
    await untilItLooksFree(dependencies, { ...racing, heldBy, pauses }, call);
    const outcome = await tryOnce(dependencies, racing.request, call);
    if (outcome.won) return outcome;
    heldBy = outcome.standing;
  }
}

/**
 * Sleeps until the holder's expiry, or for a jittered pause if that is shorter, and looks with an eventually consistent read, which costs
 * half a read unit and no write on a hot item.
 */
async function untilItLooksFree(
  { dynamodb, clock, table, clockSkewMs }: LeaseDependencies,
  { request, heldBy, deadline, pauses }: Racing & { pauses: Iterator<number, never> },
  call: Call,
): Promise<void> {
  let standing = heldBy;
  for (;;) {
    const patience = deadline - clock.now();
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

function* jitteredPauses(ids: Ids): Generator<number, never> {
  for (let pause = MIN_PAUSE_MS; ; pause = Math.min(pause * 2, MAX_PAUSE_MS))
    yield Math.round(pause * (0.5 + ids.random() / 2));
}
