import { expect, it } from 'vitest';
import type { EndStatus } from '../support/emulators/step-functions.ts';
import { failure } from '../support/worlds/leases.ts';
import type { LineWorld } from './world.ts';

const MARGIN_MS = 500;
const LAG_MS = 60_000;
const LOOK_MS = 30_000;
const none = { tickets: 0, freed: 0, graced: 0, kept: 0 };

/** A grant that lasts as long as its execution. */
export async function boundGrants(lineWorld: LineWorld) {
  const world = await lineWorld();
  const { acquire, heartbeat, release, breakGrant, park, grantOf, executionEnded, see } = world;
  const { steps, newKey, timeline } = world;
  const asked = () => steps.requests.filter(({ action }) => action === 'DescribeExecution').length;

  /** A bound lock of an execution that runs. */
  async function hold(more: object = {}) {
    const execution = steps.newExecution('RUNNING');
    const request = { key: newKey(), holder: 'wf', requestId: 'r', execution, bound: true, ...more };
    const grant = await ask(request);
    timeline.advance(1000);
    return { execution, request, grant, key: request.key };
  }
  /** Parks a task that is notified at once. @returns its grant */
  const ask = async (request: object) => grantOf((await park(request)).task);
  const end = (execution: string, status: EndStatus = 'SUCCEEDED') => steps.end(execution, status);
  const redrive = (execution: string) => steps.redrive(execution);
  const other = (key: string, more: object = {}) => acquire({ key, holder: 'other', ...more });
  const held = (key: string, more: object = {}) => failure(other(key, more));

  it('a bound grant says that it is bound, and lasts without heartbeats', async () => {
    const { key, grant } = await hold();
    expect(grant).toMatchObject({ bound: true });
    timeline.advance(366 * 86_400_000);
    expect(await held(key)).toMatchObject({ code: 'LeaseHeld', context: { retryAfterMs: LOOK_MS } });
    expect(await see(key)).toMatchObject({ holder: 'wf' });
  });

  it('a heartbeat never shortens a bound grant, and says whether it is still held', async () => {
    const { key, grant } = await hold();
    expect(await heartbeat({ ...grant, ttlSeconds: 60 })).toMatchObject({ expiresAt: grant.expiresAt, bound: true });
    expect(await heartbeat(grant)).toMatchObject({ remainingMs: 400 * 86_400_000, bound: true });
    await breakGrant(grant);
    expect(await failure(heartbeat(grant))).toMatchObject({ code: 'LeaseLost', context: { reason: 'broken' } });
    expect(await other(key)).toMatchObject({ holder: 'other' });
  });

  it('a release gives a bound grant to a bound task in line', async () => {
    const { key, grant } = await hold();
    const execution = steps.newExecution('RUNNING');
    const { task } = await park({ key, execution, bound: true });
    await release(grant);
    expect(grantOf(task)).toMatchObject({ bound: true });
    timeline.advance(1000);
    expect(await executionEnded(execution, false, end(execution))).toEqual({ execution, ...none, freed: 1 });
    expect(await other(key)).not.toHaveProperty('bound');
  });

  it('the successor of a bound grant has its own ttl', async () => {
    const { key, grant } = await hold();
    timeline.advance(3600_000);
    const { task } = await park({ key, ttlSeconds: 60 });
    await release(grant);
    expect(grantOf(task)).toMatchObject({ remainingMs: 60_000 });
    expect(grantOf(task)).not.toHaveProperty('bound');
  });

  it('a repeat of a bound grant outlives an end before it', async () => {
    const { execution, request, key } = await hold();
    const event = end(execution, 'FAILED');
    redrive(execution);
    timeline.advance(1000);
    expect(await ask(request)).toMatchObject({ repeated: true, bound: true });
    expect(await executionEnded(execution, false, event)).toEqual({ execution, ...none });
    expect(await see(key)).toMatchObject({ holder: 'wf' });
  });

  const refused = (terms: string) => ({
    code: 'InvalidRequest',
    context: { issues: [{ path: 'requestId', message: `${terms}, or another requestId` }] },
  });
  const unbound = refused('has a grant with a ttl: send ttlSeconds in place of bound');
  const otherwiseBound = refused('has a bound grant of another execution or with a ttl: send bound and that execution');

  it('a request with a ttl is not answered as bound', async () => {
    const [key, execution] = [newKey(), steps.newExecution('RUNNING')];
    const grant = await acquire({ key, holder: 'wf', requestId: 'r', ttlSeconds: 20 });
    const again = { key, holder: 'wf', requestId: 'r', bound: true, execution };
    expect(await failure(park(again))).toMatchObject(unbound);
    expect(await see(key)).toMatchObject({
      holder: 'wf',
      execution: null,
      waiting: 0,
      expiresAt: grant.expiresAt,
    });
    expect(await heartbeat({ ...grant, ttlSeconds: 20 })).toMatchObject({ fence: grant.fence });
  });

  it('a bound request is answered only to its own execution and terms', async () => {
    const { request, key, execution } = await hold();
    const { bound: _, ...plain } = request;
    for (const again of [{ ...request, execution: steps.newExecution('RUNNING') }, plain]) {
      expect(await failure(park(again))).toMatchObject(otherwiseBound);
    }
    expect(await failure(acquire(plain))).toMatchObject(otherwiseBound);
    expect(await see(key)).toMatchObject({ holder: 'wf', execution, waiting: 0 });
    expect(await ask(request)).toMatchObject({ repeated: true, bound: true });
  });

  it('a bound request receives a new grant after an expired one', async () => {
    const [key, execution] = [newKey(), steps.newExecution('RUNNING')];
    const grant = await acquire({ key, holder: 'wf', requestId: 'r', ttlSeconds: 20 });
    timeline.advance(20_000 + MARGIN_MS + 1);
    const again = await ask({ key, holder: 'wf', requestId: 'r', bound: true, execution });
    expect(again).toMatchObject({ bound: true, repeated: false });
    expect(again.leaseId).not.toBe(grant.leaseId);
  });

  it('the grace of an execution is not bound to another execution', async () => {
    const { request, execution } = await hold({ graceSeconds: 60 });
    await executionEnded(execution, false, end(execution, 'FAILED'));
    const again = { ...request, execution: steps.newExecution('RUNNING') };
    expect(await failure(park(again))).toMatchObject(unbound);
  });

  it('the event frees the grant at once, without a question', async () => {
    const { key, execution } = await hold();
    const { task } = await park({ key });
    steps.requests.length = 0;
    expect(await executionEnded(execution, false, end(execution))).toEqual({ execution, ...none, freed: 1 });
    expect(asked()).toBe(0);
    expect(grantOf(task)).toMatchObject({ previous: { holder: 'wf', ended: 'executionEnded' } });
  });

  it.each(['ended', 'running'])(
    'the event frees a grant answered 132 ms before the end (shown as %s)',
    async (shown) => {
      const { key, execution, request } = await hold();
      await ask(request);
      timeline.advance(132);
      const event = end(execution);
      if (shown === 'running') steps.executions.set(execution, 'RUNNING');
      expect(await executionEnded(execution, false, event)).toEqual({ execution, ...none, freed: 1 });
      expect(await see(key)).toMatchObject({ holder: undefined });
    },
  );

  it('an execution that cannot be asked about holds until it is sure', async () => {
    const { key, execution } = await hold();
    steps.executions.delete(execution);
    await held(key);
    expect(await see(key)).toMatchObject({ holder: 'wf' });
    timeline.advance(LAG_MS);
    expect(await other(key)).toMatchObject({ holder: 'other' });
    const denied = await hold();
    end(denied.execution);
    steps.foreign.add(denied.execution);
    timeline.advance(2 * LAG_MS);
    await held(denied.key);
    expect(await see(denied.key)).toMatchObject({ holder: 'wf' });
  });

  it('a target that began late keeps the grant for longer than 400 days', async () => {
    const { key, execution } = await hold({ target: steps.newExecution('RUNNING') });
    timeline.advance(300 * 86_400_000);
    expect(await executionEnded(execution, false, end(execution))).toMatchObject({ kept: 1 });
    timeline.advance(300 * 86_400_000);
    expect(await held(key)).toMatchObject({ code: 'LeaseHeld' });
  });

  it.each(['FAILED', 'TIMED_OUT', 'ABORTED'] as const)(
    'a heartbeat extends a bound grant in its grace after %s',
    async (status) => {
      const { key, execution, request, grant } = await hold({ graceSeconds: 60 });
      const event = end(execution, status);
      expect(await executionEnded(execution, false, event)).toEqual({ execution, ...none, graced: 1 });
      timeline.advance(30_000);
      const { leaseId } = grant;
      expect(await acquire({ ...request, bound: false })).toMatchObject({ leaseId, remainingMs: 30_000 });
      expect(await executionEnded(execution, true, event)).toEqual({ execution, ...none });
      expect(await see(key)).toMatchObject({ holder: 'wf', execution, inGrace: true, remainingMs: 30_000 });
      expect(await heartbeat(grant)).toMatchObject({ leaseId, remainingMs: 60_000 });
      timeline.advance(60_000 + MARGIN_MS + 1);
      expect(await other(key)).toMatchObject({ previous: { ended: 'expired' } });
    },
  );

  it('a redriven task that asks again in the grace is bound again', async () => {
    const { key, execution, request } = await hold({ graceSeconds: 60 });
    const event = end(execution, 'FAILED');
    await executionEnded(execution, false, event);
    redrive(execution);
    timeline.advance(30_000);
    expect(await ask(request)).toMatchObject({ bound: true });
    expect(await executionEnded(execution, true, event)).toEqual({ execution, ...none });
    timeline.advance(3600_000);
    expect(await see(key)).toMatchObject({ holder: 'wf', execution, inGrace: false });
    expect(await executionEnded(execution, false, end(execution))).toMatchObject({ freed: 1 });
  });
}
