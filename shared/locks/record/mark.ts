import { integer, text } from '../../aws/attributes.ts';
import type { Call } from '../../aws/call.ts';
import { all, type Condition } from '../../aws/condition.ts';
import type { Item } from '../../aws/dynamodb.ts';
import type { LeaseDependencies } from '../dependencies.ts';
import type { Staying } from '../line/waiters.ts';
import { hasNoEntry, isNotInRing, isNotRemembered, isStill, isUnmarked } from './conditions.ts';
import { entryOf, type KeyRecord, type NewGrant, ownOf } from './record.ts';
import { updateKey, type WritePart, type Written } from './requests.ts';

/** The name of a ticket in hints: the first part of its UUID. */
export const shortName = (ticket: string): string => ticket.slice(16, 20);

/** The hint that names the first in line. @param tickets in their order, as many as the page of a hand-off shows */
export const namesOf = (tickets: readonly string[]): string => tickets.map(shortName).join(' ');

/** The part of a write that marks the record. */
export interface Mark {
  set: string[];
  values: Item;
}

/** The part of a write that leaves the key free for callers that sleep. @param next the ticket of the first sleeper */
export const leftAsleep = (next: string): Mark & { remove: string[] } => ({
  set: ['next_ticket = :next'],
  remove: ['next_tickets'],
  values: { ':next': text(next) },
});

/** The value of a mark. No value comes twice. */
export const newMark = ({ ids }: Pick<LeaseDependencies, 'ids'>): string => ids.uuid().slice(0, 8);

interface KeptMark {
  granted: number;
  value: string;
  number?: number | undefined;
  /** How long turns last. */
  hints?: Readonly<Record<string, number>>;
}

/** The part of a grant that leaves waiters in line. A mark that a third-party client or TTL has removed is put back. */
export const keptMark = (
  {
    seen,
    next,
    waitingTickets,
  }: { seen: KeyRecord; next: string | undefined; waitingTickets?: readonly string[] | undefined },
  { granted, value, number, hints = {} }: KeptMark,
): Mark => {
  const isLost = seen.mark === undefined;
  // If a holder has passed no sleeper, its number also counts the callers that left without a grant. So it is better than a sum of grants.
  const hasNumber = number !== undefined && number > (seen.lineOut ?? 0) + granted && number <= (seen.arrivals ?? 0);
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
      ...(waitingTickets !== undefined && { ':names': text(namesOf(waitingTickets)) }),
      ...(isLost && { ':mark': text(value) }),
      ...Object.fromEntries(Object.entries(hints).map(([name, hint]) => [`:${name}`, integer(hint)])),
    },
  };
};

/** The attributes that name the waiter that an operator has moved to the front (docs/protocols/queue.md#run-next). `moved_at` stays, because an earlier command may be late. */
const MOVED = ['moved', 'moved_by'];

/** What a write removes if it serves the moved waiter, or has found that waiter gone. @param moved undefined if the write has not seen one */
export const movedNoMore = (moved: string | undefined): string[] => (moved === undefined ? [] : MOVED);

/** No waiter has been moved. A write that does not read the record serves the oldest waiter. */
export const isNoneMoved: Condition = { expression: 'attribute_not_exists(moved)' };

/** Waiters with `replace` may have been superseded since they were read. A write that leaves no waiter sees that by the mark. */
export const areNotSuperseded = (grants: readonly NewGrant[]): Condition[] =>
  grants.filter(({ replace }) => replace !== undefined).map(({ name }) => isNotInRing(name));

/** No operator has moved another waiter since the record was seen. Otherwise the write that serves one would forget the other. */
export const isStillMoved = (moved: string | undefined): Condition[] =>
  moved === undefined ? [] : [{ expression: 'moved = :moved', values: { ':moved': text(moved) } }];

const PACE = ['pace_ms', 'usual_ms', 'mean_ms'];
const LINE = ['arrivals', 'next_ticket', 'next_tickets', 'line_out', 'line_until', 'latest'];
const MARK_ATTRIBUTES = ['mark', ...LINE, ...PACE];

