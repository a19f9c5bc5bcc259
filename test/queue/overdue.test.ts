import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { handOff } from '../../shared/leases/hand-off.ts';
import { readRecord } from '../../shared/leases/read-record.ts';
import { repairLines } from '../../shared/locks/repair.ts';
import { call } from '../support/emulators/aws.ts';
import { queueWorld } from '../support/worlds/line.ts';

const world = await queueWorld();
const { acquire, release, park, joinLine, grantOf, dependencies, rawItem, putRaw, putTicket, rows, clock } = world;
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
  /** A task that has the lease, and was not notified. */
  async function untold(key: string, terms: object = {}) {
    const first = await acquire({ key });
    const parked = await park({ key, ttlSeconds: 3600, ...terms });
    steps.faults.SendTaskSuccess = ['refused'];
    await release(first);
    return parked;
  }

  it('the schedule notifies a task of its lease from ten seconds after the grant until three minutes after the deadline, each time under a new version', async () => {
    const key = 'three minutes';
    const { task } = await untold(key, { parkSeconds: 1 });
    const versions: (string | undefined)[] = [];
    const standing = async () => versions.push((await rawItem(key))?.lease_version?.S);
    await standing();
    const deadline = Number((await rows(key))[0]?.deadline?.N);
    clock.advance(9999);
    expect(await repairKey(key)).toMatchObject({ told: 0, unanswered: 0 }); // the call that granted the lease may still notify the task
    clock.advance(1);
    steps.faults.SendTaskSuccess = ['refused'];
    expect(await repairKey(key)).toMatchObject({ told: 0, unanswered: 1 });
    await standing();
    clock.set(deadline + 180_000);
    expect(await repairKey(key)).toMatchObject({ told: 0, unanswered: 0 });
    clock.advance(-1);
    steps.faults.SendTaskSuccess = ['refused'];
    expect(await repairKey(key)).toMatchObject({ told: 0, unanswered: 1 });
    await standing();
    expect(await repairKey(key)).toMatchObject({ told: 1, unanswered: 0 });
    await standing();
    expect(grantOf(task)).toMatchObject({ remainingMs: 3_600_000, repeated: false });
    expect(grantOf(task).version).toBe(versions.at(-1));
    expect(new Set(versions).size).toBe(4);
    expect(await rows(key)).toEqual([]);
  });

  it('the schedule leaves the ticket to another run that notifies the task at the same time, even if the message of that run is unanswered', async () => {
    const key = 'two runs';
    const { task } = await untold(key);
    clock.advance(10_000);
    requests.faultsOf.UpdateItem = [
      'none', // the mark
      async (send) => {
        steps.faults.SendTaskSuccess = ['refused'];
        expect(await repairKey(key)).toMatchObject({ told: 0, unanswered: 1 });
        return send();
      },
    ];
    expect(await repairKey(key)).toMatchObject({ told: 0, unanswered: 0 });
    expect(await rows(key)).toHaveLength(1);
    expect(await repairKey(key)).toMatchObject({ told: 1 });
    expect(task.state).toBe('succeeded');
  });

  it('the schedule deletes the row of a caller that has claimed its grant, and does not change the grant', async () => {
    const key = 'claimed';
    const first = await acquire({ key });
    await joinLine(key, 'r');
    const [row = {}] = await rows(key);
    await release(first);
    await acquire({ key, holder: 'caller', requestId: 'r', ttlSeconds: 3600 });
    await putTicket(row); // its call died before it deleted the row
    clock.advance(10_000);
    const { lease_version, expires_at } = (await rawItem(key)) ?? {};
    expect(await repairKey(key)).toMatchObject({ told: 0, unanswered: 0 });
    expect(await rows(key)).toEqual([]);
    expect(await rawItem(key)).toMatchObject({ lease_version, expires_at });
    expect(steps.requests).toEqual([]);
  });

  it('the schedule deletes the row of a caller that has left, and puts no mark on a lease without waiters', async () => {
    const key = 'has left';
    await acquire({ key, ttlSeconds: 3600 });
    const before = await rawItem(key);
    const now = clock.now();
    const until = { deadline: { N: String(now) }, keep_until: { N: String(now + 5000) } };
    const row = { key: { S: key }, ticket: { S: '000000000000001-left' }, ttl_seconds: { N: '10' }, ...until };
    await putTicket({ ...row, holder: { S: 'left' }, request_id: { S: 'left' } });
    for (const left of [1, 0, 0]) {
      expect(await repairKey(key)).toMatchObject({ unanswered: 0 });
      expect(await rows(key)).toHaveLength(left);
      expect(await rawItem(key)).toEqual(before);
      clock.advance(5000);
    }
    expect(steps.requests).toEqual([]);
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
