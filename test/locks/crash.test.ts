import { afterAll, expect, it } from 'vitest';
import type { Task } from '../support/emulators/step-functions.ts';
import { exitingAfter } from '../support/faults/mortal.ts';
import { counting } from '../support/time/rounds.ts';
import { lineWorld } from '../support/worlds/line.ts';

const world = await lineWorld();
const { acquire, release, breakLease, park, cancel, repair, executionEnded, clock, steps, rawItem, rows } = world;
afterAll(() => steps.stop());

const TTL_MS = 20_000;
const executionOf = (key: string) =>
  `arn:aws:states:us-east-1:123456789012:execution:machine:${encodeURIComponent(key)}`;

/** The tasks that are parked for a key, and the call that exits among them. */
interface Scene {
  key: string;
  waiters: Task[];
  /** The call that exits. */
  act: () => Promise<unknown>;
  /** Tasks that need not be granted the lease in the end, because they were cancelled or their execution ended. */
  spared?: Task[];
  /** The grant of the holder, if the call that exits does not end it. */
  holds?: { leaseId: string; expiresAt: string };
}

const waiter = async (key: string, input: object = {}) =>
  (await park({ key, ttlSeconds: TTL_MS / 1000, holder: 'waiter', ...input })).task;

/** Each path on which tasks are parked, granted the lease, or notified. */
const PATHS: Record<string, (key: string) => Promise<Scene>> = {
  'park for a free lease': async (key) => {
    const task = steps.newTask();
    return { key, waiters: [task], act: () => park({ key, ttlSeconds: 20 }, task) };
  },
  'park for a held lease': async (key) => {
    const holds = await acquire({ key, ttlSeconds: 20 });
    const task = steps.newTask();
    return { key, holds, waiters: [task], act: () => park({ key, ttlSeconds: 20 }, task) };
  },
  'park for an expired lease, behind others': async (key) => {
    await acquire({ key, ttlSeconds: 2 });
    const waiters = [await waiter(key), await waiter(key)];
    clock.advance(3000);
    const task = steps.newTask();
    return { key, waiters: [...waiters, task], act: () => park({ key, ttlSeconds: 20 }, task) };
  },
  'park again for a lease that the request has': async (key) => {
    await acquire({ key, ttlSeconds: 20, requestId: 'r' });
    const task = steps.newTask();
    return { key, waiters: [task], act: () => park({ key, ttlSeconds: 20, requestId: 'r' }, task) };
  },
  'release with three parked, the first gone': async (key) => {
    const grant = await acquire({ key, ttlSeconds: 20 });
    const [gone, ...waiters] = [await waiter(key), await waiter(key), await waiter(key)];
    gone.state = 'timedOut';
    return { key, waiters, act: () => release(grant) };
  },
  'release with the last one gone': async (key) => {
    const grant = await acquire({ key, ttlSeconds: 20 });
    (await waiter(key)).state = 'timedOut';
    return { key, waiters: [], act: () => release(grant) };
  },
  'break with two parked': async (key) => {
    const { fence } = await acquire({ key, ttlSeconds: 20 });
    return { key, waiters: [await waiter(key), await waiter(key)], act: () => breakLease({ key, fence }) };
  },
  'break of a grant without a notice': async (key) => {
    const first = await acquire({ key, ttlSeconds: 20 });
    const unnotified = await waiter(key);
    await exitingAfter(3, () => release(first)); // it exits after the transfer, before the message to the task
    const fence = Number((await rawItem(key))?.fence?.N);
    return { key, waiters: [], spared: [unnotified], act: () => breakLease({ key, fence }) };
  },
  'acquire by a stranger of an expired lease with two parked': async (key) => {
    await acquire({ key, ttlSeconds: 2 });
    const waiters = [await waiter(key), await waiter(key)];
    clock.advance(3000);
    return { key, waiters, act: () => acquire({ key, ttlSeconds: 20 }) };
  },
  'repair of an expired lease with two parked': async (key) => {
    await acquire({ key, ttlSeconds: 2 });
    const waiters = [await waiter(key), await waiter(key)];
    clock.advance(3000);
    return { key, waiters, act: repair };
  },
  'repair of a grant without a notice': async (key) => {
    const first = await acquire({ key, ttlSeconds: 20 });
    const waiters = [await waiter(key), await waiter(key)];
    await exitingAfter(3, () => release(first));
    clock.advance(11_000);
    return { key, waiters, act: repair };
  },
  'the end of an execution that holds, with two parked': async (key) => {
    await acquire({ key, ttlSeconds: 20, execution: executionOf(key) });
    return { key, waiters: [await waiter(key), await waiter(key)], act: () => executionEnded(executionOf(key)) };
  },
  'the end of an execution that is parked': async (key) => {
    const first = await acquire({ key, ttlSeconds: 20 });
    const dead = await waiter(key, { execution: executionOf(key) });
    const waiters = [await waiter(key)];
    dead.state = 'timedOut';
    const act = async () => {
      await executionEnded(executionOf(key));
      await release(first);
    };
    return { key, waiters, spared: [dead], act };
  },
  'cancel of the first of two': async (key) => {
    const holds = await acquire({ key, ttlSeconds: 20 });
    const { task: cancelled, ticket } = await park({ key });
    return { key, holds, waiters: [await waiter(key)], spared: [cancelled], act: () => cancel(key, ticket) };
  },
};

