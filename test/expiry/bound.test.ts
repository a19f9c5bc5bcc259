import { afterAll, describe, expect, it } from 'vitest';
import { stepFunctionsClient } from '../../shared/aws/step-functions.ts';
import { boundHolders } from '../../shared/locks/expired.ts';
import { call, newBucket } from '../support/emulators/aws.ts';
import type { EndStatus } from '../support/emulators/step-functions.ts';
import { post } from '../support/stack/adapters.ts';
import { aFew, isFull } from '../support/time/rounds.ts';
import { expiryWorld, newLocations } from '../support/worlds/expiry.ts';
import { failure } from '../support/worlds/leases.ts';
import { lineWorld } from '../support/worlds/line.ts';
import { permitLineWorld } from '../support/worlds/permits-in-line.ts';

const HOUR = 3_600_000;
const others = await newLocations();
const started: { stop(): Promise<void> }[] = [];
afterAll(() => Promise.all(started.map(({ stop }) => stop())));

/** The reports and clean-ups over the tables of a world. */
async function reportsOver({ dependencies, clock, steps }: Awaited<ReturnType<typeof lineWorld>>) {
  started.push(steps);
  const { table: leasesTable, waitersTable } = dependencies;
  const locations = { ...others, leasesTable, waitersTable, bucket: await newBucket() };
  const expiry = await expiryWorld({ clock, locations, holders: boundHolders(dependencies) });
  return { expiry, cleanNow: (input: object = {}) => expiry.clean({ dryRun: false, ...input }) };
}

/** Bound grants of executions that run. */
function bound(world: Awaited<ReturnType<typeof lineWorld>>, limit: { limit?: number }) {
  const { park, grantOf, steps, clock } = world;
  const asked = () => steps.requests.filter(({ action }) => action === 'DescribeExecution').length;
  const hold = async (key: string, more: object = {}) => {
    const execution = steps.newExecution('RUNNING');
    const request = { key, holder: 'wf', requestId: execution, execution, bound: true, ...limit, ...more };
    const grant = grantOf((await park(request)).task);
    clock.advance(1000);
    return { execution, request, grant };
  };
  const end = (execution: string, status: EndStatus = 'SUCCEEDED') => steps.end(execution, status);
  return { asked, hold, end };
}

const leases = async () => {
  const world = await lineWorld();
  return { ...world, ...(await reportsOver(world)), ...bound(world, {}), other: (key: string) => ({ key }) };
};
const permits = async () => {
  const world = await permitLineWorld();
  const shaped = { ...world } as unknown as Awaited<ReturnType<typeof lineWorld>>;
  return {
    ...shaped,
    ...(await reportsOver(shaped)),
    ...bound(shaped, { limit: 1 }),
    other: (key: string) => ({ key, limit: 1 }),
  };
};

const KINDS: [kind: string, world: typeof leases][] = [
  ['lease', leases],
  ['permit', permits],
];

