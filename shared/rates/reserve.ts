import type { Call } from '../aws/call.ts';
import { addRetryWith, outcomeUnknown, writing } from '../aws/send.ts';
import { HoldfastError } from '../errors.ts';
import type { LeaseDependencies } from '../locks/dependencies.ts';
import { capEndsAt } from '../locks/record/capped.ts';
import { nameOfRequest } from '../locks/record/identity.ts';
import type { NamedRate, RateCap } from './cap-after.ts';
import { chargeOf, type Form, formFor, ratesUnder, startOf } from './charge.ts';
import { type ReserveRequest, writeRow } from './forms.ts';
import type { ReserveInput } from './inputs.ts';
import { MAX_OPEN, makeRoom } from './open.ts';
import { parseRate, type RateRecord, rateCapAt, rateCapView, rateRowOf, ratesText } from './record.ts';
import { reservationId, reservationText } from './reservation.ts';

export interface Reserved {
  key: string;
  /** The id with which the caller settles or cancels the reservation. */
  reservation: string;
  /** The moment before which the work must not start, in ISO 8601. */
  startAt: string;
  /** The time from the answer to the start, rounded up to a millisecond. */
  waitMs: number;
  /** `waitMs` in whole seconds, rounded up, for a `Wait` state or a durable wait. */
  sleepSeconds: number;
  /** The name of the tightest rate. */
  boundBy: string;
  /** Whether an earlier try reserved this start, or an earlier start that is over by now. */
  repeated: boolean;
  /** The rates of the caller before and of this one, if they differ. */
  rateChanged?: { from: NamedRate[]; to: NamedRate[] };
}

/** How often a call writes. The second try wins, unless another call writes between the two. */
const MAX_RESERVE_TRIES = 5;
/**
 * A call counts the key as busy if the key was still paid for when the call came, up to this long ago. In a crowd at a
 * fast rate, the time that one call pays runs out before the next call writes; if each then found the key idle, only
 * one of the crowd would win at a time.
 */
const MAX_LATE_US = 1_000_000;

/**
 * The form that won last for a row, and the cap at that time. A call that begins with both usually needs only one
 * write.
 */
interface Hint {
  form: Form;
  cap: RateCap | undefined;
}
const hintsOf = new WeakMap<LeaseDependencies, Map<string, Hint>>();
const MAX_HINTS = 100;

/** When a caller may ask again if the pause does not end by itself. */
const ASK_PAUSED_MS = 60_000;

/**
 * Reserves a start for the units of the work, with one conditional UpdateItem, or two when the key becomes idle
 * or busy (docs/protocols/rates.md#reserve). The call itself never waits.
 * @throws HoldfastError RateExceeded (the start would be later than `waitSeconds`, or an operator has paused the key),
 *   QueueFull (too many reservations are open), Throttled, Unavailable, OutcomeUnknown
 */
export function reserveRate(dependencies: LeaseDependencies) {
  const { ids } = dependencies;
  return async (input: ReserveInput, call: Call): Promise<Reserved> => {
    const { holder, requestId = ids.uuid() } = input;
    const name = nameOfRequest({ holder, requestId, principal: call.principal });
    return tryForms(dependencies, { input, name }, call).catch(addRetryWith({ requestId }));
  };
}

interface NamedInput {
  input: ReserveInput;
  name: string;
}

function requestUnder(cap: RateCap | undefined, { input, name }: NamedInput): ReserveRequest {
  const rates = ratesUnder(input.rates, cap?.capped?.rates);
  const charge = chargeOf(rates);
  const reservation = { name, charge: charge.charge, ahead: charge.ahead, ...(input.settle && { rates }) };
  return { ...charge, input, row: rateRowOf(input.key), reservation, cap };
}

