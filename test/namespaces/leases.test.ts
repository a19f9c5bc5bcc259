import { afterAll, describe, expect, it } from 'vitest';
import { type Answered, namespaceWorld } from '../support/worlds/namespaces.ts';

const world = await namespaceWorld();
afterAll(() => world.stop());
const [a, b, all] = [world.of('team-a'), world.of('team-b'), world.of()];
const take = (from: typeof a, key: string, more: object = {}) =>
  from.post('leases/acquire', { key, holder: 'worker', ttlSeconds: 60, ...more });
const lease = ({ body: { key, leaseId } }: Answered) => ({ key, leaseId });

describe('keys', () => {
  it('a key of a namespace is another lease than the same key elsewhere', async () => {
    const grants = [await take(a, 'nightly'), await take(b, 'nightly'), await take(all, 'nightly')];
    expect(grants.map(({ status, body }) => [status, body.key])).toEqual(Array(3).fill([201, 'nightly']));
    const detail = `nightly is held by worker until ${grants[0]?.body.expiresAt}`;
    expect(await take(a, 'nightly')).toMatchObject({
      status: 409,
      body: { code: 'LeaseHeld', key: 'nightly', detail },
    });
    expect(await world.leases.rawItem('team-a/nightly')).toMatchObject({ key: { S: 'team-a/nightly' } });
    expect((await all.get('leases', { key: 'team-a/nightly' })).body).toMatchObject({
      key: 'team-a/nightly',
      state: 'held',
    });
  });

  it('a key of a namespace is changed and ended only in its own namespace', async () => {
    const granted = await take(a, 'own', { requestId: 'r-1' });
    expect((await b.post('leases/heartbeat', lease(granted))).body).toMatchObject({ code: 'LeaseLost', key: 'own' });
    expect((await b.post('leases/release', lease(granted))).body).toEqual({
      key: 'own',
      released: false,
      reason: 'unknown',
    });
    const { fence } = granted.body;
    expect((await b.post('leases/break', { key: 'own', fence })).body).toMatchObject({ code: 'NotFound', key: 'own' });
    const withdrawal = { key: 'own', requestId: 'r-1', holder: 'worker' };
    expect((await b.post('leases/withdraw', withdrawal)).body).toMatchObject({ key: 'own', cancelled: false });
    expect((await a.post('leases/heartbeat', lease(granted))).body).toMatchObject({ key: 'own', fence });
    expect((await a.post('leases/break', { key: 'own', fence: fence - 1 })).body).toMatchObject({
      code: 'Conflict',
      key: 'own',
      actual: { key: 'own', fence },
    });
    expect((await a.post('leases/break', { key: 'own', fence })).body).toMatchObject({ key: 'own', broken: true });
    expect((await a.post('leases/release', lease(granted))).body).toMatchObject({ key: 'own', reason: 'broken' });
  });

  it('a key of a namespace counts with its namespace for the limits of names', async () => {
    const longest = 'k'.repeat(1024 - 'team-a/'.length);
    expect((await take(a, longest)).status).toBe(201);
    expect((await take(a, `${longest}k`)).body.issues).toEqual([
      { path: 'key', message: 'must be at most 1,024 bytes of UTF-8' },
    ]);
    expect((await take(a, '')).body.issues).toEqual([{ path: 'key', message: 'must not be empty' }]);
    expect((await a.post('leases/acquire', { key: 7, holder: 'h' })).body.issues).toMatchObject([{ path: 'key' }]);
    expect((await a.post('leases/acquire', [])).body.issues).toMatchObject([{ path: 'payload' }]);
  });

  it('a parked task receives the key as its state machine wrote it', async () => {
    const held = await take(a, 'queue');
    const [granted, cancelled] = [world.leases.steps.newTask(), world.leases.steps.newTask()];
    const parked = await take(a, 'queue', { taskToken: granted.token });
    expect(parked.body).toMatchObject({ key: 'queue', parked: true });
    const { ticket } = (await take(a, 'queue', { taskToken: cancelled.token })).body;
    expect((await b.post('leases/cancel', { key: 'queue', ticket })).body).toMatchObject({ reason: 'unknown' });
    expect((await a.post('leases/cancel', { key: 'queue', ticket })).body).toEqual({
      key: 'queue',
      ticket,
      cancelled: true,
    });
    expect(cancelled).toMatchObject({
      state: 'failed',
      cause: { code: 'LeaseLost', key: 'queue', reason: 'cancelled' },
    });
    const { key, leaseId } = held.body;
    await all.post('leases/release', { key: `team-a/${key}`, leaseId });
    expect(granted).toMatchObject({ state: 'succeeded', output: { key: 'queue', holder: 'worker' } });
    const { leaseId: own } = world.leases.grantOf(granted);
    expect((await a.post('leases/release', { key: 'queue', leaseId: own })).body).toEqual({
      key: 'queue',
      released: true,
    });
  });
});

