import type { Item } from '../../shared/aws/dynamodb.ts';
import { EXECUTION_ROW, placeKeyOf } from '../../shared/locks/line/waiters.ts';
import { leaseIdOf, nameOfRequest } from '../../shared/locks/record/identity.ts';
import { type HolderEntry, type KeyRecord, parseKey } from '../../shared/locks/record/record.ts';
import { rateRowOf } from '../../shared/rates/record.ts';

/** What a request did in the tables of leases and waiters, and the moments in which it was sent and arrived there. */
export type Landed = { sent: number; moment: number; ms: number; key: string } & What;

/** The record of a key after a write. */
export type LockState = Pick<KeyRecord, 'used' | 'entries' | 'ring'> & {
  isMarked: boolean;
  /** Whether it is the record of a third-party client. */
  isForeign: boolean;
  /** Until when third-party clients take the key for held, in epoch milliseconds. Undefined if each of them may take it at once. */
  heldForOthersUntil: number | undefined;
  /** The cap of an operator, and the time of its command. Each command has a later time than those before. */
  cap?: { limit: number; until: number | undefined } | undefined;
  capAt?: number | undefined;
  /** The ticket of the waiter that an operator has moved. */
  first?: string | undefined;
  /** The name of the newest request that joined with `replace`. */
  latest?: string | undefined;
};

/** The state of a key without a record. */
export const NO_LOCK: LockState = {
  ...{ used: 0, entries: [], ring: [], isMarked: false, isForeign: false, heldForOthersUntil: undefined },
};

type What =
  | { what: 'row'; ticket: string; deadline: number; request: string }
  | { what: 'deadline'; ticket: string; deadline: number }
  | { what: 'flag' | 'deletion' | 'mark'; ticket: string }
  /** The place of a caller that sleeps: put, kept for longer, withdrawn or deleted. */
  | { what: 'place'; ticket: string; request: string; keepUntil: number; awakeAt?: number }
  | { what: 'extension'; ticket: string; keepUntil: number; awakeAt?: number }
  | { what: 'placeFlag' | 'placeDeletion'; ticket: string }
  /** A read of the line, from the first waiter on. */
  | { what: 'query' }
  /** A caller claims the grant that it received in line. */
  | { what: 'claim' }
  /** A grant. A plain grant has no ticket. `isWindow`: it lasts for the grant window, until its caller claims it. */
  | {
      what: 'grant';
      ticket: string | undefined;
      request: string;
      fence: number;
      leaseId?: string | undefined;
      isWindow?: boolean;
    }
  /** The end of an exclusive grant. */
  | { what: 'end' }
  /** What a call of rates does to the row of a key: it reserves, changes what is paid by settling or cancelling, or forgets the row. */
  | { what: 'reserved'; paidUntil: number; last: string; cap?: string | undefined }
  | { what: 'settled'; more: number }
  | { what: 'forgotten' }
  /** The record as it is now. A release that finds an empty line is answered without the record. */
  | { what: 'lock'; state: LockState | 'released' };

/** The parts of a command of the SDK that matter here. */
interface Input {
  ReturnValues?: string;
  TableName?: string;
  Item?: Item;
  Key?: Item;
  UpdateExpression?: string;
  ExpressionAttributeNames?: Record<string, string>;
  ExpressionAttributeValues?: Item;
  ExclusiveStartKey?: unknown;
  FilterExpression?: string;
  Select?: string;
  ScanIndexForward?: boolean;
}

/**
 * What a command that succeeded has done to a key: to its line, and to its record. A write grants any number of permits: in their order, and then the
 * record.
 * @param answer of the command
 */
export function effectsOf(
  command: string,
  input: Input,
  answer: () => { Attributes?: Item },
): ({ key: string } & What)[] {
  const { TableName: table = '', Item: item, Key: name, ExpressionAttributeValues: values = {} } = input;
  const key = item?.key?.S ?? name?.key?.S ?? values[':key']?.S;
  if (key === undefined) return [];
  const onTable = () => {
    if (key.startsWith(RATE_ROW)) return onRates(command, input, answer);
    if (table.includes('-leases-')) return onRecords(key, { command, input }, answer);
    const what = table.includes('-waiters-') ? onWaiters(command, input, values) : undefined;
    return what ? [what] : [];
  };
  return onTable().map((what) => ({ key, ...what }));
}

