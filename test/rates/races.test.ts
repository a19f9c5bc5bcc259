import { describe, expect, it } from 'vitest';
import { HoldfastError } from '../../shared/errors.ts';
import { forgetRate } from '../../shared/rates/forget-rate.ts';
import { reserveInput } from '../../shared/rates/inputs.ts';
import { type CapCommand, writeRateCap } from '../../shared/rates/rate-cap.ts';
import { readRates } from '../../shared/rates/read.ts';
import { reserveRate } from '../../shared/rates/reserve.ts';
import { settleRate } from '../../shared/rates/settle.ts';
import { systemClock } from '../../shared/surroundings/clock.ts';
import { seededIds, seededRandom, testSeed } from '../support/chance/seed.ts';
import { call, testClient } from '../support/emulators/aws.ts';
import { Interleaver } from '../support/faults/interleave.ts';
import { expectAllHappened, goesOn, rounds } from '../support/time/rounds.ts';
import { rateWorld } from '../support/worlds/rates.ts';

const ROUNDS = rounds(500, 5);
const { clock, dependencies: ofWorld, rawRate } = await rateWorld();
const dynamodb = testClient();
let interleaver: Interleaver;
// All rounds share one client, whose gate asks the interleaver of the present round.
new Interleaver(Math.random).gate.call({ turn: () => interleaver.turn() } as Interleaver, dynamodb);

const SECOND = 1_000_000;

/** The calls of one round, whose requests an interleaver orders. The clock stands still. */
function callsOf(key: string, random: () => number) {
  const dependencies = { ...ofWorld, dynamodb, ids: seededIds(Math.floor(random() * 2 ** 31)) };
  const reserve = (more: object = {}) =>
    reserveRate(dependencies)(
      reserveInput().parse({ key, holder: 'h', rates: [{ limit: 60, per: '1m' }], waitSeconds: 60, ...more }),
      call(),
    );
  const settle = (reservation: string, how: { units: Record<string, number> } | { cancel: true }) =>
    settleRate(dependencies)({ key, reservation, ...how }, call());
  const forget = (paidUntil: string) => forgetRate(dependencies)({ key, paidUntil }, call());
  const cap = (change: CapCommand['change']) =>
    writeRateCap(dependencies, { key, change, reason: 'quota', now: clock.now() }, call());
  const read = () => readRates({ ...dependencies, dynamodb: ofWorld.dynamodb })({ key }, call());
  /** For how many seconds from now the key is paid. */
  const paid = async () => (Number((await rawRate(key))?.paid_until?.N) - clock.now() * 1000) / SECOND;
  return { reserve, settle, forget, cap, read, paid };
}

/** Plays rounds of actors from fresh keys. @param play one round, which says what has happened */
async function playRounds(
  name: string,
  happened: Record<string, number>,
  play: (calls: ReturnType<typeof callsOf>) => Promise<string>,
) {
  const base = testSeed();
  for (let round = 0; goesOn(round, ROUNDS, happened); round++) {
    const random = seededRandom(base + round);
    interleaver = new Interleaver(random);
    const what = await play(callsOf(`${name}-${base + round}`, random));
    expect(Object.keys(happened), `seed ${base + round}`).toContain(what);
    happened[what] = (happened[what] ?? 0) + 1;
  }
  expectAllHappened(happened);
}

/** Plays the actors in one round. @returns the answer of each */
async function together<Answers extends unknown[]>(...actors: { [At in keyof Answers]: () => Promise<Answers[At]> }) {
  const answers: unknown[] = [];
  const noted = actors.map((actor, at) => async () => {
    answers[at] = await actor();
  });
  await interleaver.run(noted);
  return answers as Answers;
}

const alone = async <Answer>(actor: () => Promise<Answer>): Promise<Answer> => (await together<[Answer]>(actor))[0];

