import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import type { Fault } from '../support/emulators/aws.ts';
import { networkError } from '../support/faults/cuttable.ts';
import { failure, leaseWorld } from '../support/worlds/leases.ts';
import { lineWorld } from '../support/worlds/line.ts';
import { rustClient } from '../support/worlds/rust-lease.ts';

const world = await lineWorld();
const { acquire, heartbeat, park, grantOf, read, rawItem, clock, requests, steps, table } = world;
afterAll(() => steps.stop());

/** Another instance of the service over the same table. */
const other = await leaseWorld({ table, clock });
const rust = rustClient(other.dynamodb, table, clock);

beforeEach(() => {
  requests.faults = [];
  requests.faultsOf = {};
  requests.sent.length = 0;
});

/** Another holder has the key and releases it. Then a Rust client takes the key, and deletes the record with its fence. */
async function overtake(key: string): Promise<{ fence: number }> {
  clock.advance(10);
  const grant = await other.acquire({ key, holder: 'overtaker' });
  await other.release(grant);
  await rust.release(key, (await rust.tryAcquire(key, 10)) ?? '');
  expect(await other.rawItem(key)).toBeUndefined();
  return grant;
}

/** A write that is overtaken, and arrives late. */
const overtaken =
  (key: string, note: (grant: { fence: number }) => void, ms = 1000): Fault =>
  async (send) => {
    note(await overtake(key));
    clock.advance(ms);
    return send();
  };

/** A write that is overtaken, arrives late, and loses its answer. */
const overtakenAndLost =
  (...[key, note]: Parameters<typeof overtaken>): Fault =>
  async (send) => {
    await (overtaken(key, note) as (send: () => Promise<unknown>) => Promise<unknown>)(send);
    throw networkError('ECONNRESET', 'read');
  };

const fenceOnRecord = async (key: string) => Number((await rawItem(key))?.fence?.N);

describe('late writes', () => {
  let before = Number.NaN;
  const note = ({ fence }: { fence: number }) => {
    before = fence;
  };

  it('a grant whose write arrived late has the higher fence', async () => {
    requests.faultsOf.UpdateItem = [overtaken('late', note)];
    const grant = await acquire({ key: 'late', holder: 'late' });
    expect(grant.fence).toBe(clock.now());
    expect(grant.fence).toBeGreaterThan(before);
    expect(grant).toMatchObject({ repeated: false, previous: null });
    expect(requests.sent).toEqual(['UpdateItem', 'UpdateItem']);
    expect(await rawItem('late')).toMatchObject({
      fence: { N: String(grant.fence) },
      h: { M: { v: { S: grant.version } } },
    });
    expect(await heartbeat(grant)).toMatchObject({ fence: grant.fence });
  });

  it('a grant whose write arrived late keeps its fence in a repeat', async () => {
    const lost: Fault = 'lostReply';
    requests.faultsOf.UpdateItem = [overtakenAndLost('asked-again', note), lost, lost];
    const request = { key: 'asked-again', holder: 'late', requestId: 'r' };
    await expect(acquire(request)).rejects.toMatchObject({ code: 'OutcomeUnknown' });
    const fence = await fenceOnRecord('asked-again');
    expect(fence).toBeLessThan(before);
    requests.sent.length = 0;
    expect(await acquire(request)).toMatchObject({ repeated: true, fence });
    expect(requests.sent).toEqual(['UpdateItem']);
  });

  it('a late grant whose fence was not raised has an unknown outcome', async () => {
    requests.faultsOf.UpdateItem = [overtaken('not-raised', note), 'throttle', 'throttle', 'throttle'];
    const { code, context } = await failure(acquire({ key: 'not-raised', holder: 'late' }));
    expect([code, context.retryWith]).toEqual(['OutcomeUnknown', { requestId: expect.any(String) }]);
    expect(await acquire({ key: 'not-raised', holder: 'late', ...(context.retryWith as object) })).toMatchObject({
      repeated: true,
    });
  });

  it('a late grant is lost if a duplicate call has released it', async () => {
    const request = { key: 'released', holder: 'late', requestId: 'r' };
    requests.faultsOf.UpdateItem = [
      overtaken('released', note),
      async (send) => {
        await other.release(await other.acquire(request));
        return send();
      },
    ];
    const { code, context } = await failure(acquire(request));
    expect([code, context.reason]).toEqual(['LeaseLost', 'released']);
    expect(requests.sent).toEqual(['UpdateItem', 'UpdateItem', 'UpdateItem']);
  });

  it('a late grant of a task has the higher fence', async () => {
    const key = 'late-task';
    const version = (await rust.tryAcquire(key, 60)) ?? '';
    const { task } = await park({ key });
    await rust.release(key, version);
    requests.faultsOf.UpdateItem = [overtaken(key, note, 200)];
    await world.repairKey(key);
    expect(grantOf(task).fence).toBeGreaterThan(before);
    expect(await fenceOnRecord(key)).toBe(grantOf(task).fence);
  });

  it('the claim raises the fence of a late grant to a caller', async () => {
    const key = 'late-caller';
    const version = (await rust.tryAcquire(key, 60)) ?? '';
    await world.joinLine(key, 'r');
    await rust.release(key, version);
    requests.faultsOf.UpdateItem = [overtaken(key, note, 200)];
    await world.handOff(key);
    expect(await fenceOnRecord(key)).toBeLessThan(clock.now());
    const grant = await acquire({ key, holder: 'caller', requestId: 'r', ttlSeconds: 10 });
    expect(grant.fence).toBeGreaterThan(before);
  });

  beforeEach(() => {
    before = Number.NaN;
  });
});

const answeredAfter =
  (ms: number): Fault =>
  async (send) => {
    const answer = await send();
    clock.advance(ms);
    return answer;
  };

it('a grant is one write if DynamoDB answers within 50 ms', async () => {
  requests.faultsOf.UpdateItem = [answeredAfter(50), answeredAfter(51)];
  await acquire({ key: 'in-time' });
  expect(requests.sent).toEqual(['UpdateItem']);
  await acquire({ key: 'not-in-time' });
  expect(requests.sent).toEqual(['UpdateItem', 'UpdateItem', 'UpdateItem']);
});

it('a grant over an earlier fence is one write, however late DynamoDB answers', async () => {
  const first = await acquire({ key: 'fenced' });
  await world.release(first);
  clock.advance(1);
  requests.sent.length = 0;
  requests.faultsOf.UpdateItem = [answeredAfter(1000)];
  const { fence } = await acquire({ key: 'fenced' });
  expect(requests.sent).toEqual(['UpdateItem']);
  expect(fence).toBeLessThan(clock.now());
  expect((await read({ key: 'fenced' })) as object).toMatchObject({ fence });
});
