import type { Item } from '../../shared/aws/dynamodb.ts';
import { isPool } from '../../shared/line/kind.ts';
import { EXECUTION_ROW } from '../../shared/line/waiters.ts';
import { requestName } from '../../shared/permits/identity.ts';
import { type PoolEntry, type PoolRecord, parsePool } from '../../shared/permits/record.ts';

/** What a request did in the tables of leases and waiters, and the moments in which it was sent and arrived there. */
export type Landed = { sent: number; moment: number; ms: number; key: string } & What;

/** A pool's record after a write. */
export type PoolState = Pick<PoolRecord, 'used' | 'entries' | 'ring'> & {
  isMarked: boolean;
};

/** No pool. */
export const NO_POOL: PoolState = { used: 0, entries: [], ring: [], isMarked: false };

type What =
  | { what: 'row'; ticket: string; deadline: number; request: string }
  | { what: 'deadline'; ticket: string; deadline: number }
  | { what: 'flag' | 'deletion' | 'mark'; ticket: string }
  /** A look at the line, from the oldest on. */
  | { what: 'query' }
  /** A caller makes the grant that it received in line a whole lease. */
  | { what: 'claim' }
  /** A grant; without a ticket a plain one. Of a lease, with its lease id. */
  | { what: 'grant'; ticket: string | undefined; request: string; fence: number; leaseId?: string | undefined }
  /** The end of the lease. */
  | { what: 'end' }
  /** The record has become a pool, has changed as a pool, or is a pool no more. */
  | { what: 'pool'; state: PoolState };

/** A command as the SDK is given it, as far as it matters here. */
interface Input {
  ReturnValues?: string;
  TableName?: string;
  Item?: Item;
  Key?: Item;
  UpdateExpression?: string;
  ExpressionAttributeValues?: Item;
  ExclusiveStartKey?: unknown;
  FilterExpression?: string;
  Select?: string;
  ScanIndexForward?: boolean;
}

/** What a command that succeeded has done to the line of a key. @returns undefined for all that concerns no line */
export function effectOf(command: string, input: Input): ({ key: string } & What) | undefined {
  const { TableName: table = '', Item: item, Key: name, ExpressionAttributeValues: values = {} } = input;
  const key = item?.key?.S ?? name?.key?.S ?? values[':key']?.S;
  if (key === undefined) return undefined;
  const what = table.includes('-waiters-')
    ? onWaiters(command, input, values)
    : table.includes('-leases-')
      ? onLeases(command, input, values)
      : undefined;
  return what && { key, ...what };
}

function onWaiters(command: string, input: Input, values: Item): What | undefined {
  const { Item: item, Key: name } = input;
  const ticket = name?.ticket?.S ?? '';
  if (ticket.startsWith(EXECUTION_ROW)) return undefined;
  switch (command) {
    case 'PutItem':
      return {
        what: 'row',
        ticket: item?.ticket?.S ?? '',
        deadline: Number(item?.deadline?.N),
        request: item?.weight === undefined ? requestOf(item?.request_id?.S, item?.holder?.S) : nameOf(item),
      };
    case 'DeleteItem':
      return { what: 'deletion', ticket };
    case 'UpdateItem':
      return values[':deadline'] === undefined
        ? { what: 'flag', ticket }
        : { what: 'deadline', ticket, deadline: Number(values[':deadline'].N) };
    case 'Query': {
      const isPart = input.ExclusiveStartKey !== undefined || input.FilterExpression !== undefined;
      return isPart || input.Select === 'COUNT' || input.ScanIndexForward === false ? undefined : { what: 'query' };
    }
    default:
      return undefined;
  }
}

/** In the record of a pool, requests have names. */
const nameOf = (item: Item = {}): string =>
  requestName({ holder: item.holder?.S ?? '', requestId: item.request_id?.S ?? '', principal: item.principal?.S });

/**
 * The same of a write after which the record is a pool, or is a pool no more. It grants any number of permits: in their order, and then the record.
 * @param answer of the write
 */
export function effectsOnPool(
  command: string,
  input: Input,
  answer: () => { Attributes?: Item },
): ({ key: string } & What)[] {
  const { TableName: table = '', Item: item, Key: name, ExpressionAttributeValues: values = {} } = input;
  const key = item?.key?.S ?? name?.key?.S;
  if (key === undefined || !table.includes('-leases-')) return [];
  if (command === 'DeleteItem' || (command === 'PutItem' && item?.lease_version === undefined))
    return [{ key, what: 'pool', state: NO_POOL }];
  const after = command === 'UpdateItem' && input.ReturnValues === 'ALL_NEW' ? answer().Attributes : item;
  if (!after || !isPool(after)) return [];
  const { used, entries, ring, mark } = parsePool(key, after);
  const ids = new Set(
    Object.entries(values).flatMap(([alias, { M }]) => (alias.startsWith(':g') && M?.i?.S ? [M.i.S] : [])),
  );
  const isNew = ({ id }: PoolEntry) => item !== undefined || ids.has(id);
  const grants = entries.filter(isNew).toSorted((a, b) => a.fence - b.fence);
  const next = item?.next?.S ?? values[':next']?.S;
  return [
    ...grants.map(({ ticket, name: request, fence }) => ({ key, what: 'grant' as const, ticket, request, fence })),
    ...(next === undefined ? [] : [{ key, what: 'mark' as const, ticket: next }]),
    { key, what: 'pool', state: { used, entries, ring, isMarked: mark !== undefined } },
  ];
}

function onLeases(
  command: string,
  { Item: item, UpdateExpression: update = '' }: Input,
  values: Item,
): What | undefined {
  if (command === 'PutItem' && item?.lease_id !== undefined)
    return { what: 'grant', ticket: undefined, ...grantOf((attribute) => item[attribute]) };
  if (command !== 'UpdateItem') return undefined;
  const ticket = values[':ticket']?.S;
  if (values[':lease_id'] !== undefined)
    return { what: 'grant', ticket, ...grantOf((attribute) => values[`:${attribute}`]) };
  if (update.includes('REMOVE claim_ttl_ms')) return { what: 'claim' };
  if (update.includes('REMOVE lease_version')) return { what: 'end' };
  const isMark = update.includes('waiters = if_not_exists(waiters, :zero) + :one');
  return isMark && ticket !== undefined ? { what: 'mark', ticket } : undefined;
}

const grantOf = (attribute: (name: string) => Item[string] | undefined) => ({
  request: requestOf(attribute('request_id')?.S, attribute('holder')?.S),
  fence: Number(attribute('fence')?.N),
  leaseId: attribute('lease_id')?.S,
});

const requestOf = (requestId = '', holder = '') => `${requestId} of ${holder}`;
