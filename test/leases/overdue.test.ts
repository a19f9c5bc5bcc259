import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { handOff } from '../../shared/leases/hand-off.ts';
import { readRecord } from '../../shared/leases/read-record.ts';
import { repairLines } from '../../shared/locks/repair.ts';
import { call } from '../support/emulators/aws.ts';
import { queueWorld } from '../support/worlds/line.ts';

const world = await queueWorld();
const { acquire, release, park, joinLine, grantOf, dependencies, rawItem, putRaw, rows, clock } = world;
const { requests, steps, repairKey } = world;
afterAll(() => steps.stop());
beforeEach(() => {
  steps.requests.length = 0;
  steps.faults = {};
  requests.faultsOf = {};
});

const failures = () => steps.requests.filter(({ action }) => action === 'SendTaskFailure');

it('a hand-off with an old record keeps the ticket of an overdue task and the mark if the fences of a restored table were lifted after the grant', async () => {
  const key = 'lifted since';
  const before = await acquire({ key });
  await park({ key, parkSeconds: 50, ttlSeconds: 30 });
  clock.advance(1);
  await joinLine(key, 'leaves');
  steps.faults.SendTaskSuccess = ['refused'];
  await release(before);
  clock.advance(60_000);
  const record = await readRecord(dependencies, key, call());
  const lifted = { N: String(Number(record.fence) + 1_000_000) };
  await putRaw({ ...(await rawItem(key)), fence: lifted } as never);
  await handOff(dependencies, { record, ending: 'expired' }, call());
  expect(failures()).toEqual([]);
  expect(await rows(key)).toHaveLength(1);
  expect(await rawItem(key)).toHaveProperty('waiters');
});

describe('the schedule', () => {
  it('the schedule notifies a task of its lease under a new version each time', async () => {
    const key = 'each time';
    const first = await acquire({ key });
    const { task } = await park({ key, ttlSeconds: 3600 });
    steps.faults.SendTaskSuccess = ['refused', 'refused'];
    await release(first);
    const versions = [(await rawItem(key))?.lease_version?.S];
    for (const told of [0, 1]) {
      clock.advance(10_000);
      expect(await repairKey(key)).toMatchObject({ told, unanswered: 1 - told });
      versions.push((await rawItem(key))?.lease_version?.S);
    }
    expect(grantOf(task).version).toBe(versions.at(-1));
    expect(new Set(versions).size).toBe(3);
  });

  it('the schedule ends an unclaimed grant, and the caller keeps its position if the run has no time to look at the line', async () => {
    const key = 'not claimed';
    const first = await acquire({ key });
    await joinLine(key, 'r');
    await release(first);
    clock.advance(10_000);
    const left = [5000, 5000]; // at its beginning, and before its key
    await repairLines(dependencies)({ key }, call({ timeLeftMs: () => left.shift() ?? 1999 }));
    expect(await rows(key)).toHaveLength(1);
    expect(await rawItem(key)).not.toHaveProperty('lease_version');
    expect(await repairKey(key)).toMatchObject({ granted: 1 });
    expect(await rawItem(key)).toMatchObject({ holder: { S: 'caller' }, claim_ttl_ms: { N: '10000' } });
  });
});
