import type { Call } from '../aws/call.ts';
import { addRetryWith, outcomeUnknown, writing } from '../aws/send.ts';
import { HoldfastError } from '../errors.ts';
import type { LeaseDependencies } from '../locks/dependencies.ts';
import { capEndsAt } from '../locks/record/capped.ts';
import { requestName } from '../locks/record/identity.ts';
import type { NamedRate, RateCap } from './cap-after.ts';
import { chargeOf, type Form, formFor, ratesUnder, startOf } from './charge.ts';
import { type ReserveRequest, writeRow } from './forms.ts';
import type { ReserveInput } from './inputs.ts';
import { MOST_OPEN, makeRoom } from './open.ts';
import { parseRate, type RateRecord, rateCapAt, rateCapView, rateRowOf, ratesText } from './record.ts';
import { reservationId, reservationText } from './reservation.ts';

/** When the work of a caller may start. */
export interface Reserved {
  key: string;
  /** Settles or cancels the reservation. */
  reservation: string;
  /** ISO 8601, not before which the work starts. */
  startAt: string;
  /** From the answer to the start, rounded up to a millisecond. */
  waitMs: number;
  /** The same in whole seconds, rounded up, for a `Wait` state or a durable wait. */
  sleepSeconds: number;
  /** The tightest rate. */
  boundBy: string;
  /** True if an earlier try had reserved this start, or if it was reserved again because that start was over. */
  repeated: boolean;
  /** Present if the caller before named other rates. */
  rateChanged?: { from: NamedRate[]; to: NamedRate[] };
}

/** The second try wins, unless another call writes between the two. */
const MAX_RESERVE_TRIES = 5;
/**
 * In a crowd at a fast rate, what one call pays is over before the next one writes, and only one of those that find the key idle wins. So a call adds to what
 * was paid when it came, for as long as this.
 */
const MOST_LATE_US = 1_000_000;

/** The form that won last for a row, and the cap at that time. A call that begins with both usually needs one write. */
interface Hint {
  form: Form;
  cap: RateCap | undefined;
}
const hintsOf = new WeakMap<LeaseDependencies, Map<string, Hint>>();
const MOST_RATE_ROWS = 100;

/** When a caller asks again, if the pause has no end. */
const ASK_PAUSED_MS = 60_000;

/**
 * Reserves a start for work that takes so many units (docs/protocols/rates.md#reserve). One conditional UpdateItem, or two when
 * the key becomes idle or busy. The call never waits.
 * @throws HoldfastError RateExceeded (the start would be later than `waitSeconds`, or an operator has paused the key), QueueFull (too many reservations are open), Throttled,
 * Unavailable, OutcomeUnknown
 */
export function reserveRate(dependencies: LeaseDependencies) {
  const { ids } = dependencies;
  return async (input: ReserveInput, call: Call): Promise<Reserved> => {
    const { holder, requestId = ids.uuid() } = input;
    const name = requestName({ holder, requestId, principal: call.principal });
    return tryForms(dependencies, { input, name }, call).catch(addRetryWith({ requestId }));
  };
}

interface AskedStart {
  input: ReserveInput;
  name: string;
}

function requestUnder(cap: RateCap | undefined, { input, name }: AskedStart): ReserveRequest {
  const rates = ratesUnder(input.rates, cap?.capped?.rates);
  const charge = chargeOf(rates);
  const reservation = { name, charge: charge.charge, ahead: charge.ahead, ...(input.settle && { rates }) };
  return { ...charge, input, row: rateRowOf(input.key), reservation, cap };
}

