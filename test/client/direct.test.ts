import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type DirectOptions, directTransport } from '../../clients/typescript/src/direct.ts';
import { Holdfast, type Transport } from '../../clients/typescript/src/index.ts';
import { stepFunctionsClient } from '../../shared/aws/step-functions.ts';
import type { LeaseDependencies } from '../../shared/locks/dependencies.ts';
import { systemClock } from '../../shared/surroundings/clock.ts';
import { testClient } from '../support/emulators/aws.ts';
import { lineWorld } from '../support/worlds/line.ts';
import { permitLineWorld } from '../support/worlds/permits-in-line.ts';

const world = await lineWorld({ clock: systemClock });
const permits = await permitLineWorld({ clock: systemClock });
const { park, rawItem, rows, repair, grantOf, steps } = world;
afterAll(() => Promise.all([steps.stop(), permits.steps.stop()]));

const transportOf = ({ dependencies }: { dependencies: LeaseDependencies }, more: Partial<DirectOptions> = {}) =>
  directTransport({
    client: testClient(),
    leasesTable: dependencies.table,
    waitersTable: dependencies.waitersTable,
    ...more,
  });
const direct = new Holdfast({ transport: transportOf(world), holder: 'direct' });

describe('a direct client without Step Functions', () => {
  /** Whether the lease is free, and only the line may grant it. */
  const isLeftToTheQueue = async (key: string) => {
    const { lease_version: version, mark } = (await rawItem(key)) ?? {};
    return version === undefined && mark !== undefined;
  };

  it('a release without Step Functions leaves the task in line to the schedule', async () => {
    const lease = await direct.acquire('released');
    const { task } = await park({ key: 'released' });
    expect(await lease.release()).toBe(true);
    expect(await isLeftToTheQueue('released')).toBe(true);
    expect(task.state).toBe('waiting');
    await repair();
    expect(grantOf(task)).toMatchObject({ key: 'released', previous: { holder: 'direct' } });
    expect(await rows('released')).toEqual([]);
  });

  it('a release after a wait in line also leaves the task to the schedule', async () => {
    const first = await direct.acquire('in line');
    const waiting = direct.acquire('in line', { waitMs: 10_000 });
    await expect.poll(() => rows('in line')).toHaveLength(1);
    const { task } = await park({ key: 'in line' });
    await first.release();
    const lease = await waiting;
    expect(lease.leaseId).toContain('+');
    expect(await lease.release()).toBe(true);
    expect(await isLeftToTheQueue('in line')).toBe(true);
    await repair();
    expect(task.state).toBe('succeeded');
  });

  it('a client without Step Functions does not take a free lease before a task', async () => {
    const lease = await direct.acquire('kept');
    await park({ key: 'kept' });
    await lease.release();
    await expect(direct.acquire('kept')).rejects.toMatchObject({ code: 'LeaseHeld' });
    expect(await isLeftToTheQueue('kept')).toBe(true);
  });

  it('a client without Step Functions leaves the look at a bound holder to others', async () => {
    const execution = steps.newExecution('RUNNING');
    await park({ key: 'bound', holder: 'wf', execution, bound: true });
    steps.executions.set(execution, 'SUCCEEDED');
    steps.stopped.set(execution, systemClock.now() + 1000); // later than the grant
    await expect(direct.acquire('bound')).rejects.toMatchObject({ code: 'LeaseHeld' });
    expect(await world.acquire({ key: 'bound', holder: 'next' })).toMatchObject({ holder: 'next' });
  });

  it('the schedule grants the permit that a direct client released to the task', async () => {
    const holdfast = new Holdfast({ transport: transportOf(permits), holder: 'direct' });
    const permit = await holdfast.acquire('shared', { limit: 1 });
    const { task } = await permits.park({ key: 'shared', limit: 1 });
    expect(await permit.release()).toBe(true);
    expect(await holdfast.readLease('shared')).toMatchObject({ used: 0 });
    expect(task.state).toBe('waiting');
    await permits.repairLine('shared');
    expect(task.output).toMatchObject({ key: 'shared', holder: 'tester', used: 1 });
  });
});

