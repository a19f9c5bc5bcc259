import { randomUUID } from 'node:crypto';
import { type AttributeValue, BatchWriteItemCommand, paginateScan } from '@aws-sdk/client-dynamodb';
import { describe, expect, it } from 'vitest';
import { commitObject } from '../../shared/commits/commit.ts';
import { commitInput } from '../../shared/commits/inputs.ts';
import { HoldfastError } from '../../shared/errors.ts';
import { newSegment, partKey, reportKey, type Segment } from '../../shared/expiry/checkpoint.ts';
import { cleanExpired } from '../../shared/expiry/clean.ts';
import { cleanInput } from '../../shared/expiry/inputs.ts';
import { reportStore } from '../../shared/expiry/store.ts';
import { acquireGrant } from '../../shared/locks/calls/acquire.ts';
import { extendGrant } from '../../shared/locks/calls/heartbeat.ts';
import { acquireInput } from '../../shared/locks/calls/inputs.ts';
import { releaseGrant } from '../../shared/locks/calls/release.ts';
import { seededIds, seededRandom, testSeed } from '../support/chance/seed.ts';
import { call, testClient, testS3 } from '../support/emulators/aws.ts';
import { Interleaver } from '../support/faults/interleave.ts';
import { expectAllHappened, goesOn, rounds } from '../support/time/rounds.ts';
import { commitRecord, entryOf, expiryWorld, lease, N, releasedLease, S } from '../support/worlds/expiry.ts';
import { noStepFunctions } from '../support/worlds/leases.ts';
import { rustClient } from '../support/worlds/rust-lease.ts';

const ROUNDS = rounds(500, 12);
/** How many rounds share a report. Each round has its own keys, so rounds do not meet. */
const BATCH = 500;
/** How many rounds run at once, each in its own order. A single round would mostly wait for the network. */
const AT_ONCE = 8;
/** The most items that DynamoDB accepts in one request. */
const PUTS = 25;
const T = Date.parse('2026-03-01T00:00:00.000Z');
const HOUR = 3_600_000;
const world = await expiryWorld({ segments: 1, pageRows: 1000, partRows: 1000 });
const { clock, locations } = world;
const SKEW_MS = 500;

/** Clients whose requests wait for their turns in the round that is played on this board, one round after the other. */
function newBoard() {
  const board = { interleaver: new Interleaver(Math.random), dynamodb: testClient(), s3: testS3() };
  const gate = { turn: () => board.interleaver.turn() } as Interleaver;
  for (const client of [board.dynamodb, board.s3]) Interleaver.prototype.gate.call(gate, client as never);
  return board;
}
type Board = ReturnType<typeof newBoard>;
const direct = testClient();

type Item = Record<string, AttributeValue>;

/** A record that a caller was granted or has written, and still relies on. */
interface Alive {
  what: string;
  /** The attribute that shows whose record it is. A dot leads into a map. */
  mark: [name: string, value: string];
  where: string;
}

describe('the clean-up among acquirers and committers', () => {
  const base = testSeed();

  it(`a clean-up among callers deletes no live record (${ROUNDS} rounds from seed ${base})`, async () => {
    const happened = { deleted: 0, changed: 0, granted: 0, revived: 0, committed: 0, released: 0, rust: 0 };
    const boards = Array.from({ length: AT_ONCE }, newBoard);
    for (let round = 0; goesOn(round, ROUNDS, happened); round += BATCH) {
      const left = [...(await reportedSets(Math.min(BATCH, Math.max(AT_ONCE, ROUNDS - round)))).entries()];
      const played: Played[] = [];
      const playOn = async (board: Board) => {
        for (let next = left.shift(); next; next = left.shift())
          played.push(await play(base + round + next[0], next[1], board, happened));
      };
      await Promise.all(boards.map(playOn));
      await expectAlive(played);
    }
    expectAllHappened(happened, ROUNDS / 25);
  }, 120_000);
});

/** The records of one round, and a report of only these records. */
interface ReportedSet {
  name: string;
  reportId: string;
}

const keysOf = (name: string) =>
  ['held', 'free', 'rust', 'path'].map((one) => `${one} ${name}`) as [string, string, string, string];
/** The name of the request that holds the first key. */
const HELD_BY = '0123456789abcdef';
const FENCE_BEFORE = T - 60_000;
const FREE_FENCE_BEFORE = (T / 1000 - 3700) * 1000;

/** Makes one report for many rounds, and splits it, so that each round cleans only its own records. */
async function reportedSets(count: number): Promise<ReportedSet[]> {
  clock.set(T + 2 * HOUR);
  const sets = Array.from({ length: count }, () => ({ name: randomUUID(), reportId: randomUUID() }));
  const leases = sets.flatMap(({ name }) => {
    const [held, free, rust] = keysOf(name);
    return [
      lease(held, T, { h: entryOf('of old', T, { i: S(name), m: S(HELD_BY), u: N(60), w: N(1_000_000) }) }),
      releasedLease(free, T / 1000),
      { key: S(rust), lease_expiry: N(T / 1000), lease_version: S(`version ${name}`) },
    ];
  });
  await putAll(locations.leasesTable, leases);
  const records = sets.map(({ name }) => commitRecord(keysOf(name)[3], T / 1000));
  await putAll(locations.commitsTable, records);
  const all = await world.report();
  const rows = Map.groupBy(await world.rows({ reportId: all.reportId }, 1000), ({ key }) =>
    (key.key ?? key.path ?? '').split(' ').at(-1),
  );
  const store = reportStore(world.dependencies.s3, locations.bucket);
  const file = async ({ name, reportId }: ReportedSet) => {
    const own = rows.get(name) ?? [];
    expect(own).toHaveLength(4);
    const segment: Segment = { ...newSegment('leases', 0, 1), done: true, runs: [[1, 1]] };
    const lines = own.map((row) => `${JSON.stringify(row)}\n`).join('');
    await store.put(partKey(reportId, segment, [1, 0]), lines, call());
    const state = { format: 1, reportId, startedAt: T, finishedAt: T, locations, fence: 1, sequence: 1, owed: [] };
    await store.put(reportKey(reportId), JSON.stringify({ ...state, segments: [segment] }), call());
  };
  for (let from = 0; from < count; from += PUTS) await Promise.all(sets.slice(from, from + PUTS).map(file));
  return sets;
}

