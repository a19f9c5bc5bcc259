import { readFile } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { setImmediate } from 'node:timers/promises';
import { afterAll, expect, it } from 'vitest';
import { StatesError } from '../../local/step-functions/errors.ts';
import { interpret, type Task as Performed, timeoutError } from '../../local/step-functions/interpreter.ts';
import type { Json } from '../../local/step-functions/json.ts';
import { seededRandom, testSeed } from '../support/chance/seed.ts';
import type { Task } from '../support/emulators/step-functions.ts';
import { networkError } from '../support/faults/cuttable.ts';
import { expectAllHappened, goesOn, rounds } from '../support/time/rounds.ts';
import { lineWorld } from '../support/worlds/line.ts';
import { permitLineWorld } from '../support/worlds/permits-in-line.ts';

const ROUNDS = rounds(200, 1);
const leases = await lineWorld();
const permits = await permitLineWorld();
afterAll(() => Promise.all([leases.steps.stop(), permits.steps.stop()]));

const definition = JSON.parse(
  (await readFile('functions/leases/exclusive.asl.json', 'utf8')).replaceAll(/\$\{\w+\}/g, (name) => `arn:${name}`),
);

const none = { ran: 0, stopped: 0, tooLate: 0, lost: 0, lateMessage: 0, full: 0, lateStart: 0 };
type Happened = typeof none;

/** A wrapper of leases, or of permits. */
interface World extends Pick<typeof leases, 'steps' | 'clock' | 'requests'> {
  park(input: object, task: Task): Promise<unknown>;
  release(input: { key: string; leaseId: string }): Promise<unknown>;
}

interface Round {
  seed: number;
  /** How many targets may run at once. */
  max: number;
  happened: Happened;
}

/** The wrapper on a clock that only the test moves. */
function simulate({ park, release, clock, steps }: World, { seed, max, happened }: Round) {
  const waiting = new Map<string, (grant: Json) => void>();
  steps.onGrant = ({ token, output }) => waiting.get(token)?.(output as Json);
  const random = seededRandom(seed);
  const upTo = (ms: number) => Math.floor(random() * ms);
  const atWork = new Set<string>();
  const overlaps: string[] = [];
  const over = { count: 0 };

  /** A wrapper. Once it goes on, the clock stands still until the wrapper waits again or has ended. */
  const wrapper = (name: string, asked: { key: string; ttlSeconds: number; limit?: number }) => {
    let idle = Promise.withResolvers<void>();
    const goOnAt = (epochMs: number, act: () => void) =>
      clock.at(epochMs, () => {
        idle = Promise.withResolvers();
        act();
        return idle.promise;
      });
    const wait = <T>(until: Promise<T>): Promise<T> => {
      idle.resolve();
      return until;
    };
    const later = (ms: number) => wait(new Promise<void>((resolve) => goOnAt(clock.now() + ms, resolve)));

    const begin = () => {
      atWork.add(name);
      happened.ran++;
      if (atWork.size === max) happened.full++;
      if (atWork.size > max) overlaps.push(`${[...atWork]} at ${clock.now()}`);
    };
    let isLate = false;

    const perform = async ({ state, parameters, timeoutMs = Number.POSITIVE_INFINITY }: Performed): Promise<Json> => {
      const { Payload: payload } = parameters as { Payload: { key: string; leaseId: string } };
      const scheduledAt = clock.now();
      switch (state) {
        case 'Acquire':
        case 'Acquire with the fields': {
          const task = steps.newTask();
          const granted = new Promise<Json>((resolve) => {
            waiting.set(task.token, (grant) => goOnAt(clock.now() + upTo(150), () => resolve(grant)));
          });
          await park({ ...payload, taskToken: task.token }, task);
          return wait(granted);
        }
        case 'Run': {
          if (random() < 0.2) {
            // The start has no answer in time, and lands just after the stop has found no target.
            const endsAt = clock.now() + timeoutMs;
            clock.at(endsAt + 250 + upTo(50), begin);
            clock.at(endsAt + 350 + upTo(50), () => atWork.delete(name));
            await later(timeoutMs);
            happened.lateStart++;
            isLate = true;
            throw timeoutError();
          }
          await later(upTo(100));
          begin();
          const wanted = random() < 0.3 ? upTo(asked.ttlSeconds * 1000) : Number.POSITIVE_INFINITY;
          await later(Math.max(0, Math.min(wanted, timeoutMs - (clock.now() - scheduledAt))));
          if (wanted > timeoutMs) throw timeoutError();
          atWork.delete(name);
          return { Output: {} };
        }
        case 'Stop the target':
          await later(upTo(250));
          if (isLate) throw new StatesError('Sfn.ExecutionDoesNotExistException', 'it has not begun');
          atWork.delete(name);
          happened.stopped++;
          return {};
        default:
          await release(payload).catch(({ code, message }) => {
            throw new StatesError(code, message);
          });
          return { Payload: {} };
      }
    };
    const context = {
      Execution: { Id: `arn:aws:states:us-east-1:000000000000:execution:wrapper:${name}`, RedriveCount: 0 },
    };
    const input = { ...asked, stateMachineArn: 'arn:aws:states:us-east-1:000000000000:stateMachine:target' };
    const { result } = interpret({
      ...{ definition, input, context, perform },
      entered: (state) => {
        if (state === 'Too late') happened.tooLate++;
      },
      secondMs: 1000,
      now: () => new Date(clock.now()),
    });
    const ended = result
      .catch(() => {})
      .finally(() => {
        over.count++;
        idle.resolve();
      });
    return { parked: idle.promise, ended };
  };

  /** The request lands and its answer is lost, so the SDK tries again after two seconds. */
  const lost = async (send: () => Promise<unknown>) => {
    happened.lost++;
    const { response } = (await send()) as { response: { body: Readable } };
    await text(response.body); // an answer that is not read would keep its connection
    await clock.sleep(2000);
    throw networkError('ECONNRESET', 'read');
  };
  const slow = async (send: () => Promise<unknown>) => {
    const answer = await send();
    await clock.sleep(400 + upTo(1500));
    return answer;
  };
  return { random, upTo, overlaps, over, wrapper, lost, slow };
}