describe('lists', () => {
  const page = async (from: typeof a, query: Record<string, string> = {}) => {
    const { status, body } = await from.get('leases', query);
    return { status, keys: (body.leases ?? []).map(({ key }: { key: string }) => key), body };
  };

  it('a list of a namespace has only its own leases, page by page', async () => {
    const mine = Array.from({ length: 5 }, (_, n) => `list-${n}`);
    for (const key of mine) await take(a, key);
    for (let n = 0; n < 20; n++) await take(b, `secret-${n}`);
    const seen: string[] = [];
    let cursor: string | null | undefined;
    for (let pages = 0; cursor !== null; pages++) {
      expect(pages).toBeLessThan(30);
      const { keys, body } = await page(a, { limit: '2', ...(cursor && { cursor }) });
      seen.push(...keys);
      cursor = body.nextCursor;
      if (cursor) expect(Buffer.from(cursor, 'base64url').toString()).not.toMatch(/secret|list|team/);
    }
    expect(seen.filter((key) => key.startsWith('list-')).toSorted()).toEqual(mine);
    expect(seen.some((key) => /secret|team/.test(key))).toBe(false);
    expect((await page(a, { prefix: 'list-1' })).keys).toEqual(['list-1']);
    expect((await page(a, { prefix: 'secret' })).keys).toEqual([]);
    expect((await page(b, { state: 'held', limit: '1000' })).keys.length).toBeGreaterThanOrEqual(20);
    expect((await page(all, { prefix: 'team-a/list' })).keys.toSorted()).toEqual(mine.map((key) => `team-a/${key}`));
  });

  it('a list of a namespace takes only its own cursors', async () => {
    for (const key of ['cursor-1', 'cursor-2']) for (const team of [a, b]) await take(team, key);
    const [own, other, whole] = await Promise.all([a, b, all].map((from) => page(from, { limit: '1' })));
    const cursors = [
      other?.body.nextCursor,
      whole?.body.nextCursor,
      'AAAA',
      Buffer.from('team-a/list-1').toString('base64url'),
    ];
    for (const cursor of cursors) {
      expect(cursor).toEqual(expect.any(String));
      const { status, body } = await page(a, { cursor });
      expect([status, body.issues]).toEqual([
        400,
        [{ path: 'cursor', message: 'is not a cursor of this listing: list again without a cursor' }],
      ]);
    }
    expect((await page(a, { cursor: own?.body.nextCursor })).status).toBe(200);
  });

  it('a list of a namespace shows its waiters', async () => {
    await take(a, 'waited-for');
    await take(a, 'waited-for', { taskToken: world.leases.steps.newTask().token, holder: 'next' });
    const { body } = await a.get('leases', { key: 'waited-for', waiters: 'true' });
    expect(body).toMatchObject({ key: 'waited-for', waiting: 1, waiters: [{ holder: 'next' }] });
    expect((await b.get('leases', { key: 'waited-for', waiters: 'true' })).body).toMatchObject({
      state: 'free',
      waiters: [],
    });
  });
});

describe("the service's own names", () => {
  it.each([undefined, 'team-a'])('a name of the service is refused to callers of %s', async (namespace) => {
    const from = world.of(namespace);
    const key = 'holdfast:report';
    const message = "must not begin with holdfast:, which is the service's own";
    const requests: [string, object][] = [
      ['leases/acquire', { key, holder: 'h' }],
      ['leases/heartbeat', { key, leaseId: 'l' }],
      ['leases/release', { key, leaseId: 'l' }],
      ['leases/break', { key, fence: 1 }],
      ['leases/cancel', { key, ticket: 't' }],
      ['leases/withdraw', { key, requestId: 'r', holder: 'h' }],
    ];
    for (const [route, body] of requests)
      expect((await from.post(route, body)).body.issues, route).toEqual([{ path: 'key', message }]);
    const commit = { path: 'team-a/p', ifNoneMatch: '*', body: '', fence: { key, token: 1 } };
    expect((await from.post('commits', commit)).body.issues).toEqual([{ path: 'fence.key', message }]);
    expect(await world.leases.rawItem(key)).toBeUndefined();
  });

  it("a name of the service can be read in the deployment's whole list", async () => {
    expect((await all.get('leases', { key: 'holdfast:report' })).body).toMatchObject({ state: 'free' });
  });
});

