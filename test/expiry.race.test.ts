import { randomUUID } from 'node:crypto';
import { type AttributeValue, BatchWriteItemCommand, GetItemCommand } from '@aws-sdk/client-dynamodb';
import { describe, expect, it } from 'vitest';
import { s3Client } from '../shared/aws/s3.ts';
import { committer } from '../shared/commits/commit.ts';
import { commitInput } from '../shared/commits/inputs.ts';
import { HoldfastError } from '../shared/errors.ts';
import { newSegment, partKey, reportKey, type Segment } from '../shared/expiry/checkpoint.ts';
import { cleaner } from '../shared/expiry/clean.ts';
import { cleanInput } from '../shared/expiry/inputs.ts';
import { REPORT_LEASE } from '../shared/expiry/progress.ts';
import { reportStore } from '../shared/expiry/store.ts';
import { acquirer } from '../shared/leases/acquire.ts';
import { heartbeater } from '../shared/leases/heartbeat.ts';
import { acquireInput } from '../shared/leases/inputs.ts';
import { releaser } from '../shared/leases/release.ts';
import { call, testClient } from './support/aws.ts';
import { commitRecord, expiryWorld, lease, N, releasedLease, S } from './support/expiry.ts';
import { Interleaver } from './support/interleave.ts';
import { noStepFunctions } from './support/leases.ts';
import { rustClient } from './support/rust-lease.ts';
import { seededIds, seededRandom, testSeed } from './support/seed.ts';

const ROUNDS = Number(process.env.ROUNDS ?? 500);
/** So many rounds are about records of one report. */
const BATCH = 25;
const T = Date.parse('2026-03-01T00:00:00.000Z');
const HOUR = 3_600_000;
const world = await expiryWorld({ segments: 1 });
const { clock, places } = world;
const SKEW_MS = 500;

/** One client of each kind for all rounds: their gates ask whichever interleaver runs now. */
let interleaver: Interleaver;
const gate = { turn: () => interleaver.turn() } as Interleaver;
const gated = testClient();
const gatedS3 = s3Client();
for (const client of [gated, gatedS3]) new Interleaver(Math.random).gate.call(gate, client as never);
const direct = testClient();

type Item = Record<string, AttributeValue>;

/** What somebody was granted, or has written, and still counts on. */
interface Alive {
  fence?: number;
  what: string;
  /** The attribute that says whose the record is. */
  mark: [name: string, value: string];
  where: string;
}

describe('the clean-up among acquirers and committers', () => {
  const base = testSeed();

  it(`deletes nothing that lives, and takes no fence back (${ROUNDS} rounds from seed ${base})`, async () => {
    const happened = { deleted: 0, changed: 0, granted: 0, revived: 0, committed: 0, released: 0, rust: 0 };
    for (let round = 0; round < ROUNDS; round += BATCH) {
      const reports = await reportedSets();
      for (const [at, one] of reports.entries()) await play(base + round + at, one, happened);
      await emptyTables();
    }
    // A race that never happened proves nothing.
    for (const [what, count] of Object.entries(happened)) expect(count, what).toBeGreaterThan(ROUNDS / 25);
  }, 120_000);
});

/** The records of one round, and a report of them alone. */
interface ReportedSet {
  name: string;
  reportId: string;
}

const keysOf = (name: string) =>
  ['held', 'free', 'rust', 'path'].map((one) => `${one} ${name}`) as [string, string, string, string];
const FENCE_BEFORE = T - 60_000;
const FREE_FENCE_BEFORE = (T / 1000 - 3700) * 1000;

/** A report of many, told apart again: each round cleans by its own. */
async function reportedSets(): Promise<ReportedSet[]> {
  clock.set(T + 2 * HOUR);
  const sets = Array.from({ length: BATCH }, (_, at) => ({ name: randomUUID(), reportId: `round-${at}` }));
  for (const { name } of sets) {
    const [held, free, rust, path] = keysOf(name);
    await writeAll({
      [places.leasesTable]: [
        lease(held, T, { lease_id: S(`id ${name}`), ttl_ms: N(60_000), ttl_seconds: N(60) }),
        releasedLease(free, T / 1000),
        { key: S(rust), lease_expiry: N(T / 1000), lease_version: S(`version ${name}`) },
      ],
      [places.commitsTable]: [commitRecord(path, T / 1000)],
    });
  }
  const all = await world.report();
  const rows = await world.rows({ reportId: all.reportId }, 1000);
  const store = reportStore(world.dependencies.s3, places.bucket);
  for (const { name, reportId } of sets) {
    const own = rows.filter(({ key }) => keysOf(name).includes(key.key ?? key.path ?? ''));
    expect(own).toHaveLength(4);
    const segment: Segment = { ...newSegment('leases', 0, 1), done: true, runs: [[1, 1]] };
    const lines = own.map((row) => `${JSON.stringify(row)}\n`).join('');
    await store.put(partKey(reportId, segment, 1, 0), lines, call());
    const state = { format: 1, reportId, startedAt: T, finishedAt: T, fence: 1, sequence: 1, owed: [] };
    await store.put(reportKey(reportId), JSON.stringify({ ...state, segments: [segment] }), call());
  }
  return sets;
}

