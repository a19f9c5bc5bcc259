import type { Ids } from '../../surroundings/ids.ts';
import { ALONE } from '../record/identity.ts';
import { shortName } from '../record/mark.ts';
import type { KeyRecord } from '../record/record.ts';

// The pace of a call in line. No promise depends on the pace, only time.

/**
 * Shortest and longest pause in milliseconds: of the next waiter if turns are short, of the next waiter otherwise, and of all others until a turn ends. Behind
 * several holders, turns end at all times, and more looks find nothing.
 */
const FAST_MS = { alone: [1, 3], shared: [5, 8] } as const;
const NEXT_MS = [25, 35] as const;
const OTHERS_MS = [150, 250] as const;

/** By chance, n turns may end earlier than n mean turns, by about this many turns times the square root of n. */
const CHANCE = 0.4;

/**
 * The time between two turns if a request takes a millisecond: a query, a write, a look and a claim. With 4 ms for an exclusive holder, callers look too
 * often. The release of a shared grant is a write of its own.
 */
const BETWEEN_TURNS_MS = { alone: 8, shared: 12 };
/** One slow answer must not make a call look too late. */
const MAX_REQUEST_MS = 15;

/** The mean of the measured requests and of one more request. The last requests count most. */
export const meanOf = (before: number | undefined, requestMs: number): number =>
  before === undefined ? requestMs : (before + requestMs) / 2;

/**
 * The time of a hand-off, which is longer if requests are slow. Only one of its requests counts. If all counted, calls would look too late, because turns
 * contain slow requests too.
 */
const betweenMs = (requestMs = 0, how: 'alone' | 'shared'): number =>
  BETWEEN_TURNS_MS[how] + Math.max(0, Math.min(requestMs, MAX_REQUEST_MS) - 1);

const howHeld = ({ entries: [first] }: Pick<KeyRecord, 'entries'>): 'alone' | 'shared' =>
  first?.path === ALONE ? 'alone' : 'shared';

/** Turns that are shorter let the next waiter look more often. */
const SHORT_TURN_MS = 50;
/** The longest pause of the next waiter, and of all others: less than the window, so that no call misses its turn. */
const MAX_NEXT_MS = 250;
const MAX_OTHERS_MS = 1500;

/** The first turn may be much longer than the others, so it counts as this long at most. */
const MAX_FIRST_MS = 100;

/** What a record says about turns: how long the last one took, and how long turns take in general. */
export interface Turns {
  turnMs?: number | undefined;
  paceMs?: number | undefined;
  usualMs?: number | undefined;
  meanMs?: number | undefined;
  mark?: unknown;
}

/** How long turns last, before a claim has noted that. */
const firstPace = ({ turnMs }: Turns): number | undefined =>
  turnMs === undefined ? undefined : Math.min(turnMs, MAX_FIRST_MS);

/**
 * How long turns last, as a claim writes it. It follows a shorter turn at once, and a longer one slowly, at most doubling itself: a call that
 * looks too early pays a request, but one that looks too late makes the whole line behind it wait.
 * @returns undefined if that is not known, or the line is empty
 */
export function paceAfter({ mark, turnMs, paceMs }: Turns): number | undefined {
  if (mark === undefined || turnMs === undefined) return undefined;
  if (!paceMs) return firstPace({ turnMs });
  const change = turnMs < paceMs ? (turnMs - paceMs) / 2 : (Math.min(turnMs, 2 * paceMs) - paceMs) / 8;
  return Math.round(paceMs + change);
}

/** The usual turn is a mean of logarithms, so that a few long turns count little: the front of the line must stay awake for the short turns. */
const USUAL_WEIGHT = 1 / 4;
const MEAN_WEIGHT = 1 / 16;

/** The hints about turns, as a claim writes them. None if the key has no line, because only waiters read them. */
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
 * How long a call that is not next leaves a free lock to the waiters before it, because all of them may have exited. The jitter separates calls of one
 * rank.
 * @param rank the position. Infinite if the position is not known
 */
function patienceMs(rank: number, ids: Ids): number {
  if (rank === Number.POSITIVE_INFINITY) return MIN_PATIENCE_MS + (MAX_PATIENCE_MS - MIN_PATIENCE_MS) * ids.random();
  return Math.min(MAX_PATIENCE_MS, MIN_PATIENCE_MS * (Math.max(2, rank) - 1 + ids.random()));
}