const begin = (from: typeof a, key: string, more: object = {}) =>
  from.post('once/begin', { key, holder: 'worker', slot: '1', ...more });

describe('once', () => {
  it('once in a namespace has its own slots, with keys as callers name them', async () => {
    const runs = [await begin(a, 'nightly'), await begin(b, 'nightly'), await begin(all, 'nightly')];
    expect(runs.map(({ body }) => [body.outcome, body.key])).toEqual(Array(3).fill(['run', 'nightly']));
    expect((await begin(a, 'nightly', { holder: 'other' })).body).toMatchObject({ code: 'LeaseHeld', key: 'nightly' });
    const { leaseId, fence } = runs[0]?.body ?? {};
    const run = { key: 'nightly', leaseId };
    expect((await a.post('leases/heartbeat', run)).body).toMatchObject({ key: 'nightly', fence });
    expect((await b.post('leases/heartbeat', run)).body).toMatchObject({ code: 'LeaseLost', key: 'nightly' });
    expect((await b.post('once/complete', run)).body).toMatchObject({ completed: false, reason: 'taken' });
    expect((await b.post('leases/release', run)).body).toMatchObject({ key: 'nightly', released: false });
    expect((await a.post('once/complete', { ...run, result: 1 })).body).toMatchObject({
      key: 'nightly',
      completed: true,
    });
    expect((await begin(a, 'nightly')).body).toMatchObject({ outcome: 'done', key: 'nightly', result: 1 });
    expect((await all.get('once', { key: 'team-a/nightly' })).body).toMatchObject({ result: 1 });
  });

  it("once in a namespace names the caller's key in errors and answers", async () => {
    const { leaseId, fence } = (await begin(a, 'errors', { inputHash: 'x', requestId: 'r' })).body;
    expect((await a.post('leases/break', { key: 'errors', fence: 1, kind: 'once' })).body).toMatchObject({
      ...{ code: 'Conflict', key: 'errors', actual: { key: 'errors' } },
    });
    expect((await a.post('once/forget', { key: 'errors', fence })).body).toMatchObject({
      code: 'LeaseHeld',
      key: 'errors',
    });
    await a.post('once/complete', { key: 'errors', leaseId });
    expect((await begin(a, 'errors', { inputHash: 'y' })).body).toMatchObject({
      ...{ code: 'Conflict', key: 'errors', actual: { key: 'errors' }, field: 'inputHash' },
    });
    expect((await begin(a, 'errors', { slot: '2', inputHash: 'x', requestId: 'r' })).body).toMatchObject({
      ...{ code: 'LeaseLost', key: 'errors' },
    });
    expect((await b.post('once/forget', { key: 'errors', fence })).body).toMatchObject({
      code: 'NotFound',
      key: 'errors',
    });
    expect((await a.post('once/forget', { key: 'errors', fence })).body).toMatchObject({
      key: 'errors',
      forgotten: true,
    });
    const again = (await begin(a, 'errors')).body;
    expect((await a.post('leases/break', { key: 'errors', fence: again.fence, kind: 'once' })).body).toMatchObject({
      ...{ key: 'errors', broken: true },
    });
  });

  it('once in a namespace lists only its own keys, by prefix and page', async () => {
    for (const from of [a, b, all]) for (const key of ['list/1', 'list/2', 'other']) await begin(from, key);
    const first = (await a.get('once', { prefix: 'list/', limit: '1' })).body;
    const keys = [...first.keys];
    for (let cursor = first.nextCursor; cursor; ) {
      const page = (await a.get('once', { prefix: 'list/', limit: '1', cursor })).body;
      keys.push(...page.keys);
      cursor = page.nextCursor;
    }
    expect(keys.map(({ key }) => key).toSorted()).toEqual(['list/1', 'list/2']);
    const others = (await b.get('once', { cursor: first.nextCursor })).body;
    expect(others).toMatchObject({ code: 'InvalidRequest' });
    expect((await a.get('once')).body.keys.map(({ key }: { key: string }) => key)).toContain('other');
  });

  it('the length limit of a once key includes its namespace', async () => {
    const longest = 'k'.repeat(1010 - 'team-a/'.length);
    expect((await begin(a, longest)).status).toBe(200);
    expect((await begin(a, `${longest}k`)).body.issues).toEqual([
      { path: 'key', message: 'must be at most 1,010 bytes of UTF-8' },
    ]);
    expect((await begin(a, 'holdfast:once:x')).body.code).toBe('InvalidRequest');
    expect((await begin(all, 'holdfast:once:x')).body.code).toBe('InvalidRequest');
  });
});
