import { all } from '../aws/conditions.ts';
import { agedBy, holderNamed, identityOf, number } from './rows.ts';
import type { TableSource } from './table-source.ts';
import { readTtl, reasonWithTtl } from './ttl.ts';
import { integer, text } from './values.ts';

const IDENTITY = ['deadline', 'parked_at', 'ttl'] as const;

/** Tickets of callers that wait parked for a lease. Their task tokens are secrets, and are only asked for, never read. */
export const WAITERS: TableSource = {
  table: ({ waitersTable }) => waitersTable,
  kinds: ['waiter'],
  key: ['key', 'ticket'],
  attributes: [...IDENTITY, 'holder'],
  filtered: ['task_token'],
  filter: all('attribute_type(#task_token, :string)', '#deadline < :cut'),
  values: (now, { clockSkewMs }) => ({ ':string': text('S'), ':cut': integer(now - clockSkewMs) }),
  row: (item, now) => {
    const { fault } = readTtl(item.ttl, now);
    const holder = holderNamed(item.holder?.S);
    const what = `${holder ?? 'a caller that leaves no name'} is still parked for the lease, and its deadline is past`;
    return {
      kind: 'waiter',
      key: { key: item.key?.S ?? '', ticket: item.ticket?.S ?? '' },
      holder,
      ...agedBy(number(item, 'deadline'), now),
      ...reasonWithTtl(what, fault),
      identity: identityOf(item, IDENTITY),
    };
  },
  deletable: () => undefined,
};
