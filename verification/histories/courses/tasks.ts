import { freedByEvent, grantNotifiedInTime, notifiedInTime, quotaKept } from '../capabilities/bounds.model.ts';
import { deadTaskCostsNothing, freeLeaseIsHad, roomBesideLine } from '../capabilities/free.model.ts';
import type { Entry, Violation } from '../history.ts';
import type { Course, Stage, Terms } from './course.ts';

const LEASE = 'w0-q0';
const SHARED = 'w0-p0';
/** The terms of a key with one shared holder at a time. */
const ONE = { limit: 1 };
const HOUR = { ttlSeconds: 3600 };

/** A task that no message reaches is overdue, and the key is free. A plain caller comes each minute. */
async function unreachable(stage: Stage, key: string, terms: Terms): Promise<void> {
  const first = await stage.acquire(key, 'first', { ...HOUR, ...terms });
  await stage.park(key, 'task', { parkSeconds: 60, unreachable: 'denied', ...terms });
  await stage.sleep(61_000);
  await stage.release(key, first);
  for (let nth = 0; nth < 3; nth++) {
    await stage.minutes(1);
    await stage.release(key, await stage.acquire(key, `plain ${nth}`, terms));
  }
}

/** More tasks than one run ends have one deadline. The schedule runs once after that. */
async function manyOverdue(stage: Stage, key: string, terms: Terms): Promise<void> {
  await stage.acquire(key, 'holder', { ...HOUR, ...terms });
  for (let nth = 0; nth < 115; nth++) await stage.park(key, `task ${nth}`, { parkSeconds: 60, ...terms });
  await stage.sleep(75_000);
  await stage.call('repairQueues', {});
}

/** The message about a grant is lost. The state is tried again, and its new task meets the grant. The message to that task is lost too. */
async function triedAgain(stage: Stage, key: string, terms: Terms): Promise<void> {
  const request = { ...HOUR, execution: stage.execution(), requestId: 'state', ...terms };
  const first = await stage.park(key, 'execution', { ...request, unreachable: 'unanswered' });
  stage.die(first);
  const second = await stage.park(key, 'execution', { ...request, unreachable: 'unanswered' });
  stage.reach(second);
  await stage.minutes(3);
}

const KEYS = Array.from({ length: 10 }, (_, nth) => `w0-many-${nth}`);
const EACH_KEY = 'the runs of the schedule reach each key, even if no run reaches all';

const unnotified = (history: readonly Entry[]): Violation[] =>
  history
    .filter(({ call, answeredAt }) => call === 'task' && !answeredAt)
    .map((task) => ({ promise: EACH_KEY, detail: `the task of ${task.input.key} still waits`, entries: [task] }));

const QUOTA = 40;

/** More callers than the quota allows come one after the other while the key is held. */
async function manyArrive(stage: Stage, key: string, terms: Terms): Promise<void> {
  await stage.acquire(key, 'holder', { ...HOUR, ...terms });
  for (let nth = 0; nth < 90; nth++) await stage.park(key, `task ${nth}`, terms);
}

const quotas = { waitersPerKey: QUOTA, waitersPerNamespace: 100_000 };

