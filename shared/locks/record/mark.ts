import { integer, text } from '../../aws/attributes.ts';
import type { Call } from '../../aws/call.ts';
import { all, type Condition } from '../../aws/condition.ts';
import type { Item } from '../../aws/dynamodb.ts';
import type { LeaseDependencies } from '../dependencies.ts';
import type { StayingRows } from '../line/waiters.ts';
import { hasNoEntry, isEntryAsSeen, isNotInRing, isNotRemembered, isUnmarked } from './conditions.ts';
import { entryOf, type KeyRecord, type NewGrant, ownGrantOf } from './record.ts';
import { updateKey, type WritePart, type Written } from './requests.ts';

/** The short name of a ticket in hints: four characters of its UUID. */
export const shortName = (ticket: string): string => ticket.slice(16, 20);

/**
 * The hint `next_tickets`.
 * @param tickets the first waiters in line, in their order, as many as a hand-off reads at a time
 */
export const shortNamesOf = (tickets: readonly string[]): string => tickets.map(shortName).join(' ');

/** The part of a write that changes the mark or its hints. */
export interface Mark {
  set: string[];
  values: Item;
}

/** The part of a write that leaves the key free for callers that sleep. @param next the ticket of the first sleeper */
export const leftToSleepers = (next: string): Mark & { remove: string[] } => ({
  set: ['next_ticket = :next'],
  remove: ['next_tickets'],
  values: { ':next': text(next) },
});

/** A new value for a mark, which no mark had before. */
export const newMark = ({ ids }: Pick<LeaseDependencies, 'ids'>): string => ids.uuid().slice(0, 8);

interface KeptMark {
  /** How many waiters the write serves. */
  granted: number;
  /** The value of the mark, if the record has lost its mark. */
  value: string;
  /** The number of the last new holder's arrival, if that holder did not pass a sleeper. */
  number?: number | undefined;
  hints?: Readonly<Record<string, number>>;
}

/**
 * The part of a hand-off that leaves waiters in line. Puts back a mark that a third-party client or TTL has removed.
 */
export const keptMark = (
  {
    record,
    next,
    waitingTickets,
  }: { record: KeyRecord; next: string | undefined; waitingTickets?: readonly string[] | undefined },
  { granted, value, number, hints = {} }: KeptMark,
): Mark => {
  const isLost = record.mark === undefined;
  // The number of the last arrival also counts the callers that left without a grant, so it is better than a sum of
  // grants.
  const hasNumber =
    number !== undefined && number > (record.lineOut ?? 0) + granted && number <= (record.arrivals ?? 0);
  return {
    set: [
      hasNumber ? 'line_out = :out' : 'line_out = if_not_exists(line_out, :zero) + :out',
      ...(next === undefined ? [] : ['next_ticket = :next']),
      ...(waitingTickets === undefined ? [] : ['next_tickets = :names']),
      ...(isLost ? ['mark = if_not_exists(mark, :mark)'] : []),
      ...Object.keys(hints).map((name) => `${name} = :${name}`),
    ],
    values: {
      ...(hasNumber ? { ':out': integer(number) } : { ':zero': integer(0), ':out': integer(granted) }),
      ...(next !== undefined && { ':next': text(next) }),
      ...(waitingTickets !== undefined && { ':names': text(shortNamesOf(waitingTickets)) }),
      ...(isLost && { ':mark': text(value) }),
      ...Object.fromEntries(Object.entries(hints).map(([name, hint]) => [`:${name}`, integer(hint)])),
    },
  };
};

/**
 * The attributes about the waiter that an operator has moved to the front (docs/protocols/queue.md#run-next).
 * `moved_at` is not among them: it stays, because an earlier command may arrive late.
 */
const MOVED = ['moved', 'moved_by'];

/**
 * The attributes that a write removes if it serves the moved waiter, or if that waiter is gone.
 * @param moved the moved waiter on record, if there is one
 */
export const movedToRemove = (moved: string | undefined): string[] => (moved === undefined ? [] : MOVED);

/** No waiter has been moved. Needed by a write that serves the earliest waiter without reading the record. */
export const isNoneMoved: Condition = { expression: 'attribute_not_exists(moved)' };

/** None of these waiters has been superseded since the line was read. Only waiters with `replace` can be. */
export const areNotSuperseded = (grants: readonly NewGrant[]): Condition[] =>
  grants.filter(({ replace }) => replace !== undefined).map(({ name }) => isNotInRing(name));

/**
 * No operator has moved another waiter since the record was read. Otherwise the write, which removes `moved`, would
 * also forget the waiter that was moved since.
 */
export const isMovedAsSeen = (moved: string | undefined): Condition[] =>
  moved === undefined ? [] : [{ expression: 'moved = :moved', values: { ':moved': text(moved) } }];

const PACE_HINTS = ['pace_ms', 'usual_ms', 'mean_ms'];
const LINE_HINTS = ['arrivals', 'next_ticket', 'next_tickets', 'line_out', 'line_until', 'latest'];
const MARK_ATTRIBUTES = ['mark', ...LINE_HINTS, ...PACE_HINTS];

/**
 * Removes the mark and its hints. Callers that may come back stay counted: `line_out` becomes minus their number, and
 * the next mark counts them. When one of them asks again, it raises `arrivals` and `line_out`. If one of them has
 * `replace`, `latest` stays, so that a newer request still replaces it.
 * @param moved the moved waiter on record. A waiter that was moved later stays: its row may be there before its mark
 */