/** The tickets and the marks of a crowd that comes at once have different orders. */
const APART_MS = 100;

const millisecondsOf = (ticket: string): number => Number(ticket.slice(0, 15));

/** Whether the number of an arrival says how far behind an earlier ticket it is. */
const isApart = (ticket: string, before: string): boolean => millisecondsOf(ticket) - millisecondsOf(before) > APART_MS;

/** A grant from the line, and how long a hand-off takes. All in milliseconds. */
interface BegunTurn {
  grantedAt: number;
  isClaimed: boolean;
  betweenMs: number;
  now: number;
}

/** When the turn of a holder begins, or began. A call that has not claimed its grant by then pauses too long, perhaps for as long again. */
function beginOf({ grantedAt, isClaimed, betweenMs: between, now }: BegunTurn): number {
  if (isClaimed) return grantedAt;
  const lateMs = now - grantedAt - between;
  return lateMs > 0 ? now + lateMs / 2 : grantedAt + between;
}

/** How many waiters the hint names, and the position of a ticket by the hint. 1 is next, and undefined is not named. */
function positionInHint(hint: string | undefined, ticket: string): { named: number; position: number | undefined } {
  const names = hint?.split(' ').filter(Boolean) ?? [];
  const index = names.indexOf(shortName(ticket));
  return { named: names.length, position: index < 0 ? undefined : index + 1 };
}

interface PaceSight {
  record: Pick<KeyRecord, 'key' | 'entries' | 'nextTicket' | 'nextTickets' | 'lineOut' | 'turnMs' | 'paceMs'>;
  ticket: string;
  /** How many waiters had joined when this call did, with this call. Undefined if that is not known. */
  arrival: number | undefined;
  now: number;
  /** What the call asks for. */
  weight?: number;
  /** How many holders there usually are. Fewer are on record while room waits for the next grants. */
  holders?: number | undefined;
  /** The time until an expiry makes room. Negative if there is room, infinite if that is not known. */
  toRoomMs: number;
  /** How long requests of this call take. Undefined if it has not measured one. */
  requestMs: number | undefined;
}

/**
 * How long a call in line pauses before it looks again, by its position and by how long the holders have held their grants
 * (docs/protocols/queue.md#when-to-poll). Only time depends on it.
 */
export function pauseInLineMs(sight: PaceSight, ids: Ids): number {
  const { record, ticket, now, toRoomMs } = sight;
  const between = ([least, most]: readonly [number, number]) => Math.round(least + (most - least) * ids.random());
  const fastMs = FAST_MS[howHeld(record)];
  const heldMs = heldSoFarMs(record, now);
  const paceMs = record.paceMs ?? firstPace(record);
  const turnMs = Math.max(paceMs ?? 0, heldMs);
  const soonest =
    paceMs === undefined
      ? Math.max(between(fastMs), Math.min(between(NEXT_MS), heldMs))
      : between(turnMs < SHORT_TURN_MS ? fastMs : NEXT_MS);
  const left = paceMs === undefined ? 0 : untilFirstEnd(sight, turnMs);
  if (record.nextTicket === ticket) {
    const pause = Math.round(Math.min(MAX_NEXT_MS, Math.max(soonest, left)));
    return toRoomMs > 0 ? Math.min(pause, toRoomMs) : pause;
  }
  const others = between(OTHERS_MS);
  const position = positionOf(sight);
  if (position === undefined) return others;
  const holders = Math.max(1, sight.holders ?? 0, record.entries.length);
  // Until a turn has ended, each turn counts as the time that the first turns have lasted.
  if (paceMs === undefined)
    return Math.max(
      soonest,
      Math.min(others, Math.round(((turnMs || betweenHoldersMs(sight)) * (position - 1)) / holders)),
    );
  const eachMs = (turnMs + betweenHoldersMs(sight)) / holders;
  const expected = left + eachMs * (position - 1 - CHANCE * Math.sqrt(position));
  // Before the first claim, the key may have room for many, and show few holders. The end of a heavy grant, such as a writer's, makes room for many.
  const servesMany = record.paceMs === undefined || record.entries.some(({ weight }) => weight > (sight.weight ?? 1));
  const most = servesMany ? others : MAX_OTHERS_MS;
  return Math.round(Math.min(most, Math.max(soonest, expected)));
}

