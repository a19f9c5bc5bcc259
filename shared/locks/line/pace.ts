import type { Ids } from '../../surroundings/ids.ts';
import type { Mode } from '../calls/types.ts';
import { EXCLUSIVE_PATH } from '../record/identity.ts';
import { shortName } from '../record/mark.ts';
import type { KeyRecord } from '../record/record.ts';

// How often a call in line polls, and which call hands off. No promise depends on this, only time and cost.
//
// A call that polls too early wastes a request. A call that polls too late makes the whole line behind it wait.

/**
 * The shortest and the longest pause of the next waiter while turns are short. Behind several holders, turns end at any
 * time, and more polls find nothing.
 */
const FAST_MS = { exclusive: [1, 3], shared: [5, 8] } as const;
/** The shortest and the longest pause of the next waiter otherwise. */
const NEXT_MS = [25, 35] as const;
/** The shortest and the longest pause of all other waiters, if their position or the length of turns is not known. */
const OTHERS_MS = [150, 250] as const;

/**
 * By chance, n turns may be shorter than n times the mean turn. The difference is about `CHANCE` turns, times the square
 * root of n.
 */
const CHANCE = 0.4;

/**
 * The time between two turns if a request takes a millisecond: a query, a write, a poll and a claim. This was measured:
 * with 4 ms for an exclusive holder, callers poll too often. The release of a shared grant is one more write.
 */
const BETWEEN_TURNS_MS = { exclusive: 8, shared: 12 };
/** The longest time that an answer counts for: a single slow answer must not make a call poll too late. */
const MAX_REQUEST_MS = 15;

/** A running mean in which the last value counts for half. */
export const meanOf = (before: number | undefined, value: number): number =>
  before === undefined ? value : (before + value) / 2;

/**
 * How long a hand-off takes. If requests are slow, only one of them counts, because measured turns contain the others
 * already. Counting more would make calls poll too late.
 */
const betweenTurnsMs = (requestMs = 0, mode: Mode): number =>
  BETWEEN_TURNS_MS[mode] + Math.max(0, Math.min(requestMs, MAX_REQUEST_MS) - 1);

const modeOfHolders = ({ entries: [first] }: Pick<KeyRecord, 'entries'>): Mode =>
  first?.path === EXCLUSIVE_PATH ? 'exclusive' : 'shared';

/** While turns are shorter than this, the next waiter polls at the fast pace. */
const SHORT_TURN_MS = 50;
/** The longest pause of the next waiter. */
const MAX_NEXT_MS = 250;
/** The longest pause of all others: less than the grant window, so that no call misses a grant. */
const MAX_OTHERS_MS = 1500;

/** The longest time that the first turn counts for: it may be much longer than the later ones. */
const MAX_FIRST_MS = 100;

export interface Turns {
  turnMs?: number | undefined;
  /** How long the calls in line expect a turn to take. */
  paceMs?: number | undefined;
  /** The usual turn, for callers that sleep. */
  usualMs?: number | undefined;
  /** The mean turn, for callers that sleep. */
  meanMs?: number | undefined;
  mark?: unknown;
}

/** The pace before a claim has noted one. */
const firstPace = ({ turnMs }: Turns): number | undefined =>
  turnMs === undefined ? undefined : Math.min(turnMs, MAX_FIRST_MS);

/**
 * The pace that a claim writes. It follows a shorter turn quickly and a longer one slowly, because it is worse to poll
 * too late than too early.
 * @returns undefined if it is not known, or the key has no line
 */
export function paceAfter({ mark, turnMs, paceMs }: Turns): number | undefined {
  if (mark === undefined || turnMs === undefined) return undefined;
  if (!paceMs) return firstPace({ turnMs });
  const change = turnMs < paceMs ? (turnMs - paceMs) / 2 : (Math.min(turnMs, 2 * paceMs) - paceMs) / 8;
  return Math.round(paceMs + change);
}

/**
 * How much the last turn counts. The usual turn is a mean of logarithms, so a few long turns count little: the front
 * must stay awake for short ones.
 */
const USUAL_WEIGHT = 1 / 4;
const MEAN_WEIGHT = 1 / 16;

/**
 * The hints about turns that a claim writes, by their attributes. None if the key has no line, because only waiters
 * read them.
 */
export function hintsAfter(record: Turns): Record<string, number> {
  const { mark, turnMs, usualMs, meanMs } = record;
  const paceMs = paceAfter(record);
  if (mark === undefined || turnMs === undefined || paceMs === undefined) return {};
  const turn = Math.max(1, turnMs);
  const usual = usualMs ? Math.exp(Math.log(usualMs) + Math.log(turn / usualMs) * USUAL_WEIGHT) : turn;
  const mean = meanMs === undefined ? turn : meanMs + (turn - meanMs) * MEAN_WEIGHT;
  return { pace_ms: paceMs, usual_ms: Math.round(usual), mean_ms: Math.round(mean) };
}

