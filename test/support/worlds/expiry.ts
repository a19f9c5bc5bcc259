import { type AttributeValue, DeleteItemCommand, PutItemCommand, ScanCommand } from '@aws-sdk/client-dynamodb';
import { EventBridgeClient } from '@aws-sdk/client-eventbridge';
import { ListObjectsV2Command, PutObjectCommand } from '@aws-sdk/client-s3';
import { ConfiguredRetryStrategy } from '@smithy/core/retry';
import { clean } from '../../../functions/expiry/clean.ts';
import { readExpired } from '../../../functions/expiry/read.ts';
import { report } from '../../../functions/expiry/report.ts';
import { SOURCES } from '../../../functions/expiry/sources.ts';
import { startEventBus } from '../../../local/event-bus.ts';
import type { BusEvent } from '../../../local/events.ts';
import type { Call } from '../../../shared/aws/call.ts';
import { announceReport } from '../../../shared/expiry/announcement.ts';
import { cleanExpired } from '../../../shared/expiry/clean.ts';
import type { ReportDependencies } from '../../../shared/expiry/dependencies.ts';
import { cleanInput, readReportInput } from '../../../shared/expiry/inputs.ts';
import { REPORT_LEASE } from '../../../shared/expiry/progress.ts';
import { readReport } from '../../../shared/expiry/read.ts';
import { createReport } from '../../../shared/expiry/report.ts';
import type { ExpiredRow } from '../../../shared/expiry/sources/rows.ts';
import type { Summary } from '../../../shared/expiry/summary.ts';
import { STAGING_FOLDER } from '../../../shared/folders.ts';
import { type LeaseDependencies, memoized } from '../../../shared/locks/dependencies.ts';
import { underLease } from '../../../shared/locks/under-lease.ts';
import { worldIds } from '../chance/seed.ts';
import { call, newBucket, newTable, noteCommands, testClient, testS3, watch } from '../emulators/aws.ts';
import { ManualClock } from '../time/clock.ts';
import { noStepFunctions } from './leases.ts';

const [toRead, toClean] = [readReportInput(), cleanInput()];

export type Item = Record<string, AttributeValue>;

type OwnLocations = { [Location in keyof ReportDependencies['locations']]: string };

export async function newLocations(): Promise<OwnLocations> {
  const [leasesTable, commitsTable, nameserviceTable, waitersTable, bucket] = await Promise.all([
    newTable('leases'),
    newTable('commits'),
    newTable('nameservice'),
    newTable('waiters'),
    newBucket(),
  ]);
  return { leasesTable, commitsTable, nameserviceTable, waitersTable, bucket };
}

/** An event bus whose events a test sees. */
export async function eventBus() {
  const events: { source: string; 'detail-type': string; detail: Summary & { service: string } }[] = [];
  const { endpoint, stop } = await startEventBus(
    (event) => void events.push(event as BusEvent & (typeof events)[number]),
  );
  const retryStrategy = new ConfiguredRetryStrategy(3, 1);
  const client = () => new EventBridgeClient({ endpoint, retryStrategy });
  return { events, endpoint, client, stop };
}

