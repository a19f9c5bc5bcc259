import { createHash } from 'node:crypto';
import type { Readable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import type { SpareReason } from '../../shared/expiry/sources/source.ts';
import { call, type Fault } from '../support/emulators/aws.ts';
import { networkError } from '../support/faults/cuttable.ts';
import { ManualClock } from '../support/time/clock.ts';
import {
  commitRecord,
  commitRow,
  type ExpiryWorld,
  emptyKey,
  expiryWorld,
  firstSight,
  lease,
  N,
  newLocations,
  releasedLease,
  rustLease,
  S,
  waiter,
} from '../support/worlds/expiry.ts';
import { failure } from '../support/worlds/leases.ts';

const T = Date.parse('2026-03-01T00:00:00.000Z');
const SECONDS = T / 1000;
const HOUR = 3_600_000;
const locations = await newLocations();

const WRITES = ['PutItem', 'UpdateItem', 'DeleteItem', 'BatchWriteItem', 'TransactWriteItems'];
const OBJECT_WRITES = ['PutObject', 'DeleteObject', 'DeleteObjects', 'CopyObject'];

/** Everything that can be deleted, two hours after its expiry. */
async function filled(): Promise<ExpiryWorld> {
  const world = await expiryWorld({ clock: new ManualClock(T + 2 * HOUR) });
  await world.putLease(lease('abandoned', T));
  await world.putLease(rustLease('rust', SECONDS));
  await world.putLease(releasedLease('released', SECONDS));
  await world.putLease(emptyKey('empty', T - HOUR));
  await world.putCommit(commitRecord('a/b', SECONDS));
  await world.putCommit(firstSight('a/b', SECONDS));
  await world.putName(commitRow('books:main', N(SECONDS)));
  return world;
}
const FILLED = 7;

/** The ETags of the bytes `same` and `replaced`: their MD5s. */
const [SAME, REPLACED] = ['same', 'replaced'].map((bytes) => `"${createHash('md5').update(bytes).digest('hex')}"`);

const clean = (world: ExpiryWorld, input: object = {}) => world.clean({ dryRun: false, ...input });

/** The records that are left, without the lease of the report. */
async function left(world: ExpiryWorld): Promise<number> {
  const { leasesTable, commitsTable, nameserviceTable, waitersTable } = world.locations;
  const tables = [leasesTable, commitsTable, nameserviceTable, waitersTable ?? ''];
  const items = (await Promise.all(tables.map((table) => world.itemsOf(table)))).flat();
  return items.filter(({ key }) => key?.S !== 'holdfast:report').length;
}

describe('the clean-up', () => {
  it('a dry run does not write, and says what it would delete', async () => {
    const world = await filled();
    await world.report();
    world.items.sent.length = 0;
    world.objects.sent.length = 0;
    const answer = await world.clean();
    expect(answer).toMatchObject({
      dryRun: true,
      olderThanSeconds: 3600,
      deleted: { count: FILLED },
      nextCursor: null,
    });
    expect(
      [...world.items.sent, ...world.objects.sent].filter((sent) => [...WRITES, ...OBJECT_WRITES].includes(sent)),
    ).toEqual([]);
    expect(await left(world)).toBe(FILLED);
  });

  it('a clean-up deletes every kind that it may, and then finds them gone', async () => {
    const world = await filled();
    const uploadedAt = await world.stage('upload', 'bytes');
    world.clock.set(Math.max(world.clock.now(), uploadedAt + 48 * HOUR));
    await world.report();
    const first = await clean(world);
    expect(first).toMatchObject({
      dryRun: false,
      deleted: { count: FILLED + 1 },
      spared: { count: 0 },
      stoppedBy: null,
    });
    expect(first.deleted.by).toEqual({
      abandonedLease: 2,
      releasedLease: 2,
      commit: 1,
      firstSight: 1,
      nameserviceRow: 1,
      upload: 1,
    });
    expect(first.deleted.records).toContainEqual({
      kind: 'abandonedLease',
      key: { key: 'abandoned' },
      holder: 'holder of abandoned',
      expiredAt: new Date(T).toISOString(),
    });
    expect(await left(world)).toBe(0);
    expect(await world.objectKeys('.holdfast/staging/')).toEqual([]);
    const second = await clean(world);
    expect(second).toMatchObject({ deleted: { count: 0 }, spared: { count: FILLED + 1, by: { gone: FILLED + 1 } } });
    expect(JSON.stringify([first, second])).not.toMatch(/secret-/);
  });

  it('a clean-up deletes only the kinds that it is asked for', async () => {
    const world = await filled();
    await world.report();
    const answer = await clean(world, { kinds: ['commit', 'firstSight'] });
    expect(answer).toMatchObject({ deleted: { count: 2 }, spared: { count: 0 } });
    expect(await left(world)).toBe(FILLED - 2);
  });

  it('a clean-up does not delete what expired within the retention of fences', async () => {
    const world = await expiryWorld({ locations: { ...locations }, clock: new ManualClock(T + 1000) });
    await world.putLease(lease('young', T));
    await world.report();
    world.clock.set(T + HOUR - 1);
    expect(await clean(world, { olderThanSeconds: 0 })).toMatchObject({
      olderThanSeconds: 3600,
      deleted: { count: 0 },
      spared: { by: { tooYoung: 1 } },
    });
    expect((await clean(world, { olderThanSeconds: 7200 })).spared.by).toEqual({ tooYoung: 1 });
    world.clock.set(T + HOUR);
    expect((await clean(world, { olderThanSeconds: 7200 })).spared.by).toEqual({ tooYoung: 1 });
    expect((await clean(world, { olderThanSeconds: 0 })).deleted.by).toEqual({ abandonedLease: 1 });
  });

  const SPARED: [
    why: SpareReason,
    put: (world: ExpiryWorld) => Promise<unknown>,
    change?: (world: ExpiryWorld) => Promise<unknown>,
  ][] = [
    ['leftToQueue', (world) => world.putWaiter(waiter('queued', T))],
    ['fenceAhead', (world) => world.putLease(lease('ahead', T, { fence: N(T + 2 * HOUR - 500) }))],
    ['ageUnknown', (world) => world.putLease({ key: S('endless'), lease_version: S('v'), lease_expiry: S('x') })],
    // a commit that may be under way, because its writer does not store a time
    ['ageUnknown', (world) => world.putCommit(commitRecord('under way', SECONDS, { ttl: N(0) }))],
    [
      'neverDeletable',
      (world) => world.putLease(releasedLease('now', 0, { freed_at: N(T - 2 * HOUR), fence: N(T - 3 * HOUR) })),
    ],
    ['neverDeletable', (world) => world.putLease(rustLease('ms', T))],
    ['partOfRecord', (world) => world.putName({ pk: S('a:b'), sk: S('head'), schema: N(2), ttl: N(SECONDS) })],
    ['unrecognisable', (world) => world.putCommit(commitRecord('odd', SECONDS, { written_at: { BOOL: true } }))],
    ['tooYoung', (world) => world.putCommit(commitRecord('slow', SECONDS, { timeout: N((2 * HOUR) / 3) }))],
    ['changed', (world) => world.putLease(lease('marked', T, { mark: S('m') }))],
    [
      'changed',
      (world) => world.putLease(lease('revived', T)),
      (world) => world.putLease(lease('revived', T + 9 * HOUR, { fence: N(T - 60_000) })),
    ],
    ['changed', (world) => world.putLease(lease('taken', T)), (world) => world.putLease(lease('taken', T + 9 * HOUR))],
    [
      'changed',
      (world) => world.putLease(lease('released', T)),
      (world) => world.putLease(releasedLease('released', SECONDS)),
    ],
    [
      'changed',
      (world) => world.putLease(rustLease('extended', SECONDS)),
      (world) => world.putLease(rustLease('extended', SECONDS + 9999)),
    ],
    [
      'changed',
      (world) => world.putLease(rustLease('ours now', SECONDS)),
      (world) => world.putLease(lease('ours now', T)),
    ],
    [
      'changed',
      (world) => world.putLease(releasedLease('again', SECONDS)),
      (world) => world.putLease(lease('again', T + 9 * HOUR)),
    ],
    [
      'changed',
      (world) => world.putCommit(commitRecord('taken over', SECONDS)),
      (world) => world.putCommit(commitRecord('taken over', SECONDS, { generation: N(1) })),
    ],
    [
      'changed',
      (world) => world.putCommit(commitRecord('again', SECONDS)),
      (world) => world.putCommit(commitRecord('again', SECONDS + 9999)),
    ],
    [
      'changed',
      (world) => world.putCommit(firstSight('seen', SECONDS)),
      (world) => world.putCommit(firstSight('seen', SECONDS + 9999)),
    ],
    [
      'changed',
      (world) => world.putName(commitRow('c:d', N(SECONDS))),
      (world) => world.putName(commitRow('c:d', N(SECONDS + 9999))),
    ],
    [
      'changed',
      (world) => world.putName(commitRow('e:f', N(SECONDS))),
      (world) => world.putName({ ...commitRow('e:f', N(SECONDS)), updated_at_ms: N(T + 1) }),
    ],
    [
      'gone',
      (world) => world.putLease(lease('vanished', T)),
      (world) => world.deleteItem(world.locations.leasesTable, { key: S('vanished') }),
    ],
  ];
  it('a clean-up spares what it may not delete, and counts each reason', async () => {
    const world = await expiryWorld({ clock: new ManualClock(T + 2 * HOUR) });
    for (const [, put] of SPARED) await put(world);
    const { reportId } = await world.report();
    expect(await world.rows({ reportId })).toHaveLength(SPARED.length);
    for (const [, , change] of SPARED) await change?.(world);
    const before = await left(world);
    const answer = await clean(world, { reportId });
    const expected: Record<string, number> = {};
    for (const [why] of SPARED) expected[why] = (expected[why] ?? 0) + 1;
    expect(answer).toMatchObject({ deleted: { count: 0 }, spared: { count: SPARED.length, by: expected } });
    expect(answer.spared.records).toHaveLength(SPARED.length);
    expect(await left(world)).toBe(before);
  });

  it('a clean-up spares an upload that was replaced, even by the same bytes', async () => {
    const world = await expiryWorld();
    const staged = await Promise.all(['other', 'same', 'between'].map((name) => world.stage(name, name)));
    world.clock.set(Math.max(...staged) + 48 * HOUR);
    await world.report();
    await world.stage('other', 'replaced');
    // A test cannot move the clock of S3. So it sets the dates: the same bytes a second later, and other bytes within the second.
    world.objects.faultsOf.HeadObject = Array.from(
      { length: 3 },
      (): Fault => async (send) => {
        const answer = (await send()) as { response: { headers: Record<string, string> } };
        const { headers } = answer.response;
        const later = new Date(Date.parse(headers['last-modified'] ?? '') + 1000).toUTCString();
        if (headers.etag === SAME) headers['last-modified'] = later;
        if (headers.etag === REPLACED) headers['last-modified'] = new Date(staged[0] ?? 0).toUTCString();
        return answer;
      },
    );
    const inTheMiddle: Fault = async (send) => {
      await world.stage('between', 'replaced');
      return send();
    };
    world.objects.faultsOf.DeleteObject = [inTheMiddle];
    expect(await clean(world)).toMatchObject({ deleted: { count: 0 }, spared: { by: { changed: 3 } } });
    expect(await world.objectKeys('.holdfast/staging/')).toHaveLength(3);
    // A read finds what was replaced before, and then the clean-up does not send a deletion.
    expect(world.objects.sent.filter((command) => command === 'DeleteObject')).toHaveLength(1);
  });

  it('a clean-up follows the answer of S3 to the deletion of an upload', async () => {
    const world = await expiryWorld({ segments: 1 });
    const staged = await Promise.all(['1', '2', '3', '4'].map((name) => world.stage(name, name)));
    world.clock.set(Math.max(...staged) + 48 * HOUR);
    await world.report();
    world.objects.faultsOf.DeleteObject = [
      { name: 'NoSuchKey', status: 404 },
      { name: 'ConditionalRequestConflict', status: 409 },
      { name: 'PreconditionFailed', status: 412 },
    ];
    expect(await clean(world)).toMatchObject({
      deleted: { count: 1 },
      spared: { count: 3, by: { gone: 1, changed: 2 } },
      stoppedBy: null,
    });
    world.objects.faultsOf.DeleteObject = Array<Fault>(3).fill({ name: 'AccessDenied', status: 403 });
    expect(await clean(world)).toMatchObject({ spared: { count: 1, by: { gone: 1 } }, stoppedBy: 'Unavailable' });
    expect(await world.objectKeys('.holdfast/staging/')).toHaveLength(3);
  });

  it("a clean-up deletes the note of a first sight, whatever its record's timeout", async () => {
    const world = await expiryWorld({ clock: new ManualClock(T + 2 * HOUR) });
    await world.putCommit({ ...firstSight('slow', SECONDS), timeout: N((2 * HOUR) / 3) });
    await world.report();
    expect((await clean(world)).deleted.by).toEqual({ firstSight: 1 });
  });

  it('a clean-up deletes what TTL never deletes only if asked to', async () => {
    const world = await expiryWorld({ clock: new ManualClock(T + 6 * 365 * 24 * HOUR) });
    await world.putCommit(commitRecord('old', SECONDS));
    await world.putCommit(commitRecord('ms', SECONDS, { ttl: N(T) }));
    await world.putLease(lease('no ttl', T, { lease_expiry: S('x') }));
    expect((await world.report()).neverDeletable).toBe(3);
    expect(await clean(world)).toMatchObject({ deleted: { by: { commit: 1 } }, spared: { by: { neverDeletable: 2 } } });
    expect(await clean(world, { neverDeletable: true })).toMatchObject({
      deleted: { by: { commit: 1, abandonedLease: 1 } },
      spared: { by: { gone: 1 } },
    });
  });

  it('after a clean-up the next grant of the key has a higher fence', async () => {
    const world = await expiryWorld({ clock: new ManualClock(T + HOUR - 1) });
    const fence = T + 499;
    await world.putLease(releasedLease('key', SECONDS, { fence: N(fence) }));
    await world.report();
    expect((await clean(world)).deleted.count).toBe(0);
    world.clock.advance(1);
    expect((await clean(world)).deleted.count).toBe(1);
    expect(world.clock.now() - 500).toBeGreaterThan(fence);
  });

  it('a clean-up stops before its time is up, and goes on from the cursor', async () => {
    const world = await expiryWorld({ clock: new ManualClock(T + 2 * HOUR), segments: 1, partRows: 10 });
    for (let at = 0; at < 50; at++) await world.putCommit(commitRecord(`path-${at}`, SECONDS));
    await world.report();
    let checks = 0;
    const short = call({ timeLeftMs: () => (++checks > 2 ? 0 : 30_000) });
    const first = await world.clean({ dryRun: false }, short);
    expect(first).toMatchObject({ stoppedBy: 'time', nextCursor: expect.any(String) });
    expect(first.deleted.count).toBeGreaterThan(0);
    expect(first.deleted.count).toBeLessThan(50);
    const second = await clean(world, { cursor: first.nextCursor });
    expect(second).toMatchObject({ stoppedBy: null, nextCursor: null, spared: { count: 0 } });
    expect(first.deleted.count + second.deleted.count).toBe(50);
    expect(await left(world)).toBe(0);
  });

  it('a clean-up resolves a lost reply by reading, and stops if the table throttles', async () => {
    const world = await expiryWorld({ clock: new ManualClock(T + 2 * HOUR), segments: 1, partRows: 10 });
    for (let at = 0; at < 20; at++) await world.putCommit(commitRecord(`path-${at}`, SECONDS));
    await world.report();
    const throttled: Fault[] = Array.from({ length: 100 }, () => 'throttle');
    world.items.faultsOf.DeleteItem = ['lostReply', ...Array.from({ length: 10 }, () => 'none' as const), ...throttled];
    const first = await clean(world);
    expect(first).toMatchObject({ stoppedBy: 'Throttled', deleted: { count: 10 }, spared: { count: 0 } });
    expect((await failure(clean(world, { cursor: first.nextCursor }))).code).toBe('Throttled');
    world.items.faultsOf.DeleteItem = [];
    expect(await clean(world, { cursor: first.nextCursor })).toMatchObject({
      deleted: { count: 10 },
      nextCursor: null,
    });
  });

  it('a clean-up counts an upload whose deletion was answered only the second time', async () => {
    const world = await expiryWorld();
    world.clock.set(Math.max(world.clock.now(), (await world.stage('upload', 'bytes')) + 48 * HOUR));
    await world.report();
    world.objects.faultsOf.DeleteObject = ['lostReply'];
    expect(await clean(world)).toMatchObject({ deleted: { count: 1, by: { upload: 1 } }, spared: { count: 0 } });
    expect(world.objects.sent.filter((command) => command === 'DeleteObject')).toHaveLength(2);
  });

  it('a clean-up says how far it came if an answer of S3 breaks off', async () => {
    const world = await expiryWorld({ clock: new ManualClock(T + 2 * HOUR), segments: 1, partRows: 10 });
    for (let at = 0; at < 20; at++) await world.putCommit(commitRecord(`path-${at}`, SECONDS));
    await world.report();
    const breaksOff: Fault = async (send) => {
      const answer = (await send()) as { response: { body: Readable } };
      answer.response.body.destroy(networkError('ECONNRESET', 'read'));
      return answer;
    };
    world.objects.faultsOf.GetObject = ['none', 'none', breaksOff]; // the report's state, its first part, its second
    const first = await clean(world);
    expect(first).toMatchObject({ stoppedBy: 'Unavailable', deleted: { count: 10 } });
    expect(await clean(world, { cursor: first.nextCursor })).toMatchObject({ stoppedBy: null, deleted: { count: 10 } });
  });

  it.each<[code: string, input: { reportId?: string; cursor?: string }]>([
    ['NotFound', { reportId: 'unknown' }],
    ['InvalidRequest', { cursor: 'bm90LW9uZQ' }],
    ['InvalidRequest', { cursor: '!' }],
  ])('a clean-up answers %s to %o', async (code, input) => {
    const world = await filled();
    expect((await failure(clean(world, input))).code).toBe(input.reportId ? code : 'InvalidRequest');
    await world.report();
    expect((await failure(clean(world, input))).code).toBe(code);
    expect(await left(world)).toBe(FILLED);
  });

  it('a clean-up refuses the cursor of another report', async () => {
    const world = await filled();
    await world.report();
    const { nextCursor } = await world.read({ limit: 1 });
    world.clock.advance(1);
    const { reportId } = await world.report();
    expect((await failure(clean(world, { reportId, cursor: nextCursor }))).code).toBe('InvalidRequest');
  });

  it('a clean-up answers NotFound if there is no report', async () => {
    const world = await expiryWorld({ locations: { ...locations, bucket: (await expiryWorld()).locations.bucket } });
    expect((await failure(clean(world))).code).toBe('NotFound');
    expect((await failure(world.read())).code).toBe('NotFound');
  });
});