const MIN_PATIENCE_MS = 50;
const MAX_PATIENCE_MS = 500;

/**
 * How long a call that is not next leaves a free key to the waiters before it. After that, all of them seem to have
 * crashed. The jitter separates calls that assume the same position.
 * @param position the position, or infinite if it is not known
 */
function patienceMs(position: number, ids: Ids): number {
  if (position === Number.POSITIVE_INFINITY)
    return MIN_PATIENCE_MS + (MAX_PATIENCE_MS - MIN_PATIENCE_MS) * ids.random();
  return Math.min(MAX_PATIENCE_MS, MIN_PATIENCE_MS * (Math.max(2, position) - 1 + ids.random()));
}

/**
 * In a crowd that comes at once, the order of tickets and the order of arrival numbers differ. After this time they
 * agree.
 */
const APART_MS = 100;

const millisecondsOf = (ticket: string): number => Number(ticket.slice(0, 15));

/** Whether the arrival number of a ticket says how far it is behind an earlier one. */
const isApart = (ticket: string, before: string): boolean => millisecondsOf(ticket) - millisecondsOf(before) > APART_MS;

/** A grant from the line, and how long a hand-off takes. All in milliseconds. */
interface BegunTurn {
  grantedAt: number;
  isClaimed: boolean;
  handOffMs: number;
  now: number;
}

/**
 * When the turn of a holder begins, or began. If the claim is late, the new holder pauses for too long. Its turn is
 * then expected to begin after another half of the delay so far.
 */
function beginOf({ grantedAt, isClaimed, handOffMs: between, now }: BegunTurn): number {
  if (isClaimed) return grantedAt;
  const lateMs = now - grantedAt - between;
  return lateMs > 0 ? now + lateMs / 2 : grantedAt + between;
}

/** How many waiters the hint names, and the position of a ticket among them, from 1. */
function positionInHint(hint: string | undefined, ticket: string): { named: number; position: number | undefined } {
  const shortTickets = hint?.split(' ').filter(Boolean) ?? [];
  const index = shortTickets.indexOf(shortName(ticket));
  return { named: shortTickets.length, position: index < 0 ? undefined : index + 1 };
}

interface PaceState {
  record: Pick<KeyRecord, 'key' | 'entries' | 'nextTicket' | 'nextTickets' | 'lineOut' | 'turnMs' | 'paceMs'>;
  ticket: string;
  /** The number of this call's arrival, if it is known. */
  arrival: number | undefined;
  now: number;
  weight?: number;
  /** How many holders there usually are. The record has fewer while a hand-off is under way. */
  holders?: number | undefined;
  /** The time until an expiry makes room. Negative if there is room, infinite if the time is not known. */
  toRoomMs: number;
  requestMs: number | undefined;
}

/**
 * How long a call in line pauses before its next poll (docs/protocols/queue.md#when-to-poll). It depends on its
 * position, and on how long the holders have had their grants.
 */
export function pauseInLineMs(sight: PaceState, ids: Ids): number {
  const { record, ticket, now, toRoomMs } = sight;
  const randomIn = ([minMs, maxMs]: readonly [number, number]) => Math.round(minMs + (maxMs - minMs) * ids.random());
  const fastMs = FAST_MS[modeOfHolders(record)];
  const heldMs = heldSoFarMs(record, now);
  const paceMs = record.paceMs ?? firstPace(record);
  const turnMs = Math.max(paceMs ?? 0, heldMs);
  const soonest =
    paceMs === undefined
      ? Math.max(randomIn(fastMs), Math.min(randomIn(NEXT_MS), heldMs))
      : randomIn(turnMs < SHORT_TURN_MS ? fastMs : NEXT_MS);
  const untilEndMs = paceMs === undefined ? 0 : untilFirstEnd(sight, turnMs);
  if (record.nextTicket === ticket) {
    const pause = Math.round(Math.min(MAX_NEXT_MS, Math.max(soonest, untilEndMs)));
    return toRoomMs > 0 ? Math.min(pause, toRoomMs) : pause;
  }
  const others = randomIn(OTHERS_MS);
  const position = positionOf(sight);
  if (position === undefined) return others;
  const holders = Math.max(1, sight.holders ?? 0, record.entries.length);
  // No turn has ended yet, so each turn is expected to last as long as the current one has lasted so far.
  if (paceMs === undefined)
    return Math.max(
      soonest,
      Math.min(others, Math.round(((turnMs || releaseToGrantMs(sight)) * (position - 1)) / holders)),
    );
  const eachMs = (turnMs + releaseToGrantMs(sight)) / holders;
  const expected = untilEndMs + eachMs * (position - 1 - CHANCE * Math.sqrt(position));
  // A hand-off may serve many at once before the first claim, when the record shows fewer holders than there is room
  // for, and after a heavy grant.
  const servesMany = record.paceMs === undefined || record.entries.some(({ weight }) => weight > (sight.weight ?? 1));
  const maxMs = servesMany ? others : MAX_OTHERS_MS;
  return Math.round(Math.min(maxMs, Math.max(soonest, expected)));
}

