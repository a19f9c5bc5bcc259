import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import { describe, expect, it } from 'vitest';
import { call, type Fault, newBucket } from '../support/emulators/aws.ts';
import { isFull } from '../support/time/rounds.ts';
import { expiryWorld, lease, N, newLocations, S } from '../support/worlds/expiry.ts';
import { failure } from '../support/worlds/leases.ts';
import { permitsWorld } from '../support/worlds/permits.ts';
import { permitLineWorld } from '../support/worlds/permits-in-line.ts';

const HOUR = 3_600_000;
const SKEW_MS = 500;
const others = await newLocations();

/** Grants and reports over the same tables and clock. */
async function permitWorld(overrides: Parameters<typeof expiryWorld>[0] = {}) {
  const world = await permitsWorld();
  return { ...world, ...(await reportsOver(world, overrides)) };
}

async function reportsOver(
  { clock, dependencies }: Pick<Awaited<ReturnType<typeof permitsWorld>>, 'clock' | 'dependencies'>,
  overrides: Parameters<typeof expiryWorld>[0] = {},
) {
  const { table: leasesTable, waitersTable } = dependencies;
  const locations = { ...others, leasesTable, waitersTable, bucket: await newBucket() };
  const expiry = await expiryWorld({ clock, locations, ...overrides });
  return { expiry, cleanNow: (input: object = {}, as = call()) => expiry.clean({ dryRun: false, ...input }, as) };
}

const nameOf = ({ leaseId }: { leaseId: string }) => leaseId.split('.')[1] ?? '';

describe('an abandoned permit', () => {
  it('an abandoned permit is reported from the millisecond when others may take its room', async () => {
    const { acquire, release, heartbeat, rawItem, clock, expiry } = await permitWorld();
    const asked = { key: 'render', limit: 5 };
    const dead = await acquire({ ...asked, holder: 'dead', data: 'secret-data' });
    const alive = await acquire({ ...asked, holder: 'alive' });
    await release(await acquire({ ...asked, holder: 'done' }));
    const expiredAt = clock.now() + 60_000;
    clock.advance(30_000);
    await heartbeat(alive);
    const before = await rawItem('render');
    clock.set(expiredAt + SKEW_MS);
    const none = await expiry.report();
    expect(none.expired.abandonedPermit).toEqual({ count: 0, oldestAgeSeconds: 0 });
    clock.advance(1);
    const { expired, scanned } = await expiry.report();
    expect(expired.abandonedPermit).toEqual({ count: 1, oldestAgeSeconds: 0 });
    expect(scanned).toBe(2); // with the lease of the report
    expect(await expiry.rows({ kind: 'abandonedPermit' })).toEqual([
      {
        kind: 'abandonedPermit',
        key: { key: 'render', fence: String(dead.fence) },
        holder: 'dead',
        expiredAt: new Date(expiredAt).toISOString(),
        ageSeconds: 0,
        reason: 'dead let it expire without a release, and no other caller needed its room',
        neverDeletable: false,
        ttlFault: null,
        identity: {
          name: S(`h${nameOf(dead)}`),
          fence: N(dead.fence),
          expires_at: N(expiredAt),
          heartbeat_at: N(expiredAt - 60_000),
          weight: N(1),
        },
      },
    ]);
    const written = JSON.stringify(await expiry.rows());
    for (const secret of [dead.leaseId.split('.')[2], dead.version, 'secret-data'])
      expect(written).not.toContain(secret);
    expect(await rawItem('render')).toEqual(before);
  });

  it('an abandoned permit is cleaned by one write, which leaves the other holders', async () => {
    const { acquire, heartbeat, rawItem, read, clock, expiry, cleanNow } = await permitWorld();
    const asked = { key: 'gpus', limit: 8, ttlSeconds: 86_400 };
    const dead = await acquire({ ...asked, holder: 'dead', weight: 5, ttlSeconds: 60 });
    const alive = await acquire({ ...asked, holder: 'alive', weight: 3 });
    clock.advance(2 * HOUR);
    await expiry.report();
    expect(await expiry.clean()).toMatchObject({ dryRun: true, deleted: { by: { abandonedPermit: 1 } } });
    expect(await read('gpus')).toMatchObject({ used: 8 });
    const before = await rawItem('gpus');
    expiry.items.sent.length = 0;
    const first = await cleanNow();
    expect(expiry.items.sent).toEqual(['UpdateItem']);
    expect(first).toMatchObject({ deleted: { count: 1, by: { abandonedPermit: 1 } }, spared: { count: 0 } });
    expect(first.deleted.records).toMatchObject([{ key: { key: 'gpus', fence: String(dead.fence) }, holder: 'dead' }]);
    const { [`h${nameOf(dead)}`]: _, [`f${nameOf(dead)}`]: __, ...rest } = before ?? {};
    expect(await rawItem('gpus')).toEqual({ ...rest, used: N(3) });
    expect(await cleanNow()).toMatchObject({ deleted: { count: 0 }, spared: { by: { gone: 1 } } });
    expect(await heartbeat(alive)).toMatchObject({ fence: alive.fence });
    expect((await failure(heartbeat(dead))).context).toMatchObject({ reason: 'unknown' });
    const next = await acquire({ ...asked, holder: 'next', weight: 5 });
    expect(next).toMatchObject({ used: 8, previous: null });
    expect(next.fence).toBeGreaterThan(alive.fence);
  });

  it('an abandoned permit is not cleaned before its age or as another kind', async () => {
    const { acquire, clock, expiry, cleanNow } = await permitWorld();
    await acquire({ key: 'young', holder: 'dead', limit: 2 });
    clock.advance(60_000 + HOUR - 1);
    await expiry.report();
    expect((await cleanNow({ olderThanSeconds: 0 })).spared.by).toEqual({ tooYoung: 1 });
    clock.advance(1);
    expect(await cleanNow({ kinds: ['abandonedLease'] })).toMatchObject({
      deleted: { count: 0 },
      spared: { count: 0 },
    });
    expect((await cleanNow({ kinds: ['abandonedPermit'], olderThanSeconds: 0 })).deleted.count).toBe(1);
  });
});