describe.each(KINDS)('a bound %s', (_, made) => {
  it('a bound grant whose execution has ended is reported, and freed after an hour', async () => {
    const { hold, end, asked, clock, expiry, cleanNow, acquire, other } = await made();
    const { execution, grant } = await hold('team-a/nightly');
    await hold('team-a/runs');
    expect((await expiry.report()).expired).toMatchObject({ holderEnded: { count: 0 }, holderUnknown: { count: 0 } });
    expect(asked()).toBe(2);
    end(execution, 'FAILED');
    clock.advance(60_000);
    const { expired, heldByNamespace } = await expiry.report();
    expect(asked()).toBe(4);
    expect(expired).toMatchObject({ holderEnded: { count: 1, oldestAgeSeconds: 60 }, holderUnknown: { count: 0 } });
    expect(heldByNamespace).toEqual([{ namespace: 'team-a', leases: 2 }]);
    const rows = await expiry.rows();
    expect(rows).toMatchObject([
      { kind: 'holderEnded', key: { key: 'team-a/nightly' }, holder: 'wf', neverDeletable: false },
    ]);
    expect(rows[0]?.reason).toBe(`the execution of wf has ended, and no other caller wanted the key: ${execution}`);
    expect(JSON.stringify(rows)).not.toContain(grant.leaseId);
    expect(await cleanNow()).toMatchObject({ deleted: { count: 0 }, spared: { by: { tooYoung: 1 } } });
    clock.advance(HOUR);
    expect(await expiry.clean()).toMatchObject({ dryRun: true, deleted: { by: { holderEnded: 1 } } });
    expect(await cleanNow()).toMatchObject({ deleted: { count: 1, by: { holderEnded: 1 } }, spared: { count: 0 } });
    expect(await cleanNow()).toMatchObject({ deleted: { count: 0 }, spared: { by: { gone: 1 } } });
    const next = await acquire({ holder: 'next', ...other('team-a/nightly') });
    expect(next.fence).toBeGreaterThan(grant.fence);
  });

  it('a bound grant is spared if it was requested again or has a line', async () => {
    const { hold, end, steps, clock, expiry, cleanNow, park, acquire, other } = await made();
    const repeated = await hold('repeated');
    const wanted = await hold('wanted');
    for (const { execution } of [repeated, wanted]) end(execution, 'FAILED');
    clock.advance(2 * HOUR);
    expect((await expiry.report()).expired).toMatchObject({ holderEnded: { count: 2 } });
    steps.redrive(repeated.execution);
    await park(repeated.request);
    await park({ holder: 'b', parkSeconds: 600, ...other('wanted') });
    clock.advance(2000);
    expect(await cleanNow()).toMatchObject({ deleted: { count: 0 }, spared: { count: 2, by: { changed: 2 } } });
    for (const key of ['repeated', 'wanted'])
      expect(await failure(acquire({ holder: 'next', ...other(key) }))).toMatchObject({ code: 'LeaseHeld' });
  });
});

describe.each(aFew(1, KINDS))('a bound %s', (_, made) => {
  it('a bound grant whose execution AWS does not show is never freed', async () => {
    const { hold, steps, clock, expiry, cleanNow, acquire, other } = await made();
    const { execution } = await hold('denied');
    steps.foreign.add(execution);
    clock.advance(2 * HOUR);
    expect((await expiry.report()).expired).toMatchObject({ holderEnded: { count: 0 }, holderUnknown: { count: 1 } });
    expect(await expiry.rows()).toMatchObject([{ kind: 'holderUnknown', expiredAt: null, holder: 'wf' }]);
    expect(await cleanNow()).toMatchObject({ deleted: { count: 0 }, spared: { by: { ageUnknown: 1 } } });
    expect(await failure(acquire({ holder: 'next', ...other('denied') }))).toMatchObject({ code: 'LeaseHeld' });
  });

  it('a bound grant without a notified task is holderUnknown while its execution runs', async () => {
    const { steps, clock, expiry, acquire, release, park, repairKey, other } = await made();
    const first = await acquire({ holder: 'first', ...other('unnotified') });
    const execution = steps.newExecution('RUNNING');
    const { task } = await park({ holder: 'wf', execution, bound: true, parkSeconds: 600, ...other('unnotified') });
    steps.faults.SendTaskSuccess = ['refused'];
    await release(first);
    expect((await expiry.report()).expired).toMatchObject({ holderUnknown: { count: 0 } });
    task.state = 'timedOut';
    clock.advance(60_000);
    await repairKey('unnotified');
    expect((await expiry.report()).expired).toMatchObject({ holderUnknown: { count: 1 } });
    const reason = `wf may never have been notified of the grant, and its execution runs: ${execution}`;
    expect(await expiry.rows()).toMatchObject([{ kind: 'holderUnknown', holder: 'wf', reason }]);
  });

  it('a bound grant from before a redrive is reported and freed', async () => {
    const { hold, end, steps, clock, expiry, cleanNow } = await made();
    const { execution } = await hold('redriven');
    end(execution, 'FAILED');
    clock.advance(1000);
    steps.redrive(execution);
    clock.advance(2 * HOUR);
    expect((await expiry.report()).expired).toMatchObject({ holderEnded: { count: 1 } });
    expect(await cleanNow()).toMatchObject({ deleted: { by: { holderEnded: 1 } } });
  });

  it('a bound grant with a grace ends after the grace as an abandoned one', async () => {
    const { hold, end, clock, expiry, cleanNow } = await made();
    const { execution } = await hold('graced', { graceSeconds: 60 });
    end(execution, 'TIMED_OUT');
    clock.advance(2 * HOUR);
    await expiry.report();
    expect(await cleanNow()).toMatchObject({ deleted: { count: 0 }, spared: { by: { changed: 1 } } });
    clock.advance(61_000);
    const { expired } = await expiry.report();
    expect(expired.holderEnded.count).toBe(0);
    expect(expired.abandonedLease.count + expired.abandonedPermit.count).toBe(1);
  });

  it('a report that Step Functions throttles stops asking, and is still complete', async () => {
    const { hold, asked, steps, expiry } = await made();
    for (const key of ['a', 'b', 'c']) await hold(key);
    steps.faults.DescribeExecution = Array(3).fill('throttled');
    const answer = await expiry.report(call(), { segments: 1 });
    expect(answer).toMatchObject({ complete: true, expired: { holderUnknown: { count: 0 } } });
    expect(asked()).toBe(3); // the tries of one question
    expect((await expiry.report()).complete).toBe(true);
    expect(asked()).toBe(6);
  });
});

