import { describe, expect, it } from 'vitest';
import { KINDS, type Kind } from '../../shared/expiry/kinds.ts';
import type { ExpiredRow } from '../../shared/expiry/sources/rows.ts';
import { call } from '../support/emulators/aws.ts';
import { ManualClock } from '../support/time/clock.ts';
import {
  commitRecord,
  commitRow,
  deadPermit,
  type ExpiryWorld,
  emptyKey,
  entryOf,
  expiryWorld,
  firstSight,
  lease,
  N,
  releasedLease,
  rustLease,
  S,
  waiter,
} from '../support/worlds/expiry.ts';

const T = Date.parse('2026-03-01T00:00:00.000Z');
const SECONDS = T / 1000;
const YEARS = 365 * 86_400;

interface Case {
  what: string;
  kind: Kind;
  put(world: ExpiryWorld): Promise<unknown>;
  key: Record<string, string>;
  /** The last millisecond before the record has expired. Uploads are left out, because S3 has its own clock. */
  last: number;
  /** The row that the report shows a millisecond later. */
  row: object;
}

const SIGHT = 'holdfast:first-sight:*';
const CASES: Case[] = [
  {
    what: 'a lease of ours, past the margin for clocks',
    kind: 'abandonedLease',
    put: (world) => world.putLease(lease('ours', T)),
    key: { key: 'ours' },
    last: T + 500,
    row: { holder: 'holder of ours', expiredAt: new Date(T).toISOString(), ageSeconds: 0, neverDeletable: false },
  },
  {
    what: 'a lease of the Rust crate, past the second that it names',
    kind: 'abandonedLease',
    put: (world) => world.putLease(rustLease('rust', SECONDS)),
    key: { key: 'rust' },
    last: T + 1499,
    row: { holder: null, expiredAt: new Date(T + 1000).toISOString(), ageSeconds: 0, neverDeletable: false },
  },
  {
    what: 'a released lease, past its retention',
    kind: 'releasedLease',
    put: (world) => world.putLease(releasedLease('released', SECONDS)),
    key: { key: 'released' },
    last: T + 999,
    row: { holder: 'holder of released', expiredAt: new Date(T).toISOString(), ageSeconds: 1, neverDeletable: false },
  },
  {
    what: 'a permit, past the margin for clocks',
    kind: 'abandonedPermit',
    put: (world) => world.putLease(deadPermit('shared', T)),
    key: { key: 'shared', fence: String(T) },
    last: T + 500,
    row: { holder: 'holder of shared', expiredAt: new Date(T).toISOString(), ageSeconds: 0, neverDeletable: false },
  },
  {
    what: 'a key after its last shared holder, past its retention',
    kind: 'releasedLease',
    put: (world) => world.putLease(emptyKey('empty', T - 3_600_000)),
    key: { key: 'empty' },
    last: T,
    row: { holder: null, expiredAt: new Date(T).toISOString(), ageSeconds: 0, neverDeletable: false },
  },
  {
    what: 'a commit record of ours',
    kind: 'commit',
    put: (world) => world.putCommit(commitRecord('a/b', SECONDS)),
    key: { path: 'a/b', etag: '*' },
    last: T + 999,
    row: { holder: 'id-of-a/b', expiredAt: new Date(T).toISOString(), ageSeconds: 1 },
  },
  {
    what: 'a commit record of the Rust crate object_store',
    kind: 'commit',
    put: (world) => {
      const { commit_id: _, written_at: __, ...foreign } = commitRecord('c/d', SECONDS, { etag: S('"etag"') });
      return world.putCommit(foreign);
    },
    key: { path: 'c/d', etag: '"etag"' },
    last: T + 999,
    row: { holder: null, ageSeconds: 1 },
  },
  {
    what: 'a first sight',
    kind: 'firstSight',
    put: (world) => world.putCommit(firstSight('c/d', SECONDS)),
    key: { path: 'c/d', etag: SIGHT },
    last: T + 999,
    row: { holder: null, ageSeconds: 1 },
  },
  {
    what: 'a parked waiter',
    kind: 'waiter',
    put: (world) => world.putWaiter(waiter('queued', T)),
    key: { key: 'queued', ticket: '0001767225600123-ticket' },
    last: T + 500,
    row: { holder: 'holder of queued', expiredAt: new Date(T).toISOString(), ageSeconds: 0, neverDeletable: false },
  },
  {
    what: 'a parked waiter that leaves no name',
    kind: 'waiter',
    put: (world) => {
      const { holder: _, ...nameless } = waiter('nameless', T);
      return world.putWaiter(nameless);
    },
    key: { key: 'nameless', ticket: '0001767225600123-ticket' },
    last: T + 500,
    row: { holder: null, expiredAt: new Date(T).toISOString(), ageSeconds: 0, neverDeletable: false },
  },
  {
    what: 'a task that waits for a permit',
    kind: 'waiter',
    put: (world) => world.putWaiter({ ...waiter('full', T), weight: N(2) }),
    key: { key: 'full', ticket: '0001767225600123-ticket' },
    last: T + 500,
    row: { reason: 'holder of full is still parked for a permit, and its deadline is past' },
  },
  {
    what: 'the row of a commit in the nameservice',
    kind: 'nameserviceRow',
    put: (world) => world.putName(commitRow('books:main', N(SECONDS))),
    key: { pk: 'books:main', sk: 'commit#00000000000000000007' },
    last: T + 999,
    row: {
      holder: null,
      ageSeconds: 1,
      neverDeletable: false,
      reason: 'the row of a commit of the ledger is past its ttl',
    },
  },
  {
    what: 'a lease of the Rust crate with milliseconds as its TTL',
    kind: 'abandonedLease',
    put: (world) => world.putLease(rustLease('rust ms', T)),
    key: { key: 'rust ms' },
    last: T + 499,
    row: { expiredAt: new Date(T).toISOString(), neverDeletable: true, ttlFault: 'milliseconds' },
  },
  {
    what: 'a lease of ours without a TTL',
    kind: 'abandonedLease',
    put: (world) => {
      const { lease_expiry: _, ...without } = lease('no ttl', T);
      return world.putLease(without);
    },
    key: { key: 'no ttl' },
    last: T + 500,
    row: { expiredAt: new Date(T).toISOString(), neverDeletable: true, ttlFault: 'missing' },
  },
  {
    what: 'a released lease whose TTL is a string',
    kind: 'releasedLease',
    put: (world) => world.putLease(releasedLease('string ttl', SECONDS, { lease_expiry: S(String(SECONDS)) })),
    key: { key: 'string ttl' },
    last: T,
    row: { expiredAt: new Date(T).toISOString(), neverDeletable: true, ttlFault: 'notANumber' },
  },
  {
    what: 'a commit record with milliseconds as its ttl',
    kind: 'commit',
    put: (world) => world.putCommit(commitRecord('ms', SECONDS, { ttl: N(T) })),
    key: { path: 'ms', etag: '*' },
    last: T - 1,
    row: { expiredAt: new Date(T).toISOString(), neverDeletable: true, ttlFault: 'milliseconds' },
  },
  {
    what: 'a row of the nameservice with milliseconds as its ttl',
    kind: 'nameserviceRow',
    put: (world) => world.putName(commitRow('ms:main', N(T))),
    key: { pk: 'ms:main', sk: 'commit#00000000000000000007' },
    last: T - 1,
    row: { neverDeletable: true, ttlFault: 'milliseconds' },
  },
];