/** Tables and a bucket of its own, a clock to move, and the calls over them: as domain calls and as handlers. */
export async function expiryWorld(overrides: Partial<ReportDependencies> = {}) {
  const clock = (overrides.clock ?? new ManualClock()) as ManualClock; // a test that passes another kind of clock must not move it
  const dynamodb = testClient();
  const s3 = testS3();
  const measured: Summary[] = [];
  const dependencies: ReportDependencies = {
    dynamodb,
    s3,
    clock,
    ids: worldIds(),
    locations: overrides.locations ?? (await newLocations()),
    holders: noBoundHolders,
    sources: SOURCES,
    margins: { clockSkewMs: 500, fenceRetentionSeconds: 3600, maxClockSkewRate: 3 },
    segments: 2,
    readUnitsPerSecond: 0,
    pageRows: 100,
    partRows: 100,
    giveUpAfterMs: 24 * 3_600_000,
    announce: async () => {},
    measure: (summary) => void measured.push(summary),
    ...overrides,
  };
  const { locations } = dependencies;
  const leasesOf = (own: ReportDependencies) => ({
    dynamodb: own.dynamodb,
    clock: own.clock,
    ids: own.ids,
    table: own.locations.leasesTable,
    clockSkewMs: 500,
    maxWaitSeconds: 20,
    fenceRetentionSeconds: 3600,
    waitersTable: own.locations.waitersTable ?? '',
    stepFunctions: noStepFunctions,
  });
  const direct = { dynamodb: testClient(), s3: testS3() };
  const put = (table: string | undefined, item: Item) =>
    direct.dynamodb.send(new PutItemCommand({ TableName: table, Item: item }));
  const readAs = readReport({ s3: direct.s3, locations });

  return {
    clock,
    dependencies,
    locations,
    measured,
    /** What was sent to DynamoDB, and what to S3. */
    items: watch(dynamodb),
    objects: watch(s3),
    report: (as: Call = call(), change: Partial<ReportDependencies> = {}) => {
      const own = { ...dependencies, ...change };
      return underLease(leasesOf(own), { ...REPORT_LEASE, work: (lease) => createReport(own)(lease, as) }, as);
    },
    read: (query: object = {}) => readAs(toRead.parse(query), call()),
    /** All rows of the report, by pages of that many. */
    rows: async (query: object = {}, limit = 7): Promise<ExpiredRow[]> => {
      const rows: ExpiredRow[] = [];
      for (let cursor: string | null | undefined; cursor !== null; ) {
        const page = await readAs(toRead.parse({ ...query, limit, ...(cursor && { cursor }) }), call());
        rows.push(...page.rows);
        cursor = page.nextCursor;
      }
      return rows;
    },
    clean: (input: object = {}, as: Call = call(), change: Partial<ReportDependencies> = {}) =>
      cleanExpired({ ...dependencies, ...change })(toClean.parse(input), as),
    /** Made on demand, because most tests need none of their clients. */
    handlers: (stepFunctions = noStepFunctions) => functionHandlers(dependencies, leasesOf, stepFunctions),
    putLease: (item: Item, table = locations.leasesTable) => put(table, item),
    putCommit: (item: Item) => put(locations.commitsTable, item),
    putName: (item: Item) => put(locations.nameserviceTable, item),
    putWaiter: (item: Item) => put(locations.waitersTable, item),
    deleteItem: (table: string, key: Item) =>
      direct.dynamodb.send(new DeleteItemCommand({ TableName: table, Key: key })),
    itemsOf: async (table: string): Promise<Item[]> =>
      (await direct.dynamodb.send(new ScanCommand({ TableName: table, ConsistentRead: true }))).Items ?? [],
    stage: async (name: string, body: string) => {
      const { bucket } = locations;
      const key = STAGING_FOLDER + name;
      await direct.s3.send(new PutObjectCommand({ Bucket: bucket, Key: key, Body: body }));
      const { Contents = [] } = await direct.s3.send(new ListObjectsV2Command({ Bucket: bucket, Prefix: key }));
      return Contents[0]?.LastModified?.getTime() ?? Number.NaN;
    },
    objectKeys: async (prefix = ''): Promise<string[]> => {
      const { Contents = [] } = await direct.s3.send(
        new ListObjectsV2Command({ Bucket: locations.bucket, Prefix: prefix }),
      );
      return Contents.map(({ Key = '' }) => Key);
    },
  };
}

/** The holders of a world without executions. */
const noBoundHolders: ReportDependencies['holders'] = {
  ask: async () => () => 'unknown',
  end: async () => 'changed',
};

export type ExpiryWorld = Awaited<ReturnType<typeof expiryWorld>>;

/** The deployed handlers, each with clients of its own. */
function functionHandlers(
  dependencies: ReportDependencies,
  leasesOf: (own: ReportDependencies) => LeaseDependencies,
  stepFunctions: LeaseDependencies['stepFunctions'],
) {
  const own = (name: string): ReportDependencies => {
    const dynamodb = testClient();
    const s3 = testS3();
    noteCommands(name, dynamodb);
    noteCommands(name, s3);
    return { ...dependencies, dynamodb, s3 };
  };
  const leasesFor = (name: string, dependencies: ReportDependencies) => ({
    ...leasesOf(dependencies),
    stepFunctions: memoized(async () => {
      const client = await stepFunctions();
      noteCommands(name, client);
      return client;
    }),
  });
  const [reporting, cleaning] = [own('report'), own('clean')];
  return {
    report: report(reporting, leasesFor('report', reporting)),
    readExpired: readExpired(own('readExpired')),
    clean: clean(cleaning, leasesFor('clean', cleaning)),
  };
}