it.each(Object.entries(PATHS))(
  'the schedule repairs the line of an invocation that exits after any call: %s',
  async (name, prepare) => {
    for (const calls of counting()) {
      const scene = await prepare(`${name} ${calls}`);
      const { act, waiters, spared = [], key } = scene;
      const seen = witness(scene);
      const { sent, survived } = await exitingAfter(calls, act);
      const context = `dead after ${sent.join(', ')}`;
      await untilAllHaveHadTheirTurn(scene, context);
      expect(seen.overlaps, context).toEqual([]);
      for (const task of waiters) expect(task.state, context).toBe('succeeded');
      for (const task of spared) expect(task.state, context).not.toBe('waiting');
      expect(await rows(key), context).toEqual([]);
      if (survived) {
        expect(calls).toBeGreaterThan(2); // so the path has requests after which a call can exit
        return;
      }
    }
  },
);

/** Notes each grant that a task received while an earlier grant had neither been released nor expired. */
function witness({ key, holds }: Scene) {
  const overlaps: string[] = [];
  let last: { key: string; leaseId: string; until: number } | undefined;
  if (holds) last = { key, leaseId: holds.leaseId, until: Date.parse(holds.expiresAt) };
  steps.onGrant = ({ output }) => {
    const { key, leaseId, expiresAt } = output as Record<'key' | 'leaseId' | 'expiresAt', string>;
    const running = last && last.key === key && last.leaseId !== leaseId && last.until > clock.now();
    if (running && !letGo.has(last?.leaseId ?? '')) overlaps.push(`${last?.leaseId} and ${leaseId}`);
    last = { key, leaseId, until: Date.parse(expiresAt) };
  };
  return { overlaps };
}

const letGo = new Set<string>();

/** Each task that is granted the lease works a little and releases it. The schedule runs each minute. Nothing else happens. */
async function untilAllHaveHadTheirTurn({ key, waiters, spared = [] }: Scene, context: string): Promise<void> {
  const done = new Set<Task>();
  for (let minutes = 0; minutes < 8; minutes++) {
    for (let again = true; again; ) {
      again = false;
      for (const task of waiters.filter((one) => one.state === 'succeeded' && !done.has(one))) {
        done.add(task);
        clock.advance(100);
        const { leaseId } = world.grantOf(task);
        letGo.add(leaseId);
        await release({ key, leaseId });
        again = true;
      }
    }
    const open = [...waiters, ...spared].some((task) => task.state === 'waiting') || (await rows(key)).length > 0;
    if (!open) return;
    clock.advance(60_000);
    await repair();
  }
  expect.fail(`${context}: not repaired after 8 minutes`);
}