describe('the clean-up spares a permit', () => {
  it('the clean-up spares a permit that was extended after the report', async () => {
    const { acquire, heartbeat, read, clock, expiry, cleanNow } = await permitWorld();
    const permit = await acquire({ key: 'revived', holder: 'late', limit: 2 });
    clock.advance(2 * HOUR);
    await expiry.report();
    await heartbeat(permit);
    for (let time = 0; time < 2; time++)
      expect(await cleanNow()).toMatchObject({ deleted: { count: 0 }, spared: { count: 1, by: { changed: 1 } } });
    expect((await read('revived')).holders).toMatchObject([{ holder: 'late', state: 'held' }]);
    // The permit is spared even after it has expired again, because the report is older.
    clock.advance(2 * HOUR);
    expect((await cleanNow()).spared.by).toEqual({ changed: 1 });
  });

  it("the clean-up spares a request's new permit, and permits that ended", async () => {
    const { acquire, release, deleteRaw, read, clock, expiry, cleanNow } = await permitWorld();
    const ask = (key: string) => acquire({ key, holder: 'same', requestId: 'same', limit: 1 });
    await ask('again');
    const returned = await ask('returned');
    await ask('taken');
    await ask('deleted');
    clock.advance(2 * HOUR);
    await expiry.report();
    const { fence } = await ask('again');
    await release(returned);
    await acquire({ key: 'taken', holder: 'other', limit: 1 });
    await deleteRaw('deleted');
    expect(await cleanNow()).toMatchObject({ deleted: { count: 0 }, spared: { by: { changed: 1, gone: 3 } } });
    expect(await read('deleted')).toMatchObject({ used: 0, holders: [] });
    expect((await read('again')).holders).toMatchObject([{ fence }]);
    expect((await read('taken')).holders).toMatchObject([{ holder: 'other' }]);
  });

  it('the clean-up spares a permit with a line, which takes its room', async () => {
    const line = await permitLineWorld();
    const { expiry, cleanNow } = await reportsOver(line);
    await line.acquire({ key: 'wanted', holder: 'dead', limit: 2, ttlSeconds: 60 });
    await line.acquire({ key: 'wanted', holder: 'alive', limit: 2, ttlSeconds: 86_400 });
    const parked = await line.park({ key: 'wanted', mode: 'exclusive', parkSeconds: 86_400 });
    expect(parked.parked).toBe(true);
    line.clock.advance(2 * HOUR);
    await expiry.report();
    const before = await line.rawItem('wanted');
    for (let time = 0; time < 2; time++) expect((await cleanNow()).spared.by).toEqual({ changed: 1 });
    expect(await line.rawItem('wanted')).toEqual(before);
    await line.cancel('wanted', parked.ticket ?? '');
    expect(await line.rawItem('wanted')).not.toHaveProperty('mark');
    expect((await cleanNow()).deleted.by).toEqual({ abandonedPermit: 1 });
    expect(await line.read('wanted')).toMatchObject({ used: 1 });
  });

  it('the clean-up spares a permit that TTL never deletes, unless asked for', async () => {
    const { acquire, setRaw, read, clock, expiry, cleanNow } = await permitWorld();
    await acquire({ key: 'ms', holder: 'dead', limit: 2 });
    await setRaw('ms', 'lease_expiry', N(clock.now()));
    clock.advance(2 * HOUR);
    expect((await expiry.report()).neverDeletable).toBe(1);
    expect(await expiry.rows()).toMatchObject([{ ttlFault: 'milliseconds', neverDeletable: true }]);
    expect((await cleanNow()).spared.by).toEqual({ neverDeletable: 1 });
    expect((await cleanNow({ neverDeletable: true })).deleted.count).toBe(1);
    expect(await read('ms')).toMatchObject({ used: 0 });
  });
});

