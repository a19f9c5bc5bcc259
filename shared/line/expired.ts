import { integer, number, text } from '../aws/attributes.ts';
import { aliased } from '../aws/condition.ts';
import { agedBy, holderNamed, identityOf } from '../expired/rows.ts';
import { tableSource } from '../expired/table.ts';
import { readTtl, reasonWithTtl } from '../expired/ttl.ts';

const WAITER_IDENTITY = ['deadline', 'parked_at', 'ttl'] as const;

/**
 * Rows of tasks that are parked for a lease or a permit. A row of an execution has neither a task token nor a callback id. Both are secrets: the filter asks whether there is one, and the scan never reads it.
 */
export const WAITERS = tableSource<'waiter'>({
  place: ({ waitersTable }) => waitersTable,
  kinds: ['waiter'],
  key: ['key', 'ticket'],
  attributes: [...WAITER_IDENTITY, 'holder', 'weight'],
  filter: (now, { clockSkewMs }) =>
    aliased('(attribute_type(#task_token, :string) OR attribute_type(#callback_id, :string)) AND #deadline < :cut', {
      ':string': text('S'),
      ':cut': integer(now - clockSkewMs),
    }),
  row: (item, now) => {
    const { fault } = readTtl(item.ttl, now);
    const holder = holderNamed(item.holder?.S);
    const lock = item.weight === undefined ? 'the lease' : 'a permit';
    const what = `${holder ?? 'a caller without a name'} is still parked for ${lock}, and its deadline is past`;
    return {
      kind: 'waiter',
      key: { key: item.key?.S ?? '', ticket: item.ticket?.S ?? '' },
      holder,
      ...agedBy(number(item, 'deadline'), now),
      ...reasonWithTtl(what, fault),
      identity: identityOf(item, WAITER_IDENTITY),
    };
  },
  untouchable: () => 'leftToQueue',
});