describe('the permits of one execution', () => {
  it('the permits of one execution cost one look, and are freed one by one', async () => {
    const world = await permitLineWorld();
    const { steps, clock, park } = world;
    const { expiry, cleanNow } = await reportsOver(world as unknown as Awaited<ReturnType<typeof lineWorld>>);
    const execution = steps.newExecution('RUNNING');
    for (const requestId of ['1', '2', '3']) await park({ key: 'gpus', limit: 3, requestId, execution, bound: true });
    clock.advance(1000);
    steps.executions.set(execution, 'SUCCEEDED');
    steps.stopped.set(execution, clock.now());
    clock.advance(2 * HOUR);
    expect((await expiry.report()).expired.holderEnded.count).toBe(3);
    expect(steps.requests.filter(({ action }) => action === 'DescribeExecution')).toHaveLength(1);
    expect(await cleanNow()).toMatchObject({ deleted: { count: 3 }, spared: { count: 0 } });
    expect(await world.read('gpus')).toMatchObject({ used: 0, holders: [] });
  });
});

describe('the handlers of report and clean-up', () => {
  it("the clean-up frees an ended execution's permit, but not one of its target", async () => {
    const world = await permitLineWorld();
    const { steps, clock, acquire, park, release } = world;
    const { expiry } = await reportsOver(world as unknown as Awaited<ReturnType<typeof lineWorld>>);
    const { report, clean } = expiry.handlers(async () => stepFunctionsClient({ endpoint: steps.endpoint }));
    const [parked, ended, target] = ['RUNNING', 'RUNNING', 'RUNNING'].map((status) => steps.newExecution(status));
    const first = await acquire({ key: 'parked', limit: 1 });
    await park({ key: 'parked', limit: 1, execution: parked, bound: true, parkSeconds: 60 });
    await release(first);
    await park({ key: 'working', limit: 1, execution: ended, target, bound: true });
    clock.advance(1000);
    for (const execution of [parked, ended] as string[]) {
      steps.executions.set(execution, 'SUCCEEDED');
      steps.stopped.set(execution, clock.now());
    }
    clock.advance(2 * HOUR);
    expect(await post(report, {})).toMatchObject({ status: 201, body: { expired: { holderEnded: { count: 2 } } } });
    expect(await post(clean, { dryRun: false })).toMatchObject({
      body: { deleted: { by: { holderEnded: 1 } }, spared: { by: { changed: 1 } } },
    });
    expect((await world.read('parked')).holders).toEqual([]);
    expect((await world.read('working')).holders).toMatchObject([{ execution: target }]);
  });
});

describe('idle bound leases', () => {
  it.runIf(isFull)('idle bound leases cost a look each per report, at most five a second', async () => {
    const { park, steps, asked, clock, expiry, repair } = await leases();
    const hold = (key: string) => park({ key, execution: steps.newExecution('RUNNING'), bound: true });
    for (let batch = 0; batch < 10; batch++)
      await Promise.all(Array.from({ length: 10 }, (_, at) => hold(`idle-${batch}-${at}`)));
    for (let minute = 0; minute < 60; minute++) {
      clock.advance(60_000);
      await repair();
    }
    expect(asked()).toBe(0);
    const startedAt = clock.now();
    expect(await expiry.report(call({ timeLeftMs: () => 300_000 }))).toMatchObject({ complete: true, scanned: 101 });
    expect(asked()).toBe(100);
    expect(clock.now() - startedAt).toBeGreaterThan(19_000);
    expect((await expiry.rows()).length).toBe(0);
  });
});