const sameKey = (wanted: object) => (row: { key: object }) => JSON.stringify(row.key) === JSON.stringify(wanted);

describe('the boundary', () => {
  /** One world with all records, so that a single report serves every case at that millisecond. */
  const shared = expiryWorld({ segments: 1 }).then(async (world) => {
    for (const { put } of CASES) await put(world);
    return world;
  });
  const reported = new Map<number, ExpiredRow[]>();
  async function rowsAt(now: number): Promise<ExpiredRow[]> {
    const world = await shared;
    world.clock.set(now);
    const { reportId, complete } = await world.report();
    expect(complete).toBe(true);
    const rows = await world.rows({ reportId }, 1000);
    reported.set(now, rows);
    return rows;
  }

  it.each(CASES)('a report names $what from its last living millisecond on, as $kind', async (one) => {
    const at = async (now: number) => (reported.get(now) ?? (await rowsAt(now))).filter(sameKey(one.key));
    expect(await at(one.last)).toEqual([]);
    const [row, ...more] = await at(one.last + 1);
    expect(more).toEqual([]);
    expect(row).toMatchObject({ kind: one.kind, key: one.key, ...one.row });
    expect(row?.reason).toMatch(/\w+ \w+/);
    // A day and a second later its age has grown by the same.
    const [aged] = await at(one.last + 1 + 86_401_000);
    expect(aged?.ageSeconds).toBe((row?.ageSeconds ?? Number.NaN) + 86_401);
  });

  it('a staged upload is reported a day after its upload', async () => {
    const world = await expiryWorld({ segments: 1 });
    const uploadedAt = await world.stage('upload-1', 'staged');
    const expiredAt = uploadedAt + 86_400_000;
    world.clock.set(expiredAt);
    await world.report();
    expect(await world.rows()).toEqual([]);
    world.clock.set(expiredAt + 1);
    await world.report();
    expect(await world.rows()).toMatchObject([
      {
        kind: 'upload',
        key: { path: '.holdfast/staging/upload-1' },
        holder: null,
        ageSeconds: 0,
        neverDeletable: false,
      },
    ]);
  });

  it('staged uploads are read page by page', async () => {
    const world = await expiryWorld({ segments: 1, pageRows: 3 });
    const names = ['1', '2', '3', '4', '5', '6', '7'];
    const uploadedAt = await Promise.all(names.map((name) => world.stage(name, name)));
    world.clock.set(Math.max(...uploadedAt) + 86_400_001);
    await world.report();
    expect((await world.rows()).map(({ key }) => key.path)).toEqual(names.map((name) => `.holdfast/staging/${name}`));
    expect(world.objects.sent.filter((command) => command === 'ListObjectsV2')).toHaveLength(3);
  });

  it('TTL never deletes a record that expired more than five years ago', async () => {
    const world = await expiryWorld({ segments: 1 });
    await world.putCommit(commitRecord('old', SECONDS));
    world.clock.set(T + 5 * YEARS * 1000 + 999);
    await world.report();
    expect(await world.rows()).toMatchObject([{ kind: 'commit', neverDeletable: false, ttlFault: null }]);
    world.clock.advance(1);
    const { neverDeletable } = await world.report();
    expect(neverDeletable).toBe(1);
    expect(await world.rows()).toMatchObject([
      { kind: 'commit', neverDeletable: true, ttlFault: 'olderThanFiveYears', ageSeconds: 5 * YEARS + 1 },
    ]);
  });
});