describe('callers', () => {
  it('races of callers at an idle key give each a start of its own', async () => {
    const happened = { inOrder: 0, otherOrder: 0 };
    await playRounds('idle', happened, async ({ reserve, paid }) => {
      const answers = await together(reserve, reserve, reserve, reserve);
      const waits = answers.map(({ waitMs }) => waitMs);
      expect(waits.toSorted()).toEqual([0, 1000, 2000, 3000]);
      expect(await paid()).toBe(4);
      return waits.join() === '0,1000,2000,3000' ? 'inOrder' : 'otherOrder';
    });
  });

  it('races of a repeated request with other requests lose at most a start', async () => {
    const happened = { once: 0, twice: 0 };
    await playRounds('twice', happened, async ({ reserve, paid }) => {
      const same = () => reserve({ requestId: 'r' });
      const [one, other, third] = await together(same, same, reserve);
      const total = await paid();
      expect(third.waitMs).not.toBe(one.waitMs);
      expect(third.waitMs).not.toBe(other.waitMs);
      expect(total).toBe(one.waitMs === other.waitMs ? 2 : 3);
      return total === 2 ? 'once' : 'twice';
    });
  });

  it('races of settlements and reservations count each exactly once', async () => {
    const happened = { first: 0, second: 0 };
    await playRounds('settle', happened, async ({ reserve, settle, paid }) => {
      const { reservation } = await alone(() => reserve({ settle: true }));
      const report = (requests: number) => () => settle(reservation, { units: { requests } });
      const [one, other] = await together(report(5), report(3), () => reserve({ settle: true }), reserve);
      const settled = [one, other].map((answer) => 'settled' in answer && answer.settled);
      expect(settled.toSorted()).toEqual([false, true]);
      expect(await paid()).toBe(2 + (settled[0] ? 5 : 3));
      return settled[0] ? 'first' : 'second';
    });
  });

  it.each([true, false])('races of cancellations and reservations cancel each once: settle %s', async (settle) => {
    const happened = settle ? { back: 0 } : { back: 0, kept: 0 };
    await playRounds(`cancel-${settle}`, happened, async (calls) => {
      await alone(calls.reserve);
      const { reservation } = await alone(() => calls.reserve({ settle }));
      const cancel = () => calls.settle(reservation, { cancel: true });
      const [one, other, next] = await together(cancel, cancel, calls.reserve);
      const back = [one, other].filter((answer) => 'cancelled' in answer && answer.cancelled).length;
      expect(await calls.paid()).toBe(3 - back);
      if (!settle) expect(next.waitMs).toBe(back ? 1000 : 2000);
      return ['kept', 'back'][back] ?? 'backTwice';
    });
  });

  it('races of forget and a reservation never forget what the operator has not seen', async () => {
    const happened = { forgotten: 0, tooLate: 0 };
    await playRounds('forget', happened, async ({ reserve, forget, read, paid }) => {
      await alone(() => reserve({ rates: [{ limit: 1, per: '1m' }] }));
      const { paidUntil } = (await read()) as { paidUntil: string };
      const [forgotten, { waitMs }] = await together(
        () => forget(paidUntil).catch((error: HoldfastError) => error),
        () => reserve({ waitSeconds: 3600 }),
      );
      const isLate = forgotten instanceof HoldfastError;
      if (isLate) expect(forgotten.code).toBe('Conflict');
      expect([waitMs, await paid()]).toEqual(isLate ? [60_000, 61] : [0, 1]);
      return isLate ? 'tooLate' : 'forgotten';
    });
  });
});

const SLOW = [{ name: 'requests', limit: 20, per: '1m' }];
type Answer = { waitMs: number } | HoldfastError;
const orRefusal = (reserve: () => Promise<{ waitMs: number }>) => (): Promise<Answer> =>
  reserve().catch((error: HoldfastError) => error);
const isGranted = (answer: Answer) => !(answer instanceof HoldfastError);

