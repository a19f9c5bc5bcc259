import { afterAll, expect, it } from 'vitest';
import { acquire } from '../../shared/locks/calls/acquire.ts';
import { acquireInput } from '../../shared/locks/calls/inputs.ts';
import { release } from '../../shared/locks/calls/release.ts';
import { type Acquired, durations } from '../../shared/locks/calls/types.ts';
import type { Clock } from '../../shared/surroundings/clock.ts';
import { call, type Fault } from '../support/emulators/aws.ts';
import { aFew } from '../support/time/rounds.ts';
import { Timeline } from '../support/time/timeline.ts';
import { leaseWorld } from '../support/worlds/leases.ts';
import { lineWorld } from '../support/worlds/line.ts';

/** Half of the margin: two clocks that stand so far from the true time agree within the margin. */
const AWAY_MS = 250;
const WAITED_MS = 2000;
const TTL_MS = 3000;

/** The true time. */
const timeline = new Timeline();
const { now, later, sleep } = timeline;

/** The clock of a machine, which the time service sets. */
class SteppedClock implements Clock {
  #offsetMs: number;

  constructor(offsetMs: number) {
    this.#offsetMs = offsetMs;
  }

  now = () => now() + this.#offsetMs;
  sleep = sleep;

  stepTo(offsetMs: number): void {
    this.#offsetMs = offsetMs;
  }
}

const clocks = { one: new SteppedClock(0), other: new SteppedClock(AWAY_MS), third: new SteppedClock(AWAY_MS) };
const world = await lineWorld({ clock: clocks.one });
afterAll(() => world.steps.stop());
const { table, waitersTable, stepFunctions } = world.dependencies;
const tables = { table, waitersTable };
const others = {
  other: await leaseWorld({ clock: clocks.other, ...tables, stepFunctions }),
  third: await leaseWorld({ clock: clocks.third, ...tables, stepFunctions }),
};

const inputOfAcquire = acquireInput();

/** The calls of one machine, on leases and permits. */
const machine = ({ dependencies, requests }: Pick<typeof world, 'dependencies' | 'requests'>) => {
  const [take, letGo] = [acquire(dependencies), release(dependencies)];
  return {
    requests,
    acquire: async (input: object) => (await take(inputOfAcquire.parse(input), call())) as Acquired,
    release: ({ key, leaseId }: Acquired) => letGo({ key, leaseId }, call()),
  };
};
const machines = { one: machine(world), other: machine(others.other), third: machine(others.third) };

/** A write whose answer takes a quarter of a second, while the time service sets the clock of its machine back. */
const setBackDuring =
  (clock: SteppedClock): Fault =>
  async (send) => {
    const answer = await send();
    await sleep(80);
    clock.stepTo(-AWAY_MS);
    await sleep(170);
    return answer;
  };

/** When a caller on the third machine takes the lease over, in true time. It asks every five milliseconds. */
async function takenOverAt(asked: { key: string }): Promise<number> {
  for (;;) {
    await sleep(5);
    const outcome = await machines.third.acquire({ ...asked, holder: 'next', ttlSeconds: 2 }).catch(({ code }) => code);
    if (outcome !== 'LeaseHeld') return now();
  }
}

const write = 'UpdateItem';
const KINDS: [kind: string, kind: object][] = [
  ['lease', {}],
  ['permit', { limit: 1 }],
];
const WAITS = KINDS.flatMap(([what, kind]) => [
  { key: `${what} outside the line`, kind, fair: false },
  { key: `${what} in line`, kind, fair: true },
]);
// The machine of the caller is set forward during the wait, and back during the write of the grant.
it.each(aFew(1, WAITS))(
  'the deadline of a waiting caller passes before the next grant: $key',
  async ({ key, kind, fair }) => {
    clocks.one.stepTo(-AWAY_MS);
    const first = await machines.other.acquire({ key, holder: 'first', ttlSeconds: 60, ...kind });
    const sentAt = now();
    const [granted, , overAt] = await timeline.play(
      () => machines.one.acquire({ key, holder: 'b', ttlSeconds: TTL_MS / 1000, waitSeconds: 12, fair, ...kind }),
      () =>
        later(WAITED_MS, async () => {
          clocks.one.stepTo(AWAY_MS);
          machines.one.requests.faultsOf[write] = [setBackDuring(clocks.one)];
          await machines.other.release(first);
        }),
      () => later(WAITED_MS + TTL_MS + AWAY_MS, () => takenOverAt({ key, ...kind })),
    );
    expect(machines.one.requests.faultsOf[write]).toEqual([]);
    expect(sentAt + granted.waitedMs + granted.remainingMs).toBeLessThanOrEqual(overAt);
    // And the caller has the ttl that it asked for, less what the clocks may differ by.
    expect(granted.waitedMs + granted.remainingMs).toBeGreaterThan(WAITED_MS + TTL_MS - 2 * AWAY_MS);
  },
);

// The machine that grants is set back during the write of the grant.
it.each(aFew(1, KINDS))('the deadline of a parked task passes before another caller has the %s', async (key, kind) => {
  clocks.one.stepTo(-AWAY_MS);
  clocks.other.stepTo(AWAY_MS);
  const first = await machines.other.acquire({ key, holder: 'first', ttlSeconds: 60, ...kind });
  const task = world.steps.newTask();
  const enteredAt = now();
  await machines.one.acquire({ key, holder: 'b', ttlSeconds: TTL_MS / 1000, taskToken: task.token, ...kind });
  const [, overAt] = await timeline.play(
    () =>
      later(WAITED_MS, async () => {
        // The first write of the release changes nothing, because a task is in line. The second write is the grant.
        machines.other.requests.faultsOf.UpdateItem = [(send) => send(), setBackDuring(clocks.other)];
        await machines.other.release(first);
      }),
    () => later(WAITED_MS + TTL_MS + AWAY_MS, () => takenOverAt({ key, ...kind })),
  );
  const { waitedMs, remainingMs } = task.output as unknown as Acquired;
  expect(machines.other.requests.faultsOf.UpdateItem).toEqual([]);
  expect(enteredAt + waitedMs + remainingMs).toBeLessThanOrEqual(overAt);
  expect(waitedMs + remainingMs).toBeGreaterThan(WAITED_MS + TTL_MS - 2 * AWAY_MS);
});

it('a grant that is answered after its expiry has no remaining time', () => {
  expect(durations({ since: 1000, expiresAt: 3000, now: 9000 })).toEqual({ waitedMs: 2000, remainingMs: 0 });
  expect(durations({ since: 1000, expiresAt: 3000, now: 2500 })).toEqual({ waitedMs: 1500, remainingMs: 500 });
  expect(durations({ since: 1000, expiresAt: 3000, now: 800 })).toEqual({ waitedMs: 0, remainingMs: 2200 });
});