it('a report names records that never expire because they have no time', async () => {
  const world = await expiryWorld();
  await world.putLease({ key: S('endless'), lease_version: S('secret-version'), lease_expiry: S('tomorrow') });
  await world.putCommit(commitRecord('endless', 0, { ttl: S('tomorrow') }));
  await world.putName(commitRow('endless:main', { BOOL: true }));
  await world.report();
  const unknown = { expiredAt: null, ageSeconds: 0, neverDeletable: true, ttlFault: 'notANumber' };
  expect((await world.rows()).sort((a, b) => a.kind.localeCompare(b.kind))).toMatchObject([
    { kind: 'abandonedLease', ...unknown },
    { kind: 'commit', ...unknown },
    {
      kind: 'nameserviceRow',
      ...unknown,
      identity: null,
      reason: expect.stringMatching(/^it is the row of a commit of the ledger; its TTL is not a number/),
    },
  ]);
});

it('a report says in words whose record of a commit it is', async () => {
  const world = await expiryWorld({ clock: new ManualClock(T + 1000) });
  await world.putCommit(commitRecord('a', SECONDS));
  const { commit_id: _, written_at: __, ...foreign } = commitRecord('b', SECONDS);
  await world.putCommit(foreign);
  await world.putCommit(firstSight('c', SECONDS));
  await world.putCommit(commitRecord('d', SECONDS, { ttl: S('tomorrow') }));
  await world.report();
  const reasons = (await world.rows()).map(({ key, reason }) => [key.path, reason]);
  expect(Object.fromEntries(reasons)).toEqual({
    a: 'the record of commit id-of-a is past its ttl',
    b: "the record of another client's commit is past its ttl",
    c: "the note of when another client's record was first seen is past its ttl",
    d: 'it is the record of commit id-of-d; its TTL is not a number, so DynamoDB never deletes it',
  });
});

it('a report does not take a small number for a time', async () => {
  const world = await expiryWorld({ clock: new ManualClock(T) });
  const fault = { expiredAt: null, ageSeconds: 0, neverDeletable: true, ttlFault: 'notATime' };
  for (const ttl of [0, -1, 3600, 999_999_999]) {
    await world.putCommit(commitRecord(`commit ${ttl}`, SECONDS, { ttl: N(ttl) }));
    await world.putLease(rustLease(`rust ${ttl}`, ttl));
    // The time of the release counts, because the TTL is not a time.
    await world.putLease(releasedLease(`just released ${ttl}`, ttl, { freed_at: N(T - 3_600_000) }));
    await world.putLease(releasedLease(`released ${ttl}`, ttl, { freed_at: N(T - 3_600_001) }));
  }
  await world.putCommit(commitRecord('a time', SECONDS, { ttl: N(1_000_000_000) }));
  const { expired } = await world.report();
  expect(expired).toMatchObject({ commit: { count: 5 }, abandonedLease: { count: 4 }, releasedLease: { count: 4 } });
  for (const row of await world.rows()) {
    if (row.kind === 'releasedLease') expect(row).toMatchObject({ ...fault, expiredAt: new Date(T - 1).toISOString() });
    else if (row.key.path === 'a time') expect(row.ttlFault).toBe('olderThanFiveYears');
    else expect(row).toMatchObject(fault);
  }
});