const base = testSeed();

it(`the wrapper never runs two targets at once (${ROUNDS} rounds from seed ${base})`, async () => {
  const happened: Happened = { ...none };
  for (let seed = base; goesOn(seed - base, ROUNDS, happened); seed++) {
    const first = await leases.acquire({ key: `k${seed}`, ttlSeconds: 86_400 });
    const names = ['w1', 'w2', 'w3'];
    await play(leases, { seed, max: 1, happened, key: `k${seed}`, names, begin: () => leases.release(first) });
  }
  expectAllHappened(happened, ROUNDS / 50);
}, 600_000);

it(`the wrapper with a limit never runs more targets (${ROUNDS} rounds from seed ${base})`, async () => {
  const happened: Happened = { ...none };
  for (let seed = base; goesOn(seed - base, ROUNDS, happened); seed++) {
    const max = 2 + (seed % 3);
    const first = await permits.acquire({ key: `k${seed}`, ttlSeconds: 86_400, limit: max, weight: max });
    const names = Array.from({ length: max + 2 }, (_, at) => `w${at}`);
    await play(permits, {
      seed,
      max,
      happened,
      key: `k${seed}`,
      names,
      limit: max,
      begin: () => permits.release(first),
    });
    expect(await permits.read(`k${seed}`), `seed ${seed}`).toMatchObject({ waiting: 0 });
  }
  expectAllHappened(happened, ROUNDS / 50);
}, 600_000);

interface Play extends Round {
  key: string;
  names: string[];
  limit?: number;
  /** Releases the grant that all wrappers wait for. */
  begin(): Promise<unknown>;
}

/** Plays wrappers that all wait for one key, until they have ended. */
async function play(world: World & Pick<typeof leases, 'repair'>, { key, names, limit, begin, ...round }: Play) {
  const { steps, requests, clock, repair } = world;
  const { seed, happened } = round;
  const { random, upTo, overlaps, over, wrapper, lost, slow } = simulate(world, round);
  const ttlSeconds = 2 + upTo(5);
  const wrappers: ReturnType<typeof wrapper>[] = [];
  for (const name of names) {
    wrappers.push(wrapper(name, { key, ttlSeconds, ...(limit !== undefined && { limit }) }));
    await wrappers.at(-1)?.parked;
  }
  steps.onTheWay = async (action) => {
    if (action !== 'SendTaskSuccess' || random() < 0.7) return;
    happened.lateMessage++;
    await clock.sleep(upTo(3000));
  };
  // The release loses by the mark. Then its hand-off is slow, and both answers to the renewal of the grant are lost.
  requests.faultsOf.UpdateItem = ['none', slow, lost, lost];
  await begin();
  for (let turns = 0; over.count < wrappers.length; turns++) {
    expect(turns, `seed ${seed}: the wrappers end`).toBeLessThan(500);
    await clock.sleep(300 + upTo(700));
    if (random() < 0.3) requests.faultsOf.UpdateItem = [slow, lost, lost];
    await repair().catch((error) => expect(error.code).toBe('OutcomeUnknown'));
    requests.faultsOf.UpdateItem = [];
    await setImmediate();
  }
  await Promise.all(wrappers.map(({ ended }) => ended));
  expect(overlaps, `seed ${seed}`).toEqual([]);
}