/** The hand-off of a shared grant has one request more than that of an exclusive one, because the release comes first. */
const betweenHoldersMs = ({ record, requestMs }: Pick<PaceSight, 'record' | 'requestMs'>): number => {
  const how = howHeld(record);
  return betweenMs(requestMs, how) + (how === 'alone' ? 0 : Math.min(requestMs ?? 1, MAX_REQUEST_MS));
};

/** The time until the first of the holders should have had its grant for a turn. */
function untilFirstEnd(sight: PaceSight, turnMs: number): number {
  const { record, now } = sight;
  const ends = record.entries.map(
    ({ acquiredAt, claimTtlMs }) =>
      turnMs +
      beginOf({ grantedAt: acquiredAt, isClaimed: claimTtlMs === undefined, betweenMs: betweenHoldersMs(sight), now }),
  );
  return ends.length === 0 ? 0 : Math.max(0, Math.min(...ends) - now);
}

/** How long a call that is not the next one leaves room to those before it, which may all have exited. */
export function patienceInLineMs(
  sight: Pick<PaceSight, 'record' | 'ticket' | 'arrival' | 'requestMs'>,
  ids: Ids,
): number {
  if (sight.record.nextTicket === sight.ticket) return 2 * betweenHoldersMs(sight);
  return patienceMs(positionOf(sight) ?? Number.POSITIVE_INFINITY, ids);
}

/** The names of the first in line, if they are those of the last hand-off of this version: then the first of them is a caller, and no task. */
const ticketsHinted = ({
  nextTicket,
  nextTickets,
}: Pick<KeyRecord, 'nextTicket' | 'nextTickets'>): string | undefined =>
  nextTicket !== undefined && nextTickets?.startsWith(shortName(nextTicket)) ? nextTickets : undefined;

/** Whether the next in line is a call that looks, as far as the hints say. */
const namesCaller = (hints: Pick<KeyRecord, 'nextTicket' | 'nextTickets'>): boolean =>
  ticketsHinted(hints) !== undefined;

function positionOf({ record, ticket, arrival }: Pick<PaceSight, 'record' | 'ticket' | 'arrival'>): number | undefined {
  const { named, position } = positionInHint(ticketsHinted(record), ticket);
  if (position !== undefined) return position;
  if (arrival === undefined) return undefined;
  const isKnown = record.nextTicket !== undefined && isApart(ticket, record.nextTicket);
  return isKnown || named <= 1 ? Math.max(named + 1, arrival - (record.lineOut ?? 0)) : named + 1;
}

/** How long the holder in the middle has held its grant. Half of its hold time is over, because holders come at all times. */
function heldSoFarMs({ entries }: PaceSight['record'], now: number): number {
  const claimed = entries.filter(({ claimTtlMs }) => claimTtlMs === undefined);
  const ages = claimed.map(({ acquiredAt }) => now - acquiredAt).toSorted((one, other) => one - other);
  return Math.max(0, ages[Math.floor(ages.length / 2)] ?? 0);
}

// Which call hands off the room of a released grant. If two calls did, both would read the line and grant the same tickets, one of them
// without effect. If that call has exited, the next waiter hands off after its patience, so only time depends on this.

/** A hand-off is over by then, or its call has exited. */
const RECENT_MS = 100;

const isRecent = (at: number | undefined, now: number): boolean => at !== undefined && Math.abs(now - at) < RECENT_MS;

/**
 * Whether the last release is perhaps handing off still. False if a task is next, or may be, because a task does not look. False after an exclusive grant, whose
 * end and hand-off are one write.
 */
export const isHandedOff = (record: KeyRecord, now: number): boolean =>
  !record.isFree && isRecent(record.freedAt, now) && namesCaller(record);

/**
 * For the release whose write has just shown the record: whether the release before that one hands off the room of both. There was room before this
 * release, so that call has not written its last grant, and goes on while the record that it wrote has room.
 */
export const isHandedOffWithBefore = (record: KeyRecord, now: number): boolean =>
  isRecent(record.freedBefore, now) &&
  record.usedBefore !== undefined &&
  record.lastLimit !== undefined &&
  record.usedBefore < record.lastLimit &&
  namesCaller(record);