/**
 * Removes the mark, and what belongs to it. Callers that may come back stay counted, as a negative `line_out`, so the next mark counts them. When one
 * asks again, it raises both. If one of them has `replace`, `latest` stays, so that a newer request replaces it.
 * @param moved as the record was seen. A waiter that was moved since may have put its row, and not yet raised the mark
 */
export const removedMark = (
  { count, until, replaces }: Staying,
  moved: string | undefined,
): Mark & { remove: string[] } => {
  const kept: Item = count === 0 ? {} : { line_out: integer(-count), line_until: integer(until) };
  const gone = MARK_ATTRIBUTES.filter((name) => !(name in kept || (replaces && name === 'latest')));
  return {
    set: Object.keys(kept).map((name) => `${name} = :${name}`),
    remove: [...gone, ...movedNoMore(moved)],
    values: Object.fromEntries(Object.entries(kept).map(([name, value]) => [`:${name}`, value])),
  };
};

interface Marking {
  key: string;
  condition: Condition;
  /** The next in line, if no other is noted. */
  ticket?: string;
  /** The hint that names the first in line, if the next is a caller, which looks by itself. */
  first?: readonly string[];
  /** How many of those that the mark has counted leave the line, or are counted once more. */
  left?: number;
  /** What else the write sets (../line/replace.ts). */
  also?: Partial<WritePart> | undefined;
}

/**
 * Marks the record: the key has a line. The value is new, so a call that saw the line empty removes only the mark that it saw. The mark needs no record.
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export function mark(
  dependencies: LeaseDependencies,
  { key, condition, ticket, first, left = 0, also = {} }: Marking,
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
        ...(also.set ?? []),
      ],
      condition,
      values: {
        ...{ ':mark': text(newMark(dependencies)), ':zero': integer(0), ':one': integer(1) },
        ':retention': integer(Math.ceil(now / 1000) + dependencies.fenceRetentionSeconds),
        ...(ticket !== undefined && { ':next': text(ticket) }),
        ...(first !== undefined && { ':names': text(namesOf(first)) }),
        ...(left > 0 && { ':left': integer(left) }),
        ...also.values,
      },
    },
    call,
  );
}

/** Sets how many of the arrivals have left the line, after a count of the others. Does nothing if the mark has gone since. */
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

interface JoiningMark {
  key: string;
  name: string;
  ticket: string;
  /** Whether the call asks again, and the mark has counted its waiter. */
  isAgain?: boolean;
  /** True if the call has its waiter already, and only puts a lost mark back. */
  isBack?: boolean;
  /** Whether to write only if the key has a mark. */
  isMarked?: boolean | undefined;
  /** Whether the caller sleeps, and so does not look by itself. */
  isAsleep?: boolean | undefined;
  /** How the request replaces others. */
  replacing?: Replacing | undefined;
}

/** The part of a mark that makes a request the newest (../line/replace.ts). */
export interface Replacing {
  condition: Condition;
  also: Partial<WritePart>;
  /** Whether it replaces another, which then leaves the line. */
  replaces: boolean;
}

/**
 * Notes that a request is in line, unless it has a grant, or had one (docs/protocols/queue.md#join).
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export async function markJoined(
  dependencies: LeaseDependencies,
  { key, name, ticket, isBack = false, isAgain = isBack, isMarked: mustBeMarked = false, ...how }: JoiningMark,
  call: Call,
): Promise<Written> {
  const also = isBack ? isUnmarked : isNotRemembered(name);
  const { isAsleep = false, replacing } = how;
  const marks = mustBeMarked ? [{ expression: 'attribute_exists(mark)' }] : [];
  const more = replacing ? [replacing.condition] : [];
  const first = isAsleep ? {} : { first: [ticket] };
  const left = Number(isAgain) + Number(replacing?.replaces ?? false);
  for (let own = hasNoEntry(name); ; ) {
    const condition = all(own, also, ...marks, ...more);
    const arrival = { key, condition, ticket, ...first, left, also: replacing?.also };
    const marked = await mark(dependencies, arrival, call);
    const entry = entryOf(marked.record, name);
    const isDone = isBack ? marked.record.mark !== undefined : mustBeMarked && marked.record.mark === undefined;
    if (marked.won || isDone || !entry || ownOf(marked.record, name, dependencies.clock.now())) return marked;
    own = isStill(entry);
  }
}
