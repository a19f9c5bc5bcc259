import type { Item } from '../../shared/aws/dynamodb.ts';

/** What a request did in the tables of leases and waiters, and the moments in which it was sent and arrived there. */
export type Landed = { sent: number; moment: number; ms: number; key: string } & What;

type What =
  | { what: 'row'; ticket: string; deadline: number; request: string }
  | { what: 'deadline'; ticket: string; deadline: number }
  | { what: 'flag' | 'deletion' | 'mark'; ticket: string }
  /** A look at the line, from the oldest on. */
  | { what: 'query' }
  /** A grant; without a ticket a plain one. */
  | { what: 'grant'; ticket: string | undefined; request: string; fence: number };

/** A command as the SDK is given it, as far as it matters here. */
interface Input {
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
  switch (command) {
    case 'PutItem':
      return {
        what: 'row',
        ticket: item?.ticket?.S ?? '',
        deadline: Number(item?.deadline?.N),
        request: requestOf(item?.request_id?.S, item?.holder?.S),
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
  const isMark = update.includes('waiters = if_not_exists(waiters, :zero) + :one');
  return isMark && ticket !== undefined ? { what: 'mark', ticket } : undefined;
}

const grantOf = (attribute: (name: string) => Item[string] | undefined) => ({
  request: requestOf(attribute('request_id')?.S, attribute('holder')?.S),
  fence: Number(attribute('fence')?.N),
});

const requestOf = (requestId = '', holder = '') => `${requestId} of ${holder}`;
