import { beforeEach, describe, expect, it } from 'vitest';
import { call } from '../support/emulators/aws.ts';
import { networkError } from '../support/faults/cuttable.ts';
import { failure } from '../support/worlds/leases.ts';
import { onceWorld } from '../support/worlds/once.ts';

const world = await onceWorld();
const { begin, complete, forget, release, heartbeat, breakRun, readOnce, readKey, clock, requests, rawRow } = world;
const { clockSkewMs, fenceRetentionSeconds } = world.dependencies;

/** Another instance of the service over the same table. */
const other = await onceWorld({ table: world.table, clock });

const run = (input: object) => world.run({ slot: '1', ...input });
/** Lets the time of a run and the margin go by. */
const expire = (ttlSeconds = 60) => clock.advance(ttlSeconds * 1000 + clockSkewMs + 1);

beforeEach(() => {
  requests.faultsOf = {};
  requests.sent.length = 0;
});

describe('complete', () => {
  it('a worker stores its result and ends its run by one write', async () => {
    const { leaseId, fence } = await run({ key: 'done', holder: 'host-1', data: 'working' });
    requests.sent.length = 0;
    expect(await complete({ key: 'done', leaseId, result: [1, { two: 3 }] })).toEqual({
      ...{ key: 'done', completed: true, repeated: false, slot: '1', fence },
      doneAt: new Date(clock.now()).toISOString(),
    });
    expect(requests.sent).toEqual(['UpdateItem']);
    expect(await readKey('done')).toMatchObject({
      ...{ state: 'released', holder: 'host-1', data: null, result: [1, { two: 3 }] },
      done: { slot: '1', by: 'host-1', fence },
    });
  });

  it('a worker may store null, and a result of 4 KiB at most', async () => {
    const nothing = await run({ key: 'null' });
    await complete({ key: 'null', leaseId: nothing.leaseId });
    expect(await begin({ key: 'null', slot: '1' })).toMatchObject({ outcome: 'done', result: null });
    const large = await run({ key: 'large' });
    const result = 'r'.repeat(4094);
    await complete({ key: 'large', leaseId: large.leaseId, result });
    expect(await begin({ key: 'large', slot: '1' })).toMatchObject({ outcome: 'done', result });
    expect(() => complete({ key: 'large', leaseId: large.leaseId, result: `${result}r` })).toThrow(
      '4,096 bytes of JSON',
    );
  });

  it('a worker that repeats its call is answered as before', async () => {
    const { leaseId } = await run({ key: 'twice' });
    const first = await complete({ key: 'twice', leaseId, result: 1 });
    clock.advance(1000);
    expect(await complete({ key: 'twice', leaseId, result: 2 })).toEqual({ ...first, repeated: true });
    expect(await readKey('twice')).toMatchObject({ result: 1 });
  });

  it('a worker learns that its result is stored if the first answer was lost', async () => {
    const { leaseId } = await run({ key: 'lost' });
    requests.faultsOf.UpdateItem = ['lostReply'];
    expect(await complete({ key: 'lost', leaseId, result: 1 })).toMatchObject({ completed: true, repeated: true });
  });

  it('a worker is answered with unknown, not taken, if its try may have landed', async () => {
    const { leaseId } = await run({ key: 'lost, then later' });
    const after = async (send: () => Promise<unknown>) => {
      await send();
      const later = await other.begin({ key: 'lost, then later', slot: '2' });
      if (later.outcome === 'run') await other.complete({ key: 'lost, then later', leaseId: later.leaseId });
      throw networkError('ECONNRESET', 'read');
    };
    requests.faultsOf.UpdateItem = [after];
    expect(await complete({ key: 'lost, then later', leaseId })).toMatchObject({ completed: false, reason: 'unknown' });
    expect(await complete({ key: 'lost, then later', leaseId })).toMatchObject({ completed: false, reason: 'taken' });
  });

  it('a worker stores its result after its time if no other caller has begun', async () => {
    const { leaseId } = await run({ key: 'late' });
    expire();
    expect(await complete({ key: 'late', leaseId, result: 'late' })).toMatchObject({ completed: true });
    expect(await begin({ key: 'late', slot: '1' })).toMatchObject({ outcome: 'done', result: 'late' });
  });

  it('a worker stores nothing over the run of its successor, nor over its result', async () => {
    const zombie = await run({ key: 'zombie' });
    expire();
    const successor = await run({ key: 'zombie' });
    expect(await complete({ key: 'zombie', leaseId: zombie.leaseId, result: 'old' })).toEqual({
      ...{ key: 'zombie', completed: false, reason: 'taken' },
    });
    await complete({ key: 'zombie', leaseId: successor.leaseId, result: 'new' });
    expect(await complete({ key: 'zombie', leaseId: zombie.leaseId, result: 'old' })).toMatchObject({
      completed: false,
    });
    expect(await readKey('zombie')).toMatchObject({ result: 'new', done: { fence: successor.fence } });
  });

  it('a worker stores nothing after its run was released or broken', async () => {
    const given = await run({ key: 'released' });
    await release({ key: 'released', leaseId: given.leaseId });
    expect(await complete({ key: 'released', leaseId: given.leaseId })).toMatchObject({ reason: 'released' });
    const broken = await run({ key: 'broken' });
    await breakRun({ key: 'broken', fence: broken.fence });
    expect(await complete({ key: 'broken', leaseId: broken.leaseId })).toMatchObject({ reason: 'broken' });
    expect(await begin({ key: 'broken', slot: '1' })).toMatchObject({ outcome: 'run', previous: { ended: 'broken' } });
  });

  it('a worker may store its result after a break with wait', async () => {
    const { leaseId, fence } = await run({ key: 'ending', requestId: 'r' });
    expect(await breakRun({ key: 'ending', fence, wait: true })).toMatchObject({ key: 'ending', ended: false });
    expect((await failure(heartbeat({ key: 'ending', leaseId }))).context).toMatchObject({
      key: 'ending',
      reason: 'broken',
    });
    expect((await failure(begin({ key: 'ending', slot: '1', requestId: 'r' }))).code).toBe('LeaseLost');
    expect(await complete({ key: 'ending', leaseId })).toMatchObject({ completed: true });
    expect(await readKey('ending')).toMatchObject({ ending: false });
  });

  it('a worker is answered with unknown for a key that was never begun', async () => {
    expect(await complete({ key: 'never', leaseId: 'o.x' })).toEqual({
      key: 'never',
      completed: false,
      reason: 'unknown',
    });
  });
});

