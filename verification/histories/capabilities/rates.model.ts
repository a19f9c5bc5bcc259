import { periodSeconds } from '../../../shared/periods.ts';
import type { WorldFacts } from '../caller.ts';
import { BEGIN } from '../clocks.ts';
import type { Entry, Violation } from '../history.ts';
import { CLOCK_SKEW_MS } from '../service.ts';

export const RATE_CALLS = new Set(['rateReserve', 'rateSettle', 'rateForget', 'readRates', 'rateStart']);

export const RATE_KEPT = 'no more units start in a time than the rate allows';
export const PAYS_ITS_UNITS = 'a reservation pays for its units, and a repeat that is still the last pays once';
export const SETTLED_ONCE =
  'an open reservation is settled once, by its real units, and only the last is cancelled otherwise';
export const NOT_EARLY = 'no caller starts before the start of its reservation';
export const PATIENCE_KEPT = 'no start is later than its caller waits';
export const REFUSED_TRULY = 'a reservation is refused only if its start would be later than its caller waits';

export interface NamedRate {
  name: string;
  limit: number;
  per: string;
  units: number;
  burst?: number | undefined;
}

/** A second in microseconds, the unit of the row. */
const SECOND = 1_000_000;
const timeOf = ({ limit, per }: NamedRate, units: number): number =>
  (units * (periodSeconds(per) ?? 0) * SECOND) / limit;
const ratesOf = ({ input }: Entry): NamedRate[] => input.rates as NamedRate[];

function chargeOf(rates: readonly NamedRate[]): { charge: number; ahead: number } {
  const charge = Math.max(...rates.map((rate) => Math.ceil(timeOf(rate, rate.units))));
  const bursts = rates.map((rate) =>
    (rate.burst ?? 0) > rate.units ? Math.floor(timeOf(rate, rate.burst ?? 0)) : Math.ceil(timeOf(rate, rate.units)),
  );
  return { charge, ahead: Math.max(charge, Math.min(...bursts)) };
}

/** A capped rate counts as if the call had named it, with the units of its own rate with the same name, or one unit. */
const ratesUnder = (named: readonly NamedRate[], capped: readonly NamedRate[]): NamedRate[] => [
  ...named,
  ...capped.map(({ name, limit, per }) => {
    const { units = 1 } = named.find((rate) => rate.name === name) ?? {};
    return { name, limit, per, units: Math.min(units, 10 * limit) };
  }),
];

/** The rates by which a reservation may have been charged: those that the call names, and the capped ones. Near the end of a cap, clocks decide. */
function mayCountBy(
  entry: Entry,
  cap: string | undefined,
  { ms, spreadMs }: { ms: number; spreadMs: number },
): NamedRate[][] {
  const named = ratesOf(entry);
  const { capped } = JSON.parse(cap ?? '{}') as { capped?: { rates: NamedRate[]; until?: number } };
  if (!capped) return [named];
  const leftMs = (capped.until ?? Number.POSITIVE_INFINITY) + CLOCK_SKEW_MS - BEGIN - ms;
  return [...(leftMs < spreadMs ? [named] : []), ...(leftMs > -spreadMs ? [ratesUnder(named, capped.rates)] : [])];
}

/** A write that landed on the row, and what the row has after it. */
interface Write {
  entry: Entry;
  moment: number;
  what: 'reserved' | 'settled' | 'forgotten';
  paid: number | undefined;
  last: string | undefined;
  /** By how much a reservation that is settled or cancelled changes what is paid. */
  more: number;
  wrong?: { promise: string; detail: string } | undefined;
}

/** The promises of docs/protocols/rates.md that the calls on one key break. */
export function brokenOfRates(entries: readonly Entry[], facts: WorldFacts): Violation[] {
  const writes = writesOf(entries, facts);
  return [
    ...writes.flatMap(({ entry, wrong }) => (wrong ? [{ ...wrong, entries: [entry] }] : [])),
    ...entries.flatMap((entry) => wrongAnswer(entry, writes, facts)),
    ...tooMany(entries, writes),
  ];
}