/** A round that was played, with the records that must be there after it. */
interface Played {
  seed: number;
  alive: Alive[];
}

async function play(
  seed: number,
  { name, reportId }: ReportedSet,
  board: Board,
  happened: Record<string, number>,
): Promise<Played> {
  const random = seededRandom(seed);
  const count = (what: string) => {
    happened[what] = (happened[what] ?? 0) + 1;
  };
  const [held, free, rust, path] = keysOf(name);
  board.interleaver = new Interleaver(random);
  const leases = {
    dynamodb: board.dynamodb,
    clock,
    ids: seededIds(Math.floor(random() * 2 ** 31)),
    table: locations.leasesTable,
    clockSkewMs: SKEW_MS,
    maxWaitSeconds: 20,
    fenceRetentionSeconds: 3600,
    waitersTable: locations.waitersTable ?? '',
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
    alive.set(key, { what: key, where: locations.leasesTable, mark: ['h.v', version] });
    count('granted');
  };

  const acquire = (key: string) => async () => {
    const input = acquireInput().parse({ key, holder: 'new', ttlSeconds: 600 });
    const { fence, version, leaseId } = await acquireGrant(leases)(input, call());
    granted(key, fence, version);
    if (random() < 0.3) {
      await releaseGrant(leases)({ key, leaseId }, call());
      // Unless the next holder was quicker.
      if (alive.get(key)?.mark[1] === version)
        alive.set(key, { what: key, where: locations.leasesTable, mark: ['fence', String(fence)] });
      count('released');
    }
  };
  const revive = async () => {
    const { version } = await extendGrant(leases)({ key: held, leaseId: `e.${HELD_BY}.${name}` }, call());
    alive.set(held, { what: held, where: locations.leasesTable, mark: ['h.v', version] });
    count('revived');
  };
  const rustTakes = async () => {
    const version = await rustClient(board.dynamodb, locations.leasesTable, clock).tryAcquire(rust, 600);
    if (!version) return;
    alive.set(rust, { what: rust, where: locations.leasesTable, mark: ['lease_version', version] });
    count('rust');
  };
  const commitId = `new-${name}`;
  const commit = async () => {
    const dependencies = {
      ...{
        dynamodb: board.dynamodb,
        s3: board.s3,
        clock,
        ids: leases.ids,
        table: locations.commitsTable,
        bucket: locations.bucket,
      },
      ...{ protocol: 'dynamo' as const, commitTimeoutMs: 20_000, maxClockSkewRate: 3, clockSkewMs: SKEW_MS },
      ...{ commitTtlSeconds: 3600, maxUploadBytes: 2 ** 30, multipartThresholdBytes: 2 ** 28, partBytes: 2 ** 26 },
    };
    await commitObject(dependencies)(commitInput().parse({ path, ifNoneMatch: '*', body: name, commitId }), call());
    alive.set(path, { what: path, where: locations.commitsTable, mark: ['commit_id', commitId] });
    count('committed');
  };
  const clean = async () => {
    const { deleted, spared } = await cleanExpired({ ...world.dependencies, dynamodb: board.dynamodb })(
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
  await board.interleaver.run([() => clean().catch(tolerate()), ...twoOf(others, random)]);

  expect(faults, `seed ${seed}`).toEqual([]);
  return { seed, alive: [...alive.values()] };
}

async function expectAlive(played: Played[]): Promise<void> {
  const items = new Map<string, Item>();
  for (const table of [locations.leasesTable, locations.commitsTable])
    for await (const { Items = [] } of paginateScan({ client: direct }, { TableName: table, ConsistentRead: true }))
      for (const item of Items) items.set(`${table} ${item.key?.S ?? item.path?.S}`, item);
  const gone = played.flatMap(({ seed, alive }) =>
    alive.flatMap(({ what, where, mark: [attribute, value] }) => {
      const item = items.get(`${where} ${what}`);
      const [name = '', part] = attribute.split('.');
      const found = part === undefined ? item?.[name] : item?.[name]?.M?.[part];
      return (found?.N ?? found?.S?.split(' ')[0]) === value ? [] : [{ seed, what, item }];
    }),
  );
  expect(gone).toEqual([]);
}

/** Chooses two actors, which are enough to disturb each other and the clean-up. */
function twoOf<T>(all: T[], random: () => number): T[] {
  const first = Math.floor(random() * all.length);
  const second = (first + 1 + Math.floor(random() * (all.length - 1))) % all.length;
  return all.filter((_, at) => at === first || at === second);
}

async function putAll(table: string, items: Item[]): Promise<void> {
  for (let from = 0; from < items.length; from += PUTS) {
    const puts = items.slice(from, from + PUTS).map((Item) => ({ PutRequest: { Item } }));
    await direct.send(new BatchWriteItemCommand({ RequestItems: { [table]: puts } }));
  }
}