describe('heartbeat, release and break', () => {
  it('heartbeat, release and break of once name the key of the caller', async () => {
    const { leaseId, fence } = await run({ key: 'k', ttlSeconds: 10 });
    clock.advance(4000);
    expect(await heartbeat({ key: 'k', leaseId })).toMatchObject({ key: 'k', leaseId, fence, remainingMs: 10_000 });
    expect(await heartbeat({ key: 'k', leaseId, ttlSeconds: 100 })).toMatchObject({ key: 'k', remainingMs: 100_000 });
    expect(await release({ key: 'k', leaseId })).toEqual({ key: 'k', released: true });
    expect(await release({ key: 'k', leaseId })).toEqual({ key: 'k', released: true });
    expect((await failure(heartbeat({ key: 'k', leaseId }))).context).toMatchObject({ key: 'k', reason: 'released' });
    expect((await failure(breakRun({ key: 'k', fence }))).context).toMatchObject({ key: 'k' });
  });

  it('a break of once needs the right fence and the right kind', async () => {
    const { fence } = await run({ key: 'unbroken' });
    const wrong = await failure(breakRun({ key: 'unbroken', fence: fence + 1 }));
    expect([wrong.code, wrong.context.actual]).toMatchObject(['Conflict', { key: 'unbroken', fence }]);
    expect((await failure(world.breakLease({ key: 'unbroken', fence }))).code).toBe('NotFound');
  });

  it('a record of once is not deleted by TTL before its result is forgotten', async () => {
    let keptUntil = 0;
    const isSafe = async (what: string) => {
      const row = await rawRow('ttl');
      const expiresAt = Number(row?.h?.M?.e?.N);
      const least = Math.max(keptUntil, expiresAt) / 1000 + fenceRetentionSeconds;
      expect(Number(row?.lease_expiry?.N), what).toBeGreaterThanOrEqual(Math.floor(least));
    };
    const { leaseId: first } = await run({ key: 'ttl', keepSeconds: 600 });
    // The run lasts for longer than its result is kept.
    for (let beats = 0; beats < 15; beats++) {
      clock.advance(50_000);
      await heartbeat({ key: 'ttl', leaseId: first });
      await isSafe('a heartbeat of a long run');
    }
    await heartbeat({ key: 'ttl', leaseId: first, ttlSeconds: 30 });
    clock.advance(20_000);
    await complete({ key: 'ttl', leaseId: first });
    keptUntil = clock.now() + 600_000;
    await isSafe('complete');
    clock.advance(1000);
    const { leaseId } = await run({ key: 'ttl', slot: '2', keepSeconds: 60 });
    await isSafe('begin');
    clock.advance(1000);
    await heartbeat({ key: 'ttl', leaseId });
    await isSafe('heartbeat');
    clock.advance(1000);
    await heartbeat({ key: 'ttl', leaseId, ttlSeconds: 3600 });
    await isSafe('heartbeat with another ttl');
    await release({ key: 'ttl', leaseId });
    await isSafe('release');
    const third = await run({ key: 'ttl', slot: '2', keepSeconds: 60 });
    await breakRun({ key: 'ttl', fence: third.fence });
    await isSafe('break');
  });
});

