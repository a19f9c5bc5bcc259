import { afterAll, expect, it } from 'vitest';
import { durableFunctions } from '../../shared/aws/durable-functions.ts';
import { ANY_EXECUTION } from '../../shared/locks/executions/allowed.ts';
import { startCallbackDouble } from '../support/emulators/callbacks.ts';
import { permitLineWorld } from '../support/worlds/permits-in-line.ts';

let now = () => 0;
const double = await startCallbackDouble(() => now());
const { callbacks } = double;
const { acquire, park, grantOf, rows, clock, repair, steps } = await permitLineWorld({
  durableFunctions: async () => durableFunctions({ endpoint: double.endpoint, region: 'us-east-1' }),
  executions: { ...ANY_EXECUTION, durableFunctions: '*' },
});
now = () => clock.now();
afterAll(() => Promise.all([steps.stop(), double.stop()]));

const shared = { mode: 'shared', ttlSeconds: 3600 };

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

it.each([
  ['the end of its execution, if the event is lost', (arn: string) => callbacks.end(arn, 'STOPPED')],
  ['its function was deleted', (arn: string) => callbacks.executions.delete(arn)],
])('a callback loses its ticket within two minutes after %s', async (key, ends) => {
  const { execution, behind } = await blocked(key);
  ends(execution);
  clock.advance(61_000);
  await repair();
  expect(grantOf(behind)).toMatchObject({ holder: 'behind' });
  expect(await rows(key)).toEqual([]);
});

it('a callback keeps its ticket for a minute before its execution is found', async () => {
  const { execution, behind } = await blocked('begins');
  callbacks.executions.delete(execution);
  clock.advance(59_000);
  await repair();
  expect([behind.state, await rows('begins')]).toMatchObject(['waiting', [{}, {}]]);
});

it.each([undefined, 'throttled', 'refused'] as const)(
  'a callback of a running execution keeps its ticket (answer: %s)',
  async (fault) => {
    const { behind } = await blocked(`runs ${fault}`);
    clock.advance(61_000);
    if (fault) double.faults.push(fault, fault, fault);
    await repair();
    double.faults.length = 0;
    expect([behind.state, await rows(`runs ${fault}`)]).toMatchObject(['waiting', [{}, {}]]);
  },
);
