import { integer, text } from '../aws/attributes.ts';
import type { Call } from '../aws/call.ts';
import { aliased, all, type Condition } from '../aws/condition.ts';
import type { Item } from '../aws/dynamodb.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import { namesOf } from '../line/patience.ts';
import type { Staying } from '../line/waiters.ts';
import { hasNoEntry, isNotRemembered, isStill, isUnmarked } from './conditions.ts';
import { entryOf, type PoolEntry, type PoolRecord } from './record.ts';
import { updatePool, type Written } from './write.ts';

/** The part of a write that marks the record. */
export interface Mark {
  set: string[];
  names: Record<string, string>;
  values: Item;
}

const NEXT = 'if_not_exists(#seq, :zero) + :one';

/** Hints for pace.ts. Nothing but time rests on them. */
interface Hints {
  /** The ticket of the next in line. */
  ticket: string | undefined;
  /** Those of the first in line, with it, if a hand-off has seen them. */
  first?: readonly string[] | undefined;
  isNews: boolean;
  /** Of an arrival: the last fence that it has seen. As many grants later as there are arrivals, it is its turn. */
  fence?: number | undefined;
  /** How many of those that the mark counts have left with this write. The write of no arrival is one of them. */
  out?: number;
}

/** The mark takes a new value from a counter that only rises. So a call that saw the line empty removes only the mark that it saw. */
export const raisedMark = ({ ticket, first, isNews, fence, out = 0 }: Hints): Mark => {
  const hint = isNews ? '#next = :next' : '#next = if_not_exists(#next, :next)';
  const names = first === undefined ? [] : [isNews ? '#names = :names' : '#names = if_not_exists(#names, :names)'];
  const turn = fence === undefined ? [] : ['#turn = if_not_exists(#turn, :fence) + :one'];
  const left = out === 0 ? [] : ['#out = if_not_exists(#out, :zero) + :out'];
  return {
    set: [`#waiters = ${NEXT}`, `#seq = ${NEXT}`, ...(ticket === undefined ? [] : [hint]), ...names, ...turn, ...left],
    names: {
      ...{ '#waiters': 'waiters', '#seq': 'seq' },
      ...(ticket !== undefined && { '#next': 'next' }),
      ...(first !== undefined && { '#names': 'next_tickets' }),
      ...(fence !== undefined && { '#turn': 'turn' }),
      ...(out > 0 && { '#out': 'line_out' }),
    },
    values: {
      ...{ ':zero': integer(0), ':one': integer(1) },
      ...(ticket !== undefined && { ':next': text(ticket) }),
      ...(first !== undefined && { ':names': text(namesOf(first)) }),
      ...(fence !== undefined && { ':fence': integer(fence) }),
      ...(out > 0 && { ':out': integer(out) }),
    },
  };
};

/**
 * Removes the mark, and the hints that go with it. All that the counter has counted have left, but for callers that may come back. The write has the
 * value `:zero`.
 */
export const removedMark = ({ count, until }: Staying) => ({
  set: ['#out = if_not_exists(#seq, :zero) - :staying', '#until = :until'],
  remove: ['#waiters', '#next', '#names', '#turn', '#pace'],
  names: {
    ...{ '#waiters': 'waiters', '#next': 'next', '#names': 'next_tickets', '#turn': 'turn', '#pace': 'pace_ms' },
    ...{ '#seq': 'seq', '#out': 'line_out', '#until': 'line_until' },
  },
  values: { ':staying': integer(count), ':until': integer(until) },
});

interface Raising {
  key: string;
  condition: Condition;
  /** The next in line, if no other is noted. */
  ticket?: string;
  /** The same of a caller, which looks. */
  first?: readonly string[];
  /** Of an arrival: the last fence that it has seen. */
  fence?: number | undefined;
  /** Whether the mark has counted all that are in line. */
  isAgain?: boolean;
}

/**
 * Marks the record: the pool has a line. If the record is gone, the key becomes a pool again.
 * @throws OtherKind; HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export async function raiseMark(
  dependencies: LeaseDependencies,
  { key, condition, ticket, first, fence, isAgain = false }: Raising,
  call: Call,
): Promise<Written> {
  const raised = raisedMark({ ticket, first, isNews: false, fence, out: isAgain ? 1 : 0 });
  for (;;) {
    const now = dependencies.clock.now();
    const marked = await updatePool(dependencies, { key, now, ...raised, condition }, call);
    if (marked.won || marked.record.formed !== undefined) return marked;
    const { formPool } = await import('./form.ts');
    const formed = await formPool(dependencies, { key, ticket, isMarked: true }, call);
    if (formed.won) return formed;
  }
}

/** Sets how many of the arrivals have left the line, after a count of the others. Does nothing if the mark has gone since. */
export const correctLineOut = (
  dependencies: LeaseDependencies,
  { key, arrivals, inLine }: { key: string; arrivals: number; inLine: number },
  call: Call,
): Promise<Written> =>
  updatePool(
    dependencies,
    {
      key,
      now: dependencies.clock.now(),
      set: ['#out = :out'],
      condition: aliased('#waiters >= :arrivals', { ':arrivals': integer(arrivals) }),
      names: { '#out': 'line_out' },
      values: { ':out': integer(arrivals - inLine) },
    },
    call,
  );

/** The request's own permit. One that is over keeps the request out of no line, unless the request has yet to claim it. One that is ending is none. */
export function ownOf(record: PoolRecord, name: string, now: number): PoolEntry | undefined {
  const own = entryOf(record, name);
  return own && !own.isEnding && (own.claimTtlMs !== undefined || own.expiresAt > now) ? own : undefined;
}

interface Joining {
  key: string;
  name: string;
  ticket: string;
  /** The last fence that a call has seen which comes to the line. */
  fence?: number | undefined;
  /** Whether the call asks again, and the mark has counted its place. */
  isAgain?: boolean;
  /** True if the call has its waiter already, and only puts a lost mark back. */
  isBack?: boolean;
}

/**
 * Notes that a request is in line, unless it has a permit, or had one (docs/protocols/pools.md#join).
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export async function markJoined(
  dependencies: LeaseDependencies,
  { key, name, ticket, fence, isBack = false, isAgain = isBack }: Joining,
  call: Call,
): Promise<Written> {
  const also = isBack ? isUnmarked : isNotRemembered(name);
  for (let own = hasNoEntry(name, 0); ; ) {
    const arrival = { key, condition: all(own, also), ticket, first: [ticket], fence, isAgain };
    const raised = await raiseMark(dependencies, arrival, call);
    const entry = entryOf(raised.record, name);
    const isMarked = isBack && raised.record.waiters !== undefined;
    if (raised.won || isMarked || !entry || ownOf(raised.record, name, dependencies.clock.now())) return raised;
    own = isStill(entry);
  }
}
