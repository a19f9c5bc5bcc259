import { describe, expect, it } from 'vitest';
import { HoldfastError } from '../../shared/errors.ts';
import { CHECKPOINT, LATEST } from '../../shared/expiry/checkpoint.ts';
import type { Report } from '../../shared/expiry/report.ts';
import type { ExpiredRow } from '../../shared/expiry/sources/rows.ts';
import { reportStore } from '../../shared/expiry/store.ts';
import { seededRandom, testSeed } from '../support/chance/seed.ts';
import { call, newBucket, testClient, testS3 } from '../support/emulators/aws.ts';
import { ManualClock } from '../support/time/clock.ts';
import { aFew, isFull, rounds } from '../support/time/rounds.ts';
import {
  commitRecord,
  type ExpiryWorld,
  expiryWorld,
  type Item,
  lease,
  newLocations,
  S,
} from '../support/worlds/expiry.ts';
import { failure } from '../support/worlds/leases.ts';

const T = Date.parse('2026-03-01T00:00:00.000Z');
const ROWS = 6;
/** The distance between the points where a report is cut. */
const STEP = isFull ? 1 : 5;
const FIRST = isFull ? [0] : [0, 1, 2, 3, 4];

/** Every cut has the same few rows, in small pages, so that there are many boundaries. */
const locations = await newLocations();
const seed = await expiryWorld({ locations });
const names = Array.from({ length: ROWS }, (_, at) => `row-${String(at).padStart(2, '0')}`);
for (const [at, name] of names.entries())
  await (at % 3 === 0 ? seed.putCommit(commitRecord(name, T / 1000)) : seed.putLease(lease(name, T)));

/** A world over the tables above, in which no report has run yet. */
const fresh = async (change: Parameters<typeof expiryWorld>[0] = {}): Promise<ExpiryWorld> =>
  expiryWorld({
    locations: { ...locations, bucket: await newBucket() },
    clock: new ManualClock(T + 3_600_000),
    segments: 1,
    pageRows: 2,
    partRows: 3,
    ...change,
  });

const nameOf = ({ key }: ExpiredRow) => key.path ?? key.key;
/** Expects each row once. The lease of the report itself may or may not be there. */
async function expectEachRowOnce(world: ExpiryWorld, reportId: string, context: string) {
  const reported = (await world.rows({ reportId })).map(nameOf).filter((name) => name !== 'holdfast:report');
  expect(reported.sort(), context).toEqual(names);
}

/** The state that each run of a report continues and replaces. */
function stateOf({ locations: { bucket } }: ExpiryWorld) {
  const store = reportStore(testS3(), bucket);
  return Promise.all([CHECKPOINT, LATEST].map((key) => store.get(key, call())));
}

/** Runs until the report is complete, each run after the last one's lease has lapsed. */
async function finish(world: ExpiryWorld, context: string): Promise<Report> {
  for (let runs = 0; runs < 5; runs++) {
    world.clock.advance(120_000);
    const report = await world.report();
    if (report.complete) return report;
  }
  throw new Error(`${context}: the report does not come to its end`);
}

/** A call whose time is up at its nth check of the clock. */
function cutAt(check: number) {
  let checks = 0;
  return call({ timeLeftMs: () => (++checks > check ? 0 : 30_000) });
}