async function play(seed: number, { name, reportId }: ReportedSet, happened: Record<string, number>): Promise<void> {
  const random = seededRandom(seed);
  const count = (what: string) => {
    happened[what] = (happened[what] ?? 0) + 1;
  };
  const [held, free, rust, path] = keysOf(name);
  interleaver = new Interleaver(random);
  const leases = {
    dynamodb: gated,
    clock,
    ids: seededIds(Math.floor(random() * 2 ** 31)),
    table: places.leasesTable,
    clockSkewMs: SKEW_MS,
    fenceRetentionSeconds: 3600,
    waitersTable: places.waitersTable ?? '',
    stepFunctions: noStepFunctions,
  };
  const alive = new Map<string, Alive>();
  const fences = new Map<string, number>([
    [held, FENCE_BEFORE],
    [free, FREE_FENCE_BEFORE],
  ]);
  const faults: string[] = [];
  const tolerate =
    (...codes: string[]) =>
    (error: unknown) => {
      if (!(error instanceof HoldfastError && codes.includes(error.code))) faults.push(String(error));
    };
  const granted = (key: string, fence: number, version: string) => {
    const before = fences.get(key) ?? 0;
    if (fence <= before) faults.push(`the fence of ${key} went from ${before} to ${fence}`);
    fences.set(key, fence);
    alive.set(key, { what: key, where: places.leasesTable, mark: ['lease_version', version] });
    count('granted');
  };

  const acquire = (key: string) => async () => {
    const input = acquireInput().parse({ key, holder: 'new', ttlSeconds: 600 });
    const { fence, version, leaseId } = await acquirer(leases)(input, call());
    granted(key, fence, version);
    if (random() < 0.3) {
      await releaser(leases)({ key, leaseId }, call());
      // Unless the next holder was quicker.
      if (alive.get(key)?.mark[1] === version)
        alive.set(key, { what: key, where: places.leasesTable, mark: ['lease_id', leaseId] });
      count('released');
    }
  };
  const revive = async () => {
    const { version } = await heartbeater(leases)({ key: held, leaseId: `id ${name}` }, call());
    alive.set(held, { what: held, where: places.leasesTable, mark: ['lease_version', version] });
    count('revived');
  };
  const rustTakes = async () => {
    const version = await rustClient(gated, places.leasesTable, clock).tryAcquire(rust, 600);
    if (!version) return;
    alive.set(rust, { what: rust, where: places.leasesTable, mark: ['lease_version', version] });
    count('rust');
  };
  const commitId = `new-${name}`;
  const commit = async () => {
    const dependencies = {
      ...{ dynamodb: gated, s3: gatedS3, clock, ids: leases.ids, table: places.commitsTable, bucket: places.bucket },
      ...{ protocol: 'dynamo' as const, commitTimeoutMs: 20_000, maxClockSkewRate: 3, clockSkewMs: SKEW_MS },
      ...{ commitTtlSeconds: 3600, multipartThresholdBytes: 2 ** 28, partBytes: 2 ** 26 },
    };
    await committer(dependencies)(commitInput().parse({ path, ifNoneMatch: '*', body: name, commitId }), call());
    alive.set(path, { what: path, where: places.commitsTable, mark: ['commit_id', commitId] });
    count('committed');
  };
  const clean = async () => {
    const { deleted, spared } = await cleaner({ ...world.dependencies, dynamodb: gated })(
      cleanInput().parse({ reportId, dryRun: false }),
      call(),
    );
    happened.deleted = (happened.deleted ?? 0) + deleted.count;
    happened.changed = (happened.changed ?? 0) + (spared.by.changed ?? 0);
  };

  const others = [
    () => acquire(held)().catch(tolerate('LeaseHeld')),
    () => acquire(free)().catch(tolerate('LeaseHeld')),
    () => acquire(free)().catch(tolerate('LeaseHeld')),
    () => revive().catch(tolerate('LeaseLost')),
    () => rustTakes().catch(tolerate()),
    () => commit().catch(tolerate()),
  ];
  await interleaver.run([() => clean().catch(tolerate()), ...twoOf(others, random)]);

  for (const { what, mark, where } of alive.values()) {
    const [attribute, value] = mark;
    const item = await itemOf(where, what);
    if (item?.[attribute]?.S?.split(' ')[0] !== value) faults.push(`${what} is gone: ${JSON.stringify(item)}`);
  }
  expect(faults, `seed ${seed}`).toEqual([]);
}

/** Enough to be in each other's and the clean-up's way. */
function twoOf<T>(all: T[], random: () => number): T[] {
  const first = Math.floor(random() * all.length);
  const second = (first + 1 + Math.floor(random() * (all.length - 1))) % all.length;
  return all.filter((_, at) => at === first || at === second);
}

async function itemOf(table: string, what: string): Promise<Item | undefined> {
  const key: Item = table === places.leasesTable ? { key: S(what) } : { path: S(what), etag: S('*') };
  return (await direct.send(new GetItemCommand({ TableName: table, Key: key, ConsistentRead: true }))).Item;
}

async function writeAll(items: Record<string, Item[]>): Promise<void> {
  const puts = ([table, of]: [string, Item[]]) => [table, of.map((Item) => ({ PutRequest: { Item } }))] as const;
  const RequestItems = Object.fromEntries(Object.entries(items).map(puts)) as never;
  await direct.send(new BatchWriteItemCommand({ RequestItems }));
}

/** But for the report's lease, whose fence must rise though the clock here does not. */
async function emptyTables(): Promise<void> {
  for (const table of [places.leasesTable, places.commitsTable]) {
    const items = (await world.itemsOf(table)).filter(({ key }) => key?.S !== REPORT_LEASE);
    await Promise.all(
      items.map(({ key, path, etag }) => world.deleteItem(table, (key ? { key } : { path, etag }) as Item)),
    );
  }
}