/** The writes on the row in their order. Each is judged by the row before it. */
function writesOf(entries: readonly Entry[], facts: WorldFacts): Write[] {
  const landed = entries
    .flatMap((entry) => (entry.landed ?? []).map((one) => ({ one, entry })))
    .toSorted((one, other) => one.one.moment - other.one.moment);
  const writes: Write[] = [];
  const open = new Set<string>();
  const caps = new Map<string, NamedRate[][]>();
  for (const { one, entry } of landed) {
    const { paid, last } = writes.at(-1) ?? {};
    const { moment } = one;
    if (one.what === 'forgotten') {
      open.clear();
      writes.push({ entry, moment, what: 'forgotten', paid: undefined, last: undefined, more: 0 });
    } else if (one.what === 'reserved') {
      const nowMost = (BEGIN + one.ms + facts.spreadMs / 2) * 1000;
      const charge = Number(one.last.split('.')[1]);
      const counted = mayCountBy(entry, one.cap, { ms: one.ms, spreadMs: facts.spreadMs });
      const isLast = one.last === last;
      const wrong = counted.some((rates) => chargeOf(rates).charge === charge)
        ? wrongPayment(charge, { before: paid, after: one.paidUntil, nowMost, isLast })
        : { promise: PAYS_ITS_UNITS, detail: `${charge} us are paid` };
      caps.set(one.last, counted);
      if (entry.input.settle) open.add(nameIn(one.last));
      writes.push({ entry, moment, what: 'reserved', paid: one.paidUntil, last: one.last, more: 0, wrong });
    } else if (one.what === 'settled') {
      const { more } = one;
      const wrong = wrongSettling(entry, { more, last, open, counted: caps.get(lastOf(entry)) ?? [ratesOf(entry)] });
      open.delete(nameOf(entry));
      const lastNow = entry.input.cancel && last === lastOf(entry) ? '-' : last;
      writes.push({ entry, moment, what: 'settled', paid: (paid ?? 0) + more, last: lastNow, more, wrong });
    }
  }
  return writes;
}

const nameIn = (last: string): string => last.split('.')[0] ?? '';
/** The name of the reservation of a call. `lastOf` is its short form on the row. */
const nameOf = ({ input }: Entry): string => String(input.reservation).split('.')[1] ?? '';
const lastOf = ({ input, body }: Entry): string =>
  String(input.reservation ?? body?.reservation)
    .split('.')
    .slice(1, 4)
    .join('.');

function wrongPayment(
  charge: number,
  { before, after, nowMost, isLast }: { before: number | undefined; after: number; nowMost: number; isLast: boolean },
): Write['wrong'] {
  const least = isLast ? (before ?? 0) : (before ?? 0) + charge;
  const most = isLast ? Math.max(before ?? 0, nowMost + charge) : Math.max(before ?? 0, nowMost) + charge;
  if (after >= least && after <= most) return undefined;
  const detail = `${charge} us ${isLast ? 'were' : 'are'} paid, from ${before} to ${after}`;
  return { promise: PAYS_ITS_UNITS, detail };
}

interface Settling {
  more: number;
  last: string | undefined;
  open: ReadonlySet<string>;
  /** The rates by which the reservation may have been charged. */
  counted: NamedRate[][];
}

function wrongSettling(entry: Entry, { more, last, open, counted }: Settling): Write['wrong'] {
  const { units, cancel } = entry.input as { units?: Record<string, number>; cancel?: boolean };
  const charge = Number(lastOf(entry).split('.')[1]);
  const mayBe = open.has(nameOf(entry)) || (cancel && last === lastOf(entry));
  const real = counted
    .filter((rates) => chargeOf(rates).charge === charge)
    .map((rates) => Math.max(...rates.map((rate) => Math.ceil(timeOf(rate, units?.[rate.name] ?? rate.units)))));
  if (mayBe && (cancel ? [0] : real).includes(more + charge)) return undefined;
  return { promise: SETTLED_ONCE, detail: `${entry.actor} changes what is paid by ${more}, and it paid ${charge}` };
}

