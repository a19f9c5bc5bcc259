import fc from 'fast-check';
import { expect, it } from 'vitest';
import { Holdfast } from '../../client/src/index.ts';
import { testSeed } from '../support/chance/seed.ts';
import { grantOf, ManualService, ManualSurroundings, settled } from '../support/time/process-clock.ts';

const TTL_MS = 10_000;

/** What may happen to a holder. `setBack` and `suspend` each deceive one of the clocks, and no run has both. */
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

it('no lease is held past its true end, whatever happens to clocks, answers and the event loop', async () => {
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
    const look = () => {
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
        // The service extends an expired lease too, as long as nobody took it.
        const answer = grant(beat.payload);
        by.block(one.toAnswer);
        if (one.lost) beat.fail('Unreachable');
        else beat.answer(answer);
        await settled();
      }
      look();
    }
  });
  await fc.assert(run, { seed: testSeed(), numRuns: 300 });
});
