import { UpdateItemCommand } from '@aws-sdk/client-dynamodb';
import { integer, text } from '../aws/attributes.ts';
import type { Call } from '../aws/call.ts';
import { all, type Condition, conditionFields } from '../aws/condition.ts';
import { conditionalWrite, type Item } from '../aws/dynamodb.ts';
import { outcomeUnknown, writing } from '../aws/send.ts';
import { invalidRequest } from '../errors.ts';
import type { LeaseDependencies } from '../locks/dependencies.ts';
import { settledCharge } from './charge.ts';
import type { SettleInput } from './inputs.ts';
import { openPath, rateRowOf } from './record.ts';
import { parseReservation, type Reservation, reservationText } from './reservation.ts';

export type Settled =
  /** False if the reservation is not open: it was settled before, or its 15 minutes are over. */
  | { key: string; settled: boolean }
  /** False if the charge of the reservation stays. */
  | { key: string; cancelled: boolean };

/**
 * Corrects the charge of a reservation by the units that the work really took, or cancels the reservation (docs/protocols/rates.md#settle). One
 * conditional UpdateItem. A repeat changes nothing.
 * @throws HoldfastError InvalidRequest (reservation, units), Throttled, Unavailable, OutcomeUnknown
 */
export function settleRate(dependencies: LeaseDependencies) {
  return async ({ key, reservation: id, units, cancel }: SettleInput, call: Call): Promise<Settled> => {
    const reservation = parseReservation(id);
    if (!reservation) throw invalidRequest([{ path: 'reservation', message: 'must be the reservation of an answer' }]);
    const at = { key, reservation };
    if (cancel) return { key, cancelled: await cancelReservation(dependencies, at, call) };
    const { rates } = reservation;
    if (!rates)
      throw invalidRequest([{ path: 'reservation', message: 'was made without settle, so it can only be cancelled' }]);
    const unknown = Object.keys(units ?? {}).find((name) => !rates.some((rate) => rate.name === name));
    if (unknown !== undefined)
      throw invalidRequest([{ path: `units.${unknown}`, message: 'must be the name of a rate of the reservation' }]);
    const more = settledCharge(rates, units ?? {}) - reservation.charge;
    return { key, settled: await change(dependencies, { ...at, more, only: isOpen(reservation), ...CLOSE }, call) };
  };
}

interface ReservationInRow {
  key: string;
  reservation: Reservation;
}

interface ChargeChange extends ReservationInRow {
  /** By how much what is paid changes, in microseconds. */
  more: number;
  only: Condition;
  set?: readonly string[];
  remove?: readonly string[];
  values?: Item;
}

/** What closes an open reservation. */
const CLOSE = { set: ['opens = opens - :one'], remove: ['#open'], values: { ':one': integer(1) } } as const;
/** After a cancellation, a repeat of the request must not find its start. */
const FORGET = { set: ['last_request = :nobody'], values: { ':nobody': text('-') } } as const;

const isOpen = ({ name, charge }: Reservation): Condition => ({
  expression: '#open.a = :charge',
  names: { '#open': openPath(name) },
  values: { ':charge': integer(charge) },
});

const isLast = (reservation: Reservation): Condition => ({
  expression: 'last_request = :last',
  values: { ':last': text(reservationText(reservation)) },
});

const isNotLast = (reservation: Reservation): Condition => ({
  expression: 'NOT last_request = :last',
  values: { ':last': text(reservationText(reservation)) },
});

/** Without an entry only the last reservation can be cancelled: the starts of later reservations were counted from it. */
async function cancelReservation(dependencies: LeaseDependencies, at: ReservationInRow, call: Call): Promise<boolean> {
  const { reservation } = at;
  const more = -reservation.charge;
  if (!reservation.rates) return change(dependencies, { ...at, more, only: isLast(reservation), ...FORGET }, call);
  const close = { ...at, more, ...CLOSE };
  const both = {
    set: [...CLOSE.set, ...FORGET.set],
    values: { ...CLOSE.values, ...FORGET.values },
    only: all(isOpen(reservation), isLast(reservation)),
  };
  return (
    (await change(dependencies, { ...close, ...both }, call)) ||
    change(dependencies, { ...close, only: all(isOpen(reservation), isNotLast(reservation)) }, call)
  );
}

/** @throws HoldfastError OutcomeUnknown, because a try without an answer may have changed the row */
async function change(
  { dynamodb, table }: LeaseDependencies,
  { key, more, only, set = [], remove = [], values = {} }: ChargeChange,
  call: Call,
): Promise<boolean> {
  const operation = writing(`table ${table}`);
  // Later debts keep the row for longer.
  const later = Math.max(0, Math.ceil(more / 1_000_000));
  const sets = ['paid_until = paid_until + :more', 'lease_expiry = lease_expiry + :later', ...set];
  const command = new UpdateItemCommand({
    TableName: table,
    Key: { key: text(rateRowOf(key)) },
    UpdateExpression: `SET ${sets.join(', ')}${remove.length > 0 ? ` REMOVE ${remove.join(', ')}` : ''}`,
    ...conditionFields(only, { values: { ':more': integer(more), ':later': integer(later), ...values } }),
    ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
  });
  const { won, ...outcome } = await conditionalWrite(dynamodb, { command, operation }, call);
  if (!won && 'unanswered' in outcome && outcome.unanswered) throw outcomeUnknown(operation, undefined, { key });
  return won;
}
