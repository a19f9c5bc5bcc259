import { HoldfastError } from '../shared/errors.ts';
import { acquireGrant } from '../shared/locks/calls/acquire.ts';
import { releaseGrant } from '../shared/locks/calls/release.ts';
import { leasesFromEnvironment } from '../shared/locks/dependencies.ts';
import { Timeline } from '../test/support/time/timeline.ts';
import { receiveTask, sendResult } from './worker.ts';

export interface TimelineTask {
  keys: string[];
  /** How many callers each key has. */
  callers: number;
  turnMs: number;
  joinMs: number;
  settleMs: number;
  ms: number;
}

export interface TimelineResult {
  grants: number;
  calls: number;
  /** How many calls are held, counted every 20 milliseconds. */
  held: number[];
}

/** How long a message takes between a client and the function, in one direction. */
const [WAY_MS, JITTER_MS] = [8, 15];
/** How long a request to DynamoDB takes. */
const REQUEST_MS = 1.5;
/** A call that runs longer than this is held. */
const SHORT_MS = 200;
const FUNCTIONS = 50;

const task = await receiveTask<TimelineTask>();
const timeline = new Timeline();
const clock = { now: () => Math.floor(timeline.now()), sleep: timeline.sleep };
const found: TimelineResult = { grants: 0, calls: 0, held: [] };
const countedFrom = timeline.now() + task.settleMs;
const until = countedFrom + task.ms;
const counts = () => timeline.now() >= countedFrom;
const fromEnvironment = leasesFromEnvironment();
fromEnvironment.dynamodb.middlewareStack.add(
  (next) => async (args) => {
    await timeline.sleep(REQUEST_MS / 2);
    const answer = await next(args).catch((error: Error) => error);
    await timeline.sleep(REQUEST_MS / 2);
    if (answer instanceof Error) throw answer;
    return answer;
  },
  { step: 'initialize', priority: 'high', name: 'takes time' },
);
/** Each environment has its own dependencies, because a function remembers things for its next call that others do not know. */
const functions = Array.from({ length: FUNCTIONS }, () => {
  const dependencies = { ...fromEnvironment, clock };
  return {
    acquire: acquireGrant(dependencies),
    release: releaseGrant(dependencies),
  };
});
type Function = (typeof functions)[number];
const newCall = () => ({ signal: new AbortController().signal, timeLeftMs: () => 29_000 });
const running = new Set<{ since: number }>();

async function call<Answer>(act: (one: Function) => Promise<Answer>): Promise<Answer> {
  await timeline.sleep(WAY_MS + JITTER_MS * Math.random());
  if (counts()) found.calls++;
  const environment = { since: timeline.now() };
  running.add(environment);
  try {
    return await act(functions[Math.floor(Math.random() * FUNCTIONS)] as Function);
  } finally {
    running.delete(environment);
    await timeline.sleep(WAY_MS + JITTER_MS * Math.random());
  }
}

/** Calls until it has the key, as a client does. */
async function acquireKey(key: string, holder: string): Promise<string | undefined> {
  const requestId = fromEnvironment.ids.uuid();
  let more: object = {};
  while (timeline.now() < until) {
    const input = { ...{ key, holder, requestId, ttlSeconds: 60, waitSeconds: 0 }, ...more };
    try {
      return (await call(({ acquire }) => acquire(input, newCall()))).leaseId;
    } catch (error) {
      if (!(error instanceof HoldfastError) || error.code !== 'LeaseHeld') throw error;
      const { comeBackMs = 0, retryWith } = error.context as Refused;
      more = { ...retryWith, waitSeconds: 20, sleepMs: 300_000 };
      await timeline.sleep(comeBackMs);
    }
  }
  return undefined;
}

interface Refused {
  comeBackMs?: number;
  retryWith?: object;
}

async function turns(key: string, holder: string): Promise<void> {
  await timeline.sleep(task.joinMs * (0.1 + Math.random()));
  while (timeline.now() < until) {
    const leaseId = await acquireKey(key, holder);
    if (leaseId === undefined) return;
    if (counts()) found.grants++;
    await timeline.sleep(task.turnMs * -Math.log(1 - Math.random()));
    await call(({ release }) => release({ key, leaseId }, newCall()));
  }
}

async function countHeldCalls(): Promise<void> {
  for (; timeline.now() < until; await timeline.sleep(20)) {
    if (!counts()) continue;
    found.held.push([...running].filter(({ since }) => since < timeline.now() - SHORT_MS).length);
  }
}

const callers = task.keys.flatMap((key) =>
  Array.from({ length: task.callers }, (_, nth) => () => turns(key, `caller ${nth}`)),
);
await timeline.play(countHeldCalls, ...callers);
sendResult(found);
