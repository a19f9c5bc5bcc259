import { integer, text } from '../aws/attributes.ts';
import type { Call } from '../aws/call.ts';
import { all, type Condition } from '../aws/condition.ts';
import type { Item } from '../aws/dynamodb.ts';
import { hasNoEntry, isNotRemembered, isStill, isUnmarked } from './conditions.ts';
import type { PoolDependencies } from './dependencies.ts';
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
  isNews: boolean;
  /** Of an arrival: the last fence that it has seen. As many grants later as there are arrivals, it is its turn. */
  fence?: number | undefined;
}

/** The mark takes a new value from a counter that only rises. So a call that saw the line empty removes only the mark that it saw. */
export const raisedMark = ({ ticket, isNews, fence }: Hints): Mark => {
  const hint = isNews ? '#next = :next' : '#next = if_not_exists(#next, :next)';
  const turn = fence === undefined ? [] : ['#turn = if_not_exists(#turn, :fence) + :one'];
  return {
    set: [`#waiters = ${NEXT}`, `#seq = ${NEXT}`, ...(ticket === undefined ? [] : [hint]), ...turn],
    names: {
      ...{ '#waiters': 'waiters', '#seq': 'seq' },
      ...(ticket !== undefined && { '#next': 'next' }),
      ...(fence !== undefined && { '#turn': 'turn' }),
    },
    values: {
      ...{ ':zero': integer(0), ':one': integer(1) },
      ...(ticket !== undefined && { ':next': text(ticket) }),
      ...(fence !== undefined && { ':fence': integer(fence) }),
    },
  };
};

/** The mark, and the hints that go with it. */
export const REMOVED_MARK = {
  remove: ['#waiters', '#next', '#turn'],
  names: { '#waiters': 'waiters', '#next': 'next', '#turn': 'turn' },
};

interface Raising {
  key: string;
  condition: Condition;
  /** The next in line, if no other is noted. */
  ticket?: string;
  /** Of an arrival: the last fence that it has seen. */
  fence?: number | undefined;
}

/** Notes on the record that the pool has a line. @throws HoldfastError Throttled, Unavailable, OutcomeUnknown */
export function raiseMark(
  dependencies: PoolDependencies,
  { key, condition, ticket, fence }: Raising,
  call: Call,
): Promise<Written> {
  const now = dependencies.clock.now();
  return updatePool(dependencies, { key, now, ...raisedMark({ ticket, isNews: false, fence }), condition }, call);
}

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
  /** Whether the call has its place already, and only puts back a mark that is missing. */
  isBack?: boolean;
}

/**
 * Notes that a request is in line, unless it has a permit, or had one (docs/protocols/pools.md#join).
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export async function markJoined(
  dependencies: PoolDependencies,
  { key, name, ticket, fence, isBack = false }: Joining,
  call: Call,
): Promise<Written> {
  const also = isBack ? isUnmarked : isNotRemembered(name);
  for (let own = hasNoEntry(name, 0); ; ) {
    const raised = await raiseMark(dependencies, { key, condition: all(own, also), ticket, fence }, call);
    const entry = entryOf(raised.standing, name);
    const isMarked = isBack && raised.standing.waiters !== undefined;
    if (raised.won || isMarked || !entry || ownOf(raised.standing, name, dependencies.clock.now())) return raised;
    own = isStill(entry);
  }
}
