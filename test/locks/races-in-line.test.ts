import { AsyncLocalStorage } from 'node:async_hooks';
import { afterAll, expect, it } from 'vitest';
import { stepFunctionsClient } from '../../shared/aws/step-functions.ts';
import { seededRandom, testSeed } from '../support/chance/seed.ts';
import { testClient } from '../support/emulators/aws.ts';
import { startStepFunctions, type Task } from '../support/emulators/step-functions.ts';
import { Interleaver } from '../support/faults/interleave.ts';
import { expectAllHappened, goesOn, rounds } from '../support/time/rounds.ts';
import { lineWorld } from '../support/worlds/line.ts';

const ROUNDS = rounds(30, 4);
const turns = new AsyncLocalStorage<Interleaver>();
const worlds = await Promise.all([gatedWorld(), gatedWorld(), gatedWorld()]);
type World = (typeof worlds)[number];
afterAll(() => Promise.all(worlds.map(({ stop }) => stop())));

/** With a clock and a Step Functions of its own, and requests that wait for their turns. */
async function gatedWorld() {
  const steps = await startStepFunctions();
  const dynamodb = testClient();
  const stepFunctions = stepFunctionsClient({ endpoint: steps.endpoint });
  const gate = { turn: async () => turns.getStore()?.turn() } as Interleaver;
  for (const client of [dynamodb, stepFunctions]) Interleaver.prototype.gate.call(gate, client as typeof dynamodb);
  const world = await lineWorld({ dynamodb, stepFunctions: async () => stepFunctions });
  return { ...world, steps, stop: () => Promise.all([steps.stop(), world.steps.stop()]) };
}

const TTL_SECONDS = 30;
type Grant = { key: string; leaseId: string; expiresAt: string };

const base = testSeed();

it(`concurrent calls leave one holder and serve all (${ROUNDS} rounds from seed ${base})`, async () => {
  const happened = { notifiedBySchedule: 0, lost: 0, retried: 0, died: 0, deadHolder: 0 };
  let next = 0;
  const lane = async (world: World) => {
    while (goesOn(next, ROUNDS, happened)) {
      const seed = base + next++;
      await play(world, `race ${seed}`, seed, happened);
    }
  };
  await Promise.all(worlds.map(lane));
  expectAllHappened(happened);
}, 600_000);

async function play(world: World, key: string, seed: number, happened: Record<string, number>): Promise<void> {
  const { acquire, release, park, repair, executionEnded, clock, steps, rows, rawItem } = world;
  const random = seededRandom(seed);
  const dice = (chance: number, what?: string) => {
    const hit = random() < chance;
    if (hit && what) happened[what] = (happened[what] ?? 0) + 1;
    return hit;
  };
  const context = `seed ${seed}`;
  const faults: string[] = [];
  /** The tasks that rightly believe that they hold the lease, and until when. A task leaves the list when it releases the lease or exits. */
  const believers = new Map<string, number>();
  steps.onGrant = ({ output }) => {
    const { leaseId, expiresAt } = output as unknown as Grant;
    for (const [other, until] of believers)
      if (other !== leaseId && until > clock.now()) faults.push(`${other} holds while ${leaseId} is granted`);
    believers.set(leaseId, Date.parse(expiresAt));
  };
  const letGo = async ({ leaseId }: Grant) => {
    believers.delete(leaseId);
    await release({ key, leaseId });
  };

  const execution = (at: number) => `arn:aws:states:us-east-1:123456789012:execution:machine:${seed}-${at}`;
  const first = await acquire({ key, holder: 'first', ttlSeconds: TTL_SECONDS, execution: execution(0) });
  believers.set(first.leaseId, Date.parse(first.expiresAt));
  steps.executions.set(execution(0), 'RUNNING');
  const waiters = [1, 2, 3].map((at) => {
    steps.executions.set(execution(at), 'RUNNING');
    const input = { key, holder: `h${at}`, requestId: `r${at}`, ttlSeconds: TTL_SECONDS, execution: execution(at) };
    return { at, input, tokens: [steps.newTask()] as Task[], alive: true };
  });
  type Waiter = (typeof waiters)[number];
  const taskOf = (waiter: Waiter) => waiter.tokens.at(-1) as Task;
  const comes = (waiter: Waiter) => async () => {
    const task = taskOf(waiter);
    await park(waiter.input, task);
    if (task.state === 'waiting' && dice(0.3, 'retried')) {
      task.state = 'timedOut'; // the attempt is over, and the task comes again with a new token
      waiter.tokens.push(steps.newTask());
      await park(waiter.input, taskOf(waiter));
    } else if (task.state === 'waiting' && dice(0.2, 'died')) await dies(waiter);
  };
  const dies = async (waiter: Waiter) => {
    waiter.alive = false;
    if (taskOf(waiter).state === 'waiting') taskOf(waiter).state = 'timedOut';
    else believers.delete((taskOf(waiter).output as unknown as Grant).leaseId);
    steps.executions.set(execution(waiter.at), 'ABORTED');
    if (random() < 0.7) await executionEnded(execution(waiter.at));
  };
  const firstEnds = async () => {
    if (!dice(0.3, 'deadHolder')) return letGo(first);
    believers.delete(first.leaseId);
    steps.executions.set(execution(0), 'FAILED');
    await executionEnded(execution(0));
  };
  const schedule = async () => {
    await turns.getStore()?.turn();
    clock.advance(11_000);
    if ((await repair()).notified > 0) dice(1, 'notifiedBySchedule');
  };
  const passesBy = async () => {
    const grant = await acquire({ key, holder: 'passer-by', ttlSeconds: TTL_SECONDS }).catch(() => undefined);
    if (!grant) return;
    for (const [other, until] of believers)
      if (until > clock.now()) faults.push(`${other} holds while a passer-by is granted`);
    believers.set(grant.leaseId, Date.parse(grant.expiresAt));
    await letGo(grant);
  };

  for (const fault of ['lost', 'refused'] as const)
    if (dice(0.25, 'lost')) steps.faults.SendTaskSuccess = [...(steps.faults.SendTaskSuccess ?? []), fault];
  const interleaver = new Interleaver(random);
  const cast = [firstEnds, ...waiters.map(comes), schedule, schedule, passesBy];
  await turns.run(interleaver, () => interleaver.run(cast));
  steps.faults.SendTaskSuccess = [];

  const served = new Set<Waiter>();
  for (let minute = 0; minute < 8; minute++) {
    for (const waiter of waiters) {
      const granted = waiter.tokens.find(({ state }) => state === 'succeeded');
      if (!granted || served.has(waiter)) continue;
      served.add(waiter);
      if (waiter.alive) await letGo(granted.output as unknown as Grant);
    }
    clock.advance(minute === 0 ? 11_000 : 61_000);
    if ((await repair()).notified > 0) dice(1, 'notifiedBySchedule');
  }
  expect(faults, context).toEqual([]);
  for (const waiter of waiters.filter(({ alive }) => alive))
    expect(served.has(waiter), `${context}: ${waiter.at}`).toBe(true);
  expect(await rows(key), context).toEqual([]);
  expect(await rawItem(key), context).not.toHaveProperty('mark');
}
