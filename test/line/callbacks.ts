import { createHash } from 'node:crypto';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { durableFunctions } from '../../shared/aws/durable-functions.ts';
import { acquire as acquireOrPark } from '../../shared/locks/calls/acquire.ts';
import { acquireInput } from '../../shared/locks/calls/inputs.ts';
import type { Parked } from '../../shared/locks/calls/types.ts';
import { ANY_EXECUTION } from '../../shared/locks/executions/allowed.ts';
import { call } from '../support/emulators/aws.ts';
import type { Callback } from '../support/emulators/callback-model.ts';
import { startCallbackDouble } from '../support/emulators/callbacks.ts';
import { failure } from '../support/worlds/leases.ts';
import type { Grant, LineWorld } from './world.ts';

/** An acquire with a callback id: a durable function waits suspended, and its callback receives the grant or a problem. */
export async function callbacksOfDurableFunctions(lineWorld: LineWorld) {
  let now = () => 0;
  const double = await startCallbackDouble(() => now());
  const { callbacks } = double;
  const world = await lineWorld({
    durableFunctions: async () => durableFunctions({ endpoint: double.endpoint, region: 'us-east-1' }),
    executions: { ...ANY_EXECUTION, durableFunctions: '*' },
    quotas: { waitersPerKey: 30, waitersPerNamespace: 1000 },
  });
  const { acquire, release, repair, repairAll, see, rows, isMarked, newKey, timeline, dependencies } = world;
  const { executionEnded, heartbeat, cancel, terms } = world;
  now = () => timeline.now();
  const input = acquireInput();
  const inLine = acquireOrPark(dependencies);

  interface Submission {
    callback: Callback;
    [field: string]: unknown;
  }
  /** What the submitter of a callback does, a millisecond after all before. */
  const submit = async ({ callback, ...asked }: Submission): Promise<Parked> => {
    timeline.advance(1);
    const request = { holder: 'durable', ttlSeconds: 60, callbackId: callback.id, ...terms, ...asked };
    return (await inLine(input.parse(request), call())) as Parked;
  };
  /** A durable execution of its own, with a callback that waits for the key. */
  const park = async (key: string, asked: object = {}) => {
    const execution = callbacks.begin();
    const callback = callbacks.create(execution.arn);
    const answer = await submit({ key, callback, execution: execution.arn, ...asked });
    return { ...answer, callback, execution: execution.arn };
  };
  const grantOf = ({ result }: Callback): Grant => {
    if (result?.outcome !== 'succeeded') throw new Error(`the callback was not granted: ${JSON.stringify(result)}`);
    return JSON.parse(result.result);
  };
  const failureOf = ({ result }: Callback) => {
    if (result?.outcome !== 'failed') throw new Error(`the callback has not failed: ${JSON.stringify(result)}`);
    return result.error;
  };
  const held = async (asked: object = {}) => {
    const key = newKey();
    const first = await acquire({ key, holder: 'first', ttlSeconds: 600 });
    return { first, ...(await park(key, asked)) };
  };
  /** The end of an execution, with its event. */
  const end = async (execution: string, status: 'FAILED' | 'STOPPED' | 'TIMED_OUT' = 'FAILED', again = false) => {
    callbacks.end(execution, status);
    return executionEnded(execution, again, { status, stopDate: timeline.now() });
  };

  afterAll(() => double.stop());
  beforeEach(() => {
    double.faults.length = 0;
    double.requests.length = 0;
    double.onTheWay = async () => undefined;
  });

  it('a callback receives a free lock as the JSON of a grant', async () => {
    const key = newKey();
    const { callback, parked } = await park(key, { ttlSeconds: 30, data: { run: 7 } });
    expect(parked).toBe(false);
    const grant = grantOf(callback);
    expect(grant).toMatchObject({ key, holder: 'durable', data: { run: 7 }, remainingMs: 30_000, repeated: false });
    expect([await rows(key), await isMarked(key)]).toEqual([[], false]);
    expect(await heartbeat(grant)).toMatchObject({ holder: 'durable' });
    expect(await release(grant)).toMatchObject({ released: true });
  });

  it('the row of a callback has its id, which lists do not show', async () => {
    const { key, callback } = await held();
    const [row] = await rows(key);
    expect(row).toMatchObject({
      callback_id: { S: callback.id },
      request_id: { S: `c-${createHash('sha256').update(callback.id).digest('base64url')}` },
    });
    expect(row).not.toHaveProperty('task_token');
    expect(row).not.toHaveProperty('keep_until');
    const { waiters } = await see(key);
    expect(waiters).toMatchObject([{ kind: 'callback', holder: 'durable' }]);
    expect(JSON.stringify(waiters)).not.toContain(callback.id);
  });

  it('a callback whose wait is over fails with LeaseHeld and the problem', async () => {
    const { key, callback } = await held({ parkSeconds: 30 });
    timeline.advance(31_000);
    await repair(key);
    const { ErrorType, ErrorMessage, ErrorData = '' } = failureOf(callback);
    expect(ErrorType).toBe('LeaseHeld');
    expect(JSON.parse(ErrorData)).toMatchObject({ code: 'LeaseHeld', key, detail: ErrorMessage });
    expect(await rows(key)).toEqual([]);
  });

  it('a call that shares a grant leaves the ticket of an unnotified callback', async () => {
    const { key, first, callback } = await held();
    double.faults.push('refused');
    await release(first);
    const [row] = await rows(key);
    const shared = { key, holder: 'durable', ttlSeconds: 60, requestId: row?.request_id?.S };
    expect(await acquire(shared)).toMatchObject({ repeated: true });
    expect(await rows(key)).toHaveLength(1);
    timeline.advance(11_000);
    await repair(key);
    expect(grantOf(callback)).toMatchObject({ key });
    expect(await rows(key)).toEqual([]);
  });

  it('a withdrawal of its request leaves the ticket of a callback', async () => {
    const { key, first, callback, ticket } = await held();
    const [row] = await rows(key);
    await world.withdraw({ key, holder: 'durable', requestId: row?.request_id?.S ?? '', ticket }, call());
    expect((await rows(key))[0]).not.toHaveProperty('cancelled_at');
    await release(first);
    expect(grantOf(callback)).toMatchObject({ key });
  });

  it('a cancelled callback fails with LeaseLost', async () => {
    const { key, callback, ticket } = await held();
    expect(await cancel(key, ticket)).toMatchObject({ cancelled: true });
    expect(failureOf(callback)).toMatchObject({ ErrorType: 'LeaseLost' });
  });

  describe('callbacks submitted twice', () => {
    /** Submits the same callback again, as a submitter does that runs twice. */
    const again = ({ callback, execution }: { callback: Callback; execution: string }, key: string) =>
      submit({ key, callback, execution });

    it('a callback that is submitted after its release does not receive another grant', async () => {
      const key = newKey();
      const parked = await park(key);
      await release(grantOf(parked.callback));
      expect(await again(parked, key)).toMatchObject({ parked: false });
      expect([(await see(key)).holder, await rows(key)]).toEqual([undefined, []]);
    });

    it('a callback whose second submission finds the line full fails with QueueFull', async () => {
      const parked = await held();
      const { key, first, callback } = parked;
      for (let at = 1; at < 30; at++) await park(key, { holder: `durable ${at}` });
      expect(await failure(again(parked, key))).toMatchObject({ code: 'QueueFull' });
      expect(failureOf(callback).ErrorType).toBe('QueueFull');
      await release(first);
      expect((await see(key)).holder).toBe('durable 1');
      expect(await rows(key)).toHaveLength(28);
    });
  });

  it.each(['missing', 'closed'] as const)('a grant to a callback that is %s goes to the next waiter', async (how) => {
    const { key, first, callback } = await held();
    const next = await park(key, { holder: 'next' });
    if (how === 'closed') callbacks.close(callback.id);
    else double.faults.push('missing');
    await release(first);
    expect(grantOf(next.callback)).toMatchObject({ key, holder: 'next' });
    expect(await rows(key)).toEqual([]);
  });

  it('the repair finds that a callback has its grant if the answer was lost', async () => {
    const { key, first, callback } = await held();
    double.faults.push('lost');
    await release(first);
    const grant = grantOf(callback);
    expect(double.requests).toEqual(['succeed']); // a single try
    expect(await rows(key)).toHaveLength(1);
    timeline.advance(11_000);
    await repair(key);
    expect(double.requests).toEqual(['succeed', 'succeed', 'describe']); // is its execution still running?
    expect([await rows(key), (await see(key)).fence]).toEqual([[], grant.fence]);
    expect(await heartbeat(grant)).toMatchObject({ holder: 'durable' });
  });

  it('a throttled message to a callback is sent again within the call', async () => {
    const { first, callback } = await held();
    double.faults.push('throttled', 'throttled');
    await release(first);
    expect(grantOf(callback)).toMatchObject({ holder: 'durable' });
    expect(double.requests).toEqual(['succeed', 'succeed', 'succeed']);
  });

  it.each(['refused', 'denied'] as const)('the repair sends a %s message to a callback again', async (fault) => {
    const { key, first, callback } = await held();
    double.faults.push(fault);
    await release(first);
    expect(double.requests).toEqual(['succeed']);
    expect([callback.result, (await rows(key)).length, (await see(key)).holder]).toEqual([undefined, 1, 'durable']);
    timeline.advance(11_000);
    await repair(key);
    expect(grantOf(callback).fence).toBe((await see(key)).fence);
  });

  it('a process without a client of Lambda leaves a callback to the repair', async () => {
    const { key, first, callback } = await held();
    const { durableFunctions: withClient } = dependencies;
    dependencies.durableFunctions = undefined;
    await release(first);
    dependencies.durableFunctions = withClient;
    expect([callback.result, double.requests]).toEqual([undefined, []]);
    await repair(key);
    expect(grantOf(callback)).toMatchObject({ key });
  });

  it('executions that are killed in line or as holders leave nothing behind', async () => {
    const killed = [];
    for (let at = 0; at < 5; at++) {
      const waiting = await held();
      const key = newKey();
      const holding = await park(key);
      grantOf(holding.callback);
      killed.push({ ...waiting, key: waiting.first.key }, { ...holding, key });
      await end(waiting.execution, at % 2 ? 'STOPPED' : 'TIMED_OUT');
      await end(holding.execution, at % 2 ? 'FAILED' : 'STOPPED');
      await release(waiting.first);
    }
    for (const { key } of killed) expect([(await see(key)).holder, await rows(key)]).toEqual([undefined, []]);
  });

  it('the repair finds the end of a durable execution if its event is lost', async () => {
    const key = newKey();
    const one = await park(key, { ttlSeconds: 3600 });
    const next = await park(key, { holder: 'next' });
    callbacks.end(one.execution, 'TIMED_OUT');
    timeline.advance(61_000);
    await repairAll();
    expect(grantOf(next.callback)).toMatchObject({ key, holder: 'next' });
  });

  it('a durable execution that AWS shows as running keeps its lease without an event', async () => {
    const key = newKey();
    const { execution, callback } = await park(key);
    expect(await executionEnded(execution)).toMatchObject({ freed: 0 });
    const lagging = callbacks.executions.get(execution);
    callbacks.end(execution, 'FAILED');
    Object.assign(lagging ?? {}, { shown: 'RUNNING' });
    const event = { status: 'FAILED', stopDate: timeline.now() } as const;
    expect(await executionEnded(execution, true, event)).toMatchObject({ freed: 0 });
    expect((await see(key)).fence).toBe(grantOf(callback).fence);
    expect(await executionEnded(execution, false, event)).toMatchObject({ freed: 1 });
  });

  it('the lease of a stopped durable execution lasts for its grace', async () => {
    const key = newKey();
    const { execution } = await park(key, { graceSeconds: 20 });
    await end(execution, 'STOPPED');
    expect(await see(key)).toMatchObject({ holder: 'durable', inGrace: true, remainingMs: 20_000 });
  });
}
