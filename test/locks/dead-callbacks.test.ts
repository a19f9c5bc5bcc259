import { afterAll, describe, expect, it } from 'vitest';
import { durableFunctions } from '../../shared/aws/durable-functions.ts';
import { ANY_EXECUTION } from '../../shared/line/executions/allowed.ts';
import { startCallbackDouble } from '../support/emulators/callbacks.ts';
import { poolLineWorld } from '../support/worlds/permits-in-line.ts';

let now = () => 0;
const double = await startCallbackDouble(() => now());
const { callbacks } = double;
const { acquire, park, grantOf, rows, clock, repair, steps } = await poolLineWorld({
  durableFunctions: async () => durableFunctions({ endpoint: double.endpoint, region: 'us-east-1' }),
  executions: { ...ANY_EXECUTION, durableFunctions: '*' },
});
now = () => clock.now();
afterAll(() => Promise.all([steps.stop(), double.stop()]));

const shared = { mode: 'shared', ttlSeconds: 3600 };

describe('the next callback in line, if it does not fit', () => {
  /** A reader holds, the callback of a writer parks behind the reader, and a second reader parks behind the writer. */
  const blocked = async (key: string) => {
    await acquire({ key, holder: 'reader', ...shared });
    const execution = callbacks.begin().arn;
    const { id: callbackId } = callbacks.create(execution);
    const asked = {
      key,
      holder: 'writer',
      mode: 'exclusive',
      taskToken: undefined,
      callbackId,
      requestId: key,
      execution,
    };
    await park(asked);
    const { task: behind } = await park({ key, holder: 'behind', ...shared });
    return { execution, behind };
  };

  it('a callback loses its ticket within two minutes after the end of its execution, if the event is lost', async () => {
    const { execution, behind } = await blocked('ended');
    callbacks.end(execution, 'STOPPED');
    clock.advance(61_000);
    await repair();
    expect(grantOf(behind)).toMatchObject({ holder: 'behind' });
    expect(await rows('ended')).toEqual([]);
  });

  it('a callback loses its ticket within two minutes after its function was deleted', async () => {
    const { execution, behind } = await blocked('deleted');
    callbacks.executions.delete(execution);
    clock.advance(61_000);
    await repair();
    expect(grantOf(behind)).toMatchObject({ holder: 'behind' });
    expect(await rows('deleted')).toEqual([]);
  });

  it('a callback keeps its ticket for a minute if AWS does not find its execution yet', async () => {
    const { execution, behind } = await blocked('begins');
    callbacks.executions.delete(execution);
    clock.advance(59_000);
    await repair();
    expect([behind.state, await rows('begins')]).toMatchObject(['waiting', [{}, {}]]);
  });

  it.each([undefined, 'throttled', 'refused'] as const)(
    'a callback whose execution runs keeps its ticket, also if the answer about the execution is %s',
    async (fault) => {
      const { behind } = await blocked(`runs ${fault}`);
      clock.advance(61_000);
      if (fault) double.faults.push(fault, fault, fault);
      await repair();
      double.faults.length = 0;
      expect([behind.state, await rows(`runs ${fault}`)]).toMatchObject(['waiting', [{}, {}]]);
    },
  );
});
