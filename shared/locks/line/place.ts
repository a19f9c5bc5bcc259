import { UpdateItemCommand } from '@aws-sdk/client-dynamodb';
import { integer, text } from '../../aws/attributes.ts';
import type { Call } from '../../aws/call.ts';
import { all, conditionFields } from '../../aws/condition.ts';
import { conditionalWrite } from '../../aws/dynamodb.ts';
import { writing } from '../../aws/send.ts';
import type { LeaseDependencies } from '../dependencies.ts';
import { parkedAtOf, placeKeyOf, putWaiter, ttlOfWaiter, type WaiterRequest, type WaitingCall } from './waiters.ts';
import { flaggedIn, isUnflaggedRowOf } from './waiting-calls.ts';

// The places of callers that sleep between two calls (docs/protocols/places.md).
//
//   put or extended      awakeAt     + SLACK_MS        keepUntil        + margin
//         |----- asleep -----|--- late ---|---- absent ----|--- expired ---|
//         |- others leave a free key to it -|              |- only a slow clock may still extend the place
//         |------------------ the place keeps the mark --------------------|

/** Positions up to this one are counted from rows. Positions behind it are estimates. */
export const EXACT_POSITIONS = 20;

/** If a caller is later than this, others no longer leave a free key to it. */
const SLACK_MS = 10_000;

/** How long a place stays after its caller was due. */
const KEEP_MS = 60_000;

/**
 * How far ahead `awakeAt` of a place far from the front is at least, because each extension is a write. The price:
 * callers that died asleep count for as long, so a key whose whole line was killed may stand free for three and a half
 * minutes.
 */
export const MIN_FAR_AWAKE_MS = 210_000;

export type Place = WaitingCall & { awakeAt: number };

/**
 * Whether the place keeps the mark. It does so for the margin after `keepUntil`, because a call whose clock is behind
 * may still extend it then.
 */
export const isLive = ({ cancelledAt, keepUntil }: Place, { now, clockSkewMs }: { now: number; clockSkewMs: number }) =>
  cancelledAt === undefined && keepUntil + clockSkewMs > now;

/** Whether the caller is asleep or only a little late, so that others leave a free key to it for a moment. */
export const isExpected = ({ cancelledAt, awakeAt }: Pick<Place, 'cancelledAt' | 'awakeAt'>, now: number): boolean =>
  cancelledAt === undefined && awakeAt + SLACK_MS > now;

/** A caller that goes to sleep, or goes on sleeping. */
export interface Sleeper {
  request: WaiterRequest;
  ticket: string;
  number?: number | undefined;
  sleepMs: number;
  /** Whether the caller is so near to the front that others count its place. */
  isNear: boolean;
  /** Whether the caller has a row in line. The row keeps the position even if the place has expired. */
  hasRow?: boolean | undefined;
}

const timesOfPlace = ({ sleepMs, isNear }: Pick<Sleeper, 'sleepMs' | 'isNear'>, now: number) => {
  const awakeAt = now + (isNear ? sleepMs : Math.max(sleepMs, MIN_FAR_AWAKE_MS));
  return { awakeAt, keepUntil: awakeAt + KEEP_MS };
};

/** For how long an answer promises to keep the place, in milliseconds. */
export const keptMsOf = (sleepMs: number): number => sleepMs + KEEP_MS;

/**
 * Whether a place must be extended. Near the front always, and otherwise only if it would not stay for as long as the
 * answer promises.
 */
export const mustExtend = ({ awakeAt }: Place, { sleepMs, isNear }: Pick<Sleeper, 'sleepMs' | 'isNear'>, now: number) =>
  isNear || awakeAt < now + sleepMs;

/** Writes a new place. @throws HoldfastError Throttled, Unavailable, OutcomeUnknown */
export const putPlace = (
  dependencies: LeaseDependencies,
  { request, ticket, number, ...sleeping }: Sleeper,
  call: Call,
): Promise<void> => {
  const times = timesOfPlace(sleeping, dependencies.clock.now());
  // The deadline 0 makes the row overdue for every function that knows only calls that wait, so a hand-off does not
  // serve it.
  const place: Place = { ...request, ticket, number, parkedAt: parkedAtOf(ticket), deadline: 0, ...times };
  return putWaiter(dependencies, place, call);
};

/**
 * Extends the place of a caller that has come back in time.
 * @returns the place, if it was withdrawn or superseded. `gone`: there is no such place, it has expired, or its request
 * has other terms
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export async function extendPlace(
  { dynamodb, clock, waitersTable }: LeaseDependencies,
  { request, ticket, hasRow = false, ...sleeping }: Sleeper,
  call: Call,
): Promise<'kept' | 'gone' | WaitingCall> {
  const now = clock.now();
  const { awakeAt, keepUntil } = timesOfPlace(sleeping, now);
  const isInTime = hasRow ? [] : [{ expression: 'keep_until > :now', values: { ':now': integer(now) } }];
  const command = new UpdateItemCommand({
    TableName: waitersTable,
    Key: { key: text(request.key), ticket: text(placeKeyOf(ticket)) },
    UpdateExpression: 'SET awake_at = :awake, keep_until = :keep, #ttl = :ttl',
    ...conditionFields(all(isUnflaggedRowOf(request), ...isInTime), {
      names: { '#ttl': 'ttl' },
      values: { ':awake': integer(awakeAt), ':keep': integer(keepUntil), ':ttl': integer(ttlOfWaiter({ keepUntil })) },
    }),
    ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
  });
  const { won, ...outcome } = await conditionalWrite(
    dynamodb,
    { command, operation: writing(`table ${waitersTable}`) },
    call,
  );
  if (won) return 'kept';
  return ('old' in outcome && flaggedIn(outcome.old, request)) || 'gone';
}

/**
 * The position of an arrival, by the hints of the record. A number above the counter of arrivals is from before the
 * counter began again: position 1.
 */
export function estimatedPosition(
  { arrivals = 0, lineOut = 0 }: { arrivals?: number | undefined; lineOut?: number | undefined },
  number: number | undefined,
): number {
  if (number === undefined || number > arrivals + 1) return 1;
  return Math.max(1, number - lineOut);
}