describe('records that do not belong in a report', () => {
  it('a report never shows rows of other applications, however old', async () => {
    const world = await expiryWorld({ clock: new ManualClock(T + 100 * YEARS * 1000) });
    const old = { expires_at: N(1), lease_expiry: N(1), ttl: N(1), deadline: N(1), released_at: N(1) };
    await world.putLease({ key: S('session'), ...old });
    await world.putLease({ key: S('no string'), ...old, lease_version: N(1), lease_id: S('x') });
    await world.putLease({ key: S('version alone'), lease_version: S('1') });
    await world.putCommit({ path: S('a'), etag: S('*'), ...old });
    await world.putCommit({ path: S('a'), etag: S('no quotes'), generation: N(0), timeout: N(1), ...old });
    await world.putCommit({ path: S('a'), etag: S(SIGHT), generation: N(0), ...old });
    await world.putName({ pk: S('a:b'), sk: S('other'), schema: N(2), ...old });
    await world.putName({ pk: S('a:b'), sk: S('commit#1'), ...old });
    await world.putName({ pk: S('a:b'), sk: S('head'), ...old });
    await world.putName({ pk: S('a:b'), sk: S('meta'), schema: N(2), updated_at_ms: N(1) });
    await world.putWaiter({ key: S('a'), ticket: S('b'), ...old });
    await world.putWaiter({ key: S('a'), ticket: S('x0123456789abcdef'), execution: S('arn'), at: N(1), ...old });
    const { scanned, expired, complete } = await world.report();
    expect({ scanned, complete }).toEqual({ scanned: 13, complete: true }); // with the report's own lease
    expect(await world.rows()).toEqual([]);
    expect(Object.values(expired)).toEqual(KINDS.map(() => ({ count: 0, oldestAgeSeconds: 0 })));
  });

  it('a report never shows a live record, however damaged it is', async () => {
    const world = await expiryWorld({ clock: new ManualClock(T) });
    const later = T + 1;
    await world.putLease(lease('held', later));
    await world.putLease(deadPermit('shared', T));
    await world.putLease(emptyKey('empty', T - 3_600_000));
    await world.putLease(lease('held with ms', later, { lease_expiry: N(T - 1) }));
    await world.putLease(lease('held without ttl', later, { lease_expiry: S('x') }));
    await world.putLease(rustLease('rust', SECONDS));
    await world.putLease(rustLease('rust ms', later));
    await world.putLease(releasedLease('released', SECONDS));
    await world.putCommit(commitRecord('commit', SECONDS));
    await world.putCommit(firstSight('commit', SECONDS));
    await world.putName(commitRow('a:b', N(SECONDS)));
    await world.putWaiter(waiter('queued', T));
    await world.report();
    expect(await world.rows()).toEqual([]);
  });
});

