import * as z from 'zod/mini';
import type { forgetRate } from '../../shared/rates/forget-rate.ts';
import type { readRates } from '../../shared/rates/read.ts';
import type { reserveRate } from '../../shared/rates/reserve.ts';
import type { settleRate } from '../../shared/rates/settle.ts';
import { forgottenRate, rateKey, ratePage, reserved, settled } from '../answers/rates.ts';
import { examplesOf } from '../examples.ts';
import { forgetRateRequest, readRatesRequest, reserveRequest, settleRequest } from '../requests/rates.ts';
import type { AnswerOf } from '../schema.ts';
import { route } from './route.ts';

export const RATE_ROUTES = [
  route<AnswerOf<typeof reserveRate>>({
    function: 'rateReserve',
    method: 'POST',
    path: '/v1/rates/reserve',
    tag: 'Leases',
    summary: 'Reserve a start at a rate',
    description:
      'Reserves a start for your work, so that no more units start in a period than the rates allow. The call answers at once: sleep until `startAt`, then begin. Starts are given in the order of the calls.',
    request: reserveRequest,
    success: {
      201: { description: 'The start is reserved.', answer: reserved },
      200: { description: 'A retry of a request that already has its start.', answer: reserved },
    },
    errors: ['RateExceeded', 'QueueFull', 'OutcomeUnknown'],
    when: {
      RateExceeded: 'The start would be later than `waitSeconds`. Nothing is reserved.',
      QueueFull: '200 reservations of the key are open, and the oldest is younger than 15 minutes.',
    },
    examples: examplesOf('rateReserve'),
  }),
  route<AnswerOf<typeof settleRate>>({
    function: 'rateSettle',
    method: 'POST',
    path: '/v1/rates/settle',
    tag: 'Leases',
    summary: 'Settle or cancel a reservation',
    description:
      'Corrects the charge of a reservation to the units that the work really took, or cancels the reservation. A repeat changes nothing.',
    request: settleRequest,
    success: { 200: { description: 'Whether the reservation was changed.', answer: settled } },
    errors: ['OutcomeUnknown'],
    examples: examplesOf('rateSettle'),
  }),
  route<AnswerOf<typeof forgetRate>>({
    function: 'rateForget',
    method: 'POST',
    path: '/v1/rates/forget',
    tag: 'Leases',
    summary: 'Forget the reservations of a key',
    description:
      'For an operator: forgets all reservations of a key, so that the next caller starts at once. Callers that already have a start keep it, so more may start than the rates allow.',
    request: forgetRateRequest,
    success: { 200: { description: 'The reservations of the key are forgotten.', answer: forgottenRate } },
    errors: ['NotFound', 'Conflict', 'OutcomeUnknown'],
    when: {
      NotFound: 'No caller has reserved a start at the rates of the key.',
      Conflict: 'A caller has reserved a start since. `actual` shows the key as it is now.',
    },
    scope: 'breakScope',
    examples: examplesOf('rateForget'),
  }),
  route<AnswerOf<typeof readRates>>({
    function: 'readRates',
    method: 'GET',
    path: '/v1/rates',
    tag: 'Leases',
    summary: 'Read the rates of a key, or list such keys',
    description:
      'With `key`, reads until when its rates are used up. Without `key`, lists keys page by page. A page reads up to 1,000 records of the leases table.',
    request: readRatesRequest,
    success: { 200: { description: 'The key, or the page.', answer: z.union([rateKey, ratePage]) } },
    errors: [],
    examples: examplesOf('readRates'),
  }),
];
