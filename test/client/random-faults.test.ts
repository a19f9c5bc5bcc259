import fc from 'fast-check';
import { expect, it } from 'vitest';
import {
  Holdfast,
  isHoldfastError,
  type Lease,
  type OnceAnswer,
  type Transport,
  unreachable,
} from '../../clients/typescript/src/index.ts';
import { ManualClock, MemoryService } from '../../clients/typescript/src/testing.ts';
import { seededRandom, testSeed } from '../support/chance/seed.ts';
import { grantOf, ManualService, ManualSurroundings, type Sent, settled } from '../support/time/process-clock.ts';
import { expectAllHappened, goesOn, rounds } from '../support/time/rounds.ts';

const TTL_MS = 10_000;

/** What may happen to a holder. `setBack` and `suspend` each deceive one of the clocks, so a run has at most one of them. */
const step = fc.oneof(
  { weight: 6, arbitrary: fc.record({ run: fc.integer({ min: 1, max: 4000 }) }) },
  { weight: 2, arbitrary: fc.record({ block: fc.integer({ min: 1, max: 15_000 }) }) },
  { weight: 1, arbitrary: fc.record({ deceive: fc.integer({ min: 1, max: 20_000 }) }) },
  // The service takes some time until it writes, and some until its answer is there; or the answer is lost.
  {
    weight: 4,
    arbitrary: fc.record({
      toWrite: fc.integer({ min: 0, max: 3000 }),
      toAnswer: fc.integer({ min: 0, max: 3000 }),
      lost: fc.boolean(),
    }),
  },
);

it('a lease is never held past its true end, even under faults and stalls', async () => {
  const run = fc.asyncProperty(fc.array(step, { maxLength: 40 }), fc.boolean(), async (steps, sleeps) => {
    const by = new ManualSurroundings();
    const service = new ManualService();
    // True time goes on whatever the clocks say.
    let [trueMs, wall, monotonic] = [0, by.wallMs, by.monotonicMs];
    const pass = () => {
      trueMs += Math.max(by.wallMs - wall, by.monotonicMs - monotonic);
      [wall, monotonic] = [by.wallMs, by.monotonicMs];
    };
    let ends = 0;
    const grant = (payload: Record<string, unknown>) => {
      pass();
      ends = Math.max(ends, trueMs + TTL_MS);
      return grantOf(payload, ends - trueMs);
    };
    service.reply = ({ operation, payload }) => (operation === 'acquire' ? grant(payload) : undefined);
    const holdfast = new Holdfast({ transport: service.transport, holder: 'x', surroundings: by });
    const lease = await holdfast.acquire('k', { ttlSeconds: TTL_MS / 1000 });
    const { signal } = lease;
    let lost = false;
    const check = () => {
      pass();
      const claims = { held: lease.held, signalled: signal.aborted };
      expect(claims.held).toBe(!claims.signalled);
      if (claims.held) expect(trueMs).toBeLessThan(ends);
      if (lost) expect(claims.held).toBe(false);
      lost ||= !claims.held;
    };
    for (const one of steps) {
      if ('run' in one) await by.advance(one.run);
      else if ('block' in one) by.block(one.block);
      else if ('deceive' in one) {
        pass();
        if (sleeps) by.suspend(one.deceive);
        else {
          by.wallMs -= one.deceive;
          wall -= one.deceive;
        }
      } else {
        const beat = service.of('heartbeat').find(({ signal: { aborted } }) => !aborted);
        if (!beat) continue;
        by.block(one.toWrite);
        pass();
        // The service also extends an expired lease that no other caller has taken.
        const answer = grant(beat.payload);
        by.block(one.toAnswer);
        if (one.lost) beat.fail('Unreachable');
        else beat.answer(answer);
        await settled();
      }
      check();
    }
  });
  await fc.assert(run, { seed: testSeed(), numRuns: 300 });
});

/** What happens to one request: how long it is under way, whether it is lost, and how long its answer is under way. */
const fate = fc.record({
  toServiceMs: fc.integer({ min: 0, max: 3000 }),
  lost: fc.constantFrom('no', 'no', 'no', 'request', 'answer', 'cut'),
  toCallerMs: fc.integer({ min: 0, max: 3000 }),
});

interface Fate {
  toServiceMs: number;
  lost: string;
  toCallerMs: number;
}

/** A service with one lease: a repeated `requestId` finds its grant again, but not after its release. */
class OneLease {
  readonly #by: ManualSurroundings;
  /** The request that holds it. */
  holder: string | undefined = 'another';
  #last: string | undefined;
  /** The requests in line, and the requests that were withdrawn. */
  readonly #waiting = new Set<string>();
  readonly #withdrawn = new Set<string>();

  constructor(by: ManualSurroundings) {
    this.#by = by;
  }

  free(): void {
    this.#last = this.holder;
    this.holder = undefined;
  }