function onWaiters(command: string, input: Input, values: Item): What | undefined {
  const { Item: item, Key: name } = input;
  const ticket = name?.ticket?.S ?? item?.ticket?.S ?? '';
  if (ticket.startsWith(EXECUTION_ROW)) return undefined;
  if (ticket.startsWith(PLACE)) return onPlaces(command, { ticket: ticket.slice(PLACE.length), item, values });
  switch (command) {
    case 'PutItem':
      return {
        what: 'row',
        ticket,
        deadline: Number(item?.deadline?.N),
        request: nameOf(item),
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

const RATE_ROW = rateRowOf('');

function onRates(
  command: string,
  { ExpressionAttributeValues: values = {} }: Input,
  answer: () => { Attributes?: Item },
): What[] {
  // A row with a cap remains, with only the cap.
  if (command === 'DeleteItem' || command === 'PutItem') return [{ what: 'forgotten' }];
  if (command !== 'UpdateItem') return [];
  if (values[':more']) return [{ what: 'settled', more: Number(values[':more'].N) }];
  // An operator caps the rate.
  if (!values[':last']) return [];
  const { paid_until: paid, last_request: last, cap } = answer().Attributes ?? {};
  if (!paid) return [];
  return [{ what: 'reserved', paidUntil: Number(paid.N), last: last?.S?.replace(/\.s$/, '') ?? '', cap: cap?.S }];
}

const PLACE = placeKeyOf('');

function onPlaces(
  command: string,
  { ticket, item, values }: { ticket: string; item: Item | undefined; values: Item },
): What | undefined {
  switch (command) {
    case 'PutItem':
      // An operator may flag a place before its call has put one.
      return item?.cancelled_at
        ? { what: 'placeFlag', ticket }
        : { what: 'place', ticket, request: nameOf(item), ...timesOf(item?.keep_until, item?.awake_at) };
    case 'DeleteItem':
      return { what: 'placeDeletion', ticket };
    case 'UpdateItem':
      return values[':keep'] === undefined
        ? { what: 'placeFlag', ticket }
        : { what: 'extension', ticket, ...timesOf(values[':keep'], values[':awake']) };
    default:
      return undefined;
  }
}

const timesOf = (keep: Item[string] | undefined, awake: Item[string] | undefined) => ({
  keepUntil: Number(keep?.N),
  ...(awake && { awakeAt: Number(awake.N) }),
});

/** The name of the request of a row, as the record has it. */
const nameOf = (item: Item = {}): string =>
  nameOfRequest({ holder: item.holder?.S ?? '', requestId: item.request_id?.S ?? '', principal: item.principal?.S });

/** An assignment of an update, such as `#g0 = :g0`, or the expiry of a record that TTL must not delete before another time. */
const ASSIGNED = /([#\w]+) = (?:if_not_exists\((\w+), )?(:\w+)/g;

/** The record after an update. The first try of an exclusive request is answered with the record before, and sets and removes whole attributes. */
function afterUpdate(input: Input, answer: () => { Attributes?: Item }): Item | undefined {
  const { ReturnValues: returns, UpdateExpression: update = '', ExpressionAttributeNames: names = {} } = input;
  if (returns === 'ALL_NEW') return answer().Attributes;
  if (returns !== 'ALL_OLD') return undefined;
  const [, set = '', remove = ''] = /^SET (.*?)(?: REMOVE (.*))?$/.exec(update) ?? [];
  const after: Item = { ...input.Key, ...answer().Attributes };
  for (const name of remove.split(', ')) delete after[names[name] ?? name];
  for (const [, name = '', kept = '', value = ''] of set.matchAll(ASSIGNED)) {
    const assigned = after[kept] ?? input.ExpressionAttributeValues?.[value];
    if (assigned) after[names[name] ?? name] = assigned;
  }
  return after;
}

function onRecords(
  key: string,
  { command, input }: { command: string; input: Input },
  answer: () => { Attributes?: Item },
): What[] {
  const { Item: item, UpdateExpression: update = '', ExpressionAttributeValues: values = {} } = input;
  if (command === 'DeleteItem') return [{ what: 'lock', state: NO_LOCK }];
  if (command !== 'UpdateItem' && command !== 'PutItem') return [];
  const [, removed = ''] = update.split(' REMOVE ');
  const ends: What[] = removed.split(', ').includes('lease_version') ? [{ what: 'end' }] : [];
  if (input.ReturnValues === 'NONE' && ends.length > 0) return [...ends, { what: 'lock', state: 'released' }];
  const after = command === 'UpdateItem' ? afterUpdate(input, answer) : item;
  if (!after) return [];
  const record = parseKey(key, after);
  const ids = new Set(
    Object.entries(values).flatMap(([alias, { M }]) => (alias.startsWith(':g') && M?.i?.S ? [M.i.S] : [])),
  );
  const grants = record.entries.filter(({ id }) => ids.has(id)).toSorted((a, b) => a.fence - b.fence);
  const next = values[':next']?.S;
  return [
    ...grants.map(grantOf),
    ...(next === undefined ? [] : [{ what: 'mark' as const, ticket: next }]),
    ...(removed.split(', ').includes('#h.c') ? [{ what: 'claim' as const }] : []),
    ...ends,
    { what: 'lock', state: stateOf(record, after) },
  ];
}

const grantOf = (entry: HolderEntry): What => ({
  ...{ what: 'grant', ticket: entry.ticket, request: entry.name, fence: entry.fence, leaseId: leaseIdOf(entry) },
  isWindow: entry.claimTtlMs !== undefined,
});

function stateOf({ used, entries, ring, mark, thirdParty }: KeyRecord, item: Item): LockState {
  const heldForOthersUntil = item.lease_version && Number(item.lease_expiry?.N) * 1000;
  const { cap, cap_at: capAt, cap_until: until, moved, latest } = item;
  return {
    ...{ used, entries, ring, isMarked: mark !== undefined, isForeign: thirdParty !== undefined, heldForOthersUntil },
    ...(cap && { cap: { limit: Number(cap.N), until: until && Number(until.N) } }),
    ...{ capAt: capAt && Number(capAt.N), first: moved?.S, latest: latest?.M?.n?.S },
  };
}
