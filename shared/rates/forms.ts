import { UpdateItemCommand } from '@aws-sdk/client-dynamodb';
import { integer, text } from '../aws/attributes.ts';
import type { Call } from '../aws/call.ts';
import { all, type Condition, conditionFields } from '../aws/condition.ts';
import { conditionalWrite, type Item } from '../aws/dynamodb.ts';
import { writing } from '../aws/send.ts';
import type { LeaseDependencies } from '../locks/dependencies.ts';
import { hasNoCurrentCap } from '../locks/record/capped.ts';
import { DAY_SECONDS } from '../periods.ts';
import type { RateCap } from './cap-after.ts';
import { type Charge, type Form, latestPaid } from './charge.ts';
import type { ReserveInput } from './inputs.ts';
import { MAX_OPEN } from './open.ts';
import { CAPPED_SECONDS, hasCapAt } from './rate-cap.ts';
import { openPath, ratesText } from './record.ts';
import { type Reservation, reservationText } from './reservation.ts';

export interface ReserveRequest extends Charge {
  input: ReserveInput;
  row: string;
  reservation: Reservation;
  /** The cap for which the charge was computed. */
  cap: RateCap | undefined;
}

interface RateWrite {
  request: ReserveRequest;
  form: Form;
  /** Whether an earlier try of the request has left an open reservation. */
  isOpen: boolean;
  /** Epoch microseconds. */
  now: number;
  /** When the call came, in epoch microseconds, or a second ago if that is later. */
  since: number;
}

/** A row stays for a day after the latest start, so that TTL never deletes time that is paid. */
const KEPT_SECONDS = DAY_SECONDS;

/**
 * Writes a reservation in one of its forms, with one conditional UpdateItem.
 * @throws HoldfastError Throttled, Unavailable, OutcomeUnknown
 */
export function writeRow({ dynamodb, table, clockSkewMs }: LeaseDependencies, write: RateWrite, call: Call) {
  const { input, row, ahead, cap } = write.request;
  const { set, condition, names = {}, values } = write.form === 'late' ? late(write) : firstReservation(write);
  const latestStart = write.now / 1_000_000 + input.waitSeconds + ahead / 1_000_000;
  const expiry = cap ? write.now / 1_000_000 + CAPPED_SECONDS : latestStart + KEPT_SECONDS;
  const command = new UpdateItemCommand({
    TableName: table,
    Key: { key: text(row) },
    UpdateExpression: `SET ${['lease_expiry = :expiry', ...set].join(', ')}`,
    ...conditionFields(all(condition, isCapAsSeen(cap, write.now / 1000 - clockSkewMs)), {
      names,
      values: { ...values, ':expiry': integer(Math.ceil(expiry)) },
    }),
    ReturnValues: 'ALL_NEW',
    ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
  });
  return conditionalWrite(dynamodb, { command, operation: writing(`table ${table}`) }, call);
}

/**
 * The cap on record is the one for which the charge was computed.
 * @param cut now minus the clock skew margin, in epoch milliseconds
 */
const isCapAsSeen = (cap: RateCap | undefined, cut: number): Condition =>
  cap ? hasCapAt(cap.at) : hasNoCurrentCap(cut);

interface Parts {
  set: string[];
  condition: Condition;
  names?: Record<string, string>;
  values: Item;
}

/** A repeat of the last request whose start is over. It reserves as if it came now. */
function late({ request, now }: RateWrite): Parts {
  const values = { ':paid': integer(now + request.charge), ':last': text(reservationText(request.reservation)) };
  return {
    set: ['paid_until = :paid'],
    condition: { expression: 'last_request = :last AND paid_until < :paid', values },
    values: {},
  };
}

function firstReservation(write: RateWrite): Parts {
  const { request, form, now, since, isOpen } = write;
  const { input, charge, reservation } = request;
  const last = text(reservationText(reservation));
  const path = openPath(reservation.name);
  const isIdle: Condition = {
    expression: 'attribute_not_exists(paid_until) OR (paid_until < :now AND NOT last_request = :last)',
    values: { ':now': integer(now), ':last': last },
  };
  const isBusy: Condition = {
    expression: 'paid_until >= :since AND paid_until <= :latest AND NOT last_request = :last',
    values: {
      ':since': integer(since),
      ':latest': integer(latestPaid(request, { now, waitMs: input.waitSeconds * 1000 })),
      ':last': last,
    },
  };
  const [paid, mayPay] =
    form === 'idle' ? ['paid_until = :paid', isIdle] : ['paid_until = paid_until + :charge', isBusy];
  const condition = input.settle ? all(mayPay, isOpen ? isStillOpen : mayOpen) : mayPay;
  return {
    set: [
      paid,
      ...SHOWN_ATTRIBUTES,
      ...(input.settle ? ['#open = :open'] : []),
      ...(input.settle && !isOpen ? [ONE_MORE] : []),
    ],
    condition,
    ...(input.settle && { names: { '#open': path } }),
    values: {
      ...(form === 'idle' ? { ':paid': integer(now + charge) } : { ':charge': integer(charge) }),
      ':last': last,
      ':rates': text(ratesText(input.rates)),
      ':by': text(input.holder),
      ':at': integer(Math.floor(now / 1000)),
      ...(input.settle && { ':open': { M: { a: integer(charge), t: integer(Math.floor(now / 1000)) } } }),
      ...(input.settle && !isOpen && { ':none': integer(0), ':one': integer(1) }),
    },
  };
}

/** The attributes that show the last reservation to readers and to repeats. */
const SHOWN_ATTRIBUTES = [
  'last_request = :last',
  'rates_before = if_not_exists(rates, :rates)',
  'rates = :rates',
  'asked_by = :by',
  'asked_at = :at',
];
const ONE_MORE = 'opens = if_not_exists(opens, :none) + :one';

/**
 * The request does not have an open reservation, and the row has room for one. The row must stay small, because each
 * call pays for all of it.
 */
const mayOpen: Condition = {
  expression: 'attribute_not_exists(#open) AND (attribute_not_exists(opens) OR opens < :most)',
  values: { ':most': integer(MAX_OPEN) },
};
/**
 * An earlier try of the request got no answer, and others have reserved since. Its start is lost, but the open
 * reservation that it left now belongs to this try.
 */
const isStillOpen: Condition = { expression: 'attribute_exists(#open)' };