describe('a report that is cut', () => {
  it('a report that S3 cut shows its rows when S3 takes them again', async () => {
    const world = await fresh();
    // A checkpoint, the rows of a page, the next checkpoint: each in turn is refused.
    for (let write = 1; write < 4; write++) {
      world.objects.faultsOf.PutObject = [
        ...Array.from({ length: write }, () => 'none' as const),
        { name: 'AccessDenied', status: 403 },
      ];
      expect((await failure(world.report())).code).toBe('Unavailable');
      world.clock.advance(120_000);
    }
    world.objects.faultsOf.PutObject = [];
    const { reportId } = await finish(world, 'refused');
    await expectEachRowOnce(world, reportId, 'refused');
  });

  it('a report that time cuts at any page shows each row once', async () => {
    let cuts = 0;
    for (let [check = 0] = aFew(1, FIRST); ; check += STEP) {
      const world = await fresh();
      const first = await world.report(cutAt(check));
      if (first.complete) break;
      cuts++;
      expect(first).toMatchObject({ stoppedBy: 'time', finishedAt: null });
      expect(world.measured).toEqual([]);
      expect((await world.read()).complete).toBe(false);
      const last = await finish(world, `cut ${check}`);
      expect(last).toMatchObject({ reportId: first.reportId, startedAt: first.startedAt });
      await expectEachRowOnce(world, first.reportId, `cut ${check}`);
    }
    expect(cuts).toBeGreaterThan(ROWS / 2 / STEP);
  });

  it('a report that is cut again and again shows each row once', async () => {
    const world = await fresh();
    const reports: Report[] = [];
    while (!reports.at(-1)?.complete) {
      world.clock.advance(1000);
      reports.push(await world.report(cutAt(2)));
    }
    expect(new Set(reports.map(({ reportId }) => reportId)).size).toBe(1);
    expect(reports.length).toBeGreaterThan(3);
    await expectEachRowOnce(world, reports[0]?.reportId ?? '', 'page by page');
    expect(reports.at(-1)?.expired.commit.count).toBe(ROWS / 3);
  });

  it('a report that throttling cuts at any page ends cleanly, and continues later', async () => {
    let cuts = 0;
    for (let [page = 0] = aFew(1, FIRST); ; page += STEP) {
      const world = await fresh();
      const throttled = ['throttle', 'throttle', 'throttle'] as const;
      world.items.faultsOf.Scan = [...Array.from({ length: page }, () => 'none' as const), ...throttled];
      const first = await world.report();
      world.items.faultsOf.Scan = [];
      if (first.complete) break;
      cuts++;
      expect(first.stoppedBy).toBe('Throttled');
      const last = await finish(world, `page ${page}`);
      expect(last.reportId).toBe(first.reportId);
      await expectEachRowOnce(world, first.reportId, `page ${page}`);
    }
    expect(cuts).toBeGreaterThan(ROWS / 2 / STEP);
  });

  it('a report that a crash cuts at any request shows each row once', {
    timeout: 120_000,
  }, async () => {
    let cuts = 0;
    for (let [first = 0] = aFew(1, FIRST), request = first + 1; ; request += STEP) {
      const world = await fresh();
      let sent = 0;
      const crash = async (send: () => Promise<unknown>) => {
        if (++sent >= request) throw Object.assign(new Error('crashed'), { code: 'ECONNREFUSED', syscall: 'connect' });
        return send();
      };
      world.items.faults.push(...Array.from({ length: 500 }, () => crash));
      world.objects.faults.push(...Array.from({ length: 500 }, () => crash));
      const outcome = await world.report().catch((error: Error) => error);
      world.items.faults.length = 0;
      world.objects.faults.length = 0;
      if (!(outcome instanceof Error) && sent < request) break;
      cuts++;
      const context = `crash before request ${request}`;
      const last = await finish(world, context);
      await expectEachRowOnce(world, last.reportId, context);
      expect(last.scanned, context).toBeGreaterThanOrEqual(ROWS);
      // The latest complete report is still complete.
      await expectEachRowOnce(world, (await world.read()).reportId, context);
    }
    expect(cuts).toBeGreaterThan(20 / STEP);
  });

  it('a frozen report whose lease another run has does not overwrite its report', async () => {
    for (let [request = 3] = aFew(1, isFull ? [3] : [3, 5, 7]); request < 24; request += isFull ? 2 : 6) {
      const world = await fresh();
      let sent = 0;
      let done: Report | undefined;
      let stateThen: unknown;
      const overtake = async (send: () => Promise<unknown>) => {
        if (++sent === request) {
          world.clock.advance(120_000);
          done = await world.report(call(), { dynamodb: testClient(), s3: testS3() });
          stateThen = await stateOf(world);
        }
        return send();
      };
      world.items.faults.push(...Array.from({ length: 500 }, () => overtake));
      world.objects.faults.push(...Array.from({ length: 500 }, () => overtake));
      const frozen = await world.report().catch((error: unknown) => error);
      if (!done) break; // it had ended before
      const context = `frozen at request ${request}`;
      expect(done.complete, context).toBe(true);
      if (frozen instanceof HoldfastError) expect(frozen.code, context).toBe('LeaseLost');
      else expect(frozen, context).toMatchObject({ complete: true }); // it had nothing left to write
      await expectEachRowOnce(world, done.reportId, context);
      expect(await stateOf(world), context).toEqual(stateThen);
    }
  });
});

