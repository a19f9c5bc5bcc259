import { GetItemCommand } from '@aws-sdk/client-dynamodb';
import { text } from '../aws/attributes.ts';
import type { Call } from '../aws/call.ts';
import type { Item } from '../aws/dynamodb.ts';
import { reading, send } from '../aws/send.ts';
import { listRows } from '../listings/list-rows.ts';
import type { CapView } from '../locks/calls/types.ts';
import type { LeaseDependencies } from '../locks/dependencies.ts';
import type { NamedRate } from './cap-after.ts';
import type { ReadRatesInput } from './inputs.ts';
import { parseRate, rateCapAt, rateCapView, rateKeyOf, rateRowOf } from './record.ts';

/** What every reader may see of the rates of a key. */
export interface RateView {
  key: string;
  kind: 'rate';
  /**
   * When the next reservation without a burst starts, in ISO 8601, or now if that is later. Null if no caller has
   * reserved, or an operator has forgotten the reservations.
   */
  paidUntil: string | null;
  /** The rates that the last caller named. */
  rates: NamedRate[];
  /** The rates that the caller before named. */
  ratesBefore: NamedRate[];
  by: string | null;
  /** When the last caller reserved. */
  at: string | null;
  /** How many reservations are open. */
  open: number;
  /** The cap, if an operator has paused the key or capped its rates. */
  cap?: CapView;
}

export interface RatePage {
  keys: RateView[];
  /** Null on the last page. An empty page may have a cursor too. */
  nextCursor: string | null;
}

/**
 * Reads the rates of one key, or lists the keys with rates.
 * @throws HoldfastError InvalidRequest (cursor), Throttled, Unavailable
 */
export function readRates(dependencies: LeaseDependencies) {
  const { dynamodb, table } = dependencies;
  return async ({ key, prefix = '', ...page }: ReadRatesInput, call: Call): Promise<RateView | RatePage> => {
    if (key === undefined) {
      const viewed = (item: Item) => {
        const view = viewOf(dependencies, rateKeyOf(item.key?.S ?? ''), item);
        // A row may have only the time of a lift, which stays because of late commands.
        return view.paidUntil === null && !view.cap ? undefined : view;
      };
      return listRows(
        dependencies,
        { ...page, prefix: rateRowOf(prefix), viewOf: viewed, abridged: (view) => view },
        call,
      );
    }
    const command = new GetItemCommand({ TableName: table, Key: { key: text(rateRowOf(key)) }, ConsistentRead: true });
    const { Item: item } = await send(dynamodb, { command, operation: reading(`table ${table}`) }, call);
    return viewOf(dependencies, key, item);
  };
}

export function viewOf(
  { clock, clockSkewMs }: Pick<LeaseDependencies, 'clock' | 'clockSkewMs'>,
  key: string,
  item: Item | undefined,
): RateView {
  const record = parseRate(item);
  const { paidUntil, rates, ratesBefore, by = null, at, open } = record;
  const cap = rateCapAt(record, { now: clock.now(), clockSkewMs });
  return {
    key,
    kind: 'rate',
    paidUntil: paidUntil === undefined ? null : paidUntilInstant(paidUntil),
    ...{ rates, ratesBefore, by },
    at: at === undefined ? null : new Date(at).toISOString(),
    open: open.length,
    ...(cap && { cap: rateCapView(cap) }),
  };
}

/**
 * Rounds *paid until* up, so that an operator who forgets the rate does not name an earlier time than the row's.
 * @param paidUntil epoch microseconds
 */
const paidUntilInstant = (paidUntil: number): string => new Date(Math.ceil(paidUntil / 1000)).toISOString();
