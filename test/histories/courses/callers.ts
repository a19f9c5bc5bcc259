import { toldWholeToCallers, WHOLE_LEASE, WHOLE_PERMIT, windowKept } from '../capabilities/bounds.model.ts';
import type { RequestFault, Script } from '../faults.ts';
import type { Violation } from '../history.ts';
import type { Course, Stage, Terms } from './course.ts';

const LEASE = 'w0-q0';
const POOL = 'w0-p0';
const ONE = { limit: 1 };

/** The answer of the write by which a caller claims what it was granted in line comes later than its ttl. */
async function lateClaim(stage: Stage, key: string, terms: Terms): Promise<void> {
  const first = await stage.acquire(key, 'first', terms);
  const script: Script = {};
  stage.meanwhile(() => stage.acquire(key, 'next', { ttlSeconds: 4, waitSeconds: 20, ...terms }, script));
  await stage.sleep(1000);
  script.UpdateItem = [{ lateMs: 4100 }];
  await stage.release(key, first);
}

/** The function of the first in line dies before it can claim its grant. */
async function diesInLine(stage: Stage): Promise<void> {
  const first = await stage.acquire(LEASE, 'first');
  const script: Script = {};
  stage.meanwhile(() => stage.acquire(LEASE, 'dead', { waitSeconds: 20 }, script));
  await stage.sleep(500);
  stage.meanwhile(() => stage.acquire(LEASE, 'next', { waitSeconds: 20 }));
  await stage.sleep(500);
  const death: RequestFault[] = ['death'];
  Object.assign(script, { GetItem: death, UpdateItem: death, Query: death, BatchGetItem: death });
  await stage.sleep(2000);
  await stage.release(LEASE, first);
}

/** The longest key, in the line of a pool: it is also in an index of the table of waiters. */
const LONG = `${'k'.repeat(1021)}-p0`;

export const LONG_KEY = 'a key of any length that is allowed can be waited for';

export const CALLER_COURSES: Course[] = [
  {
    name: 'a caller claims a lease, and the answer comes after its ttl',
    play: (stage) => lateClaim(stage, LEASE, {}),
    check: (history) => toldWholeToCallers(history, LEASE, WHOLE_LEASE),
  },
  {
    name: 'a caller claims a permit, and the answer comes after its ttl',
    play: (stage) => lateClaim(stage, POOL, ONE),
    check: (history) => toldWholeToCallers(history, POOL, WHOLE_PERMIT),
  },
  {
    name: 'the first caller in line for a lease is dead when its turn comes',
    play: diesInLine,
    check: (history, facts) => windowKept(history, LEASE, facts),
  },
  {
    name: 'a task of an execution waits for a permit of the longest key',
    async play(stage) {
      await stage.acquire(LONG, 'first', ONE);
      await stage.park(LONG, 'task', { ...ONE, execution: stage.execution() });
    },
    check: (history): Violation[] =>
      history
        .filter(({ call, input, outcome }) => call === 'acquire' && input.key === LONG && outcome !== 'ok')
        .map((entry) => ({
          promise: LONG_KEY,
          detail: `${entry.actor} was answered ${entry.outcome}`,
          entries: [entry],
        })),
  },
];
