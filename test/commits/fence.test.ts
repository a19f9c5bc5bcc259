import { describe, expect, it } from 'vitest';
import { aFew } from '../support/time/rounds.ts';
import { commitWorld, PROTOCOLS } from '../support/worlds/commits.ts';
import { failure } from '../support/worlds/leases.ts';

describe.each(aFew(1, PROTOCOLS))('a fenced object, protocol %s', async (protocol) => {
  const world = await commitWorld({ protocol });
  const { commit, read, body } = world;
  const job = (token: number) => ({ key: 'job', token });

  it('a fenced object takes an equal or higher token, and keeps the highest', async () => {
    let { etag } = await commit({ path: 'up', ifNoneMatch: '*', body: '0', fence: job(7) });
    for (const token of [7, 8, 100]) {
      ({ etag } = await commit({ path: 'up', ifMatch: etag, body: `by ${token}`, fence: job(token) }));
      expect((await read('up')).fence).toEqual(job(token));
    }
  });

  it.each([
    ['a lower token', job(6), { token: 6, highest: 7 }, /^a newer holder of the fence has written/],
    ['no token', undefined, { token: null, highest: 7 }, /this commit has none/],
    ['another key', { key: 'other', token: 100 }, { token: 100, highest: 7 }, /under the fence of another key/],
  ])('a fenced object refuses %s, and is unchanged', async (name, fence, context, why) => {
    const path = `refuse/${name}`;
    const { etag } = await commit({ path, ifNoneMatch: '*', body: 'newest', fence: job(7) });
    const before = [await read(path), await world.allRecords()];
    const more = fence && { fence };
    // The fence is checked before the ETag, so that an older holder learns why it is refused.
    for (const condition of [{ ifMatch: etag }, { ifMatch: '"stale"' }, { ifNoneMatch: '*' }]) {
      const rejected = await failure(commit({ path, ...condition, body: 'older', ...more }));
      expect(rejected).toMatchObject({ code: 'FenceRejected', context: { path, ...context } });
      expect(rejected.message).toMatch(why);
    }
    expect(await body(path)).toBe('newest');
    expect([await read(path), await world.allRecords()]).toEqual(before);
  });

  it('a fenced object rejects an older holder whose write was already on its way', async () => {
    const { etag } = await commit({ path: 'on-its-way', ifNoneMatch: '*', body: '0', fence: job(1) });
    const older = world.another();
    older.objects.faultsOf.PutObject = [
      async (send) => {
        await commit({ path: 'on-its-way', ifMatch: etag, body: 'newer', fence: job(2) });
        return send();
      },
    ];
    const late = await failure(older.commit({ path: 'on-its-way', ifMatch: etag, body: 'older', fence: job(1) }));
    expect(late).toMatchObject({ code: 'FenceRejected', context: { token: 1, highest: 2 } });
    expect(await body('on-its-way')).toBe('newer');
  });

  it('a fenced object may begin its fence at any commit', async () => {
    const { etag } = await commit({ path: 'begin', ifNoneMatch: '*', body: '0' });
    await commit({ path: 'begin', ifMatch: etag, body: '1', fence: job(3) });
    expect((await read('begin')).fence).toEqual(job(3));
  });

  it('a fenced object still answers the repeat of a commit that was replaced since', async () => {
    const first = { path: 'repeat', ifNoneMatch: '*', body: 'older', fence: job(1), commitId: 'older' };
    const { etag } = await commit(first);
    const { etag: currentEtag } = await commit({ path: 'repeat', ifMatch: etag, body: 'newer', fence: job(2) });
    expect(await commit(first)).toMatchObject({ repeated: true, etag: null, currentEtag });
  });

  // A limit that docs/safety.md names.
  it('a fenced object loses its fence to a foreign overwrite and to a delete', async () => {
    await commit({ path: 'lost', ifNoneMatch: '*', body: '0', fence: job(9) });
    const etag = await world.rawPut('lost', 'foreign');
    expect((await read('lost')).fence).toBeNull();
    await commit({ path: 'lost', ifMatch: etag, body: 'older', fence: job(1) });
    await world.rawDelete('lost');
    await commit({ path: 'lost', ifNoneMatch: '*', body: 'unfenced' });
    expect((await read('lost')).fence).toBeNull();
  });

  // A limit, too: an ETag stands for bytes, so the same bytes have the same ETag again.
  it('a fenced object cannot distinguish X from a later X after Y', async () => {
    const { etag: x } = await commit({ path: 'aba', ifNoneMatch: '*', body: 'X' });
    const { etag: y } = await commit({ path: 'aba', ifMatch: x, body: 'Y' });
    await commit({ path: 'aba', ifMatch: y, body: 'X' });
    expect(await commit({ path: 'aba', ifMatch: x, body: 'Z' })).toMatchObject({ repeated: false });
  });

  it('the metadata of a fenced object has room for the longest values', async () => {
    const fence = { key: 'k'.repeat(256), token: world.clock.now() + 24 * 60 * 60 * 1000 };
    const metadata = { m: 'v'.repeat(1023) };
    const id = (n: number) => `${n}`.padEnd(64, 'i');
    let { etag } = await commit({ path: 'full', ifNoneMatch: '*', body: '0', metadata, fence, commitId: id(0) });
    for (let n = 1; n < 10; n++)
      ({ etag } = await commit({ path: 'full', ifMatch: etag, body: String(n), metadata, fence, commitId: id(n) }));
    const stored = await world.rawMetadata('full');
    // S3's limit, counted as S3 does: the bytes of names and values.
    expect(Object.entries(stored).flat().join('').length).toBeLessThanOrEqual(2048);
    expect(stored['holdfast-commits']?.split(' ')).toHaveLength(1 + 1 + 8);
    expect(await read('full')).toMatchObject({ fence, metadata, commitId: id(9) });
  });
});
