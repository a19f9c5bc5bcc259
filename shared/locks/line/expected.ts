import type { Ids } from '../../surroundings/ids.ts';
import { isExclusiveGrant, type KeyRecord } from '../record/record.ts';
import type { LinePosition } from './listed-waiters.ts';

// Estimates when the turn of a caller comes, and decides whether its call is held until then
// (docs/protocols/places.md#terms). A simulation chose the numbers. No promise depends on them, only time and cost.
//
//   the holder's turn       the turns ahead              the caller's turn
//   |--- age ---|-- left --|-- usual --|-- usual --| ... |
//               now                                      now + inMs

/** A call is held if its turn is expected within this time. */
const SOON_MS = 1000;
/** A held call that is not at the front ends early if its turn is now expected later than this. */
const FAR_AGAIN_MS = 4 * SOON_MS;
/**
 * How many calls from the front are held even if the current turn lasts long, because their own turn may come within
 * `SOON_MS` of its end. If there are more holders, as many calls as holders, but at most `MAX_FRONT`.
 */
const FRONT_POSITIONS = 8;
const MAX_FRONT = 16;
/** The last position whose calls may take the last seats. */
const LAST_SEATS_POSITION = 4;

/**
 * A turn counts as half of the usual turn: a caller that comes too early costs a call, but one that comes too late
 * delays the line.
 */
const USUAL_PART = 0.5;
/** A turn that is longer than usual is expected to last for this part of its age more. */
const LATE_TURN_PART = 0.25;
/** How long the hand-off between two turns takes. */
const BETWEEN_MS = 12;
/** How many turns ahead count as usual turns. All further turns count as mean turns. */
const USUAL_TURNS = 3;

/**
 * The part of the expected time for which a caller sleeps, because turns may be shorter than expected. The first two
 * callers in line sleep for `FRONT_PART`.
 */
const SLEEP_PART = 0.5;
const FRONT_PART = 0.25;
const MIN_SLEEP_MS = 100;
/**
 * The longest sleep: a minute, or two mean turns if that is longer, but never more than `MAX_ADVISED_SLEEP_MS`. The
 * next waiter sleeps for at most `MAX_NEXT_SLEEP_MS`.
 */
const MAX_DEFAULT_SLEEP_MS = 60_000;
const MAX_SLEEP_TURNS = 2;
const MAX_ADVISED_SLEEP_MS = 300_000;
const MAX_NEXT_SLEEP_MS = 10_000;

/**
 * The part of the usual turn for which a free key is left to each caller that sleeps. It is left for at least
 * `MIN_SLEEPER_PATIENCE_MS`.
 */
const PATIENCE_PART = 1 / 8;
const MIN_SLEEPER_PATIENCE_MS = 10;

const halfUsualTurnMs = ({ usualMs = 0 }: Pick<KeyRecord, 'usualMs'>): number => usualMs * USUAL_PART;

const holdersOf = ({ entries }: Pick<KeyRecord, 'entries'>): number =>
  entries.some(isExclusiveGrant) ? 1 : Math.max(1, entries.length);

/**
 * How long a key that came free is left to sleepers, in milliseconds.
 * @param asleep how many sleepers are before the caller
 */
export const patienceOf = (record: Pick<KeyRecord, 'usualMs' | 'entries'>, asleep: number): number =>
  (asleep * Math.max(MIN_SLEEPER_PATIENCE_MS, (record.usualMs ?? 0) * PATIENCE_PART)) / holdersOf(record);

/** What a caller knows of its wait, to estimate when its turn comes. */
export interface WaitState extends Pick<LinePosition, 'position' | 'asleep'> {
  record: Pick<KeyRecord, 'entries' | 'usualMs' | 'meanMs'>;
  now: number;
  /** Since when the key has had room for the caller. Undefined if it does not have room. */
  freeSince: number | undefined;
}

/**
 * The assumed age of a third-party client's turn, which the record does not say. With this value, the next waiter
 * asks again about once a second.
 */
const THIRD_PARTY_AGE_MS = 16_000;

