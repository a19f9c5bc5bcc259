import { AsyncLocalStorage } from 'node:async_hooks';
import { afterAll, expect, it } from 'vitest';
import { stepFunctionsClient } from '../../shared/aws/step-functions.ts';
import { seededRandom, testSeed } from '../support/chance/seed.ts';
import { patient, testClient } from '../support/emulators/aws.ts';
import { startStepFunctions, type Task } from '../support/emulators/step-functions.ts';
import { Interleaver } from '../support/faults/interleave.ts';
import { expectAllHappened, goesOn, isFull, rounds } from '../support/time/rounds.ts';
import { lineWorld } from '../support/worlds/line.ts';

const ROUNDS = rounds(1000, 8);
/** How many rounds run side by side, each with an interleaver of its own. */
const AT_ONCE = 10;

const turns = new AsyncLocalStorage<Interleaver>();
const steps = await startStepFunctions();
afterAll(() => steps.stop());
const dynamodb = testClient();
// The product's client gives up after three seconds. On a busy machine a message would be lost, and nothing here would send it again.
const stepFunctions = stepFunctionsClient({ endpoint: steps.endpoint, requestHandler: patient().requestHandler });
const gate = { turn: async () => turns.getStore()?.turn() } as Interleaver;
/** Whether a request of the round failed on its way. A machine that stands still for seconds finds its idle connections closed. */
const round = new AsyncLocalStorage<{ isDisturbed: boolean }>();
for (const client of [dynamodb, stepFunctions]) {
  const { middlewareStack } = client as typeof dynamodb;
  const noticed = { step: 'deserialize', priority: 'low', name: 'notices what failed on its way' } as const;
  middlewareStack.add(
    (next) => (args) =>
      next(args).catch((error: unknown) => {
        Object.assign(round.getStore() ?? {}, { isDisturbed: true });
        throw error;
      }),
    noticed,
  );
  Interleaver.prototype.gate.call(gate, client as typeof dynamodb);
}
const world = await lineWorld({ dynamodb, stepFunctions: async () => stepFunctions });
const { acquire, release, park, cancel, clock, rows, rawItem } = world;
afterAll(() => world.steps.stop());

const base = testSeed();

it(`a release serves each task that parks during it (${ROUNDS} rounds from seed ${base})`, async () => {
  const happened = { parkedFirst: 0, releasedFirst: 0, barged: 0, refused: 0 };
  let [next, disturbed] = [0, 0];
  const lane = async () => {
    // A disturbed round proves nothing, so another one is played in its place.
    while (goesOn(next - disturbed, ROUNDS, happened)) {
      if (!(await play(base + next++, happened))) disturbed++;
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, lane));
  expectAllHappened(happened, ROUNDS / 200);
  // In a short run, one disturbed round would already be more than a tenth.
  if (isFull) expect(disturbed).toBeLessThanOrEqual(ROUNDS / 10);
}, 600_000);

/**
 * A holder releases the key, one or two tasks park, and sometimes another caller acquires. No schedule repairs anything.
 * @returns false for a round that proves nothing: one of its requests failed on its way, so perhaps only the schedule can notify a task
 */
async function play(seed: number, happened: Record<string, number>): Promise<boolean> {
  const seen = { isDisturbed: false };
  try {
    await round.run(seen, () => interleave(seed, happened));
  } catch (error) {
    if (!seen.isDisturbed) throw error;
  }
  return !seen.isDisturbed;
}

async function interleave(seed: number, happened: Record<string, number>): Promise<void> {
  const count = (what: string) => {
    happened[what] = (happened[what] ?? 0) + 1;
  };
  const key = keyOf(seed);
  const random = seededRandom(seed);
  const first = await hold(seed);
  const tasks = [steps.newTask(), ...(random() < 0.12 ? [steps.newTask()] : [])];
  const barger = random() < 0.2;
  let barged: { key: string; leaseId: string } | undefined;
  const interleaver = new Interleaver(random);
  await turns.run(interleaver, () =>
    interleaver.run([
      async () => void (await release(first)),
      ...tasks.map((task) => async () => count((await park({ key }, task)).parked ? 'parkedFirst' : 'releasedFirst')),
      ...(barger
        ? [
            async () => {
              clock.advance(1);
              const tried = await acquire({ key, holder: 'barger' }).catch(() => undefined);
              count(tried ? 'barged' : 'refused');
              barged = tried;
            },
          ]
        : []),
    ]),
  );
  const context = `seed ${seed}`;
  // After the release, the others must have been notified, one after the other.
  const held = () => tasks.filter(({ state }) => state === 'succeeded').map(({ output }) => output);
  for (const grant of [barged, ...(tasks.length > 1 ? [undefined, undefined] : [])])
    for (const one of grant ? [grant] : held())
      if (waiting(tasks)) await release(one as { key: string; leaseId: string });
  expect(
    tasks.map(({ state }) => state),
    context,
  ).toEqual(tasks.map(() => 'succeeded'));
  // The check of what is left behind takes as long as the rest, so one round in twenty has it.
  if (seed % 20 > 0) return;
  expect(await rows(key), context).toEqual([]);
  // If a task parked after the line was read, the mark may stay until the last task has released the key.
  for (const one of [...(barged ? [barged] : []), ...held()]) await release(one as { key: string; leaseId: string });
  expect(await rawItem(key), context).not.toHaveProperty('mark');
}

const keyOf = (seed: number) => `wake-up ${seed}`;

/** A held key. In every second round a task has parked and left, and its mark is still there. */
async function hold(seed: number) {
  const key = keyOf(seed);
  const first = await acquire({ key, holder: 'first', ttlSeconds: 60 });
  if (seed % 2 === 0) await cancel(key, (await park({ key })).ticket);
  return first;
}

const waiting = (tasks: Task[]) => tasks.some(({ state }) => state === 'waiting');