describe('operators', () => {
  it('races of a pause and reservations do not let callers in after its answer', async () => {
    const happened = { none: 0, one: 0, both: 0 };
    await playRounds('pause', happened, async ({ reserve, cap, paid }) => {
      const [, ...answers] = await together(() => cap({ paused: true }), orRefusal(reserve), orRefusal(reserve));
      const granted = answers.filter(isGranted).length;
      for (const answer of answers) if (!isGranted(answer)) expect(answer).toMatchObject({ code: 'RateExceeded' });
      expect(isGranted(await alone(orRefusal(reserve)))).toBe(false);
      expect((await paid()) || 0).toBe(granted);
      return ['none', 'one', 'both'][granted] ?? 'more';
    });
  });

  it('races of capped rates and reservations let each pay what counted at its write', async () => {
    const happened = { before: 0, between: 0, after: 0 };
    await playRounds('capped', happened, async ({ reserve, cap, paid }) => {
      const [, one, other] = await together(() => cap({ rates: SLOW }), reserve, reserve);
      const total = await paid();
      const second = Math.max(one.waitMs, other.waitMs) / 1000;
      expect([
        [2, 1],
        [4, 1],
        [6, 3],
      ]).toContainEqual([total, second]);
      expect(await alone(reserve)).toMatchObject({ waitMs: total * 1000 });
      expect(await paid()).toBe(total + 3);
      return { 2: 'before', 4: 'between', 6: 'after' }[total] ?? 'other';
    });
  });

  it('races of a lift and reservations never give a start twice', async () => {
    const happened = { before: 0, between: 0, after: 0 };
    await playRounds('lift', happened, async ({ reserve, cap, paid }) => {
      await alone(() => cap({ rates: SLOW }));
      const [, one, other] = await together(() => cap({ rates: null }), reserve, reserve);
      const total = await paid();
      expect([2, 4, 6]).toContain(total);
      expect(one.waitMs).not.toBe(other.waitMs);
      return { 6: 'before', 4: 'between', 2: 'after' }[total] ?? 'other';
    });
  });

  it('races of two commands lose neither part of the cap', async () => {
    const happened = { pauseFirst: 0, ratesFirst: 0 };
    await playRounds('commands', happened, async ({ cap, read }) => {
      const [pause, rates] = await together(
        () => cap({ paused: true }),
        () => cap({ rates: SLOW }),
      );
      expect(await read()).toMatchObject({ cap: { limit: 0, rates: SLOW } });
      const [first, last] = pause.before ? [rates, pause] : [pause, rates];
      expect([first.before, last.before]).toEqual([undefined, first.cap]);
      return pause.before ? 'ratesFirst' : 'pauseFirst';
    });
  });

  it('races of a pause and its lift end as the later of both', async () => {
    const happened = { paused: 0, lifted: 0 };
    await playRounds('pause-lift', happened, async ({ cap, read }) => {
      const [pause, lift] = await together(
        () => cap({ paused: true }),
        () => cap({ paused: false }),
      );
      const view = await read();
      expect(lift.before).toEqual('cap' in view ? undefined : pause.cap);
      return 'cap' in view ? 'paused' : 'lifted';
    });
  });

  it('races of forget and a pause keep the pause', async () => {
    const happened = { forgotten: 0, settled: 0 };
    await playRounds('forget-pause', happened, async ({ reserve, settle, forget, cap, read }) => {
      const { reservation } = await alone(() => reserve({ settle: true }));
      const { paidUntil } = (await read()) as { paidUntil: string };
      const [, , report] = await together(
        () => cap({ paused: true }),
        () => forget(paidUntil),
        () => settle(reservation, { units: { requests: 1 } }),
      );
      expect(await read()).toMatchObject({ paidUntil: null, open: 0, cap: { limit: 0 } });
      return 'settled' in report && report.settled ? 'settled' : 'forgotten';
    });
  });
});

it.each([1, 20])('a crowd at a fast rate is granted despite idle moments: burst %s', async (burst) => {
  const crowd = await rateWorld({ clock: systemClock });
  const rates = [{ limit: 10_000, per: '1m', burst }];
  const asked = { key: `crowd ${burst}`, rates, waitSeconds: 60 };
  const from = Date.now();
  const starts = await Promise.all(Array.from({ length: 60 }, () => crowd.reserve(asked)));
  const lastedMs = Date.now() - from;
  const inOrder = starts.map(({ startAt }) => Date.parse(startAt)).toSorted((one, other) => one - other);
  const tookMs = Number(inOrder.at(-1)) - Number(inOrder[0]);
  // A unit takes 6 ms. A call adds to what was paid when it came, so up to the duration of the calls may be missing.
  expect(tookMs).toBeGreaterThanOrEqual((60 - burst) * 6 - lastedMs - 1);
});