/** How long each holder has had the key, in milliseconds. */
const agesOf = ({ entries }: Pick<KeyRecord, 'entries'>, now: number): number[] =>
  entries.length === 0 ? [THIRD_PARTY_AGE_MS] : entries.map(({ acquiredAt }) => Math.max(0, now - acquiredAt));

export interface Expected {
  inMs: number;
  /** The time if the current turn, and all turns ahead, have the usual length. */
  usuallyInMs: number;
}

/**
 * Estimates when the turn of a caller comes. If the key is left free for sleepers, the turn comes when the caller's
 * patience is over.
 */
export function expectedTurn({ record, position, asleep, now, freeSince }: WaitState): Expected {
  if (freeSince !== undefined) {
    const inMs = Math.max(0, freeSince + patienceOf(record, asleep) - now);
    return { inMs, usuallyInMs: inMs };
  }
  const [halfTurnMs, holders] = [halfUsualTurnMs(record), holdersOf(record)];
  const ages = agesOf(record, now);
  const leftMs = Math.min(...ages.map((age) => (age < halfTurnMs ? halfTurnMs - age : LATE_TURN_PART * age)));
  const meanTurns = Math.max(0, position - 1 - USUAL_TURNS);
  const usualTurns = position - 1 - meanTurns;
  const eachMs = halfTurnMs + BETWEEN_MS;
  const ahead = eachMs * usualTurns + (Math.max(halfTurnMs, record.meanMs ?? 0) + BETWEEN_MS) * meanTurns;
  const leftUsual = Math.max(0, halfTurnMs - Math.max(...ages));
  return { inMs: leftMs + ahead / holders, usuallyInMs: leftUsual + (eachMs * (position - 1)) / holders };
}

/**
 * Why a call is held. Each reason may take another part of the seats (held-calls.ts). `next`: the next waiter, whose
 * turn is not near. `cannotSleep`: its caller cannot sleep.
 */
export type HoldReason = 'front' | 'soon' | 'next' | 'cannotSleep';

/** @returns why to hold the call, if a seat is free. Undefined if its caller must sleep */
export function holdReasonOf({ position, record }: WaitState, { inMs, usuallyInMs }: Expected): HoldReason | undefined {
  const isFront =
    position <= Math.min(MAX_FRONT, Math.max(FRONT_POSITIONS, holdersOf(record))) && usuallyInMs <= SOON_MS;
  if (isFront && position <= LAST_SEATS_POSITION) return 'front';
  if (isFront || inMs <= SOON_MS) return 'soon';
  return position <= 1 ? 'next' : undefined;
}

/** Whether a held call ends early because its turn is far again, for example after a longer turn than usual. */
export const isFarAgain = ({ position, record }: WaitState, { inMs }: Expected): boolean =>
  position > Math.min(MAX_FRONT, Math.max(FRONT_POSITIONS, holdersOf(record))) && inMs > FAR_AGAIN_MS;

/** How long a caller sleeps, in whole milliseconds. @param bounds `maxMs`: how long the caller can stay away */
export function sleepMsOf(
  { record, position, now, freeSince }: WaitState,
  { inMs }: Expected,
  { maxMs, ids }: { maxMs: number; ids: Ids },
): number {
  const longest = Math.min(
    MAX_ADVISED_SLEEP_MS,
    Math.max(MAX_DEFAULT_SLEEP_MS, MAX_SLEEP_TURNS * (record.meanMs ?? 0)),
  );
  const age = freeSince === undefined ? Math.max(...agesOf(record, now)) : 0;
  const longestOfNext = Math.min(
    MAX_NEXT_SLEEP_MS,
    Math.max(MIN_SLEEP_MS, FRONT_PART * Math.max(halfUsualTurnMs(record), age)),
  );
  const sleep = Math.max(MIN_SLEEP_MS, (position <= 2 ? FRONT_PART : SLEEP_PART) * inMs);
  return Math.min(
    maxMs,
    Math.round(Math.min(position <= 1 ? longestOfNext : longest, sleep) * (0.9 + 0.2 * ids.random())),
  );
}