export const TASK_COURSES: Course[] = [
  {
    name: 'a task that no message reaches is overdue, and its lease is free',
    play: (stage) => unreachable(stage, LEASE, {}),
    check: (history, facts) => freeLeaseIsHad(history, LEASE, facts),
  },
  {
    name: 'a task that no message reaches is overdue, and its key has room',
    play: (stage) => unreachable(stage, SHARED, ONE),
    check: (history, facts) => roomBesideLine(history, SHARED, facts),
  },
  {
    name: 'more tasks wait for a lease than a run of the schedule ends in any case, and have one deadline',
    play: (stage) => manyOverdue(stage, LEASE, {}),
    check: (history, facts) => notifiedInTime(history, LEASE, facts),
  },
  {
    name: 'more tasks wait for a permit than a run of the schedule ends in any case, and have one deadline',
    play: (stage) => manyOverdue(stage, SHARED, ONE),
    check: (history, facts) => notifiedInTime(history, SHARED, facts),
  },
  {
    name: 'a task that is tried again meets the lease of its request, and the message is lost',
    play: (stage) => triedAgain(stage, LEASE, {}),
    check: (history, facts) => grantNotifiedInTime(history, LEASE, facts),
  },
  {
    name: 'a task that is tried again meets the permit of its request, and the message is lost',
    play: (stage) => triedAgain(stage, SHARED, ONE),
    check: (history, facts) => grantNotifiedInTime(history, SHARED, facts),
  },
  {
    name: 'a task comes twice, is granted one permit, and room is left',
    async play(stage) {
      const two = { limit: 2 };
      const holders = [await stage.acquire(SHARED, 'a', two), await stage.acquire(SHARED, 'b', two)];
      const request = { ...HOUR, ...two, execution: stage.execution() };
      const task = await stage.park(SHARED, 'task', request);
      await stage.park(SHARED, 'task', { ...request, again: task });
      for (const holder of holders) await stage.release(SHARED, holder);
      await stage.minutes(2);
      await stage.acquire(SHARED, 'plain', two);
    },
    check: (history, facts) => roomBesideLine(history, SHARED, facts),
  },
  {
    name: 'a task that waits to be alone is dead, in front of readers that fit',
    async play(stage) {
      await stage.acquire(SHARED, 'reader', { ...HOUR, mode: 'shared' });
      const writer = await stage.park(SHARED, 'writer', { mode: 'exclusive', execution: stage.execution() });
      stage.die(writer);
      await stage.minutes(4);
      await stage.acquire(SHARED, 'second reader', { mode: 'shared' });
    },
    check: (history, facts) => deadTaskCostsNothing(history, SHARED, facts),
  },
  {
    name: 'more tasks come to a lease than its line has places',
    quotas,
    play: (stage) => manyArrive(stage, LEASE, {}),
    check: (history) => quotaKept(history, LEASE, QUOTA),
  },
  {
    name: 'more tasks come to a key with shared holders than its line has places',
    quotas,
    play: (stage) => manyArrive(stage, SHARED, ONE),
    check: (history) => quotaKept(history, SHARED, QUOTA),
  },
  {
    name: 'an execution ends while it holds a lease, and a read of its state is throttled once',
    play: (stage) => endsWithFailedRead(stage, 'throttled'),
    check: freedByEvent,
  },
  {
    name: 'an execution ends while it holds a lease, and the connection of a read of its state is reset once',
    play: (stage) => endsWithFailedRead(stage, 'reset'),
    check: freedByEvent,
  },
  {
    name: 'DynamoDB answers the schedule so slowly that no run reaches all keys',
    play: slowSchedule,
    check: unnotified,
  },
];

/** Each key has an overdue task. DynamoDB answers the schedule so slowly that a run of 45 seconds does not reach all keys. */
async function slowSchedule(stage: Stage): Promise<void> {
  for (const key of KEYS) {
    await stage.acquire(key, 'holder', HOUR);
    await stage.park(key, 'task', { parkSeconds: 5 });
  }
  const late = Array.from({ length: 200 }, () => ({ lateMs: 4000 }));
  for (let nth = 0; nth < 6; nth++) {
    await stage.sleep(15_000);
    await stage.call('repairQueues', {}, { Query: [...late], GetItem: [...late], Scan: [...late] });
  }
}

async function endsWithFailedRead(stage: Stage, fault: 'throttled' | 'reset'): Promise<void> {
  const execution = stage.execution();
  await stage.acquire(LEASE, 'execution', { ...HOUR, execution });
  stage.world.service.stepFunctions.end(execution, 'FAILED', stage.world.simulation.now)();
  await stage.call('executionEnded', { execution }, { DescribeExecution: [fault] });
  await stage.acquire(LEASE, 'plain');
}
