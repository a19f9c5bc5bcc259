import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import type { Fault } from '../support/emulators/aws.ts';
import { networkError } from '../support/faults/network.ts';
import { failure, leaseWorld } from '../support/worlds/leases.ts';
import { queueWorld } from '../support/worlds/line.ts';

// What only a lease has of test/line/breaks.ts: attributes, requests, and `previous`.

const world = await queueWorld();
const { acquire, heartbeat, release, breakLease, read, park, joinLine, grantOf, clock, requests, steps, rawItem } =
  world;
afterAll(() => steps.stop());

/** Another instance of the service over the same table. */
const other = await leaseWorld({ table: world.table, clock });

const iso = (epochMs: number) => new Date(epochMs).toISOString();
const TTL_MS = 60_000;

/** Something happens before the try. */
const precededBy =
  (what: () => Promise<unknown>): Fault =>
  async (send) => {
    await what();
    return send();
  };

/** The try takes effect, its answer is lost, and something happens before the next try. */
const lostBefore =
  (what: () => Promise<unknown>): Fault =>
  async (send) => {
    await send();
    await what();
    throw networkError('ECONNRESET', 'read');
  };

/** A lease that an operator has broken with `wait`. */
async function ending(key: string) {
  const grant = await acquire({ key, holder: 'worker', requestId: 'r' });
  clock.advance(5000);
  await breakLease({ key, fence: grant.fence, wait: true });
  return grant;
}

const broken = { code: 'LeaseLost', context: { reason: 'broken', holder: null } };

beforeEach(() => {
  requests.faults = [];
  requests.faultsOf = {};
  requests.sent.length = 0;
});

describe('a break that waits for the holder', () => {
  it('a break that waits marks the lease with one request, and says until when the holder may go on and when its last heartbeat came', async () => {
    const { leaseId, fence } = await acquire({ key: 'marked', holder: 'worker' });
    clock.advance(20_000);
    const { expiresAt } = await heartbeat({ key: 'marked', leaseId });
    const beatAt = clock.now();
    clock.advance(5000);
    requests.sent.length = 0;
    expect(await breakLease({ key: 'marked', fence, wait: true })).toEqual({
      ...{ key: 'marked', broken: true, fence, holder: 'worker', ended: false },
      ...{ holderUntil: expiresAt, lastHeartbeatAt: iso(beatAt) },
    });
    expect(requests.sent).toEqual(['UpdateItem']);
    expect(await read({ key: 'marked' })).toMatchObject({ state: 'held', holder: 'worker', ending: true, expiresAt });
    expect(await failure(acquire({ key: 'marked', holder: 'next' }))).toMatchObject({ code: 'LeaseHeld' });
  });

  it('a break that waits frees the key when the holder releases it, and the next grant has no mark', async () => {
    const { leaseId, fence } = await ending('given back');
    expect(await release({ key: 'given back', leaseId })).toEqual({ key: 'given back', released: true });
    expect(await failure(heartbeat({ key: 'given back', leaseId }))).toMatchObject({ context: { reason: 'released' } });
    expect(await read({ key: 'given back' })).toMatchObject({ state: 'released', ending: false });
    clock.advance(1);
    const next = await acquire({ key: 'given back', holder: 'next' });
    expect(next.previous).toMatchObject({ fence, ended: 'broken' });
    clock.advance(1);
    expect(await heartbeat(next)).toMatchObject({ holder: 'next' });
    expect(await rawItem('given back')).not.toHaveProperty('ending_at');
  });

  it("a break that waits refuses a repeat of the holder's request, before and after the end of the ttl, until another caller has the key", async () => {
    await ending('repeat');
    const repeat = () => failure(acquire({ key: 'repeat', holder: 'worker', requestId: 'r' }));
    expect(await repeat()).toMatchObject(broken);
    clock.advance(TTL_MS);
    expect(await repeat()).toMatchObject(broken);
    const next = await acquire({ key: 'repeat', holder: 'next' });
    expect(await repeat()).toMatchObject({ code: 'LeaseHeld', context: { holder: 'next' } });
    await release(next);
    clock.advance(1);
    expect(await acquire({ key: 'repeat', holder: 'worker' })).toMatchObject({ repeated: false });
  });

  it('a break that waits answers a repeat the same, and a later break without wait ends the lease', async () => {
    const { fence, expiresAt, leaseId } = await ending('twice');
    const waits = await breakLease({ key: 'twice', fence, wait: true });
    expect(waits).toMatchObject({ ended: false, holderUntil: expiresAt });
    expect(await breakLease({ key: 'twice', fence })).toEqual({ ...waits, ended: true });
    expect(await breakLease({ key: 'twice', fence, wait: true })).toEqual({ ...waits, ended: true });
    expect(await failure(heartbeat({ key: 'twice', leaseId }))).toMatchObject(broken);
    clock.advance(1);
    expect(await acquire({ key: 'twice', holder: 'next' })).toMatchObject({ previous: { fence, ended: 'broken' } });
    expect(await rawItem('twice')).not.toHaveProperty('ending_at');
  });

  it('a break that waits finds no lease if it has been released, and spares a lease under another fence', async () => {
    const first = await acquire({ key: 'too late' });
    await release(first);
    const late = () => failure(breakLease({ key: 'too late', fence: first.fence, wait: true }));
    expect(await late()).toMatchObject({ code: 'NotFound' });
    clock.advance(1);
    const next = await acquire({ key: 'too late', holder: 'next' });
    expect(await late()).toMatchObject({ code: 'Conflict', context: { actual: { fence: next.fence, ending: false } } });
    clock.advance(1);
    expect(await heartbeat(next)).toMatchObject({ holder: 'next' });
  });

  it('a break that waits reports an attribute of another client that no condition fits, and does not retry until its time is up', async () => {
    const { fence } = await acquire({ key: 'odd' });
    await world.putRaw({ ...(await rawItem('odd')), claim_ttl_ms: { S: 'odd' } });
    expect(await failure(breakLease({ key: 'odd', fence, wait: true }))).toMatchObject({ code: 'Unavailable' });
  });
});

