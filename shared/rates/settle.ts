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
  /** `settled` is false if the reservation is not open: it was settled before, or was removed after 15 minutes. */
  | { key: string; settled: boolean }
  /** `cancelled` is false if the charge of the reservation stays. */
  | { key: string; cancelled: boolean };

/**
 * Corrects the charge of a reservation to the units that the work really took, or cancels the reservation
 * (docs/protocols/rates.md#settle), with one conditional UpdateItem. A repeat changes nothing.
 * @throws HoldfastError InvalidRequest (reservation, units), Throttled, Unavailable, OutcomeUnknown
 */
export function settleRate(dependencies: LeaseDependencies) {
  return async ({ key, reservation: id, units, cancel }: SettleInput, call: Call): Promise<Settled> => {
    const reservation = parseReservation(id);
    if (!reservation)
      throw invalidRequest([
        { path: 'reservation', message: 'must be the `reservation` from the answer to a reserve' },
      ]);
    const inRow = { key, reservation };
    if (cancel) return { key, cancelled: await cancelReservation(dependencies, inRow, call) };
    const { rates } = reservation;
    if (!rates)
      throw invalidRequest([{ path: 'reservation', message: 'was made without settle, so it can only be cancelled' }]);
    const unknown = Object.keys(units ?? {}).find((name) => !rates.some((rate) => rate.name === name));
    if (unknown !== undefined)
      throw invalidRequest([{ path: `units.${unknown}`, message: 'must be the name of a rate of the reservation' }]);
    const changeMicros = settledCharge(rates, units ?? {}) - reservation.charge;
    const closing = { ...inRow, changeMicros, condition: isOpen(reservation), ...CLOSE };
    return { key, settled: await changeCharge(dependencies, closing, call) };
  };
}

interface ReservationInRow {
  key: string;
  reservation: Reservation;
}

interface ChargeChange extends ReservationInRow {
  /** By how much *paid until* changes, in microseconds. */
  changeMicros: number;
  condition: Condition;
  set?: readonly string[];
  remove?: readonly string[];
  values?: Item;
}

const CLOSE = { set: ['opens = opens - :one'], remove: ['#open'], values: { ':one': integer(1) } } as const;
/** Forgets the last request, because a repeat of a cancelled request must not receive its start. */
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

/**
 * Takes the charge back. A reservation that is not open can only be cancelled while it is the last: later starts were
 * counted from it.
 */
async function cancelReservation(
  dependencies: LeaseDependencies,
  inRow: ReservationInRow,
  call: Call,
): Promise<boolean> {
  const { reservation } = inRow;
  const changeMicros = -reservation.charge;
  if (!reservation.rates)
    return changeCharge(dependencies, { ...inRow, changeMicros, condition: isLast(reservation), ...FORGET }, call);
  const close = { ...inRow, changeMicros, ...CLOSE };
  const closeAndForget = {
    set: [...CLOSE.set, ...FORGET.set],
    values: { ...CLOSE.values, ...FORGET.values },
    condition: all(isOpen(reservation), isLast(reservation)),
  };
  return (
    (await changeCharge(dependencies, { ...close, ...closeAndForget }, call)) ||
    changeCharge(dependencies, { ...close, condition: all(isOpen(reservation), isNotLast(reservation)) }, call)
  );
}

/**
 * Changes *paid until*.
 * @returns whether the condition held
 * @throws HoldfastError OutcomeUnknown if a try without an answer may have changed the row
 */
async function changeCharge(
  { dynamodb, table }: LeaseDependencies,
  { key, changeMicros, condition, set = [], remove = [], values = {} }: ChargeChange,
  call: Call,
): Promise<boolean> {
  const operation = writing(`table ${table}`);
  // A higher charge keeps the row for longer.
  const later = Math.max(0, Math.ceil(changeMicros / 1_000_000));
  const sets = ['paid_until = paid_until + :more', 'lease_expiry = lease_expiry + :later', ...set];
  const command = new UpdateItemCommand({
    TableName: table,
    Key: { key: text(rateRowOf(key)) },
    UpdateExpression: `SET ${sets.join(', ')}${remove.length > 0 ? ` REMOVE ${remove.join(', ')}` : ''}`,
    ...conditionFields(condition, { values: { ':more': integer(changeMicros), ':later': integer(later), ...values } }),
    ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
  });
  const { won, ...outcome } = await conditionalWrite(dynamodb, { command, operation }, call);
  if (!won && 'unanswered' in outcome && outcome.unanswered) throw outcomeUnknown(operation, undefined, { key });
  return won;
}