function wrongAnswer(entry: Entry, writes: readonly Write[], { spreadMs }: WorldFacts): Violation[] {
  const { call, input, outcome, body = {}, calledAt, answeredAt } = entry;
  const violation = (promise: string, detail: string) => [{ promise, detail, entries: [entry] }];
  if (call === 'rateStart') {
    const earlyMs = Date.parse(String(input.startAt)) - BEGIN - spreadMs / 2 - calledAt.ms;
    return earlyMs > 1 ? violation(NOT_EARLY, `${entry.actor} starts ${earlyMs} ms early`) : [];
  }
  if (call !== 'rateReserve' || !answeredAt) return [];
  const waitMs = Number(input.waitSeconds) * 1000;
  if (outcome === 'ok' && !body.repeated) {
    const lateMs = Date.parse(String(body.startAt)) - BEGIN - answeredAt.ms - spreadMs / 2 - waitMs;
    return lateMs > 1 ? violation(PATIENCE_KEPT, `${entry.actor} is to start ${lateMs} ms after its patience`) : [];
  }
  const cap = body.cap as { limit: number | null; rates: NamedRate[] | null } | undefined;
  // Refusals in a pause are checked by `pauseKept`, and by the last caller.
  if (outcome !== 'RateExceeded' || cap?.limit === 0) return [];
  const before = writes.findLast(({ moment }) => moment < calledAt.moment);
  const during = writes.filter(({ moment }) => moment > calledAt.moment && moment < answeredAt.moment);
  const paid = Math.max(...[before, ...during].map((write) => write?.paid ?? 0));
  const { charge, ahead } = chargeOf(ratesUnder(ratesOf(entry), cap?.rates ?? []));
  const least = (BEGIN + calledAt.ms - spreadMs / 2 - 1 + waitMs) * 1000 + ahead - charge;
  return paid <= least ? violation(REFUSED_TRULY, `${entry.actor} is refused, and ${paid} was paid`) : [];
}

interface Start {
  /** In microseconds. */
  startAt: number;
  /** The first write that reserved it, and the last write that its answer may have seen. */
  from: number;
  until: number;
  rates: readonly NamedRate[];
  /** How long the call that reserved it lasted, a second at most. The call added to what was paid when it came. */
  lasted: number;
  entry: Entry;
}

/** Compares the answered starts and not the moments of the work, so that clocks do not matter. Late work may overlap with the next work. */
function tooMany(entries: readonly Entry[], writes: readonly Write[]): Violation[] {
  const starts = entries.flatMap((entry): Start[] => {
    if (entry.call !== 'rateStart') return [];
    const answer = entries.findLast(
      (one) =>
        one.call === 'rateReserve' &&
        one.outcome === 'ok' &&
        one.calledAt.moment < entry.calledAt.moment &&
        lastOf(one) === lastOf(entry),
    );
    const from = writes.findIndex(({ what, last }) => what === 'reserved' && last === lastOf(entry));
    const until = writes.findLastIndex(({ moment }) => moment < (answer?.answeredAt?.moment ?? 0));
    const lasted = answer ? Math.min(SECOND, ((answer.answeredAt?.ms ?? 0) - answer.calledAt.ms) * 1000) : 0;
    const startAt = Date.parse(String(entry.input.startAt)) * 1000;
    return [{ startAt, from, until, lasted, rates: ratesOf(entry), entry }];
  });
  const inOrder = starts.toSorted((one, other) => one.startAt - other.startAt);
  for (const from of inOrder.keys())
    for (let to = from; to < inOrder.length; to++) {
      const found = overfull(inOrder.slice(from, to + 1), writes);
      if (found !== undefined)
        return [{ promise: RATE_KEPT, detail: found, entries: inOrder.slice(from, to + 1).map(({ entry }) => entry) }];
    }
  return [];
}

/** Whether a rate has too many units in these starts. If callers name different rates, the fastest counts. */
function overfull(starts: readonly Start[], writes: readonly Write[]): string | undefined {
  const between = writes.slice(
    Math.min(...starts.map(({ from }) => from)),
    Math.max(...starts.map(({ until }) => until)) + 1,
  );
  if (between.some(({ what }) => what === 'forgotten')) return undefined;
  const back = between.reduce((sum, { more }) => sum + Math.max(0, -more), 0);
  const late = Math.max(...starts.map(({ lasted }) => lasted));
  // Answers round up to a millisecond.
  const time = (starts.at(-1)?.startAt ?? 0) - (starts[0]?.startAt ?? 0) + back + 1000 + late;
  for (const { name, per } of starts[0]?.rates ?? []) {
    const named = starts.flatMap(({ rates }) => rates.filter((rate) => rate.name === name));
    const units = named.reduce((sum, rate) => sum + rate.units, 0);
    const burst = Math.max(...named.map((rate) => Math.max(rate.units, rate.burst ?? 0)));
    const limit = Math.max(...named.map((rate) => rate.limit));
    const most = (limit * time) / (periodSeconds(per) ?? 0) / SECOND + burst;
    if (units > most + 1e-6) return `${units} ${name} start in ${time} us, and the rate allows ${most.toFixed(2)}`;
  }
  return undefined;
}
