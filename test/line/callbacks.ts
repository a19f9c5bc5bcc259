import { createHash } from 'node:crypto';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import type { Callback } from '../../local/durable/callbacks.ts';
import { durableFunctions } from '../../shared/aws/durable-functions.ts';
import type { Parked } from '../../shared/line/calls.ts';
import { ANY_EXECUTION } from '../../shared/line/executions/allowed.ts';
import { acquire as acquireOrPark } from '../../shared/locks/acquire.ts';
import { acquireInput } from '../../shared/locks/inputs.ts';
import { call } from '../support/emulators/aws.ts';
import { startCallbackDouble } from '../support/emulators/callbacks.ts';
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
  const { executionEnded, heartbeat, cancel, breakGrant } = world;
  now = () => timeline.now();
  const input = acquireInput();
  const inLine = acquireOrPark(dependencies);
  const terms = (await acquire({ key: newKey(), holder: 'probe' })) as Grant & { limit?: number };
  const ofLock = terms.limit === undefined ? {} : { limit: 1 };

  interface Submission {
    callback: Callback;
    [field: string]: unknown;
  }
  /** What the submitter of a callback does, a millisecond after all before. */
  const submit = async ({ callback, ...asked }: Submission): Promise<Parked> => {
    timeline.advance(1);
    const request = { holder: 'durable', ttlSeconds: 60, callbackId: callback.id, ...ofLock, ...asked };
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

  describe('a callback that parks', () => {
    it('a callback receives a free lock at once, as the JSON of what acquire would answer', async () => {
      const key = newKey();
      const { callback, parked } = await park(key, { ttlSeconds: 30, data: { run: 7 } });
      expect(parked).toBe(false);
      const grant = grantOf(callback);
      expect(grant).toMatchObject({ key, holder: 'durable', data: { run: 7 }, remainingMs: 30_000, repeated: false });
      expect([await rows(key), await isMarked(key)]).toEqual([[], false]);
      expect(await heartbeat(grant)).toMatchObject({ holder: 'durable' });
      expect(await release(grant)).toMatchObject({ released: true });
    });

    it('the row of a callback has the callback id in place of a task token, and lists show its kind and not its id', async () => {
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

    it('a release grants the lock to a waiting callback, with the whole ttl ahead', async () => {
      const { key, first, callback } = await held();
      timeline.advance(5000);
      await release(first);
      expect(grantOf(callback)).toMatchObject({ key, waitedMs: 5000, remainingMs: 60_000 });
      expect(await rows(key)).toEqual([]);
    });

    it('a callback whose wait is over fails with LeaseHeld, and its error data is the problem with code and key', async () => {
      const { key, callback } = await held({ parkSeconds: 30 });
      timeline.advance(31_000);
      await repair(key);
      const { ErrorType, ErrorMessage, ErrorData = '' } = failureOf(callback);
      expect(ErrorType).toBe('LeaseHeld');
      expect(JSON.parse(ErrorData)).toMatchObject({ code: 'LeaseHeld', key, detail: ErrorMessage });
      expect(await rows(key)).toEqual([]);
    });

    it('a cancelled callback fails with LeaseLost', async () => {
      const { key, callback, ticket } = await held();
      expect(await cancel(key, ticket)).toMatchObject({ cancelled: true });
      expect(failureOf(callback)).toMatchObject({ ErrorType: 'LeaseLost' });
    });

    it('twenty durable executions are served in the order of the line', async () => {
      const key = newKey();
      const first = await acquire({ key, holder: 'first', ttlSeconds: 600 });
      const parked = [];
      for (let at = 0; at < 20; at++) parked.push(await park(key, { holder: `durable ${at}` }));
      let proof: Grant = first;
      for (const [at, { callback }] of parked.entries()) {
        await release(proof);
        expect(parked.filter((one) => one.callback.result)).toHaveLength(at + 1);
        proof = grantOf(callback);
      }
      await release(proof);
      expect([await rows(key), (await see(key)).holder]).toEqual([[], undefined]);
    });
  });
}
