import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { deleteWaiter } from '../../shared/line/waiters.ts';
import { call } from '../support/emulators/aws.ts';
import { poolLineWorld } from '../support/worlds/permits-in-line.ts';

const world = await poolLineWorld();
const { acquire, park, grantOf, rows, rawItem, clock, steps, repair, repairLine } = world;
afterAll(() => steps.stop());
const keys: string[] = [];
/** A run of the schedule looks at all keys, so each test empties its line. */
afterEach(async () => {
  for (const key of keys.splice(0))
    for (const row of await rows(key))
      await deleteWaiter(world.dependencies, { key: key, ticket: row.ticket?.S ?? '' }, call());
});
beforeEach(() => {
  steps.requests.length = 0;
  steps.faults = {};
});

const asked = () => steps.requests.filter(({ action }) => action === 'SendTaskHeartbeat');
const shared = { mode: 'shared', ttlSeconds: 3600 };

/** A reader holds, a writer parks behind the reader, and a second reader parks behind the writer. */
async function blocked(key: string, more: object = {}) {
  keys.push(key);
  await acquire({ key, holder: 'reader', ...shared });
  const writer = await park({ key, holder: 'writer', mode: 'exclusive', ...more });
  const { task: behind } = await park({ key, holder: 'behind', ...shared });
  return { ...writer, behind };
}

describe('a task that is first in the line of a pool, and does not fit', () => {
  it.each([
    ['whose execution goes on', 'RUNNING'],
    ['whose execution has ended without an event', 'FAILED'],
    ['that names no execution', undefined],
  ])('loses its place within two minutes after its token has died: %s', async (how, status) => {
    const execution = status && steps.newExecution(status);
    const { task, behind } = await blocked(how, { execution });
    task.state = 'timedOut';
    clock.advance(58_000);
    await repair();
    expect([behind.state, asked()]).toEqual(['waiting', []]);
    clock.advance(60_000);
    await repair();
    expect(grantOf(behind)).toMatchObject({ holder: 'behind' });
    expect(await rows(how)).toEqual([]);
  });

  it('keeps its place if Step Functions takes its heartbeat', async () => {
    const { task, behind } = await blocked('alive');
    clock.advance(60_000);
    await repair();
    expect([task.state, behind.state, asked()]).toEqual([
      'waiting',
      'waiting',
      [{ token: task.token, action: 'SendTaskHeartbeat' }],
    ]);
    expect(await rows('alive')).toHaveLength(2);
  });

  it.each(['refused', 'throttled', 'denied', 'lost'] as const)(
    'keeps its place if the answer about its heartbeat is %s',
    async (fault) => {
      const { task, behind } = await blocked(fault);
      task.state = 'timedOut';
      clock.advance(60_000);
      steps.faults.SendTaskHeartbeat = [fault];
      await repair();
      expect([behind.state, await rows(fault)]).toMatchObject(['waiting', [{}, {}]]);
    },
  );

  it('is not asked about in the rest of a run once Step Functions has throttled a heartbeat', async () => {
    const lines = Array.from({ length: 12 }, (_, index) => `throttled ${index}`);
    for (const key of lines) (await blocked(key)).task.state = 'timedOut';
    clock.advance(60_000);
    steps.faults.SendTaskHeartbeat = lines.map(() => 'throttled');
    await repair();
    expect(asked().length).toBeLessThanOrEqual(8); // a run works on this many keys at once
    steps.faults = {};
    await repair();
    for (const key of lines) expect(await rows(key)).toEqual([]);
  });

  it('is not asked about by a message, of which a key may have many', async () => {
    const { task } = await blocked('by a message');
    task.state = 'timedOut';
    clock.advance(60_000);
    await repairLine('by a message');
    expect([asked(), await rows('by a message')]).toMatchObject([[], [{}, {}]]);
  });

  it('costs those behind one run of the schedule together with further dead ones, and a plain caller comes in then', async () => {
    const key = 'dead alone';
    await acquire({ key, holder: 'reader', ...shared });
    for (let nth = 0; nth < 3; nth++)
      (await park({ key, holder: `${nth}`, mode: 'exclusive' })).task.state = 'timedOut';
    clock.advance(60_000);
    await repair();
    expect([asked().length, await rows(key)]).toEqual([3, []]);
    expect(await rawItem(key)).not.toHaveProperty('waiters');
    expect(await acquire({ key, holder: 'plain', ...shared })).toMatchObject({ holder: 'plain' });
  });
});