export const removedMark = (
  { count, until, replaces }: StayingRows,
  moved: string | undefined,
): Mark & { remove: string[] } => {
  const kept: Item = count === 0 ? {} : { line_out: integer(-count), line_until: integer(until) };
  const gone = MARK_ATTRIBUTES.filter((name) => !(name in kept || (replaces && name === 'latest')));
  return {
    set: Object.keys(kept).map((name) => `${name} = :${name}`),
    remove: [...gone, ...movedToRemove(moved)],
    values: Object.fromEntries(Object.entries(kept).map(([name, value]) => [`:${name}`, value])),
  };
};

interface MarkOptions {
  key: string;
  condition: Condition;
  /** The next waiter, if the record does not name another. */
  ticket?: string;
  /** The first waiters in line, if the next waiter is a caller, which polls by itself. */
  first?: readonly string[];
  /** By how much `line_out` rises: for waiters that leave the line, or that this arrival counts a second time. */
  left?: number;
  /** Further parts of the write (../line/replace.ts). */
  addedParts?: Partial<WritePart> | undefined;
}

/**
 * Marks the record, which need not exist: the key has a line. Each mark has a new value, so a call that found the
 * line empty can only remove the mark that it read.
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export function writeMark(
  dependencies: LeaseDependencies,
  { key, condition, ticket, first, left = 0, addedParts = {} }: MarkOptions,
  call: Call,
): Promise<Written> {
  const now = dependencies.clock.now();
  const counted = [
    'mark = :mark',
    'arrivals = if_not_exists(arrivals, :zero) + :one',
    'lease_expiry = if_not_exists(lease_expiry, :retention)',
  ];
  return updateKey(
    dependencies,
    {
      key,
      set: [
        ...counted,
        ...(ticket === undefined ? [] : ['next_ticket = if_not_exists(next_ticket, :next)']),
        ...(first === undefined ? [] : ['next_tickets = if_not_exists(next_tickets, :names)']),
        ...(left === 0 ? [] : ['line_out = if_not_exists(line_out, :zero) + :left']),
        ...(addedParts.set ?? []),
      ],
      condition,
      values: {
        ...{ ':mark': text(newMark(dependencies)), ':zero': integer(0), ':one': integer(1) },
        ':retention': integer(Math.ceil(now / 1000) + dependencies.fenceRetentionSeconds),
        ...(ticket !== undefined && { ':next': text(ticket) }),
        ...(first !== undefined && { ':names': text(shortNamesOf(first)) }),
        ...(left > 0 && { ':left': integer(left) }),
        ...addedParts.values,
      },
    },
    call,
  );
}

/**
 * Corrects the hint `line_out` after a count of the whole line. Does nothing if the mark was removed in the meantime.
 */
export const correctLineOut = (
  dependencies: LeaseDependencies,
  { key, arrivals, inLine }: { key: string; arrivals: number; inLine: number },
  call: Call,
): Promise<Written> =>
  updateKey(
    dependencies,
    {
      key,
      set: ['line_out = :out'],
      condition: { expression: 'arrivals >= :arrivals', values: { ':arrivals': integer(arrivals) } },
      values: { ':out': integer(arrivals - inLine) },
    },
    call,
  );

interface JoinMarkOptions {
  key: string;
  name: string;
  ticket: string;
  /** Whether the arrivals count the waiter already, because its call asks again. */
  isCounted?: boolean;
  /** Whether the call already has its waiter in line, and only puts a lost mark back. */
  restoresMark?: boolean;
  /** Whether the write demands that the key has a mark. */
  mustBeMarked?: boolean | undefined;
  /** Whether the caller sleeps, and so does not poll by itself. */
  isAsleep?: boolean | undefined;
  /** What makes the request the newest, if it has `replace`. */
  replacing?: ReplacePart | undefined;
}

/** The part of a mark that makes a request the newest one (../line/replace.ts). */
export interface ReplacePart {
  condition: Condition;
  addedParts: Partial<WritePart>;
  /** Whether the request replaces another one, which then leaves the line. */
  replaces: boolean;
}

/**
 * Notes on the record that a request is in line, unless the request has a grant or had one
 * (docs/protocols/queue.md#join).
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export async function markJoined(
  dependencies: LeaseDependencies,
  { key, name, ticket, restoresMark = false, isCounted = restoresMark, mustBeMarked = false, ...how }: JoinMarkOptions,
  call: Call,
): Promise<Written> {
  const mayJoin = restoresMark ? isUnmarked : isNotRemembered(name);
  const { isAsleep = false, replacing } = how;
  const markConditions = mustBeMarked ? [{ expression: 'attribute_exists(mark)' }] : [];
  const newestConditions = replacing ? [replacing.condition] : [];
  const first = isAsleep ? {} : { first: [ticket] };
  const left = Number(isCounted) + Number(replacing?.replaces ?? false);
  for (let entryCondition = hasNoEntry(name); ; ) {
    const condition = all(entryCondition, mayJoin, ...markConditions, ...newestConditions);
    const arrival = { key, condition, ticket, ...first, left, addedParts: replacing?.addedParts };
    const marked = await writeMark(dependencies, arrival, call);
    const entry = entryOf(marked.record, name);
    const isOver = restoresMark ? marked.record.mark !== undefined : mustBeMarked && marked.record.mark === undefined;
    if (marked.won || isOver || !entry || ownGrantOf(marked.record, name, dependencies.clock.now())) return marked;
    // The request has an expired grant, which does not keep it from the line.
    entryCondition = isEntryAsSeen(entry);
  }
}
