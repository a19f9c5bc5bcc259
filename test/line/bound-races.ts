import { expect, it } from 'vitest';
import { before as beforeStep, stepped } from '../support/faults/mortal.ts';
import { aFew } from '../support/time/rounds.ts';
import type { Grant, LineWorld } from './world.ts';

/** More requests than any of these calls sends, so that the race before each of them is played. */
const MAX_STEPS = 40;

const SURE_MS = 61_000;
const SECOND_PASS_MS = 90_000;

type Race = [title: string, play: () => Promise<void>];

/** Races at the end of a holder's execution: before each step of what frees the grant, the execution is redriven and asks again. */
export async function racesOfRedrives(lineWorld: LineWorld) {
  const world = await lineWorld();
  const { acquire, park, heartbeat, release, executionEnded, see, repair, rows, grantOf } = world;
  const { steps, newKey, timeline, dependencies } = world;
  stepped(dependencies.dynamodb);
  stepped(await dependencies.stepFunctions());

  /** A holder whose execution has just failed, and perhaps a task in line. If a task holds the grant, it is bound. If a call does, it has a ttl. */
  async function parties(asks: string, { isAlone = false, ...more }: { isAlone?: boolean; graceSeconds?: number }) {
    const key = newKey();
    const execution = steps.newExecution('RUNNING');
    const terms = asks === 'a task' ? { bound: true } : { ttlSeconds: 3600 };
    const request = { key, holder: 'wf', requestId: 'r', execution, ...terms, ...more };
    const grant = asks === 'a task' ? grantOf((await park(request)).task) : await acquire(request);
    timeline.advance(1000);
    const task = isAlone ? undefined : (await park({ key, holder: 'next', ttlSeconds: 600 })).task;
    timeline.advance(1000);
    const event = end(execution);
    return { key, execution, request, grant, task, event };
  }
  /** `other`: the grant of the caller that looked at the execution, and so freed the lock. */
  type Parties = Awaited<ReturnType<typeof parties>> & { other?: Grant | undefined };
  const end = (execution: string) => steps.end(execution);
  const redrive = (execution: string) => steps.redrive(execution);

  /** What may free the grant. */
  const FREES: Record<string, (race: Parties) => Promise<unknown>> = {
    'the first pass': ({ execution, event }) => executionEnded(execution, false, event),
    'the second pass': ({ execution, event }) => executionEnded(execution, true, event),
    'the schedule': ({ key }) => repair(key),
    'a caller that looks': async (race) => {
      race.other = await acquire({ key: race.key, holder: 'other' }).catch(() => undefined);
    },
  };
  /** How the redriven execution asks again. @returns its grant: the same one, or a new one if the old one has ended */
  const ASKS: Record<string, (race: Parties) => Promise<Grant | undefined>> = {
    'a call': ({ request }) => acquire(request).catch(() => undefined),
    'a task': async ({ request, key }) => {
      const { task } = await park(request);
      await repair(key);
      return task.output && grantOf(task);
    },
  };
  const PASSES = ['the first pass', 'the second pass'];
  /** Only a pass frees a grant with a ttl a moment after the grant. */
  const CASES = [
    ...PASSES.map((frees) => [frees, 'a call'] as const),
    ...Object.keys(FREES).map((frees) => [frees, 'a task'] as const),
  ];
  /** The schedule does not check a key without a line. */
  const ALONE = CASES.filter(([frees]) => frees !== 'the schedule');

  /** The redriven execution has the grant, or the lock passes to the next task in line or is free, and never both. */
  async function onlyOneHolds(race: Parties, again: Grant | undefined, context: string) {
    const { key, execution, task, other } = race;
    const grant = again ?? race.grant;
    timeline.advance(11_000); // the schedule now notifies those whom the calls have left out
    await repair(key);
    if (again) {
      expect([(await see(key)).holder, task?.output, other], context).toEqual(['wf', undefined, undefined]);
      expect(await heartbeat(grant), context).toMatchObject({ holder: 'wf' });
      timeline.advance(SURE_MS);
      await executionEnded(execution, false, end(execution));
      timeline.advance(SURE_MS + 1000); // past the end of a grace as well
      await repair(key);
    }
    const next = task ? grantOf(task) : (other ?? (await acquire({ key, holder: 'next' })));
    expect(next.fence, context).toBeGreaterThan(grant.fence);
    expect((await see(key)).holder, context).toBe(other ? 'other' : 'next');
    await release(next);
  }

  /** Plays a race for each step of a call, until the call has no more steps. */
  async function eachStep(play: (at: number) => Promise<boolean>) {
    let at = 0;
    while (at < MAX_STEPS && (await play(at))) at++;
    expect(at).toBeGreaterThan(0);
  }

  /** @param more whether a task is in line, and whether a repeat comes in the grace, which leaves the grant as it is */
  async function redriveBeforeEachStep(frees: string, asks: string, more: Parameters<typeof parties>[1] = {}) {
    const kept = new Set<boolean>();
    await eachStep(async (at) => {
      const race: Parties = await parties(asks, more);
      if (frees !== 'the first pass') timeline.advance(SECOND_PASS_MS);
      let again: Grant | undefined = more.graceSeconds ? race.grant : undefined;
      const redriven = async () => {
        redrive(race.execution);
        timeline.advance(1);
        again = await ASKS[asks]?.(race);
      };
      const met = await beforeStep(at, redriven, async () => FREES[frees]?.(race));
      kept.add(again?.leaseId === race.grant.leaseId);
      if (more.graceSeconds && !met) return met;
      await onlyOneHolds(race, again, `step ${at}`);
      expect(await rows(race.key)).toEqual([]);
      return met;
    });
    expect(kept).toEqual(new Set(more.graceSeconds ? [true] : [true, false]));
  }

  const freedBeforeEachStep = (frees: string, asks: string) =>
    eachStep(async (at) => {
      const race = await parties(asks, {});
      redrive(race.execution);
      timeline.advance(SECOND_PASS_MS);
      let again: Grant | undefined;
      const repeats = async () => {
        again = await ASKS[asks]?.(race);
      };
      const met = await beforeStep(at, async () => FREES[frees]?.(race), repeats);
      await onlyOneHolds(race, again, `step ${at}`);
      return met;
    });

  const RACES = [
    ...CASES.map(([frees, asks]) => [
      `${asks} that asks before each step of ${frees}`,
      () => redriveBeforeEachStep(frees, asks),
    ]),
    ...ALONE.map(([frees, asks]) => [
      `${asks} that asks before each step of ${frees} without a line`,
      () => redriveBeforeEachStep(frees, asks, { isAlone: true }),
    ]),
    ...CASES.map(([frees, asks]) => [
      `${frees} before each step of ${asks} that asks`,
      () => freedBeforeEachStep(frees, asks),
    ]),
    ...PASSES.map((frees) => [
      `a task that asks in the grace before each step of ${frees}`,
      () => redriveBeforeEachStep(frees, 'a task', { graceSeconds: 60 }),
    ]),
  ] as Race[];
  it.each(aFew(2, RACES))('a redriven execution and the next waiter never both hold: %s', (_, play) => play());
}