/** An announcer whose client notes what the report sends. */
export function notedAnnouncer(client: EventBridgeClient, service = 'holdfast-test') {
  noteCommands('report', client as never);
  return announceReport(service, client);
}

export const S = (value: string) => ({ S: value });
export const N = (value: number) => ({ N: String(value) });

/** The entry of a holder. */
export const entryOf = (holder: string, expiresAt: number, more: Item = {}): AttributeValue => ({
  M: {
    ...{ i: S('secret-id'), v: S('secret-version'), h: S(holder), e: N(expiresAt), b: N(expiresAt - 60_000) },
    ...{ t: N(60_000), a: N(expiresAt - 60_000), w: N(1), ...more },
  },
});

/** An exclusive grant as this service writes it. */
export const lease = (key: string, expiresAt: number, more: Item = {}): Item => ({
  key: S(key),
  lease_version: S('holdfast'),
  lease_expiry: N(Math.ceil(expiresAt / 1000)),
  used: N(1_000_000),
  fence: N(expiresAt - 60_000),
  h: entryOf(`holder of ${key}`, expiresAt, { m: S('secret-request'), u: N(60), w: N(1_000_000) }),
  ...more,
});

export const releasedLease = (key: string, ttl: number, more: Item = {}): Item => {
  const { M: { i: _, v: __, ...last } = {} } = lease(key, ttl * 1000).h ?? {};
  return {
    key: S(key),
    lease_expiry: N(ttl),
    used: N(0),
    freed_at: N((ttl - 3600) * 1000),
    fence: N((ttl - 3700) * 1000),
    h: { M: { ...last, p: S('released') } },
    ...more,
  };
};

/** A lease as the Rust crate writes it. */
export const rustLease = (key: string, ttl: number): Item => ({
  key: S(key),
  lease_expiry: N(ttl),
  lease_version: S('secret-version'),
});

export const commitRecord = (path: string, ttl: number, more: Item = {}): Item => ({
  path: S(path),
  etag: S('*'),
  generation: N(0),
  timeout: N(20_000),
  ttl: N(ttl),
  commit_id: S(`id-of-${path} displaced-1`),
  written_at: N((ttl - 3600) * 1000),
  ...more,
});

export const firstSight = (path: string, ttl: number): Item => ({
  path: S(path),
  etag: S('holdfast:first-sight:*'),
  generation: N(0),
  timeout: N(20_000),
  record_ttl: N(ttl - 100),
  seen_at: N((ttl - 3700) * 1000),
  ttl: N(ttl),
});

export const commitRow = (pk: string, ttl: AttributeValue, t = 7): Item => ({
  pk: S(pk),
  sk: S(`commit#${String(t).padStart(20, '0')}`),
  commit_cid: S('bafy'),
  commit_t: N(t),
  ttl,
});

/** The record of a key whose last shared holder has gone. @param last the time of the last write */
export const emptyKey = (key: string, last: number, more: Item = {}): Item => ({
  key: S(key),
  lease_version: S('holdfast'),
  lease_expiry: N(Math.ceil(last / 1000) + 400 * 86_400),
  fence: N(last - 60_000),
  used: N(0),
  r0: S('secret-request'),
  ...more,
});

/** The record of a key with one shared holder. */
export const deadPermit = (key: string, expiresAt: number): Item => ({
  ...emptyKey(key, expiresAt - 60_000),
  used: N(1),
  fence: N(expiresAt),
  h0123456789abcdef: entryOf(`holder of ${key}`, expiresAt),
  f0123456789abcdef: N(expiresAt),
});

export const waiter = (key: string, deadline: number): Item => ({
  key: S(key),
  ticket: S('0001767225600123-ticket'),
  task_token: S('secret-token'),
  holder: S(`holder of ${key}`),
  ttl_seconds: N(60),
  request_id: S('secret-request'),
  parked_at: N(deadline - 60_000),
  deadline: N(deadline),
  ttl: N(Math.ceil(deadline / 1000) + 86_400),
});
