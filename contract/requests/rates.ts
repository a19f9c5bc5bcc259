import {
  forgetRateInput,
  MAX_RATE_KEY_BYTES,
  MAX_UNITS,
  readRatesInput,
  reserveInput,
  settleInput,
} from '../../shared/rates/inputs.ts';
import { MEANING } from '../meanings.ts';
import { bytes, cursor, given, limit, request } from './request.ts';

const key = () => ({
  description:
    'The name of what the rate protects, such as an API: 1 to 1,010 bytes of UTF-8, not beginning with `holdfast:`. A lease with the same key is independent.',
  ...bytes(MAX_RATE_KEY_BYTES),
});

const whole = { type: 'integer', minimum: 1, maximum: MAX_UNITS };

/** @param fields the fields of each rate, besides its name, limit and period */
export const ratesWith = (fields: Record<string, object> = {}) => ({
  minItems: 1,
  maxItems: 4,
  items: {
    type: 'object',
    additionalProperties: false,
    required: ['limit', 'per'],
    properties: {
      name: {
        description: 'The name of the rate.',
        type: 'string',
        default: 'requests',
        pattern: '^[A-Za-z0-9][\\w-]{0,31}$',
      },
      limit: { description: 'How many units may start in each period.', ...whole },
      per: {
        description: 'The period: a number and `s`, `m`, `h` or `d`, at most 31 days.',
        type: 'string',
        pattern: '^[1-9][0-9]{0,7}[smhd]$',
      },
      ...fields,
    },
  },
});

export const reserveRequest = request(reserveInput(), {
  id: 'ReserveRequest',
  description: 'Reserves a start at one to four rates of a key.',
  fields: {
    key: key(),
    holder: { description: MEANING.holder, ...bytes(256) },
    requestId: {
      description:
        'The id of one reservation, which makes retries safe. A retry with the same id, holder, rates and authenticated caller receives the start of the first try, unless that start has passed or another caller has reserved since.',
      ...bytes(256),
    },
    rates: {
      description:
        'One to four rates with different names. The start respects each of them. A rate is `limit` units in each period `per`. `units` is what this call takes, 1 by default. `burst` is how many units may start at once after the key was idle: by default only `units`, so that starts are spaced evenly. `name` is `requests` by default.',
      type: 'array',
      ...ratesWith({
        units: { description: 'What this call takes, at most ten times the limit.', ...whole, default: 1 },
        burst: {
          description: 'How many units may start at once after the key was idle. The default and the least is `units`.',
          ...whole,
        },
      }),
    },
    waitSeconds: {
      description:
        'The latest start that the caller accepts, in seconds from now. If the start would be later, nothing is reserved. The call itself never waits. With `settle`, at most the longest period.',
    },
    settle: {
      description:
        'For work that knows its units only at the end: if true, the caller will report the units that its work really took. At most 200 reservations of a key can be open, which means not settled yet. After 15 minutes, an open reservation may keep its estimate.',
    },
  },
});

export const settleRequest = request(settleInput(), {
  id: 'SettleRequest',
  description: 'Corrects or cancels a reservation.',
  fields: {
    key: key(),
    reservation: { description: 'From the answer of `reserve`.', ...bytes(1100) },
    units: {
      description:
        'The units that the work took, for each rate by its name. A rate that is left out keeps its estimate. More than ten times the limit counts as ten times the limit. Not with `cancel`.',
    },
    cancel: {
      description: 'If true, the call cancels the reservation, which is possible until its start. Not with `units`.',
    },
  },
  rules: { allOf: [{ oneOf: [given('units'), given('cancel')] }] },
});

export const forgetRateRequest = request(forgetRateInput(), {
  id: 'ForgetRateRequest',
  description: 'Forgets all reservations of a key.',
  fields: {
    key: key(),
    paidUntil: { description: 'The `paidUntil` that the operator has read.', format: 'date-time' },
  },
});

export const readRatesRequest = request(readRatesInput(), {
  id: 'ReadRatesRequest',
  description: 'Reads the rates of one key, or a page of the keys that have rates.',
  fields: {
    key: { ...key(), description: `${key().description} Without a key, the answer is a page of keys.` },
    prefix: { description: 'Only keys that begin with this text. Not with `key`.', ...bytes(MAX_RATE_KEY_BYTES) },
    limit: { ...limit(), description: `${limit().description} Not with \`key\`.` },
    cursor: { ...cursor(), description: `${cursor().description} Not with \`key\`.` },
  },
});
