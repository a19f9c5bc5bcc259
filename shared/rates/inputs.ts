import * as z from 'zod/mini';
import { callersName, flag, listOf, must, name, whole } from '../fields.ts';
import { keyOrPage } from '../listings/key-or-page.ts';
import type { NameFields } from '../namespace.ts';
import { periodSeconds } from '../periods.ts';
import { MAX_PERIODS, MAX_RATE_PERIOD_SECONDS, MAX_RATE_WAIT_SECONDS, MAX_RATES, maxWaitSeconds } from './charge.ts';

/** The highest number of bytes of a key. With its prefix, the key of the row then has at most 1,024. */
export const MAX_RATE_KEY_BYTES = 1010;
export const MAX_UNITS = 1_000_000_000;

const key = () => callersName(MAX_RATE_KEY_BYTES);
const RATE_PERIOD_RULE = 'must be a period such as 1s, 1m, 1h or 1d, of at most 31 days';
const RATE_NAME_RULE = 'must be 1 to 32 letters, digits, _ and -, of which the first is a letter or a digit';
const INSTANT_RULE = 'must be an instant such as 2026-11-26T15:36:42.273Z';
const rateName = () =>
  z.string(must('a string')).check(z.regex(/^[A-Za-z0-9][\w-]{0,31}$/, { error: RATE_NAME_RULE, abort: true }));

const terms = () => ({
  name: z._default(rateName(), 'requests'),
  limit: whole(1, MAX_UNITS),
  per: z.string(must('a string')).check(
    z.regex(/^[1-9][0-9]{0,7}[smhd]$/, { error: RATE_PERIOD_RULE, abort: true }),
    z.refine((per) => (periodSeconds(per) ?? Infinity) <= MAX_RATE_PERIOD_SECONDS, RATE_PERIOD_RULE),
  ),
});

const rate = () =>
  z.strictObject({
    ...terms(),
    units: z._default(whole(1, MAX_UNITS), 1),
    burst: z.optional(whole(1, MAX_UNITS)),
  });
type RateInput = z.infer<ReturnType<typeof rate>>;

const someOf = <Item extends z.ZodMiniType>(item: Item) =>
  listOf(item, MAX_RATES, 'rates').check(
    z.refine((rates) => rates.length > 0, { error: 'must not be empty', abort: true }),
  );

/** The capped rates in a command of an operator (locks/calls/inputs.ts). */
export const cappedRates = () =>
  someOf(z.strictObject(terms())).check(
    z.refine((rates) => new Set(rates.map((rate) => rate.name)).size === rates.length, 'must have different names'),
  );

export const reserveInput = () =>
  z
    .strictObject({
      key: key(),
      holder: name(256),
      /** Identifies one reservation. A repeat receives the same start. */
      requestId: z.optional(name(256)),
      rates: someOf(rate()),
      waitSeconds: z._default(whole(0, MAX_RATE_WAIT_SECONDS), 0),
      settle: z._default(flag(), false),
    })
    .check(
      z.check(({ value, issues }) => {
        for (const { path, message } of [...value.rates.flatMap(faultsOf), ...waitFaults(value)])
          issues.push({ code: 'custom', path, message, input: value });
      }),
    );
export type ReserveInput = z.infer<ReturnType<typeof reserveInput>>;

interface Fault {
  path: (string | number)[];
  message: string;
}

function faultsOf({ name: thisName, limit, units, burst = units }: RateInput, nth: number, all: RateInput[]): Fault[] {
  const faults: [field: string, isWrong: boolean, message: string][] = [
    ['name', all.findIndex((rate) => rate.name === thisName) < nth, 'must differ from the other names'],
    ['units', units > MAX_PERIODS * limit, `must be at most ${MAX_PERIODS} times the limit`],
    ['burst', burst < units, 'must be at least the units'],
    ['burst', burst > MAX_PERIODS * limit && burst > units, `must be at most ${MAX_PERIODS} times the limit`],
  ];
  return faults.flatMap(([field, isWrong, message]) => (isWrong ? [{ path: ['rates', nth, field], message }] : []));
}

function waitFaults({ settle, waitSeconds, rates }: ReserveInput): Fault[] {
  const maxSeconds = maxWaitSeconds(rates, settle);
  const message = `must be at most ${maxSeconds} with settle, which is the longest period`;
  return settle && waitSeconds > maxSeconds ? [{ path: ['waitSeconds'], message }] : [];
}

export const settleInput = () =>
  z
    .strictObject({
      key: key(),
      reservation: name(1100),
      /** The units that the work took, by the name of the rate. */
      units: z.optional(z.record(rateName(), whole(0, MAX_UNITS), must('an object of units by the name of the rate'))),
      /** True to cancel the reservation. */
      cancel: z.optional(z.literal(true, must('true'))),
    })
    .check(
      z.check(({ value, issues }) => {
        const { units, cancel } = value;
        const message =
          (units === undefined) === (cancel === undefined) &&
          (units ? 'cannot be combined with cancel' : 'is missing: send units or cancel');
        if (message) issues.push({ code: 'custom', path: ['units'], message, input: units });
      }),
    );
export type SettleInput = z.infer<ReturnType<typeof settleInput>>;

export const forgetRateInput = () =>
  z.strictObject({
    key: key(),
    /** The `paidUntil` that the operator has read, in ISO 8601. */
    paidUntil: name(30).check(
      z.regex(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/, { error: INSTANT_RULE, abort: true }),
      z.refine((text) => !Number.isNaN(Date.parse(text)), INSTANT_RULE),
    ),
  });
export type ForgetRateInput = z.infer<ReturnType<typeof forgetRateInput>>;

export const readRatesInput = () => keyOrPage(MAX_RATE_KEY_BYTES);
export type ReadRatesInput = z.infer<ReturnType<typeof readRatesInput>>;

export const RATE_NAME_FIELDS: NameFields = { stored: ['key'], answered: ['key', 'actual.key'] };