describe('a break that waits, in a race', () => {
  it('a break that waits names the expiry of a heartbeat that landed before it', async () => {
    const { key, leaseId, fence } = await acquire({ key: 'beat first' });
    clock.advance(20_000);
    requests.faults = [precededBy(() => other.heartbeat({ key, leaseId }))];
    const answer = await breakLease({ key, fence, wait: true });
    expect(answer).toMatchObject({ ended: false, holderUntil: iso(clock.now() + TTL_MS) });
    expect(answer.lastHeartbeatAt).toBe(iso(clock.now()));
  });

  it('a break that waits refuses the next try of a heartbeat whose first answer was lost before the mark', async () => {
    const { key, leaseId, fence } = await acquire({ key: 'beat lost' });
    clock.advance(20_000);
    requests.faults = [lostBefore(() => other.breakLease({ key, fence, wait: true }))];
    expect(await failure(heartbeat({ key, leaseId }))).toMatchObject(broken);
  });

  it('a break that waits finds no lease if a release landed before it', async () => {
    const grant = await acquire({ key: 'release first' });
    requests.faults = [precededBy(() => other.release(grant))];
    const late = breakLease({ key: 'release first', fence: grant.fence, wait: true });
    expect(await failure(late)).toMatchObject({ code: 'NotFound' });
    expect(await rawItem('release first')).not.toHaveProperty('ending_at');
  });
});

describe('a break whose answer is lost', () => {
  it('a break whose answer is lost still names the bound and the last heartbeat if the lease ended at once', async () => {
    const { key, leaseId, fence } = await acquire({ key: 'lost end' });
    clock.advance(20_000);
    const { expiresAt } = await heartbeat({ key, leaseId });
    const lastHeartbeatAt = iso(clock.now());
    clock.advance(1000);
    requests.faults = ['lostReply'];
    const answer = await breakLease({ key, fence });
    expect(answer).toMatchObject({ ended: true, holderUntil: expiresAt, lastHeartbeatAt });
    clock.advance(1000);
    expect(await breakLease({ key, fence })).toEqual(answer);
  });
});

