import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { startStepFunctions } from '../test/support/emulators/step-functions.ts';
import { builtFunction } from './functions.ts';
import { receiveTask, sendProgress, sendResult } from './worker.ts';

export interface ParkedTask {
  /** How many tasks are parked while hand-offs are measured, and how many hand-offs there are. */
  depths: number[];
  samples: number;
  /** Contenders that park again after their turn. With a limit, they park for permits. */
  contention: { contenders: number; turns: number; holdMs: number; limit?: number };
}

export interface ParkedResult {
  /** The time of the first hand-off, which also loads the code of the line, in milliseconds. */
  first: number;
  /** From sending the release to the arrival of the grant at Step Functions, in milliseconds, for each number of parked tasks. */
  waits: number[][];
  /** How often each contender had the lease until all had had it, all grants even after that, and the time in milliseconds. */
  contention: { grants: number[]; all: number; tookMs: number };
  /** How many tasks were notified, and in how many requests to Step Functions. */
  notified: { requests: number; grants: number };
}

interface Grant {
  leaseId: string;
  /** When the grant arrived, on the clock of `performance.now()`. */
  arrivedAt: number;
}

/** One process plays many functions. With more calls at once, it would measure its own queue. */
const PARK_AT_A_TIME = 16;

/** Other runs use the same tables, so the keys must differ. */
const RUN = randomUUID();

const { depths, samples, contention } = await receiveTask<ParkedTask>();
const steps = await startStepFunctions();
process.env.AWS_ENDPOINT_URL_SFN = steps.endpoint;
const acquire = await builtFunction('leases/acquire');
const release = await builtFunction('leases/release');
const waiting = new Map<string, (grant: Grant) => void>();
steps.onGrant = ({ token, output }) =>
  waiting.get(token)?.({ leaseId: String(output?.leaseId), arrivedAt: performance.now() });

const [first = Number.NaN] = await handOffs(`first ${RUN}`, 1, 1);
const waits: number[][] = [];
for (const depth of depths) waits.push(await handOffs(`behind ${depth} ${RUN}`, depth, samples));
const contended = contention.contenders > 0 ? await contend(`contended ${RUN}`) : { grants: [], all: 0, tookMs: 0 };
sendResult({
  ...{ first, waits, contention: contended },
  notified: { requests: steps.requests.length, grants: steps.grants.length },
} satisfies ParkedResult);
await steps.stop();

async function park(key: string, holder: string, limit?: number): Promise<{ notified: Promise<Grant> }> {
  const { token } = steps.newTask();
  const { promise: notified, resolve } = Promise.withResolvers<Grant>();
  waiting.set(token, resolve);
  await acquire({ key, holder, limit, ttlSeconds: 600, taskToken: token });
  return { notified };
}

/** Keeps the line as long as it is: for each task that is notified, another one parks. */
async function handOffs(key: string, depth: number, count: number): Promise<number[]> {
  let { leaseId } = await acquire<Grant>({ key, holder: 'first', ttlSeconds: 600 });
  const grants: Promise<Grant>[] = [];
  while (grants.length < depth) {
    const missing = Math.min(PARK_AT_A_TIME, depth - grants.length);
    const parked = await Promise.all(Array.from({ length: missing }, () => park(key, 'parked')));
    grants.push(...parked.map((one) => one.notified));
    if (grants.length % 1024 === 0) sendProgress(`parked: ${grants.length} of ${depth}`);
  }
  const times: number[] = [];
  while (times.length < count) {
    // Tasks that came at the same moment may be notified in either order.
    const next = Promise.race(grants.slice(0, 2 * PARK_AT_A_TIME).map(async (one, at) => ({ ...(await one), at })));
    const releasedAt = performance.now();
    await release({ key, leaseId });
    const grant = await next;
    times.push(grant.arrivedAt - releasedAt);
    leaseId = grant.leaseId;
    grants.splice(grant.at, 1);
    grants.push((await park(key, 'parked')).notified);
  }
  return times;
}

async function contend(key: string): Promise<ParkedResult['contention']> {
  const { contenders, turns, holdMs, limit } = contention;
  const grants = Array.from({ length: contenders }, () => 0);
  const { leaseId: held } = await acquire<Grant>({ key, holder: 'first', ttlSeconds: 600, limit });
  const parks = (me: number) => park(key, `contender ${me}`, limit);
  const queued = await Promise.all(grants.map((_, me) => parks(me)));
  const startedAt = performance.now();
  let left = contenders * turns;
  let all = 1;
  const turnsOf = async (me: number, parked: { notified: Promise<Grant> }) => {
    for (let mine = parked; ; mine = await parks(me)) {
      const { leaseId } = await mine.notified;
      if (left > 0) grants[me] = (grants[me] ?? 0) + 1;
      left--;
      all++;
      await delay(holdMs);
      await release({ key, leaseId });
      if (left <= 0) return;
    }
  };
  await Promise.all([release({ key, leaseId: held }), ...queued.map((parked, me) => turnsOf(me, parked))]);
  return { grants, all, tookMs: performance.now() - startedAt };
}
