import { expect, it } from 'vitest';
import { HoldfastError } from '../../shared/errors.ts';
import { acquireGrant } from '../../shared/locks/calls/acquire.ts';
import { acquireInput } from '../../shared/locks/calls/inputs.ts';
import type { Replace } from '../../shared/locks/calls/types.ts';
import { DEFAULT_QUOTAS } from '../../shared/locks/dependencies.ts';
import { seededRandom, testSeed } from '../support/chance/seed.ts';
import { call } from '../support/emulators/aws.ts';
import { isFull } from '../support/time/rounds.ts';
import { Timeline } from '../support/time/timeline.ts';
import { lineWorld, resetting } from '../support/worlds/line.ts';

// Streams of requests that replace each other: docs/protocols/replace.md.

const timeline = new Timeline();
const world = await lineWorld({ clock: timeline, quotas: { ...DEFAULT_QUOTAS, maxHeldCalls: 40 } });
const { dependencies, release, heartbeat } = world;
resetting(world);

const WORK_MS = 3000;
const BEAT_MS = 500;
const STREAM_MS = 10_000;
const REQUESTS = isFull ? 200 : 20;

interface Run {
  nth: number;
  from: number;
  until: number;
  stopped: boolean;
}

const input = acquireInput();

/** A caller as the client is: asks again until its grant, works under heartbeats, and stops if it is asked to. */
async function caller(key: string, nth: number, replace: Replace, runs: Run[]): Promise<'ran' | 'superseded'> {
  const asked = {
    key,
    holder: `h${nth}`,
    requestId: `r${nth}`,
    ttlSeconds: 60,
    waitSeconds: 20,
    sleepMs: 300_000,
    replace,
  };
  for (let again = {}; ; ) {
    try {
      const grant = await acquireGrant(dependencies)(input.parse({ ...asked, ...again }), call());
      const run = { nth, from: timeline.now(), until: 0, stopped: false };
      runs.push(run);
      while (timeline.now() < run.from + WORK_MS && !run.stopped) {
        await timeline.sleep(BEAT_MS);
        run.stopped = await heartbeat(grant).then(
          () => false,
          () => true,
        );
      }
      run.until = timeline.now();
      await release(grant);
      return 'ran';
    } catch (error) {
      if (!(error instanceof HoldfastError)) throw error;
      if (error.code === 'Superseded') return 'superseded';
      const { retryWith, comeBackMs } = error.context as { retryWith: object; comeBackMs: number };
      expect(error.code).toBe('LeaseHeld');
      again = retryWith;
      await timeline.sleep(comeBackMs);
    }
  }
}

async function stream(key: string, replace: Replace) {
  const random = seededRandom(testSeed());
  const runs: Run[] = [];
  const at = Array.from({ length: REQUESTS }, () => Math.floor(random() * STREAM_MS)).sort((one, other) => one - other);
  const ended = await timeline.play(
    ...at.map((ms, nth) => () => timeline.later(ms, () => caller(key, nth, replace, runs))),
  );
  for (const [nth, run] of runs.entries()) {
    const before = runs[nth - 1];
    if (!before) continue;
    expect(run.from, 'two run at once').toBeGreaterThanOrEqual(before.until);
    expect(run.nth, 'an older one runs after a newer').toBeGreaterThan(before.nth);
  }
  expect(ended.at(-1)).toBe('ran');
  const left = await world.rows(key);
  expect(left.filter((row) => row.superseded_by === undefined)).toEqual([]); // a flagged place stays until its caller cannot come back
  return runs;
}

it('a stream of requests with `replace: waiting` has at most five runs', async () => {
  const runs = await stream('waiting', 'waiting');
  expect(runs.length).toBeLessThanOrEqual(5);
  expect(runs.every(({ stopped }) => !stopped)).toBe(true);
}, 120_000);

it('the last of a stream starts within 2 s of the stopped holder', async () => {
  const runs = await stream('running', 'running');
  const [last, before] = [runs.at(-1), runs.at(-2)];
  expect((last?.from ?? 0) - (before?.until ?? 0)).toBeLessThan(2000);
  expect(runs.slice(0, -1).some(({ stopped }) => stopped)).toBe(true);
}, 120_000);