describe('forget', () => {
  it('an operator that forgets a slot lets it run again', async () => {
    const { leaseId, fence } = await run({ key: 'forget' });
    await complete({ key: 'forget', leaseId, result: 'wrong' });
    expect(await forget({ key: 'forget', fence })).toEqual({ key: 'forget', forgotten: true, fence, slot: '1' });
    expect(await forget({ key: 'forget', fence })).toEqual({ key: 'forget', forgotten: true, fence, slot: null });
    expect(await readKey('forget')).toMatchObject({ done: null, result: null });
    // The worker of the forgotten slot has completed, so it left no work half done.
    expect(await begin({ key: 'forget', slot: '1' })).toMatchObject({ outcome: 'run', previous: null });
  });

  it('forget is refused while a caller works, and under another fence', async () => {
    const { fence } = await run({ key: 'works' });
    expect((await failure(forget({ key: 'works', fence }))).code).toBe('LeaseHeld');
    const { code, context } = await failure(forget({ key: 'works', fence: fence - 1 }));
    expect([code, context.actual]).toMatchObject(['Conflict', { key: 'works', fence }]);
    expect((await failure(forget({ key: 'no record', fence: 1 }))).code).toBe('NotFound');
  });
});

describe('read', () => {
  it('a reader of once sees who works, and what is done', async () => {
    const { leaseId } = await run({ key: 'list/a', holder: 'host-1' });
    await complete({ key: 'list/a', leaseId, result: 'secret' });
    await run({ key: 'list/b', holder: 'host-2', slot: '9', ttlSeconds: 10, data: { at: 3 } });
    await world.acquire({ key: 'list/c' });
    const page = await readOnce({ prefix: 'list/' });
    expect(page).toMatchObject({ nextCursor: null });
    const keys = 'keys' in page ? page.keys : [];
    expect(keys.toSorted((a, b) => (a.key < b.key ? -1 : 1))).toMatchObject([
      { key: 'list/a', kind: 'once', state: 'released', slot: '1', done: { slot: '1', by: 'host-1' } },
      { key: 'list/b', kind: 'once', state: 'held', holder: 'host-2', slot: '9', done: null, data: { at: 3 } },
    ]);
    expect(JSON.stringify(page)).not.toMatch(/secret|leaseId|o\./);
  });

  it('a reader of once reads a list page by page', async () => {
    for (const key of ['page/1', 'page/2', 'page/3']) await run({ key });
    const seen: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await readOnce({ prefix: 'page/', limit: 2, ...(cursor && { cursor }) });
      if (!('keys' in page)) throw new Error('a page');
      expect(page.keys.length).toBeLessThanOrEqual(2);
      seen.push(...page.keys.map(({ key }) => key));
      cursor = page.nextCursor ?? undefined;
    } while (cursor);
    expect(seen.toSorted()).toEqual(['page/1', 'page/2', 'page/3']);
  });

  it('the list of leases does not show records of once', async () => {
    await run({ key: 'hidden' });
    for (const query of [{}, { sort: 'key' as const }, { kind: 'lease' as const }, { state: 'held' as const }]) {
      const page = await world.read(query);
      expect(JSON.stringify(page)).not.toContain('holdfast:once');
    }
  });

  it('a reader of once sees a key without a record as free', async () => {
    expect(await readOnce({ key: 'unused' })).toMatchObject({ state: 'free', slot: null, done: null, result: null });
  });
});

describe('executions', () => {
  const home = 'aws:us-east-1:123456789012';
  const execution = 'arn:aws:states:us-east-1:123456789012:execution:machine:run';

  it('begin refuses an execution of another account', async () => {
    const elsewhere = execution.replace('123456789012', '210987654321');
    const { code } = await failure(begin({ key: 'elsewhere', execution: elsewhere }, call({ home })));
    expect(code).toBe('InvalidRequest');
  });
});