async function tryForms(dependencies: LeaseDependencies, named: NamedInput, call: Call): Promise<Reserved> {
  const { clock, clockSkewMs } = dependencies;
  const { input } = named;
  const row = rateRowOf(input.key);
  const hint = hintsOf.get(dependencies)?.get(row);
  const underCap = (capped: { cap?: RateCap | undefined }) =>
    requestUnder(rateCapAt(capped, { now: clock.now(), clockSkewMs }), named);
  let next = { request: underCap({ cap: hint?.cap }), form: hint?.form ?? 'idle', isOpen: false };
  let mayHaveLanded = false;
  const begun = clock.now() * 1000;
  const timesAt = (now: number) => ({ now, since: Math.max(Math.min(begun, now), now - MAX_LATE_US) });
  for (let tries = 1; tries <= MAX_RESERVE_TRIES; tries++) {
    const now = clock.now() * 1000;
    const outcome = await writeRow(dependencies, { ...next, ...timesAt(now) }, call);
    const record = parseRate(outcome.won ? outcome.item : outcome.old);
    const answered = clock.now() * 1000;
    if (outcome.won) {
      noteHint(dependencies, row, { form: next.form === 'late' ? 'busy' : next.form, cap: capToRemember(record) });
      const reserved = reservedView(next.request, { record, now, answered, repeated: next.form === 'late' });
      call.measure?.('RateWaitMs', reserved.waitMs);
      return reserved;
    }
    mayHaveLanded ||= outcome.unanswered;
    const request = underCap(record);
    const verdict = judgeRates(request, record, { ...timesAt(answered), clockSkewMs });
    if (verdict === 'repeated') return reservedView(request, { record, now: answered, answered, repeated: true });
    if (typeof verdict !== 'string') throw verdict;
    const isOpen = record.open.some(({ name }) => name === named.name);
    if (input.settle && !isOpen && record.opens >= MAX_OPEN)
      await makeRoom(dependencies, { key: input.key, record }, call);
    next = { request, form: verdict, isOpen };
  }
  if (mayHaveLanded) throw outcomeUnknown(writing(`table ${dependencies.table}`), undefined, { key: input.key });
  throw new HoldfastError('Throttled', 'too many callers reserve at the same moment: send the same call again', {
    retryAfterMs: 1000,
  });
}

/**
 * The cap for the hint, without a pause. Otherwise, after a clock is set back, a call could write under a pause that
 * seems to count again.
 */
const capToRemember = ({ cap }: RateRecord): RateCap | undefined => (cap?.pause ? undefined : cap);

/**
 * Judges a row that refused a write.
 * @returns the form that fits, `repeated` if the start of an earlier try still counts, or a refusal
 */
function judgeRates(
  request: ReserveRequest,
  { paidUntil, last, isMalformed }: RateRecord,
  times: { now: number; since: number; clockSkewMs: number },
): Form | 'repeated' | HoldfastError {
  const { input, boundBy, cap } = request;
  const { key } = input;
  if (isMalformed) {
    const detail = 'a third-party client wrote a record that is not valid: an operator must delete the row of the rate';
    return new HoldfastError('Unavailable', detail, { key });
  }
  const isOwn = last === reservationText(request.reservation);
  const found = formFor(request, { paidUntil, isOwn }, { ...times, waitMs: input.waitSeconds * 1000 });
  const refused = (detail: string, retryAfterMs: number) =>
    new HoldfastError('RateExceeded', `${detail}: ask again after \`retryAfterMs\``, {
      ...{ key, retryAfterMs, boundBy },
      ...(cap && { cap: rateCapView(cap) }),
    });
  if (cap?.pause && found !== 'repeated') {
    const endsIn = capEndsAt(cap.pause, times.clockSkewMs) - Math.floor(times.now / 1000);
    return refused(
      `an operator has paused the key (${cap.pause.reason})`,
      Number.isFinite(endsIn) ? endsIn : ASK_PAUSED_MS,
    );
  }
  return typeof found === 'string'
    ? found
    : refused(`the rate ${boundBy} is used up for longer than the caller waits`, found);
}

/**
 * The answer to a caller.
 * @param now the clock of the write or of the judgement, in microseconds
 * @param answered the clock after it, in microseconds
 */
function reservedView(
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
  if (rows.size > MAX_HINTS) for (const oldest of rows.keys()) return void rows.delete(oldest);
}