describe('a report', () => {
  it('a report sums up its rows, and does not contain their secrets', async () => {
    const world = await expiryWorld();
    for (const { put } of CASES) await put(world);
    world.clock.set(T + 7_200_000);
    const answer = await world.report();
    const rows = await world.rows();
    expect(rows).toHaveLength(CASES.length);
    for (const { kind, key } of CASES)
      expect(rows).toContainEqual(expect.objectContaining({ kind, key, expiredAt: expect.any(String) }));
    for (const { holder, reason } of rows) expect(reason).toContain(holder ?? ' ');
    for (const kind of KINDS) {
      const ofKind = rows.filter((row) => row.kind === kind);
      const oldestAgeSeconds = Math.max(0, ...ofKind.map(({ ageSeconds }) => ageSeconds));
      expect(answer.expired[kind], kind).toEqual({ count: ofKind.length, oldestAgeSeconds });
      expect(await world.rows({ kind }, 1)).toEqual(ofKind);
    }
    expect(answer.neverDeletable).toBe(rows.filter(({ neverDeletable }) => neverDeletable).length);
    expect(answer).toMatchObject({
      complete: true,
      stoppedBy: null,
      location: expect.stringContaining(answer.reportId),
    });
    expect(answer.location).toMatch(/^s3:\/\/.+\/\.holdfast\/reports\/.+\/$/);
    expect(world.measured).toHaveLength(1);
    const { rows: _, nextCursor, ...summary } = await world.read({ limit: 1 });
    const { stoppedBy: __, announced: ___, ...reported } = answer;
    expect(summary).toEqual(reported);
    expect(nextCursor).toEqual(expect.any(String));
    expect(JSON.stringify([answer, rows])).not.toMatch(/secret-|task_token|lease_version|request_id/);
  });

  it('a report scans each table once, and reads secrets only of keys', async () => {
    const world = await expiryWorld();
    await world.putLease(lease('held', world.clock.now() + 3_600_000));
    const scans: { TableName: string; ProjectionExpression?: string; FilterExpression?: string }[] = [];
    let sent = 0;
    world.dependencies.dynamodb.middlewareStack.add(
      (next, context) => async (args) => {
        const result = await next(args);
        if (context.commandName !== 'ScanCommand') return result;
        scans.push(args.input as never);
        sent += (result.output as { Count: number }).Count;
        return result;
      },
      { step: 'initialize' },
    );
    await world.report();
    expect(scans).toHaveLength(4 * 2);
    expect(sent).toBe(0);
    for (const { TableName, ProjectionExpression, FilterExpression } of scans) {
      expect(FilterExpression).toBeTruthy();
      // A projection cannot name the attributes of shared holders, whose names vary.
      if (TableName === world.locations.leasesTable) continue;
      expect(ProjectionExpression).toBeTruthy();
      expect(ProjectionExpression).not.toMatch(/lease_version|lease_id|request_id|task_token|data/);
    }
  });

  it('a report cuts the name of a holder at the length of a name', async () => {
    const world = await expiryWorld();
    const long = S('x'.repeat(100_000));
    await world.putLease(lease('long', T, { h: entryOf('x'.repeat(100_000), T, { m: S('m') }) }));
    await world.putCommit(commitRecord('long', SECONDS, { commit_id: long }));
    await world.putWaiter({ ...waiter('long', T), holder: long });
    world.clock.set(T + 7_200_000);
    await world.report();
    const rows = await world.rows();
    expect(rows).toHaveLength(3);
    for (const row of rows) {
      expect(row.holder).toBe(`${'x'.repeat(256)}…`);
      expect(JSON.stringify(row).length).toBeLessThan(2000);
    }
  });

  it('a report runs without a table of waiters if there is none', async () => {
    const world = await expiryWorld();
    const locations = { ...world.locations, waitersTable: undefined };
    await world.report(undefined, { locations });
    expect(world.items.sent.filter((command) => command === 'Scan')).toHaveLength(3 * 2);
  });

  it('a report does not exceed its rate of read units', async () => {
    const world = await expiryWorld({ segments: 4, readUnitsPerSecond: 2, pageRows: 1 });
    for (let at = 0; at < 20; at++) await world.putLease(lease(`lease ${at}`, T));
    const startedAt = world.clock.now();
    const { readUnits, complete } = await world.report();
    expect(complete).toBe(true);
    // The report does not wait after the last page of each worker.
    const minSeconds = (readUnits - 4 * 0.5) / 2;
    expect((world.clock.now() - startedAt) / 1000).toBeGreaterThanOrEqual(minSeconds - 1);
    expect(readUnits).toBeGreaterThan(10);
  });
});

it('a report answers with the rows that it has counted in its time', async () => {
  const world = await expiryWorld({ segments: 1, pageRows: 1, partRows: 1 });
  for (let at = 0; at < 20; at++) await world.putLease(lease(`team-a/${at}`, world.clock.now() - 60_000));
  let leftMs = 15_000;
  const time = new AbortController();
  world.dependencies.s3.middlewareStack.add(
    (next, { commandName }) =>
      (args) => {
        if (commandName === 'GetObjectCommand') leftMs -= 1000;
        if (leftMs <= 0) time.abort();
        return next(args);
      },
    { step: 'initialize', name: 'takes a second' },
  );
  const timed = call({ namespace: 'team-a', timeLeftMs: () => Math.max(0, leftMs), signal: time.signal });
  const { complete, finishedAt, stoppedBy, expired } = await world.report(timed);
  expect({ complete, finishedAt, stoppedBy }).toEqual({
    complete: false,
    finishedAt: expect.any(String),
    stoppedBy: 'time',
  });
  expect(expired.abandonedLease.count).toBeGreaterThan(5);
  expect(expired.abandonedLease.count).toBeLessThan(20);
  expect(await world.read()).toMatchObject({ complete: true, expired: { abandonedLease: { count: 20 } } });
});
