import { WHOLE_LEASE, WHOLE_PERMIT, wholeForCallers, windowKept } from '../capabilities/bounds.model.ts';
import { withdrawalAnswered } from '../capabilities/record.model.ts';
import type { RequestFault, Script } from '../faults.ts';
import type { Entry, Violation } from '../history.ts';
import type { Course, Stage, Terms } from './course.ts';

const LEASE = 'w0-q0';
const SHARED = 'w0-p0';
const ONE = { limit: 1 };

/** The claim comes when the release is answered, or a little before. So several courses try several moments. */
const LAGS_MS = [1000, 1070, 1140, 1210];
const lagging = (key: string, nth: number) => `${key}-${nth}`;

/** The answer of the write by which a caller claims what it was granted in line comes later than its ttl. */
async function lateClaims(stage: Stage, key: string, terms: Terms): Promise<void> {
  for (const [nth, lagMs] of LAGS_MS.entries()) {
    const one = lagging(key, nth);
    const first = await stage.acquire(one, 'first', terms);
    const script: Script = {};
    stage.meanwhile(() => stage.acquire(one, 'next', { ttlSeconds: 4, waitSeconds: 20, ...terms }, script));
    await stage.sleep(lagMs);
    const releasing = stage.release(one, first);
    await stage.sleep(nth % 2 === 0 ? 15 : 25);
    script.UpdateItem = [{ lateMs: 4100 }];
    await releasing;
  }
}

const wholeForLagging = (history: readonly Entry[], key: string, promise: typeof WHOLE_LEASE | typeof WHOLE_PERMIT) =>
  LAGS_MS.flatMap((_, nth) => wholeForCallers(history, lagging(key, nth), promise));

/** The function of the next waiter exits before it can claim its grant. */
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

/** The permit of a caller ends with a write whose answer is lost. Before the next try, as many others end as the record remembers. */
async function withdrawsInDoubt(stage: Stage): Promise<void> {
  const terms = { limit: 20 };
  await stage.acquire(SHARED, 'gone', terms);
  const others: Awaited<ReturnType<Stage['acquire']>>[] = [];
  for (let nth = 0; nth < 8; nth++) others.push(await stage.acquire(SHARED, `other ${nth}`, terms));
  const script: Script = { UpdateItem: ['lostReply', { beforeMs: 3000 }] };
  stage.meanwhile(() => stage.call('withdraw', { key: SHARED, requestId: 'gone', holder: 'gone' }, script));
  await stage.sleep(500);
  for (const other of others) await stage.release(SHARED, other);
}

/** The longest key that an index of DynamoDB takes. */
const LONG = `${'k'.repeat(1021)}-p0`;

const LONG_KEY = 'a key of any length that is allowed can be waited for';

export const CALLER_COURSES: Course[] = [
  {
    name: 'a caller claims a lease, and the answer comes after its ttl',
    play: (stage) => lateClaims(stage, LEASE, {}),
    check: (history) => wholeForLagging(history, LEASE, WHOLE_LEASE),
  },
  {
    name: 'a caller claims a permit, and the answer comes after its ttl',
    play: (stage) => lateClaims(stage, SHARED, ONE),
    check: (history) => wholeForLagging(history, SHARED, WHOLE_PERMIT),
  },
  {
    name: 'the first caller in line for a lease is dead when its turn comes',
    play: diesInLine,
    check: (history, facts) => windowKept(history, LEASE, facts),
  },
  {
    name: 'a caller withdraws, the answer to the write is lost, and eight other permits end before the next try',
    play: withdrawsInDoubt,
    check: (history) => withdrawalAnswered(history, SHARED),
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
