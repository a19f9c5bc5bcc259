import { beforeEach, describe, expect, it } from 'vitest';
import type { Fault } from '../support/emulators/aws.ts';
import { networkError } from '../support/faults/network.ts';
import { failure, leaseWorld } from '../support/worlds/leases.ts';

const world = await leaseWorld();
const { acquire, heartbeat, release, breakLease, read, clock, requests, rawItem } = world;

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
  requests.sent.length = 0;
});

describe('a break that waits for the holder', () => {
  it('marks the lease with one request, and says until when the holder may go on and when its last heartbeat came', async () => {
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

  it('names no heartbeat if none came since the grant', async () => {
    const { fence, expiresAt } = await acquire({ key: 'no beat' });
    clock.advance(5000);
    const answer = await breakLease({ key: 'no beat', fence, wait: true });
    expect(answer).toMatchObject({ holderUntil: expiresAt, lastHeartbeatAt: null });
  });

  it.each([undefined, 600])(
    'tells the holder at its next heartbeat, which extends nothing (ttlSeconds %s)',
    async (ttlSeconds) => {
      const key = `heartbeat ${ttlSeconds}`;
      const { leaseId, expiresAt } = await ending(key);
      const beat = heartbeat({ key, leaseId, ...(ttlSeconds && { ttlSeconds }) });
      expect(await failure(beat)).toMatchObject(broken);
      expect(await read({ key })).toMatchObject({ expiresAt, ending: true });
    },
  );

  it('lets no heartbeat revive the lease when the ttl has ended, also if no other caller came', async () => {
    const { leaseId } = await ending('no revival');
    clock.advance(TTL_MS);
    expect(await failure(heartbeat({ key: 'no revival', leaseId }))).toMatchObject(broken);
    expect(await acquire({ key: 'no revival', holder: 'next' })).toMatchObject({ previous: { ended: 'expired' } });
  });

  it('frees the key when the holder releases it, and the next grant has no mark', async () => {
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

  it('refuses a repeat of the request of the holder, before and after the end of the ttl, until another caller has the key', async () => {
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

  it('answers a repeat the same, and a later break without wait ends the lease', async () => {
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

  it('ends an expired lease at once, because no caller holds it', async () => {
    const { fence, expiresAt } = await acquire({ key: 'expired', holder: 'worker' });
    clock.advance(TTL_MS + 501);
    const answer = await breakLease({ key: 'expired', fence, wait: true });
    expect(answer).toMatchObject({ ended: true, holder: 'worker', holderUntil: expiresAt });
    expect(await read({ key: 'expired' })).toMatchObject({ state: 'released' });
  });

  it('finds nothing to break if the lease has been released, and spares a lease under another fence', async () => {
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

  it('reports an attribute of another client that no condition fits, and does not try until its time is up', async () => {
    const { fence } = await acquire({ key: 'odd' });
    await world.putRaw({ ...(await rawItem('odd')), claim_ttl_ms: { S: 'odd' } });
    expect(await failure(breakLease({ key: 'odd', fence, wait: true }))).toMatchObject({ code: 'Unavailable' });
  });
});

describe('a break that waits, in a race', () => {
  it('with a heartbeat that lands first, names the expiry that the heartbeat gave', async () => {
    const { key, leaseId, fence } = await acquire({ key: 'beat first' });
    clock.advance(20_000);
    requests.faults = [precededBy(() => other.heartbeat({ key, leaseId }))];
    const answer = await breakLease({ key, fence, wait: true });
    expect(answer).toMatchObject({ ended: false, holderUntil: iso(clock.now() + TTL_MS) });
    expect(answer.lastHeartbeatAt).toBe(iso(clock.now()));
  });

  it('with a heartbeat that was sent before the mark and lands after it, keeps the expiry of the mark', async () => {
    const { key, leaseId, fence, expiresAt } = await acquire({ key: 'mark first' });
    clock.advance(20_000);
    requests.faults = [precededBy(() => other.breakLease({ key, fence, wait: true }))];
    expect(await failure(heartbeat({ key, leaseId }))).toMatchObject(broken);
    expect(await read({ key })).toMatchObject({ expiresAt });
  });

  it('with a heartbeat whose answer is lost before the mark, refuses the next try of that heartbeat', async () => {
    const { key, leaseId, fence } = await acquire({ key: 'beat lost' });
    clock.advance(20_000);
    requests.faults = [lostBefore(() => other.breakLease({ key, fence, wait: true }))];
    expect(await failure(heartbeat({ key, leaseId }))).toMatchObject(broken);
  });

  it('with a release that lands first, finds nothing to break', async () => {
    const grant = await acquire({ key: 'release first' });
    requests.faults = [precededBy(() => other.release(grant))];
    const late = breakLease({ key: 'release first', fence: grant.fence, wait: true });
    expect(await failure(late)).toMatchObject({ code: 'NotFound' });
    expect(await rawItem('release first')).not.toHaveProperty('ending_at');
  });

  it('with a heartbeat that revives an expired lease, waits for the holder', async () => {
    const { key, leaseId, fence } = await acquire({ key: 'revived' });
    clock.advance(TTL_MS + 501);
    requests.faults = ['none', 'none', precededBy(() => other.heartbeat({ key, leaseId }))]; // the mark, the look at the line, the end
    expect(await breakLease({ key, fence, wait: true })).toMatchObject({ ended: false });
    expect(await read({ key })).toMatchObject({ state: 'held', ending: true });
  });
});

describe('a break whose answer is lost', () => {
  it('answers the next try of a break that waits the same', async () => {
    const { fence, expiresAt } = await acquire({ key: 'lost mark', holder: 'worker' });
    requests.faults = ['lostReply'];
    const answer = await breakLease({ key: 'lost mark', fence, wait: true });
    expect(answer).toMatchObject({ broken: true, ended: false, holder: 'worker', holderUntil: expiresAt });
  });

  it('of a lease that another caller has by the next try, has an unknown outcome', async () => {
    const grant = await acquire({ key: 'lost, and taken' });
    const moveOn = async () => {
      await other.release(grant);
      clock.advance(1);
      await other.acquire({ key: 'lost, and taken', holder: 'next' });
    };
    requests.faults = [lostBefore(moveOn)];
    const late = breakLease({ key: 'lost, and taken', fence: grant.fence, wait: true });
    expect(await failure(late)).toMatchObject({ code: 'OutcomeUnknown' });
  });

  it('still names the bound and the last heartbeat if the lease ended at once', async () => {
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
