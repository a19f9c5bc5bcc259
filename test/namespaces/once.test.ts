import { afterAll, describe, expect, it } from 'vitest';
import { namespaceWorld } from '../support/worlds/namespaces.ts';

const world = await namespaceWorld();
afterAll(() => world.stop());
const [a, b, all] = [world.of('team-a'), world.of('team-b'), world.of()];
const begin = (from: typeof a, key: string, more: object = {}) =>
  from.post('once/begin', { key, holder: 'worker', slot: '1', ...more });

describe('once in a namespace', () => {
  it('once in a namespace has slots of its own, and its callers read and write the key as they name it', async () => {
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

  it('once in a namespace names the key of the caller in Conflict, LeaseLost, NotFound and the answers of operators', async () => {
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

  it('once in a namespace lists its own keys alone, by a prefix of theirs and page by page', async () => {
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

  it('once in a namespace counts with its namespace for the limit of a key, and refuses a key of the service', async () => {
    const longest = 'k'.repeat(1010 - 'team-a/'.length);
    expect((await begin(a, longest)).status).toBe(200);
    expect((await begin(a, `${longest}k`)).body.issues).toEqual([
      { path: 'key', message: 'must be at most 1,010 bytes of UTF-8' },
    ]);
    expect((await begin(a, 'holdfast:once:x')).body.code).toBe('InvalidRequest');
    expect((await begin(all, 'holdfast:once:x')).body.code).toBe('InvalidRequest');
  });
});
