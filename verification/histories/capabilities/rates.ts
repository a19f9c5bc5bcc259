import type { Answer } from '../../../test/support/stack/adapters.ts';
import type { Caller } from '../caller.ts';
import { AFTERWARDS, type Capability, stuck } from '../capability.ts';
import { CLOCK_SKEW_MS } from '../service.ts';
import { pauseKept } from './caps.model.ts';
import { keysOf } from './leases.ts';
import { liftCaps, operatorOn } from './operators.ts';
import { brokenOfRates, type NamedRate, RATE_CALLS } from './rates.model.ts';

/** On the first key all callers name the same three rates. On the second key they name a slower or a faster rate. On the third key they settle. */
const SAME = 'r0';
const DIFFERENT = 'r1';
const SETTLED = 'r2';
const KEYS = [SAME, DIFFERENT, SETTLED];

/** What operators cap: a rate that callers name, and one that some do not. */
const CAPS = [
  { name: 'calls', limit: 2, per: '1s' },
  { name: 'pages', limit: 5, per: '3s' },
];

/** For how long callers wait for their start, in seconds. */
const WAITS = [0, 1, 3, 10, 30];
const LONGEST_WORK_MS = 3000;

type Request = Readonly<Record<string, unknown>> & { key: string; rates: NamedRate[] };

interface Memory {
  /** A reservation whose outcome the caller does not know. */
  pending: Request | undefined;
  /** Every reservation that this caller has received, the latest last. */
  reservations: { request: Request; reservation: string }[];
}

const memoryOf = (caller: Caller) =>
  caller.memory<Memory>('rates', (previous) => ({ pending: previous?.pending, reservations: [] }));

/** Callers that start their work at a rate. Some give up before the start, some ask twice, some report other units than they asked for. */
export const rates: Capability = {
  name: 'rates',
  occasional: 0.15,

  act: work,

  others: [
    { name: 'reserver', steps: 8, act: work },
    { name: 'operator of rates', steps: 2, share: 0.2, act: forget },
    operatorOn('operator of caps', KEYS, { kind: 'rate', limits: [0, 0, 1], rates: CAPS }),
  ],

  async settle(caller) {
    const { prefix, facts } = caller.world;
    await liftCaps(caller, KEYS, { kind: 'rate' });
    await caller.sleep(60_000 + CLOCK_SKEW_MS + facts.spreadMs);
    for (const name of KEYS) {
      const request = { key: prefix + name, holder: AFTERWARDS, requestId: AFTERWARDS, ...termsFor(caller, name) };
      await caller.call('rateReserve', { ...request, waitSeconds: 60 });
    }
  },

  check(history, facts) {
    const calls = history.filter(({ call }) => RATE_CALLS.has(call));
    const keys = keysOf(calls, KEYS);
    return [
      ...keys.flatMap((key) =>
        brokenOfRates(
          calls.filter(({ input }) => input.key === key),
          facts,
        ),
      ),
      ...keys.flatMap((key) => pauseKept(history, { key, kind: 'rate' }, facts)),
      ...stuck(
        calls.filter(({ call, input }) => call === 'rateReserve' && keys.includes(String(input.key))),
        'no key is stuck',
      ),
    ];
  },
};

function termsFor(caller: Caller, name: string): { rates: NamedRate[]; settle?: boolean } {
  const upTo = (max: number) => 1 + Math.floor(caller.random() * max);
  const burst = caller.random() < 0.4 ? { burst: 6 } : {};
  const calls = { name: 'calls', limit: 4, per: '1s', units: 1, ...burst };
  const tokens = { name: 'tokens', limit: 1200, per: '1m', units: upTo(60) };
  if (name === SAME) return { rates: [calls, tokens, { name: 'pages', limit: 7, per: '3s', units: upTo(3) }] };
  if (name === SETTLED) return { rates: [calls, tokens], settle: true };
  return { rates: [{ name: 'calls', limit: caller.pick([2, 6]), per: '1s', units: upTo(3), ...burst }] };
}