describe('a clean-up of expired permits', () => {
  it('an unanswered write frees the permit only once, and counts as a deletion', async () => {
    const { acquire, read, clock, expiry, cleanNow } = await permitWorld();
    for (const holder of ['dead', 'dead too']) await acquire({ key: 'lost', holder, limit: 9, weight: 4 });
    clock.advance(2 * HOUR);
    await expiry.report();
    expiry.items.faultsOf.UpdateItem = ['lostReply', 'none', 'none'];
    expect(await cleanNow()).toMatchObject({ deleted: { count: 2 }, spared: { count: 0 } });
    expect(expiry.items.sent.filter((command) => command === 'UpdateItem').length).toBeGreaterThanOrEqual(3);
    expect(await read('lost')).toMatchObject({ used: 0, holders: [] });
  });

  it('an unknown outcome stops the clean-up, and the next one finds the outcome', async () => {
    const { acquire, read, clock, expiry, cleanNow } = await permitWorld();
    await acquire({ key: 'unknown', holder: 'dead', limit: 2 });
    clock.advance(2 * HOUR);
    await expiry.report();
    expiry.items.faultsOf.UpdateItem = ['lostReply', 'neverSent', 'neverSent'];
    expect((await failure(cleanNow())).code).toBe('OutcomeUnknown');
    expect((await cleanNow()).spared.by).toEqual({ gone: 1 });
    expect(await read('unknown')).toMatchObject({ used: 0 });
  });

  it('a clean-up does not end a permit that its holder has extended', async () => {
    const { acquire, heartbeat, read, clock, expiry, cleanNow } = await permitWorld();
    const permit = await acquire({ key: 'late', holder: 'late', limit: 2 });
    clock.advance(2 * HOUR);
    await expiry.report();
    const afterHeartbeat: Fault = async (send) => {
      await heartbeat(permit);
      return send();
    };
    expiry.items.faultsOf.UpdateItem = [afterHeartbeat];
    expect((await cleanNow()).spared.by).toEqual({ changed: 1 });
    expect(await read('late')).toMatchObject({ used: 1 });
  });
});

