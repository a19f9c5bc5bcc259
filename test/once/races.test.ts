import { expect, it } from 'vitest';
import { HoldfastError } from '../../shared/errors.ts';
import { beginOnce } from '../../shared/once/begin.ts';
import { completeOnce } from '../../shared/once/complete.ts';
import { forgetOnce } from '../../shared/once/forget.ts';
import { beginInput } from '../../shared/once/inputs.ts';
import { seededIds, seededRandom, testSeed } from '../support/chance/seed.ts';
import { call, testClient } from '../support/emulators/aws.ts';
import { Interleaver } from '../support/faults/interleave.ts';
import { expectAllHappened, goesOn, rounds } from '../support/time/rounds.ts';
import { onceWorld } from '../support/worlds/once.ts';

const ROUNDS = rounds(500, 10);
const { clock, dependencies: ofWorld, rawRow } = await onceWorld();
const dynamodb = testClient();
let interleaver: Interleaver;
// All rounds share one client, whose gate asks the interleaver of the present round.
new Interleaver(Math.random).gate.call({ turn: () => interleaver.turn() } as Interleaver, dynamodb);

/** The calls of one round, whose requests an interleaver orders. */
function callsOf(key: string, random: () => number) {
  const dependencies = { ...ofWorld, dynamodb, ids: seededIds(Math.floor(random() * 2 ** 31)) };
  const begin = (holder: string, more: object = {}) =>
    beginOnce(dependencies)(beginInput().parse({ key, holder, slot: '1', ttlSeconds: 2, ...more }), call());
  const complete = (leaseId: string, result: string) => completeOnce(dependencies)({ key, leaseId, result }, call());
  const forget = (fence: number) => forgetOnce(dependencies)({ key, fence }, call());
  return { begin, complete, forget };
}

/** The failure, if it has one of the codes. */
const refused =
  (...codes: string[]) =>
  (error: unknown) => {
    if (error instanceof HoldfastError && codes.includes(error.code)) return error.code;
    throw error;
  };

/** Plays rounds of actors from fresh keys. @param play one round, which says what has happened */
async function playRounds(
  name: string,
  happened: Record<string, number>,
  play: (key: string, random: () => number) => Promise<string>,
) {
  const base = testSeed();
  for (let round = 0; goesOn(round, ROUNDS, happened); round++) {
    const seed = base + round;
    const random = seededRandom(seed);
    interleaver = new Interleaver(random);
    const what = await play(`${name}-${seed}`, random);
    expect(Object.keys(happened), `seed ${seed}`).toContain(what);
    happened[what] = (happened[what] ?? 0) + 1;
  }
  expectAllHappened(happened, 1);
}

/** Begins a run before the round. */
async function begun(begin: (holder: string) => ReturnType<ReturnType<typeof beginOnce>>) {
  let run: Awaited<ReturnType<typeof begin>> | undefined;
  await interleaver.run([
    async () => {
      run = await begin('first');
    },
  ]);
  if (run?.outcome !== 'run') throw new Error('the free slot did not begin');
  return run;
}

it("races of complete and a take-over store the standing worker's result", async () => {
  const happened = { storedBefore: 0, takenOver: 0 };
  await playRounds('take-over', happened, async (key, random) => {
    const { begin, complete } = callsOf(key, random);
    const first = await begun(begin);
    clock.advance(2000 + ofWorld.clockSkewMs + 1);
    let stored: Awaited<ReturnType<typeof complete>> | undefined;
    let second: Awaited<ReturnType<typeof begin>> | undefined;
    await interleaver.run([
      async () => {
        stored = await complete(first.leaseId, 'first');
      },
      async () => {
        second = await begin('second');
      },
    ]);
    if (stored?.completed) {
      expect(second).toMatchObject({ outcome: 'done', result: 'first' });
      return 'storedBefore';
    }
    expect(second).toMatchObject({ outcome: 'run' });
    expect(stored).toMatchObject({ reason: 'taken' });
    return 'takenOver';
  });
});

it('races of begin and complete give callers the result or LeaseHeld', async () => {
  const happened = { done: 0, held: 0 };
  await playRounds('complete', happened, async (key, random) => {
    const { begin, complete } = callsOf(key, random);
    const first = await begun(begin);
    const answers: unknown[] = [];
    const ask = async (holder: string) => void answers.push(await begin(holder).catch(refused('LeaseHeld')));
    await interleaver.run([
      async () => void (await complete(first.leaseId, 'first')),
      () => ask('second'),
      () => ask('third'),
    ]);
    for (const answer of answers)
      if (answer !== 'LeaseHeld') expect(answer).toMatchObject({ outcome: 'done', result: 'first' });
    return answers.includes('LeaseHeld') ? 'held' : 'done';
  });
});

it('races of begins let one caller work, and none for an earlier slot', async () => {
  const happened = { one: 0, other: 0 };
  await playRounds('begins', happened, async (key, random) => {
    const { begin, complete } = callsOf(key, random);
    const runs: string[] = [];
    const ask = (slot: string) => async () => {
      const answer = await begin(slot, { slot }).catch(refused('LeaseHeld'));
      if (typeof answer === 'string' || answer.outcome !== 'run') return;
      runs.push(slot);
      await complete(answer.leaseId, slot);
    };
    await interleaver.run([ask('1'), ask('2'), ask('2'), ask('1')]);
    expect(runs.toSorted()).toEqual(runs);
    expect(new Set(runs).size).toBe(runs.length);
    expect((await rawRow(key))?.done_slot?.S).toBe(runs.at(-1));
    return runs[0] === '1' ? 'one' : 'other';
  });
});

it('races of forget and begin spare the slot of a run that has begun', async () => {
  const happened = { forgotten: 0, tooLate: 0 };
  await playRounds('forget', happened, async (key, random) => {
    const { begin, complete, forget } = callsOf(key, random);
    const first = await begun(begin);
    await interleaver.run([async () => void (await complete(first.leaseId, 'first'))]);
    let forgotten: unknown;
    await interleaver.run([
      async () => {
        forgotten = await forget(first.fence).catch(refused('Conflict'));
      },
      async () => {
        const second = await begin('second', { slot: '2' });
        if (second.outcome === 'run') await complete(second.leaseId, 'second');
      },
    ]);
    expect((await rawRow(key))?.done_slot).toEqual({ S: '2' });
    return forgotten === 'Conflict' ? 'tooLate' : 'forgotten';
  });
});