async function work(caller: Caller): Promise<void> {
  const { pending, reservations } = memoryOf(caller);
  const dice = caller.random();
  if (pending && dice < 0.6) return reserve(caller, dice < 0.1 ? withOtherUnits(pending) : pending);
  const before = caller.pick(reservations);
  if (before && dice < 0.75) return settle(caller, before);
  const name = caller.pick(KEYS);
  const key = caller.world.prefix + name;
  if (dice > 0.95) return void (await caller.call('readRates', { key }));
  const id = Math.floor(caller.random() * 1e9).toString(36);
  const request = { key, holder: `${caller.name}/${id}`, requestId: id, waitSeconds: caller.pick(WAITS) };
  await reserve(caller, { ...request, ...termsFor(caller, name) });
}

const withOtherUnits = (request: Request): Request => ({
  ...request,
  rates: request.rates.map((rate) => ({ ...rate, units: rate.units + 1, burst: undefined })),
});

/** Reserves, now and then once more before the start, and waits for the start as the answer says. */
async function reserve(caller: Caller, request: Request): Promise<void> {
  memoryOf(caller).pending = request;
  let answer = await caller.call('rateReserve', request);
  if (!answer || answer.outcome === 'OutcomeUnknown') return;
  memoryOf(caller).pending = undefined;
  if (answer.outcome !== 'ok') return;
  if (caller.random() < 0.2) {
    await caller.sleep(caller.random() * Number(answer.body.waitMs));
    const again = await caller.call('rateReserve', request);
    if (!again || again.outcome === 'OutcomeUnknown') return;
    // A repeat after others may be refused. The first start is lost then.
    if (again.outcome !== 'ok') return;
    answer = again;
  }
  const reserved = { request, reservation: String(answer.body.reservation) };
  memoryOf(caller).reservations.push(reserved);
  if (caller.random() < 0.2) {
    await caller.sleep(caller.random() * Number(answer.body.waitMs));
    await cancel(caller, reserved);
    return;
  }
  await start(caller, reserved, answer);
}

/** Sleeps by milliseconds, or by whole seconds as a `Wait` state does, starts the work, and often settles. */
async function start(
  caller: Caller,
  reserved: Memory['reservations'][number],
  { body: { startAt, waitMs, sleepSeconds } }: Answer,
): Promise<void> {
  const { request, reservation } = reserved;
  await caller.sleep(caller.random() < 0.5 ? Number(waitMs) : Number(sleepSeconds) * 1000);
  caller.note('rateStart', { key: request.key, reservation, rates: request.rates, startAt }).answer('ok', {});
  if (!request.settle) return;
  await caller.sleep(caller.random() * LONGEST_WORK_MS);
  if (caller.random() < 0.85) await settle(caller, reserved);
}

/** Up to three times the units, and half of the time at most what was asked for. A reservation without `settle` can only be cancelled. */
async function settle(caller: Caller, reserved: Memory['reservations'][number]): Promise<void> {
  const { request, reservation } = reserved;
  const share = caller.random() * (caller.random() < 0.5 ? 1 : 3);
  const units = Object.fromEntries(request.rates.map((rate) => [rate.name, Math.floor(rate.units * share)]));
  const { key } = request;
  if (request.settle) await caller.call('rateSettle', { key, reservation, units }, { rates: request.rates });
}

const cancel = async (
  caller: Caller,
  { request: { key, rates: named }, reservation }: Memory['reservations'][number],
): Promise<void> => void (await caller.call('rateSettle', { key, reservation, cancel: true }, { rates: named }));

/** Forgets a rate, as it saw the key. */
async function forget(caller: Caller): Promise<void> {
  await caller.sleep(caller.random() * 10_000);
  const key = caller.world.prefix + caller.pick(KEYS);
  const answer = await caller.call('readRates', { key });
  if (answer?.outcome !== 'ok' || !answer.body.paidUntil) return;
  await caller.call('rateForget', { key, paidUntil: answer.body.paidUntil });
}
