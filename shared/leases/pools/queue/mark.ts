import { integer, text } from '../../../aws/attributes.ts';
import type { Call } from '../../../aws/call.ts';
import type { Condition } from '../../../aws/condition.ts';
import type { Item } from '../../../aws/dynamodb.ts';
import type { PoolDependencies } from '../dependencies.ts';
import { updatePool, type Written } from '../write.ts';

/** The part of a write that marks the record. */
export interface Mark {
  set: string[];
  names: Record<string, string>;
  values: Item;
}

const NEXT = 'if_not_exists(#seq, :zero) + :one';

/**
 * The mark takes a new value from a counter that only rises. So a call that saw the line empty removes only the mark that it saw.
 * @param next the ticket of the next in line, for queue/pace.ts. Nothing but time rests on it
 */
export const raisedMark = (next: { ticket: string | undefined; isNews: boolean }): Mark => {
  const { ticket, isNews } = next;
  const hint = isNews ? '#next = :next' : '#next = if_not_exists(#next, :next)';
  return {
    set: [`#waiters = ${NEXT}`, `#seq = ${NEXT}`, ...(ticket === undefined ? [] : [hint])],
    names: { '#waiters': 'waiters', '#seq': 'seq', ...(ticket !== undefined && { '#next': 'next' }) },
    values: { ':zero': integer(0), ':one': integer(1), ...(ticket !== undefined && { ':next': text(ticket) }) },
  };
};

/** The mark, and the hint that goes with it. */
export const REMOVED_MARK = { remove: ['#waiters', '#next'], names: { '#waiters': 'waiters', '#next': 'next' } };

interface Raising {
  key: string;
  condition: Condition;
  /** The next in line, if no other is noted. */
  ticket?: string;
}

/** Notes on the record that the pool has a line. @throws HoldfastError Throttled, Unavailable, OutcomeUnknown */
export function raiseMark(
  dependencies: PoolDependencies,
  { key, condition, ticket }: Raising,
  call: Call,
): Promise<Written> {
  const now = dependencies.clock.now();
  return updatePool(dependencies, { key, now, ...raisedMark({ ticket, isNews: false }), condition }, call);
}