describe('a record with many holders', () => {
  it('each holder of a record has a row, even across pages', async () => {
    const { acquire, putRaw, rawItem, clock, expiry, cleanNow } = await permitWorld({ partRows: 10, pageRows: 1 });
    const count = isFull ? 200 : 50;
    await acquire({ key: 'crowd', holder: 'one', limit: count });
    const { key, ...one } = (await rawItem('crowd')) ?? {};
    const crowd = entries(one, count);
    await putRaw({ key, ...crowd, used: N(count) } as Record<string, AttributeValue>);
    clock.advance(2 * HOUR);
    const { expired } = await expiry.report();
    expect(expired.abandonedPermit.count).toBe(count);
    for (const limit of [17, count - 1]) {
      const rows = await expiry.rows({ kind: 'abandonedPermit' }, limit);
      expect(rows).toHaveLength(count);
      expect(new Set(rows.map((reported) => reported.key.fence)).size).toBe(count);
    }
    let checks = 0;
    const short = call({ timeLeftMs: () => (++checks > 2 ? 0 : 30_000) });
    const first = await cleanNow({}, short);
    expect(first).toMatchObject({ stoppedBy: 'time', nextCursor: expect.any(String) });
    const { deleted } = await expiry.clean({ cursor: first.nextCursor });
    expect(first.deleted.count).toBeGreaterThan(0);
    expect(first.deleted.count + deleted.count).toBe(count);
    const left = await rawItem('crowd');
    expect(left?.used).toEqual(N(deleted.count));
    expect(Object.keys(left ?? {}).filter((name) => /^h/.test(name))).toHaveLength(deleted.count);
  });

  it.runIf(isFull)('a record with many holders ends a page early to fit an answer', async () => {
    const { acquire, putRaw, rawItem, clock, expiry } = await permitWorld();
    // A control character takes seven bytes in JSON within JSON.
    const long = '\u0001'.repeat(1024);
    await acquire({ key: 'one', holder: '\u0001'.repeat(256), limit: 200 });
    const { key: _, ...one } = (await rawItem('one')) ?? {};
    await putRaw({ key: S(long), ...entries(one, 700) } as Record<string, AttributeValue>);
    clock.advance(2 * HOUR);
    await expiry.report();
    const first = await expiry.read({ limit: 1000 });
    expect(first.rows.length).toBeGreaterThan(0);
    expect(first.rows.length).toBeLessThan(701);
    expect(Buffer.byteLength(JSON.stringify(JSON.stringify(first)))).toBeLessThan(6 * 1024 ** 2);
    expect(await expiry.rows({}, 1000)).toHaveLength(701);
  });
});

/** The entry of an item again and again, each for a request and with a fence of its own. */
function entries(item: Record<string, AttributeValue>, count: number): Record<string, AttributeValue> {
  const attribute = Object.keys(item).find((name) => /^h/.test(name)) ?? '';
  const others = Object.entries(item).filter(([name]) => !/^[hf](?!ence)/.test(name));
  const made = Array.from({ length: count }, (_, at): [string, AttributeValue][] => {
    const name = String(at).padStart(16, '0');
    return [
      [`h${name}`, item[attribute] as AttributeValue],
      [`f${name}`, N(Number(item.fence?.N) + at)],
    ];
  });
  return Object.fromEntries([...others, ...made.flat()]);
}

