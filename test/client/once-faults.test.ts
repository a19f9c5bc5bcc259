import { expect, it } from 'vitest';
import { Holdfast, isHoldfastError, type OnceAnswer, type Transport, unreachable } from '../../client/src/index.ts';
import { ManualClock, MemoryService } from '../../client/src/testing.ts';
import { seededRandom, testSeed } from '../support/chance/seed.ts';
import { expectAllHappened, goesOn, rounds } from '../support/time/rounds.ts';

/** The client loads it at the first slot, and the clock of a test does not wait for that. */
await import('../../client/src/once.ts');

const SLOTS = ['1', '2', '3'];

/**
 * Three workers that ask for three slots in turn, over a network that loses requests and answers and delays them, with work that is slow, fails, or is
 * paused beyond its time.
 */
async function play(seed: number, happened: Record<string, number>): Promise<void> {
  const random = seededRandom(seed);
  const clock = new ManualClock();
  clock.chance = random;
  const service = new MemoryService({ surroundings: clock });
  const sleep = (ms: number) => new Promise<void>((resolve) => void clock.after(ms, resolve));
  const transport: Transport = async (operation, payload, ...rest) => {
    const fault = random();
    if (fault < 0.1) throw unreachable('refused');
    if (fault < 0.3) await sleep(random() * 6000);
    const answer = await service.transport(operation, payload, ...rest);
    if (fault > 0.9) throw unreachable('lost');
    return answer;
  };
  const answers: OnceAnswer<string>[] = [];
  const atWork = new Set<{ held: boolean }>();
  let most = 0;
  let works = 0;
  const worker = async (name: string) => {
    const holdfast = new Holdfast({ transport, surroundings: clock, holder: name });
    for (const slot of SLOTS) {
      await sleep(random() * 10_000);
      const watches = random() < 0.5;
      let finished = false;
      const options = { slot, ttlSeconds: 5, waitMs: random() * 20_000, timeoutMs: 5000 };
      try {
        const answer = await holdfast.once('k', options, async (run) => {
          works += 1;
          const own = run;
          // To ask whether the run is held is to watch it.
          if (watches) atWork.add(own);
          most = Math.max(most, [...atWork].filter(({ held }) => held).length);
          try {
            await sleep(random() * 8000);
            if (random() < 0.2) throw new Error('failed');
            finished = true;
            return `${slot} by ${name}, work ${works}`;
          } finally {
            atWork.delete(own);
          }
        });
        answers.push(answer as OnceAnswer<string>);
        happened[answer.outcome] = (happened[answer.outcome] ?? 0) + 1;
      } catch (error) {
        const code = isHoldfastError(error) ? error.code : (error as Error).message;
        happened[code] = (happened[code] ?? 0) + 1;
        // Without a crash, finished work is thrown away only if another caller has taken the slot, or the work may have stopped half way.
        if (finished && !watches && isHoldfastError(error, 'LeaseLost'))
          expect(['taken', 'unknown'], `finished work, seed ${seed}`).toContain(error.reason);
      }
    }
  };
  let ended = false;
  const all = Promise.all(['a', 'b', 'c'].map(worker)).then(() => {
    ended = true;
  });
  for (let looks = 0; !ended && looks < 1000; looks++) {
    // Now and then the process is paused.
    if (random() < 0.02) clock.block(random() * 7000);
    await clock.advance(250);
  }
  await all;
  expect(most, `workers that were certain of their run at once, seed ${seed}`).toBeLessThanOrEqual(1);
  for (const slot of SLOTS) {
    const own = answers.filter((answer) => answer.slot === slot && answer.outcome !== 'superseded');
    expect(new Set(own.map(({ result }) => result)).size, `results of slot ${slot}, seed ${seed}`).toBeLessThanOrEqual(
      1,
    );
    expect(
      own.filter(({ outcome }) => outcome === 'ran').length,
      `runs of slot ${slot}, seed ${seed}`,
    ).toBeLessThanOrEqual(1);
  }
}

it('Under lost and late answers, pauses and failures each slot has one result, every caller gets that result, and no two runs overlap', async () => {
  const seed = testSeed();
  const happened = { ran: 0, done: 0, superseded: 0, LeaseHeld: 0, LeaseLost: 0, failed: 0, Unreachable: 0 };
  const asked = rounds(300, 30);
  for (let round = 0; goesOn(round, asked, happened); round++) await play(seed + round, happened);
  expectAllHappened(happened);
});