describe('a break that waits, with waiters in line', () => {
  it('a break that waits names the holder as broken to the next task, if the line granted the lease to the holder in front of that task', async () => {
    const key = 'quick';
    const first = await acquire({ key, holder: 'first' });
    const [worker, next] = [await park({ key, holder: 'worker' }), await park({ key, holder: 'next' })];
    await release(first);
    const grant = grantOf(worker.task);
    expect(await breakLease({ key, fence: grant.fence, wait: true })).toMatchObject({ ended: false });
    clock.advance(1000);
    expect(await release(grant)).toMatchObject({ released: true });
    clock.advance(1);
    expect(next.task.output).toMatchObject({ previous: { holder: 'worker', ended: 'broken' } });
    expect(await heartbeat(grantOf(next.task))).toMatchObject({ holder: 'next' });
  });

  it('a break that waits also covers a grant that its caller claims between the look and the end', async () => {
    const key = 'claimed meanwhile';
    const first = await acquire({ key, holder: 'first' });
    const { ticket } = await joinLine(key, 'r');
    await release(first);
    const claim = () => acquire({ key, holder: 'caller', requestId: 'r', ticket, ttlSeconds: 10 });
    requests.faultsOf.UpdateItem = ['none', world.precededBy(claim)]; // the mark, which the claim window refuses, and the end
    const fence = Number((await rawItem(key))?.fence?.N);
    expect(await breakLease({ key, fence, wait: true })).toMatchObject({ ended: false });
  });

  it('a break that waits refuses a repeat that read the grant before the mark', async () => {
    const key = 'read before';
    const first = await acquire({ key, holder: 'first' });
    const { task } = await park({ key, holder: 'worker', requestId: 'r' });
    await release(first);
    const { fence, expiresAt } = grantOf(task);
    clock.advance(1000);
    requests.faultsOf.UpdateItem = [world.precededBy(() => breakLease({ key, fence, wait: true }))]; // the new version
    const repeat = acquire({ key, holder: 'worker', requestId: 'r' });
    expect(await failure(repeat)).toMatchObject(broken);
    expect(await read({ key })).toMatchObject({ expiresAt, ending: true });
  });

  it('a break that waits is reported to a holder whose lease two waiters have had since the end of the ttl', async () => {
    const key = 'reason';
    const first = await acquire({ key, holder: 'first', ttlSeconds: 2 });
    const [one, two] = [await park({ key, holder: 'one' }), await park({ key, holder: 'two' })];
    await breakLease({ key, fence: first.fence, wait: true });
    clock.advance(3000);
    await world.repairKey(key);
    await release(grantOf(one.task));
    expect(grantOf(two.task)).toMatchObject({ holder: 'two' });
    expect(await failure(heartbeat(first))).toMatchObject({ code: 'LeaseLost', context: { reason: 'broken' } });
    expect(await release(first)).toEqual({ key, released: false, reason: 'broken' });
    expect(await release(grantOf(one.task))).toMatchObject({ released: false, reason: 'taken' });
  });

  it('a repeated break notifies a task again that could not be notified, and without a repeat the task keeps its position', async () => {
    for (const key of ['repeated', 'not repeated']) {
      const first = await acquire({ key });
      const { task } = await park({ key, holder: 'task', requestId: 'r' });
      steps.faults = { SendTaskSuccess: ['refused'], SendTaskFailure: ['denied', 'denied', 'denied'] };
      await release(first);
      const next = key === 'not repeated' ? await park({ key, holder: 'next' }) : undefined;
      const broken = { key, fence: Number((await rawItem(key))?.fence?.N) };
      expect(await breakLease(broken)).toMatchObject({ broken: true, ended: true });
      steps.faults = {};
      if (next) await release(grantOf(next.task));
      else expect(await breakLease(broken)).toMatchObject({ broken: true, ended: true });
      await world.repairKey(key);
      if (next) expect(grantOf(task)).toMatchObject({ holder: 'task' });
      else expect(task).toMatchObject({ error: 'LeaseLost', cause: { reason: 'broken' } });
      expect(await world.rows(key)).toEqual([]);
    }
  });

  it('a break is reported to its holder also if a waiter came after a break that ended the lease', async () => {
    const key = 'reason of a free lease';
    const first = await acquire({ key, holder: 'first' });
    await breakLease({ key, fence: first.fence });
    await park({ key, holder: 'next' });
    expect(await failure(heartbeat(first))).toMatchObject({ code: 'LeaseLost', context: { reason: 'broken' } });
  });
});