/** How long a hand-off takes. For a shared grant it takes one more request, because the release comes before it. */
const releaseToGrantMs = ({ record, requestMs }: Pick<PaceState, 'record' | 'requestMs'>): number => {
  const mode = modeOfHolders(record);
  return betweenTurnsMs(requestMs, mode) + (mode === 'exclusive' ? 0 : Math.min(requestMs ?? 1, MAX_REQUEST_MS));
};

/** The time until one of the holders has had its grant for a whole turn. */
function untilFirstEnd(sight: PaceState, turnMs: number): number {
  const { record, now } = sight;
  const ends = record.entries.map(
    ({ acquiredAt, claimTtlMs }) =>
      turnMs +
      beginOf({ grantedAt: acquiredAt, isClaimed: claimTtlMs === undefined, handOffMs: releaseToGrantMs(sight), now }),
  );
  return ends.length === 0 ? 0 : Math.max(0, Math.min(...ends) - now);
}

/** How long a call leaves a free key to the waiters before it, which may all have crashed. */
export function patienceInLineMs(
  sight: Pick<PaceState, 'record' | 'ticket' | 'arrival' | 'requestMs'>,
  ids: Ids,
): number {
  if (sight.record.nextTicket === sight.ticket) return 2 * releaseToGrantMs(sight);
  return patienceMs(positionOf(sight) ?? Number.POSITIVE_INFINITY, ids);
}

/**
 * The short tickets of the waiters at the front, if they agree with `nextTicket`. Only a hand-off whose next waiter is
 * a caller writes them, so they show that the next waiter is not a task.
 */
const ticketsHinted = ({
  nextTicket,
  nextTickets,
}: Pick<KeyRecord, 'nextTicket' | 'nextTickets'>): string | undefined =>
  nextTicket !== undefined && nextTickets?.startsWith(shortName(nextTicket)) ? nextTickets : undefined;

/** Whether the next waiter is a call, which polls, by the hints. */
const isCallNext = (hints: Pick<KeyRecord, 'nextTicket' | 'nextTickets'>): boolean =>
  ticketsHinted(hints) !== undefined;

function positionOf({ record, ticket, arrival }: Pick<PaceState, 'record' | 'ticket' | 'arrival'>): number | undefined {
  const { named, position } = positionInHint(ticketsHinted(record), ticket);
  if (position !== undefined) return position;
  if (arrival === undefined) return undefined;
  const isKnown = record.nextTicket !== undefined && isApart(ticket, record.nextTicket);
  return isKnown || named <= 1 ? Math.max(named + 1, arrival - (record.lineOut ?? 0)) : named + 1;
}

/**
 * How long the holder in the middle has had its grant. Holders come at any time, so on average half of its turn is
 * over.
 */
function heldSoFarMs({ entries }: PaceState['record'], now: number): number {
  const claimed = entries.filter(({ claimTtlMs }) => claimTtlMs === undefined);
  const ages = claimed.map(({ acquiredAt }) => now - acquiredAt).toSorted((a, b) => a - b);
  return Math.max(0, ages[Math.floor(ages.length / 2)] ?? 0);
}

// Which call hands off the room of a released grant. If two calls do, both read the line and grant to the same waiters,
// one of them without effect. If the chosen call has crashed, the next waiter hands off after its patience.

/** How long a hand-off may take. After this time, its call seems to have crashed. */
const RECENT_MS = 100;

const isRecent = (at: number | undefined, now: number): boolean => at !== undefined && Math.abs(now - at) < RECENT_MS;

/**
 * Whether the last release may still be handing off, so that this call need not. If a task may be next, the answer is
 * no: a task does not poll, and so would not notice a release that crashed. After an exclusive grant the answer is no
 * too, because its end and the hand-off are one write.
 */
export const mayBeHandingOff = (record: KeyRecord, now: number): boolean =>
  !record.isFreeForThirdParties && isRecent(record.freedAt, now) && isCallNext(record);

/**
 * Whether the release before this one hands off the room of both. The record is the one that this release has just
 * written. If there was room before this release, the earlier call has not finished its hand-off, and goes on while
 * there is room.
 */
export const earlierReleaseHandsOff = (record: KeyRecord, now: number): boolean =>
  isRecent(record.freedBefore, now) &&
  record.usedBefore !== undefined &&
  record.lastLimit !== undefined &&
  record.usedBefore < record.lastLimit &&
  isCallNext(record);