async function tryForms(dependencies: LeaseDependencies, asked: AskedStart, call: Call): Promise<Reserved> {
  const { clock, clockSkewMs } = dependencies;
  const { input } = asked;
  const row = rateRowOf(input.key);
  const hint = hintsOf.get(dependencies)?.get(row);
  const underCap = (on: { cap?: RateCap | undefined }) =>
    requestUnder(rateCapAt(on, { now: clock.now(), clockSkewMs }), asked);
  let known = { request: underCap({ cap: hint?.cap }), form: hint?.form ?? 'idle', isOpen: false };
  let mayHaveLanded = false;
  const begun = clock.now() * 1000;
  const at = (now: number) => ({ now, since: Math.max(Math.min(begun, now), now - MOST_LATE_US) });
  for (let tries = 1; tries <= MAX_RESERVE_TRIES; tries++) {
    const now = clock.now() * 1000;
    const outcome = await writeRow(dependencies, { ...known, ...at(now) }, call);
    const record = parseRate(outcome.won ? outcome.item : outcome.old);
    const answered = clock.now() * 1000;
    if (outcome.won) {
      noteHint(dependencies, row, { form: known.form === 'moved' ? 'busy' : known.form, cap: rated(record) });
      const reserved = view(known.request, { record, now, answered, repeated: known.form === 'moved' });
      call.measure?.('RateWaitMs', reserved.waitMs);
      return reserved;
    }
    mayHaveLanded ||= outcome.unanswered;
    const request = underCap(record);
    const seen = judgeRates(request, record, { ...at(answered), clockSkewMs });
    if (seen === 'repeated') return view(request, { record, now: answered, answered, repeated: true });
    if (typeof seen !== 'string') throw seen;
    const isOpen = record.open.some(({ name }) => name === asked.name);
    if (input.settle && !isOpen && record.opens >= MOST_OPEN)
      await makeRoom(dependencies, { key: input.key, record }, call);
    known = { request, form: seen, isOpen };
  }
  if (mayHaveLanded) throw outcomeUnknown(writing(`table ${dependencies.table}`), undefined, { key: input.key });
  throw new HoldfastError('Throttled', 'too many callers reserve at the same moment: send the same call again', {
    retryAfterMs: 1000,
  });
}

/** No call may write under a pause, even if a clock that was set back says that the pause is not over. */
const rated = ({ cap }: RateRecord): RateCap | undefined => (cap?.pause ? undefined : cap);

/** What a row that did not meet the condition means. @returns the form that fits, `repeated` for the start of an earlier try, or a refusal */
function judgeRates(
  request: ReserveRequest,
  { paidUntil, last, isMalformed }: RateRecord,
  at: { now: number; since: number; clockSkewMs: number },
): Form | 'repeated' | HoldfastError {
  const { input, boundBy, cap } = request;
  const { key } = input;
  if (isMalformed) {
    const detail = 'a third-party client wrote a record that is not valid: an operator must delete the row of the rate';
    return new HoldfastError('Unavailable', detail, { key });
  }
  const isOwn = last === reservationText(request.reservation);
  const found = formFor(request, { paidUntil, isOwn }, { ...at, waitMs: input.waitSeconds * 1000 });
  const refused = (detail: string, retryAfterMs: number) =>
    new HoldfastError('RateExceeded', `${detail}: ask again after \`retryAfterMs\``, {
      ...{ key, retryAfterMs, boundBy },
      ...(cap && { cap: rateCapView(cap) }),
    });
  if (cap?.pause && found !== 'repeated') {
    const endsIn = capEndsAt(cap.pause, at.clockSkewMs) - Math.floor(at.now / 1000);
    return refused(
      `an operator has paused the key (${cap.pause.reason})`,
      Number.isFinite(endsIn) ? endsIn : ASK_PAUSED_MS,
    );
  }
  return typeof found === 'string'
    ? found
    : refused(`the rate ${boundBy} is used up for longer than the caller waits`, found);
}

/** @param now microseconds, the time by which the start was found @param answered microseconds, the time of this answer */
function view(
  request: ReserveRequest,
  { record, now, answered, repeated }: { record: RateRecord; now: number; answered: number; repeated: boolean },
): Reserved {
  const { input, reservation, boundBy } = request;
  const start = startOf(record.paidUntil ?? now, request, now);
  const waitMs = Math.max(0, Math.ceil((start - answered) / 1000));
  const isChanged = !repeated && ratesText(record.ratesBefore) !== ratesText(record.rates);
  return {
    key: input.key,
    reservation: reservationId(reservation),
    startAt: new Date(Math.ceil(start / 1000)).toISOString(),
    waitMs,
    sleepSeconds: Math.ceil(waitMs / 1000),
    boundBy,
    repeated,
    ...(isChanged && { rateChanged: { from: record.ratesBefore, to: record.rates } }),
  };
}

function noteHint(dependencies: LeaseDependencies, row: string, hint: Hint): void {
  const rows = hintsOf.get(dependencies) ?? new Map<string, Hint>();
  hintsOf.set(dependencies, rows);
  rows.delete(row);
  rows.set(row, hint);
  if (rows.size > MOST_RATE_ROWS) for (const oldest of rows.keys()) return void rows.delete(oldest);
}
