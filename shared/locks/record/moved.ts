import { text } from '../../aws/attributes.ts';
import type { Condition } from '../../aws/condition.ts';
import type { Item } from '../../aws/dynamodb.ts';

// The waiter that an operator has moved to the front of its line (docs/protocols/queue.md#run-next).

export interface Moved {
  ticket: string;
  by: string | undefined;
}

/** The attributes that name it. */
export const MOVED = ['moved', 'moved_at', 'moved_by'];

export const parseMoved = (item: Item): Moved | undefined =>
  item.moved?.S === undefined ? undefined : { ticket: item.moved.S, by: item.moved_by?.S };

/** No waiter has been moved. A write that does not read the record serves the oldest waiter. */
export const isNoneMoved: Condition = { expression: 'attribute_not_exists(moved)' };

/** No operator has moved another waiter since the record was seen. Otherwise the write that serves one would forget the other. */
export const isStillMoved = ({ ticket }: Moved): Condition => ({
  expression: 'moved = :moved',
  values: { ':moved': text(ticket) },
});