describe('a changing table', () => {
  const base = testSeed();

  it(`a report of a changing table shows no row twice (seed ${base})`, async () => {
    for (let round = 0; round < rounds(3, 1); round++) {
      const random = seededRandom(base + round);
      // One segment: with two, the seed would not say which of them reads first.
      const clock = new ManualClock(T + 3_600_000);
      const world = await expiryWorld({ clock, segments: 1, pageRows: 2, partRows: 3 });
      const all = Array.from({ length: 24 }, (_, at) => `row ${at}`);
      for (const key of all) await world.putLease(lease(key, T));
      const stay = new Set(all);
      const boundaries = new Set<string | undefined>();
      const touch = async () => {
        const key = [...stay][Math.floor(random() * stay.size)];
        if (key === undefined) return;
        // Touch each row only once. The network may send a delete twice, and the second must not delete a row that has
        // become a boundary.
        stay.delete(key);
        // The emulator ends a scan that would go on after a row that is gone; DynamoDB does not.
        if (random() < 0.5 && !boundaries.has(key))
          await world.deleteItem(world.locations.leasesTable, { key: S(key) });
        else await world.putLease(lease(key, T + (random() < 0.5 ? 0 : 9e9)));
        await world.putLease(lease(`new ${random()}`, T));
      };
      world.dependencies.dynamodb.middlewareStack.add(
        (next, { commandName }) =>
          async (args) => {
            const result = await next(args);
            const { LastEvaluatedKey: last } = result.output as { LastEvaluatedKey?: Item };
            boundaries.add(last?.key?.S);
            if (commandName === 'ScanCommand') await touch();
            return result;
          },
        { step: 'initialize' },
      );
      let report = await world.report(cutAt(9));
      expect(report.complete).toBe(false);
      while (!report.complete) {
        world.clock.advance(1000);
        report = await world.report(cutAt(9));
      }
      const reported = (await world.rows({ reportId: report.reportId })).map(nameOf);
      expect(reported, `seed ${base + round}`).toHaveLength(new Set(reported).size);
      expect(reported, `seed ${base + round}`).toEqual(expect.arrayContaining([...stay]));
      expect(stay.size).toBeGreaterThan(0);
    }
  });
});

describe('a report', () => {
  it('a report while another report runs is refused with LeaseHeld', async () => {
    const world = await fresh();
    let second: { code: string } | undefined;
    const meanwhile = async (send: () => Promise<unknown>) => {
      second ??= await failure(world.report());
      return send();
    };
    world.items.faultsOf.Scan = [meanwhile];
    expect(await world.report()).toMatchObject({ complete: true });
    expect(second?.code).toBe('LeaseHeld');
  });

  it('a report that takes a page longer than a lease keeps its lease', async () => {
    const world = await fresh();
    const slow = async (send: () => Promise<unknown>) => {
      world.clock.advance(40_000);
      return send();
    };
    world.items.faultsOf.Scan = Array.from({ length: 50 }, () => slow);
    expect(await world.report()).toMatchObject({ complete: true });
    expect(world.items.sent.filter((command) => command === 'UpdateItem').length).toBeGreaterThan(5);
  });

  it('an unfinished report ends after a day, and can still be read', async () => {
    const world = await fresh();
    const first = await world.report(cutAt(4));
    world.clock.advance(24 * 3_600_000 - 1);
    expect((await world.report(cutAt(0))).reportId).toBe(first.reportId);
    world.clock.advance(2);
    const next = await world.report();
    expect(next).toMatchObject({ complete: true });
    expect(next.reportId > first.reportId).toBe(true);
    expect(await world.read({ reportId: first.reportId })).toMatchObject({ complete: false, reportId: first.reportId });
    expect((await world.read()).reportId).toBe(next.reportId);
  });

  it('a report of other tables begins again, even in the same bucket', async () => {
    const world = await fresh();
    const first = await world.report(cutAt(4));
    const { waitersTable: _, ...others } = await newLocations();
    const next = { ...others, waitersTable: undefined, bucket: world.locations.bucket };
    await world.putLease(lease('of the other table', T), others.leasesTable);
    world.clock.advance(1000);
    const { reportId } = await world.report(call(), { locations: next });
    expect(reportId > first.reportId).toBe(true);
    expect((await world.rows({ reportId })).map(nameOf)).toEqual(['of the other table']);
    expect(await world.read({ reportId: first.reportId })).toMatchObject({ complete: false });
  });

  it('a report keeps its rows if a table fails, and names the table', async () => {
    const world = await fresh({
      locations: { ...locations, bucket: await newBucket(), nameserviceTable: 'no-such-table' },
    });
    expect((await failure(world.report())).code).toBe('Unavailable');
    const { complete, expired } = await world.read();
    expect(complete).toBe(false);
    expect(expired.abandonedLease.count).toBe(4);
    expect(world.measured).toEqual([]);
  });

  it('an object of a report has at most the rows of a chunk', async () => {
    const world = await fresh();
    const { reportId } = await world.report();
    const parts = (await world.objectKeys(`.holdfast/reports/${reportId}/`)).filter((key) => key.endsWith('.ndjson'));
    expect(parts.length).toBeGreaterThanOrEqual(ROWS / 3);
  });
});
