import * as z from 'zod/mini';
import type { ForgottenRate } from '../../shared/rates/forget-rate.ts';
import type { RatePage, RateView } from '../../shared/rates/read.ts';
import type { Reserved } from '../../shared/rates/reserve.ts';
import type { Settled } from '../../shared/rates/settle.ts';
import { MEANING } from '../meanings.ts';
import { always, component, count, described, flag, instant, list, nullable, text } from '../schema.ts';
import { cap, namedRate } from './cap.ts';

const key = () => text('The key of the call.');

export const reserved = component<Reserved>()(
  'Reserved',
  'When the work may start.',
  z.strictObject({
    key: key(),
    reservation: text('The id of the reservation, for `settle`.'),
    startAt: instant('The earliest start of the work.'),
    waitMs: count('How long to sleep from the answer to the start, in milliseconds.'),
    sleepSeconds: count('`waitMs` in whole seconds, rounded up, for `SecondsPath` of a `Wait` state.'),
    boundBy: text('The name of the tightest rate.'),
    repeated: flag('True if an earlier try of the request had already reserved the start.'),
    rateChanged: z.exactOptional(
      described(
        z.strictObject({
          from: list(namedRate, 'What the caller before named.'),
          to: list(namedRate, 'What this call names.'),
        }),
        { description: 'Present if the caller before named other rates. The faster rate then counts.' },
      ),
    ),
  }),
);

const wasSettled = component<Extract<Settled, { settled: boolean }>>()(
  'Settled',
  'Whether the reservation was open.',
  z.strictObject({
    key: key(),
    settled: flag(
      'False if the reservation was already settled or cancelled, or has kept its estimate after 15 minutes.',
    ),
  }),
);
const wasCancelled = component<Extract<Settled, { cancelled: boolean }>>()(
  'ReservationCancelled',
  'Whether the reservation was cancelled.',
  z.strictObject({
    key: key(),
    cancelled: flag(
      'False if the reservation was already cancelled, or cannot be: without `settle`, only the last reservation of a key can be cancelled.',
    ),
  }),
);
export const settled = z.union([wasSettled, wasCancelled]);

export const forgottenRate = component<ForgottenRate>()(
  'RateForgotten',
  'The reservations of the key are forgotten.',
  z.strictObject({ key: key(), forgotten: always(true, 'The next caller starts at once.') }),
);

export const rateKey = component<RateView>()(
  'RateKey',
  'The rates of a key.',
  z.strictObject({
    key: text(MEANING.key),
    kind: always('rate', 'The kind of the key.'),
    paidUntil: nullable(instant('Until when the rates are used up. Null if no caller has reserved.')),
    rates: list(namedRate, 'The rates that the last caller named.'),
    ratesBefore: list(namedRate, 'The rates that the caller before named.'),
    by: nullable(text('The holder of the last reservation. Null if there is none.')),
    at: nullable(instant('When the last caller reserved. Null if no caller has.')),
    open: count('How many reservations are open, which means not settled yet.'),
    cap: z.exactOptional(cap),
  }),
);

export const ratePage = component<RatePage>()(
  'RatePage',
  'A page of keys. An empty page may have a cursor.',
  z.strictObject({
    keys: list(rateKey, 'The keys, in no particular order.'),
    nextCursor: nullable(text(MEANING.nextCursor)),
  }),
);
