import { afterAll, afterEach, beforeEach, expect, it } from 'vitest';
import { permitLineWorld } from '../support/worlds/permits-in-line.ts';

const world = await permitLineWorld();
const { acquire, park, cancel, grantOf, rows, rawItem, clock, steps, repair, repairLine } = world;
afterAll(() => steps.stop());
const keys: string[] = [];
/** A run of the schedule checks all keys, so each test empties its line. */
afterEach(async () => {
  for (const key of keys.splice(0)) for (const row of await rows(key)) await cancel(key, row.ticket?.S ?? '');
});
beforeEach(() => {
  steps.requests.length = 0;
  steps.faults = {};
});

const asked = () => steps.requests.filter(({ action }) => action === 'SendTaskHeartbeat');
const shared = { mode: 'shared', ttlSeconds: 3600 };

/** A reader holds, a writer parks behind the reader, a second reader parks behind the writer, and a minute passes. */
async function blocked(
  key: string,
  { state = 'timedOut', ...more }: { state?: 'waiting' | 'timedOut'; execution?: string } = {},
) {
  keys.push(key);
  await acquire({ key, holder: 'reader', ...shared });
  const { task } = await park({ key, holder: 'writer', mode: 'exclusive', ...more });
  const { task: behind } = await park({ key, holder: 'behind', ...shared });
  task.state = state;
  clock.advance(58_000);
  await repair();
  expect([behind.state, asked()]).toEqual(['waiting', []]);
  clock.advance(60_000);
  return { task, behind };
}

it.each([
  ['whose execution goes on', 'RUNNING'],
  ['whose execution has ended without an event', 'FAILED'],
  ['that names no execution', undefined],
])('a task %s loses its ticket within two minutes after its token has expired', async (how, status) => {
  const { behind } = await blocked(how, status ? { execution: steps.newExecution(status) } : {});
  await repair();
  expect(grantOf(behind)).toMatchObject({ holder: 'behind' });
  expect(await rows(how)).toEqual([]);
});

it.each(['taken', 'refused', 'throttled', 'denied', 'lost'] as const)(
  'a task keeps its ticket if the answer about its heartbeat is %s',
  async (answer) => {
    const { task, behind } = await blocked(answer, { state: answer === 'taken' ? 'waiting' : 'timedOut' });
    if (answer !== 'taken') steps.faults.SendTaskHeartbeat = [answer];
    await repair();
    expect(asked()).toMatchObject([{ token: task.token }]);
    expect([behind.state, await rows(answer)]).toMatchObject(['waiting', [{}, {}]]);
  },
);

it('a run stops asking about tasks once Step Functions has throttled a heartbeat', async () => {
  const lines = Array.from({ length: 9 }, (_, index) => `throttled ${index}`);
  for (const key of lines) {
    keys.push(key);
    await acquire({ key, holder: 'reader', ...shared });
    const { task } = await park({ key, holder: 'writer', mode: 'exclusive' });
    await park({ key, holder: 'behind', ...shared });
    task.state = 'timedOut';
  }
  clock.advance(120_000);
  steps.faults.SendTaskHeartbeat = lines.map(() => 'throttled');
  await repair();
  expect(asked().length).toBeLessThanOrEqual(8); // a run works on this many keys at once
  steps.faults = {};
  await repair();
  for (const key of lines) expect(await rows(key)).toEqual([]);
});

it('a message does not ask about the task', async () => {
  await blocked('by a message');
  await repairLine('by a message');
  expect([asked(), await rows('by a message')]).toMatchObject([[], [{}, {}]]);
});

it('several tasks whose tokens have expired leave in one run of the schedule', async () => {
  const key = 'dead alone';
  await acquire({ key, holder: 'reader', ...shared });
  for (let nth = 0; nth < 3; nth++) (await park({ key, holder: `${nth}`, mode: 'exclusive' })).task.state = 'timedOut';
  clock.advance(60_000);
  await repair();
  expect([asked().length, await rows(key)]).toEqual([3, []]);
  expect(await rawItem(key)).not.toHaveProperty('mark');
  expect(await acquire({ key, holder: 'plain', ...shared })).toMatchObject({ holder: 'plain' });
});