describe('a key after its last shared holder', () => {
  const HOURS_KEPT = 400 * 24;

  /** A key of which the last permit was released at this moment. */
  async function emptied() {
    const world = await permitWorld();
    const empty = async (key: string) => {
      const permit = await world.acquire({ key, holder: 'last', requestId: 'last', limit: 2 });
      await world.release(permit);
      return permit;
    };
    return { ...world, empty };
  }

  it('the fence is higher after the deletion of a key of shared holders', async () => {
    const { acquire, empty, rawItem, clock, expiry, cleanNow } = await emptied();
    const { fence } = await empty('done');
    clock.advance(HOUR);
    expect((await expiry.report()).expired.releasedLease.count).toBe(0);
    clock.advance(HOUR + 1000);
    await expiry.report();
    expect(await expiry.rows()).toMatchObject([
      {
        kind: 'releasedLease',
        key: { key: 'done' },
        holder: null,
        reason: 'no caller holds it, and it is past its retention',
        neverDeletable: false,
        ttlFault: null,
      },
    ]);
    expect(await cleanNow({ kinds: ['abandonedPermit', 'abandonedLease'] })).toMatchObject({ deleted: { count: 0 } });
    expect((await cleanNow()).deleted.by).toEqual({ releasedLease: 1 });
    expect(await rawItem('done')).toBeUndefined();
    expect((await cleanNow()).spared.by).toEqual({ gone: 1 });
    expect((await acquire({ key: 'done', limit: 2 })).fence).toBeGreaterThan(fence);
  });

  it('a key after its last shared holder is spared for its retention', async () => {
    const { empty, setRaw, clock, expiry, cleanNow } = await emptied();
    for (const key of ['young', 'ahead']) await empty(key);
    clock.advance(2 * HOUR);
    await setRaw('ahead', 'fence', N(clock.now() + HOUR));
    await expiry.report();
    clock.advance(-1000);
    expect((await cleanNow({ olderThanSeconds: 0 })).spared.by).toEqual({ tooYoung: 2 });
    clock.advance(2000);
    expect(await cleanNow()).toMatchObject({
      deleted: { by: { releasedLease: 1 } },
      spared: { by: { fenceAhead: 1 } },
    });
  });

  it('a key after its last shared holder is spared if it has changed', async () => {
    const { acquire, release, empty, rawItem, setRaw, deleteRaw, clock, expiry, cleanNow } = await emptied();
    const changes: Record<string, (key: string) => Promise<unknown>> = {
      'in use': (key) => acquire({ key, limit: 2 }),
      'used again': async (key) => release(await acquire({ key, limit: 2 })),
      'with a line': (key) => setRaw(key, 'mark', S('m')),
      'with another fence': (key) => setRaw(key, 'fence', N(1)),
      'written since': (key) => setRaw(key, 'lease_expiry', N(clock.now())),
      'with a use of another client': (key) => setRaw(key, 'used', N(1)),
      'of a third-party client': async (key) => {
        const { used: _, ...rest } = (await rawItem(key)) ?? {};
        await expiry.putLease({ ...rest, lease_version: S('version') });
      },
      exclusive: (key) => acquire({ key, mode: 'exclusive' }),
      'released once more': async (key) => release(await acquire({ key, mode: 'exclusive' })),
    };
    for (const key of Object.keys(changes)) await empty(key);
    await empty('deleted');
    clock.advance(3 * HOUR);
    await expiry.report();
    for (const [key, change] of Object.entries(changes)) await change(key);
    await deleteRaw('deleted');
    const before = await expiry.itemsOf(expiry.locations.leasesTable);
    const { deleted, spared } = await cleanNow();
    expect([deleted.count, spared.by]).toEqual([0, { changed: Object.keys(changes).length, gone: 1 }]);
    expect(await expiry.itemsOf(expiry.locations.leasesTable)).toEqual(before);
  });

  it('a key after its last shared holder is not reported with a mark', async () => {
    const { acquire, empty, setRaw, clock, expiry } = await emptied();
    await empty('marked');
    await setRaw('marked', 'mark', S('m'));
    await acquire({ key: 'odd', holder: 'dead', limit: 2 });
    await setRaw('odd', 'used', N(0));
    for (const hours of [3, HOURS_KEPT]) {
      clock.advance(hours * HOUR);
      await expiry.report();
      expect(await expiry.rows()).toEqual([]);
    }
  });

  it('a key after its last shared holder is reported as released', async () => {
    const { acquire, empty, clock, expiry } = await emptied();
    await empty('empty');
    await acquire({ key: 'in use', holder: 'alive', limit: 2, ttlSeconds: 86_400 });
    await expiry.putLease(lease('a lease', clock.now()));
    clock.advance(HOURS_KEPT * HOUR);
    await expiry.report();
    const kinds = (await expiry.rows()).map(({ kind, key }) => `${key.key}: ${kind}`);
    expect(kinds.toSorted()).toEqual(['a lease: abandonedLease', 'empty: releasedLease', 'in use: abandonedPermit']);
  });

  it('a key after its last shared holder survives a deletion behind the next grant', async () => {
    const { acquire, empty, read, clock, expiry, cleanNow } = await emptied();
    await empty('late');
    clock.advance(3 * HOUR);
    await expiry.report();
    const afterGrant: Fault = async (send) => {
      await acquire({ key: 'late', holder: 'next', limit: 2 });
      return send();
    };
    expiry.items.faultsOf.DeleteItem = [afterGrant];
    expect((await cleanNow()).spared.by).toEqual({ changed: 1 });
    expect(await read('late')).toMatchObject({ used: 1, holders: [{ holder: 'next' }] });
  });
});

