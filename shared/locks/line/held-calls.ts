import { UpdateItemCommand } from '@aws-sdk/client-dynamodb';
import { integer, text } from '../../aws/attributes.ts';
import type { Call } from '../../aws/call.ts';
import { conditionFields } from '../../aws/condition.ts';
import { conditionalWrite, type Item } from '../../aws/dynamodb.ts';
import { writing } from '../../aws/send.ts';
import { HoldfastError } from '../../errors.ts';
import { logLine } from '../../surroundings/log.ts';
import type { LeaseDependencies } from '../dependencies.ts';
import type { HoldReason } from './expected.ts';

// Bounds the calls that wait inside the service (docs/authorization.md#calls-that-wait), because each occupies an
// environment of a function, and an account has few. Each held call has a seat: an attribute of one of four records. It
// notes when the call ends at the latest, so the seat of a call that crashed comes free by itself.

const SEAT_RECORDS = 4;
/** Callers cannot name keys that begin with `holdfast:`. */
const seatRecordKey = (nth: number): string => `holdfast:held:${nth}`;
const SEAT_TTL_SECONDS = 86_400;
/** How much later than its deadline a call may end. */
const LATE_MS = 1000;
const MAX_SEAT_TRIES = 5;

/** The part of the seats that calls with each reason may use. The rest is for calls whose turn is nearer. */
export const SEAT_SHARE: Record<HoldReason, number> = { front: 1, soon: 0.5, next: 0.5, cannotSleep: 0.8 };

interface HoldOptions {
  reason: HoldReason;
  /** The latest end of the wait, in epoch milliseconds. */
  deadline: number;
}

interface HeldSeat {
  /** The number of the record. */
  nth: number;
  /** The number of the seat in the record. */
  index: number;
  /** When the seat comes free by itself, in epoch milliseconds. */
  until: number;
}

/**
 * Runs `wait` in a seat, if one is free for such a call.
 * @returns undefined if the call must not be held
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown, and as `wait`
 */
export async function inSeat<Result>(
  dependencies: LeaseDependencies,
  holding: HoldOptions,
  { wait, call }: { wait: () => Promise<Result>; call: Call },
): Promise<{ result: Result } | undefined> {
  const max = dependencies.quotas?.maxHeldCalls;
  if (max === undefined) return { result: await wait() };
  const seat = await takeSeat(dependencies, { ...holding, max }, call).catch(undefinedIfNotCounted);
  if (!seat) return undefined;
  try {
    return { result: await wait() };
  } finally {
    await freeSeat(dependencies, seat, call).catch(({ message: cause }: Error) =>
      logLine('WARN', { message: 'the seat of a held call stays taken for up to 21 s', cause }),
    );
  }
}

/**
 * If the records cannot count so many calls, or the answer was lost, the call is not held. A seat that it may have
 * taken comes free by itself.
 */
function undefinedIfNotCounted(error: unknown): undefined {
  if (error instanceof HoldfastError && (error.code === 'Throttled' || error.code === 'OutcomeUnknown')) return;
  throw error;
}

/** The number of seats in a record: all seats are spread over the records as evenly as possible. */
const sizeOf = (max: number, nth: number): number =>
  Math.floor(max / SEAT_RECORDS) + (nth < max % SEAT_RECORDS ? 1 : 0);

/** Takes a random free seat. The answer of each try shows the seats of its record, for the next try. */
async function takeSeat(
  dependencies: LeaseDependencies,
  { reason, deadline, max }: HoldOptions & { max: number },
  call: Call,
): Promise<HeldSeat | undefined> {
  const { ids, clock } = dependencies;
  const until = deadline + LATE_MS;
  const records = Math.min(SEAT_RECORDS, max);
  if (records === 0) return undefined;
  const from = Math.floor(ids.random() * records);
  const randomSeatIn = (record: number): [number, number] => [record, Math.floor(ids.random() * sizeOf(max, record))];
  let [nth, index] = randomSeatIn(from);
  for (let tries = 1; ; tries++) {
    const size = sizeOf(max, nth);
    const allowed = Math.max(1, Math.floor(size * SEAT_SHARE[reason]));
    const ownSeat = { nth, index, until };
    const { won, item } = await writeSeat(dependencies, { ...ownSeat, ...taking(until, clock.now()) }, call);
    const taken = takenIn(item, clock.now());
    if (won && taken.size <= allowed) return ownSeat;
    if (won) await freeSeat(dependencies, ownSeat, call);
    const isFull = won || taken.size >= allowed;
    // By chance one record may be full and another not, so a call tries a second one. If both are full, only a call at
    // the front goes on.
    if (tries === MAX_SEAT_TRIES || (isFull && nth !== from && reason !== 'front')) return undefined;
    const free = Array.from({ length: size }, (_, at) => at).filter((at) => !taken.has(at));
    const next = isFull ? undefined : free[Math.floor(ids.random() * free.length)];
    [nth, index] = next === undefined ? randomSeatIn((nth + 1) % records) : [nth, next];
  }
}

const SEAT = /^s(\d+)$/;

/** The seats that are taken, without those that have come free by themselves. */
const takenIn = (item: Item | undefined, now: number): Set<number> =>
  new Set(
    Object.entries(item ?? {}).flatMap(([name, { N: until }]) => {
      const seat = SEAT.exec(name)?.[1];
      return seat !== undefined && Number(until) >= now ? [Number(seat)] : [];
    }),
  );

interface SeatChange {
  update: string;
  condition: string;
  values: Item;
}

/** Takes a seat that is free, or has come free by itself. */
const taking = (until: number, now: number): SeatChange => ({
  update: 'SET #seat = :until, lease_expiry = :ttl',
  condition: 'attribute_not_exists(#seat) OR #seat < :now',
  values: {
    ...{ ':until': integer(until), ':now': integer(now) },
    ':ttl': integer(Math.ceil(now / 1000) + SEAT_TTL_SECONDS),
  },
});

/** Frees the seat of this call. If it has come free by itself, another call may have it now, with another `until`. */
const freeSeat = (dependencies: LeaseDependencies, seat: HeldSeat, call: Call) => {
  const values = { ':until': integer(seat.until) };
  return writeSeat(dependencies, { ...seat, update: 'REMOVE #seat', condition: '#seat = :until', values }, call);
};

/** @returns whether the write won, and the record after it */
async function writeSeat(
  { dynamodb, table }: LeaseDependencies,
  { nth, index, update, condition: expression, values }: Omit<HeldSeat, 'until'> & SeatChange,
  call: Call,
): Promise<{ won: boolean; item: Item | undefined }> {
  const command = new UpdateItemCommand({
    TableName: table,
    Key: { key: text(seatRecordKey(nth)) },
    UpdateExpression: update,
    ...conditionFields({ expression, names: { '#seat': `s${index}` }, values }),
    ReturnValues: 'ALL_NEW',
    ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
  });
  const outcome = await conditionalWrite(dynamodb, { command, operation: writing(`table ${table}`) }, call);
  return { won: outcome.won, item: outcome.won ? outcome.item : outcome.old };
}