describe('a direct client with Step Functions', () => {
  const stepFunctions = async () => stepFunctionsClient({ endpoint: steps.endpoint });

  it('a client with Step Functions hands off a lease to a task at once', async () => {
    const lease = await new Holdfast({ transport: transportOf(world, { stepFunctions }), holder: 'h' }).acquire(
      'notified',
    );
    const { task } = await park({ key: 'notified' });
    await lease.release();
    expect(grantOf(task)).toMatchObject({ previous: { holder: 'h' } });
  });

  it('a client leaves the task to the schedule with less than two seconds left', async () => {
    const transport = transportOf(world, { stepFunctions });
    const { leaseId } = (await direct.call('acquire', { key: 'late', holder: 'h' })) as { leaseId: string };
    const { task } = await park({ key: 'late' });
    const { signal } = new AbortController();
    await transport('release', { key: 'late', leaseId }, signal, undefined, 1999);
    expect(task.state).toBe('waiting');
    expect(await rawItem('late')).not.toHaveProperty('lease_version');
    await repair();
    expect(task.state).toBe('succeeded');
  });

  it('a direct client takes the time of each try from its Step Functions client', async () => {
    const asked: Record<string, number | undefined> = {};
    const own = transportOf(world);
    const transport: Transport = (operation, payload, signal, ...more) => {
      asked[operation] = more[1];
      return own(operation, payload, signal, ...more);
    };
    const holdfast = new Holdfast({ transport, holder: 'h' });
    const lease = await holdfast.acquire('times');
    await holdfast.readLease('times');
    await lease.release();
    expect(asked).toMatchObject({ acquire: 10_000, readLeases: 10_000, release: expect.any(Number) });
    expect(asked.release).toBeLessThanOrEqual(2500); // half of releaseTimeoutMs, so that a second try fits
  });
});

describe('a direct client of a namespace', () => {
  const transport = transportOf(world);
  beforeAll(async () => {
    for (const namespace of ['cur-a', 'cur-b'])
      await new Holdfast({ transport, holder: 'direct', namespace }).acquire('own');
  });
  const read = async (payload: object) => {
    const answer = await transport('readLeases', payload, new AbortController().signal, 'cur-a');
    return ((answer as { leases?: { key: string }[] }).leases ?? []).map(({ key }) => key);
  };

  it.each([
    ['a key that is undefined', { key: undefined }, ['own']],
    ['a key and a prefix that are undefined', { key: undefined, prefix: undefined }, ['own']],
    ['a key that is undefined and the prefix of another namespace', { key: undefined, prefix: 'cur-b/' }, []],
  ])('a direct client of a namespace lists only that namespace for %s', async (_, payload, expected) => {
    expect(await read(payload)).toEqual(expected);
  });
});

describe('once', () => {
  it('once in a namespace stores its result, and lists the key without the prefix', async () => {
    const transport = transportOf(world);
    const { signal } = new AbortController();
    const key = 'direct once';
    const run = await transport('onceBegin', { key, holder: 'h', slot: '1' }, signal, 'team-a');
    expect(run).toMatchObject({ outcome: 'run', key, fence: expect.any(Number) });
    const { leaseId, fence } = run as { leaseId: string; fence: number };
    expect(await transport('heartbeat', { key, leaseId }, signal, 'team-a')).toMatchObject({ key, fence });
    await transport('onceComplete', { key, leaseId, result: 7 }, signal, 'team-a');
    expect(await transport('readOnce', { prefix: 'direct' }, signal, 'team-a')).toMatchObject({
      keys: [{ key, done: { slot: '1' } }],
    });
    expect(await transport('readOnce', { key: `team-a/${key}` }, signal)).toMatchObject({ result: 7 });
    expect(await transport('onceForget', { key, fence }, signal, 'team-a')).toMatchObject({ forgotten: true });
  });
});