describe('a record of a third-party client', () => {
  it('a foreign record of 400 KB and odd shapes costs only itself', async () => {
    const { acquire, rawItem, putRaw, setRaw, read, clock, expiry, cleanNow } = await permitWorld({ segments: 1 });
    const dead = async (key: string) => nameOf(await acquire({ key, holder: `of ${key}`, limit: 9 }));
    const names = {
      sound: await dead('sound'),
      large: await dead('large'),
      text: await dead('text'),
    };
    await setRaw('sound', 'r3', N(1));
    await setRaw('sound', 'h0123456789abcdef', S('no map'));
    await setRaw('sound', 'hfedcba9876543210', { M: { e: N(1), i: S('x') } });
    await setRaw('sound', 'history', { L: [S('x')] });
    await putRaw({ ...(await rawItem('large')), ballast: S('x'.repeat(400 * 1024 - 800)) });
    await setRaw('text', 'used', S('1'));
    await putRaw({ key: S('unlike'), used: S('x'), mark: S('x'), fence: { L: [] } });
    clock.advance(2 * HOUR);
    await expiry.putLease(lease('beside', clock.now() - 2 * HOUR));
    const { expired, complete } = await expiry.report();
    expect([complete, expired.abandonedPermit.count, expired.abandonedLease.count]).toEqual([true, 3, 1]);
    const rows = await expiry.rows({ kind: 'abandonedPermit' });
    const unrecognised = rows.filter(({ identity }) => identity === null).map(({ key }) => key.key);
    expect(unrecognised.toSorted()).toEqual(['text']);
    expect(await cleanNow()).toMatchObject({
      deleted: { by: { abandonedPermit: 2, abandonedLease: 1 } },
      spared: { by: { unrecognisable: 1 } },
      stoppedBy: null,
    });
    for (const key of ['sound', 'large']) expect(await read(key)).toMatchObject({ used: 0, holders: [] });
    expect((await rawItem('large'))?.ballast?.S).toHaveLength(400 * 1024 - 800);
    expect(await rawItem('sound')).toMatchObject({ history: { L: [S('x')] }, h0123456789abcdef: S('no map') });
    expect((await rawItem('text'))?.[`h${names.text}`]).toBeDefined();
  });

  it('a record that a third-party client changed after the report is left alone', async () => {
    const { acquire, rawItem, setRaw, clock, expiry, cleanNow } = await permitWorld({ segments: 1 });
    const attribute = `h${nameOf(await acquire({ key: 'weight', holder: 'a', limit: 9 }))}`;
    await acquire({ key: 'used', holder: 'b', limit: 9 });
    await acquire({ key: 'sound', holder: 'c', limit: 9 });
    clock.advance(2 * HOUR);
    await expiry.report();
    const entry = (await rawItem('weight'))?.[attribute]?.M;
    await setRaw('weight', attribute, { M: { ...entry, w: S('1') } });
    await setRaw('used', 'used', S('1'));
    expect(await cleanNow()).toMatchObject({
      deleted: { by: { abandonedPermit: 1 } },
      spared: { by: { changed: 2 } },
      stoppedBy: null,
    });
  });
});

describe('a grant of an ended execution', () => {
  it('a grant of an ended execution is reported after its grace, and deleted', async () => {
    const { dependencies, clock, steps, executionEnded, ...calls } = await permitLineWorld();
    const execution = steps.newExecution('ABORTED');
    const terms = { holder: 'wf', execution, ttlSeconds: 600, graceSeconds: 60 };
    await calls.acquire({ key: 'shared', limit: 1, ...terms });
    await calls.acquire({ key: 'lease', ...terms });
    expect(await executionEnded(execution)).toMatchObject({ graced: 2 });
    const { expiry, cleanNow } = await reportsOver({ clock, dependencies });
    clock.advance(60_000 + SKEW_MS + 1);
    await expiry.report();
    const reason = 'the execution of wf ended without a release, and its grace is over';
    expect((await expiry.rows({ kind: 'abandonedLease' })).map(({ reason }) => reason)).toEqual([
      `${reason}, and no other caller took it over`,
    ]);
    expect((await expiry.rows({ kind: 'abandonedPermit' })).map(({ reason }) => reason)).toEqual([
      `${reason}, and no other caller needed its room`,
    ]);
    clock.advance(HOUR);
    expect((await cleanNow()).deleted.by).toMatchObject({ abandonedLease: 1, abandonedPermit: 1 });
    await steps.stop();
  });
});