  acquire(
    { id, ttlMs }: { id: string; ttlMs: number },
    waitMs: number,
    answer: (result: 'grant' | 'held' | 'lost') => void,
  ): void {
    this.#waiting.delete(id);
    const ended = this.#withdrawn.has(id) || (this.holder === undefined && this.#last === id);
    if (this.holder === undefined && !ended) {
      this.holder = id;
      this.#by.after(ttlMs, () => this.holder === id && this.free());
    }
    if (ended) answer('lost');
    else if (this.holder === id) answer('grant');
    else if (waitMs <= 0) answer('held');
    else {
      this.#waiting.add(id);
      this.#by.after(Math.min(1000, waitMs), () => this.acquire({ id, ttlMs }, waitMs - 1000, answer));
    }
  }

  /** Ends the wait or the grant of a request. @returns false if the request has not arrived yet */
  withdraw(id: string): boolean {
    const known = this.#waiting.has(id) || this.holder === id;
    if (known) this.#withdrawn.add(id);
    if (this.holder === id) this.free();
    return known;
  }
}

it('an aborted wait leaves no grant behind, wherever it is aborted', async () => {
  const run = fc.asyncProperty(
    fc.array(fate, { minLength: 1, maxLength: 12 }),
    fc.integer({ min: 0, max: 40_000 }),
    fc.integer({ min: 0, max: 40_000 }),
    async (fates, abortMs, freeMs) => {
      const by = new ManualSurroundings();
      const service = new ManualService();
      const one = new OneLease(by);
      const controller = new AbortController();
      let calls = 0;
      let lossesLeft = 1;
      service.reply = (sent: Sent) => {
        const mishap: Fate = { ...(fates[calls++] ?? { toServiceMs: 10, lost: 'no', toCallerMs: 10 }) };
        // If every try were lost, the client would give up withdrawing. So only some are lost.
        if (controller.signal.aborted && mishap.lost !== 'no' && lossesLeft-- <= 0) mishap.lost = 'no';
        const answer = (act: () => void) => {
          if (mishap.lost === 'no') by.after(mishap.toCallerMs, act);
          if (mishap.lost === 'cut') by.after(mishap.toCallerMs, () => sent.fail('Unreachable'));
        };
        if (mishap.lost === 'request') return;
        by.after(mishap.toServiceMs, () => {
          const { requestId, waitSeconds = 0, leaseId, ttlSeconds } = sent.payload as Record<string, string>;
          if (sent.operation === 'release') {
            const released = one.holder === leaseId;
            if (released) one.free();
            return answer(() => sent.answer({ key: 'k', released }));
          }
          if (sent.operation === 'withdraw') {
            const cancelled = one.withdraw(String(requestId));
            return answer(() => sent.answer({ key: 'k', requestId, cancelled }));
          }
          const asked = { id: String(requestId), ttlMs: Number(ttlSeconds) * 1000 };
          one.acquire(asked, Number(waitSeconds) * 1000, (result) =>
            answer(() => {
              if (result === 'grant') sent.answer({ ...grantOf(sent.payload, 3_600_000), leaseId: requestId });
              else if (result === 'lost') sent.fail('LeaseLost', { reason: 'released' });
              else sent.fail('LeaseHeld', { key: 'k', holder: 'another', expiresAt: null });
            }),
          );
        });
      };
      const holdfast = new Holdfast({ transport: service.transport, holder: 'x', surroundings: by });
      let lease: Lease | undefined;
      let settledAs = '';
      holdfast
        .acquire('k', { waitMs: 60_000, ttlSeconds: 3600, releaseTimeoutMs: 20_000, signal: controller.signal })
        .then(
          (granted) => {
            lease = granted;
          },
          (reason) => {
            settledAs = String(reason);
          },
        );
      by.after(freeMs, () => one.holder === 'another' && one.free());
      await by.advance(abortMs);
      controller.abort('enough');
      await settled();
      if (!lease) expect(settledAs).toBe('enough');
      lease?.release();
      await by.advance(150_000);
      expect(one.holder === undefined || one.holder === 'another').toBe(true);
    },
  );
  await fc.assert(run, { seed: testSeed(), numRuns: Number(process.env.RUNS ?? 60) });
});

/** Loads the module that the client imports at its first slot: a manual clock does not wait for an import. */
await import('../../clients/typescript/src/once.ts');

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
          // Reading `held` counts as watching the run, so only a run that watches is counted.
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
        // Without a crash, finished work is lost only if another caller has the slot, or if the work may have stopped half way.
        if (finished && !watches && isHoldfastError(error, 'LeaseLost'))
          expect(['taken', 'unknown'], `finished work, seed ${seed}`).toContain(error.reason);
      }
    }
  };
  let ended = false;
  const all = Promise.all(['a', 'b', 'c'].map(worker)).then(() => {
    ended = true;
  });
  for (let turns = 0; !ended && turns < 1000; turns++) {
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

it('under faults each slot has one result, and its runs never overlap', async () => {
  const seed = testSeed();
  const happened = { ran: 0, done: 0, superseded: 0, LeaseHeld: 0, LeaseLost: 0, failed: 0, Unreachable: 0 };
  const asked = rounds(300, 30);
  for (let round = 0; goesOn(round, asked, happened); round++) await play(seed + round, happened);
  expectAllHappened(happened);
});
