import { describe, expect, it } from 'vitest';
import { before as beforeStep, stepped } from '../support/faults/steps.ts';
import type { LineWorld } from './world.ts';

/** More than any of these calls sends. */
const MAX_STEPS = 40;

const SURE_MS = 61_000;
const SECOND_PASS_MS = 90_000;

/** The end of a bound holder's execution, and a redrive that asks again between each pair of steps of what frees the grant. */
export async function racesOfBoundHolders(lineWorld: LineWorld) {
  const world = await lineWorld();
  const { acquire, park, heartbeat, release, executionEnded, see, repair, rows, grantOf } = world;
  const { steps, newKey, timeline, dependencies } = world;
  stepped(dependencies.dynamodb);
  stepped(await dependencies.stepFunctions());

  /** A bound holder whose execution has just failed, and perhaps a task in line. */
  async function parties({ isAlone = false, ...more }: { isAlone?: boolean; graceSeconds?: number }) {
    const key = newKey();
    const execution = steps.newExecution('RUNNING');
    const request = { key, holder: 'wf', requestId: 'r', execution, bound: true, ...more };
    const grant = await acquire(request);
    timeline.advance(1000);
    const task = isAlone ? undefined : (await park({ key, holder: 'next', ttlSeconds: 600 })).task;
    timeline.advance(1000);
    const event = end(execution);
    return { key, execution, request, grant, task, event };
  }
  /** `other`: the grant of the caller whose look has freed the lock. */
  type Parties = Awaited<ReturnType<typeof parties>> & { other?: Awaited<ReturnType<typeof acquire>> | undefined };
  const end = (execution: string) => {
    const stopDate = timeline.now();
    steps.executions.set(execution, 'FAILED');
    steps.stopped.set(execution, stopDate);
    return { status: 'FAILED' as const, stopDate };
  };
  const redrive = (execution: string) => {
    steps.redriven.add(execution);
    steps.executions.set(execution, 'RUNNING');
    steps.stopped.delete(execution);
  };

  /** What may free the grant. */
  const FREES: Record<string, (race: Parties) => Promise<unknown>> = {
    'the first pass': ({ execution, event }) => executionEnded(execution, false, event),
    'the second pass': ({ execution, event }) => executionEnded(execution, true, event),
    'the schedule': ({ key }) => repair(key),
    'a caller that looks': async (race) => {
      race.other = await acquire({ key: race.key, holder: 'other' }).catch(() => undefined);
    },
  };
  /** How the redriven execution asks again. @returns whether it has the grant */
  const ASKS: Record<string, (race: Parties) => Promise<boolean>> = {
    'a call': async ({ request, grant }) => {
      const answer = await acquire(request).catch(() => undefined);
      return answer?.leaseId === grant.leaseId;
    },
    'a task': async ({ request, grant, key }) => {
      const parked = await park(request).catch(() => undefined);
      await repair(key);
      return parked?.task.output !== undefined && grantOf(parked.task).leaseId === grant.leaseId;
    },
  };
  const CASES = Object.keys(FREES).flatMap((frees) => Object.keys(ASKS).map((asks) => [frees, asks] as const));
  /** The schedule does not look at a key without a line. */
  const ALONE = Object.keys(FREES).filter((frees) => frees !== 'the schedule');
  /** Each of what may free the grant once, and each way to ask twice. */
  const SOME_CASES = CASES.filter((_, nth) => nth % 4 === 0 || nth % 4 === 3);

  /** The redriven execution has the grant, or the lock passes to the next task in line or is free, and never both. */
  async function onlyOneHolds(race: Parties, hasGrant: boolean, context: string) {
    const { key, execution, grant, task, other } = race;
    timeline.advance(11_000); // the schedule now notifies those whom the calls have left out
    await repair(key);
    if (hasGrant) {
      expect([(await see(key)).holder, task?.output, other], context).toEqual(['wf', undefined, undefined]);
      expect(await heartbeat(grant), context).toMatchObject({ holder: 'wf' });
      timeline.advance(SURE_MS);
      await executionEnded(execution, false, end(execution));
      timeline.advance(SURE_MS + 1000); // with a grace, this is over as well
      await repair(key);
    }
    const next = task ? grantOf(task) : (other ?? (await acquire({ key, holder: 'next' })));
    expect(next.fence, context).toBeGreaterThan(grant.fence);
    expect((await see(key)).holder, context).toBe(other ? 'other' : 'next');
    await release(next);
  }

  describe('a redrive at the end of the execution of a bound grant', () => {
    /** @param more whether a task is in line */
    async function redriveBeforeEachStep(frees: string, asks: string, more: { isAlone?: boolean } = {}) {
      let at = 0;
      const seen = new Set<boolean>();
      for (let goesOn = true; goesOn && at < MAX_STEPS; at++) {
        const race: Parties = await parties(more);
        if (frees !== 'the first pass') timeline.advance(SECOND_PASS_MS);
        let hasGrant = false;
        const redriven = async () => {
          redrive(race.execution);
          timeline.advance(1);
          hasGrant = (await ASKS[asks]?.(race)) ?? false;
        };
        goesOn = await beforeStep(at, redriven, async () => FREES[frees]?.(race));
        seen.add(hasGrant);
        await onlyOneHolds(race, hasGrant, `step ${at}`);
        expect(await rows(race.key)).toEqual([]);
      }
      expect(at).toBeGreaterThan(2);
      expect(seen).toEqual(new Set([true, false]));
    }

    it.each(CASES)('a redrive before each step of %s, with a repeat by %s, leaves one holder', (frees, asks) =>
      redriveBeforeEachStep(frees, asks),
    );

    it.each(ALONE)(
      'a redrive before each step of %s, with a repeat by a call and nothing in line, leaves one holder',
      (frees) => redriveBeforeEachStep(frees, 'a call', { isAlone: true }),
    );

    it.each(SOME_CASES)(
      '%s before each step of the repeat by %s of a redriven execution leaves one holder',
      async (frees, asks) => {
        let at = 0;
        for (let goesOn = true; goesOn && at < MAX_STEPS; at++) {
          const race = await parties({});
          redrive(race.execution);
          timeline.advance(SECOND_PASS_MS);
          let hasGrant = false;
          goesOn = await beforeStep(
            at,
            async () => FREES[frees]?.(race),
            async () => {
              hasGrant = (await ASKS[asks]?.(race)) ?? false;
            },
          );
          await onlyOneHolds(race, hasGrant, `step ${at}`);
        }
        expect(at).toBeGreaterThan(1);
      },
    );

    it.each(SOME_CASES)(
      'a redrive before each step of %s, with a repeat by %s in the grace, keeps the grant',
      async (frees, asks) => {
        let at = 0;
        for (let goesOn = true; goesOn && at < MAX_STEPS; at++) {
          const race = await parties({ graceSeconds: 60 });
          if (frees !== 'the first pass') timeline.advance(SECOND_PASS_MS);
          let hasGrant = true;
          goesOn = await beforeStep(
            at,
            async () => {
              redrive(race.execution);
              timeline.advance(1);
              hasGrant = (await ASKS[asks]?.(race)) ?? false;
            },
            async () => FREES[frees]?.(race),
          );
          expect(hasGrant, `step ${at}`).toBe(true);
          if (goesOn) await onlyOneHolds(race, true, `step ${at}`);
        }
        expect(at).toBeGreaterThan(2);
      },
    );
  });
}
