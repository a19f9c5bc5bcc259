import { BatchWriteItemCommand } from '@aws-sdk/client-dynamodb';
import { afterAll, describe, expect, it } from 'vitest';
import { CHECKPOINT, reportKey } from '../../shared/expiry/checkpoint.ts';
import { reportStore } from '../../shared/expiry/store.ts';
import type { Summary } from '../../shared/expiry/summary.ts';
import { call } from '../support/emulators/aws.ts';
import { apiContext, get, httpEvent, lambdaContext, post, throughTask } from '../support/stack/adapters.ts';
import { ManualClock } from '../support/time/clock.ts';
import { isFull } from '../support/time/rounds.ts';
import {
  commitRecord,
  commitRow,
  eventBus,
  expiryWorld,
  firstSight,
  lease,
  N,
  notedAnnouncer,
  S,
  waiter,
} from '../support/worlds/expiry.ts';

const T = Date.parse('2026-03-01T00:00:00.000Z');
const HOUR = 3_600_000;
const bus = await eventBus();
afterAll(() => bus.stop());

const event = (type: string, source: string, detail: object) => ({
  version: '0',
  id: 'event-1',
  'detail-type': type,
  source,
  account: '000000000000',
  time: '2026-03-01T00:00:00Z',
  region: 'us-east-1',
  resources: [],
  detail,
});
const scheduled = event('Scheduled Event', 'aws.events', {});

const newWorld = () => expiryWorld({ clock: new ManualClock(T + 48 * HOUR), announce: notedAnnouncer(bus.client()) });

/** A bus that refuses events until a test sets `isDown` to false. */
function busThatIsDown() {
  const bus = { isDown: true };
  const announced: string[] = [];
  const announce = async ({ reportId }: Summary) => {
    if (bus.isDown) throw new Error('the bus is down');
    announced.push(reportId);
  };
  return { bus, announced, announce };
}

describe('adapters', async () => {
  const refusing = (await newWorld()).handlers();

  it('the calls report, read and clean answer through their adapters', async () => {
    const world = await newWorld();
    const { report, readExpired, clean } = world.handlers();
    await world.putLease(lease('stuck', T));
    await world.putCommit(commitRecord('a', T / 1000));
    await world.putCommit(firstSight('a', T / 1000));
    await world.putName(commitRow('a:b', N(T / 1000)));
    await world.putWaiter(waiter('queued', T));
    const uploadedAt = await world.stage('upload', 'bytes');
    world.clock.set(uploadedAt + 48 * HOUR);

    expect(await get(readExpired, {})).toMatchObject({ status: 404, outcome: 'NotFound' });
    const made = await post(report, {});
    expect(made).toMatchObject({ status: 201, body: { complete: true, announced: true, stoppedBy: null } });
    const read = await get(readExpired, { kind: 'abandonedLease', limit: '5' });
    expect(read).toMatchObject({ status: 200, body: { rows: [{ holder: 'holder of stuck' }], nextCursor: null } });
    expect(await throughTask(readExpired, { limit: 2 })).toMatchObject({
      outcome: 'ok',
      body: { nextCursor: expect.any(String) },
    });
    expect(await post(clean, {})).toMatchObject({ status: 200, body: { dryRun: true, deleted: { count: 5 } } });
    expect(await throughTask(clean, { dryRun: false })).toMatchObject({
      body: { deleted: { count: 5 }, spared: { by: { leftToQueue: 1 } } },
    });
  });

  it.each([
    [{ kinds: ['leases'] }, 'kinds.0'],
    [{ kinds: [] }, 'kinds'],
    [{ olderThanSeconds: -1 }, 'olderThanSeconds'],
    [{ olderThanSeconds: 1.5 }, 'olderThanSeconds'],
    [{ dryRun: 'false' }, 'dryRun'],
    [{ neverDeletable: 1 }, 'neverDeletable'],
    [{ reportId: '../x' }, 'reportId'],
    [{ force: true }, 'force'],
  ])('clean refuses %o, and names the field', async (payload, path) => {
    expect(await post(refusing.clean, payload)).toMatchObject({ status: 400, body: { issues: [{ path }] } });
  });

  it.each([
    [{ kind: 'lease' }, 'kind'],
    [{ limit: '0' }, 'limit'],
    [{ cursor: 'x' }, 'cursor'],
  ])('the call that reads a report refuses %o, and names the field', async (query, path) => {
    expect(await get(refusing.readExpired, query)).toMatchObject({ status: 400, body: { issues: [{ path }] } });
  });
});

describe('pages', () => {
  it.runIf(isFull)('the pages of a report fit an answer of Lambda, and leave none out', async () => {
    const world = await newWorld();
    const { report, readExpired } = world.handlers();
    // JSON makes six bytes of a control character, and JSON within JSON seven.
    const keys = Array.from({ length: 1000 }, (_, at) => `${at}${'\u0001'.repeat(1000)}`);
    const holder = S('\u0001'.repeat(256));
    for (let at = 0; at < keys.length; at += 25) {
      const puts = keys.slice(at, at + 25).map((key) => ({ PutRequest: { Item: lease(key, T, { holder }) } }));
      const RequestItems = { [world.locations.leasesTable]: puts };
      await world.dependencies.dynamodb.send(new BatchWriteItemCommand({ RequestItems }));
    }
    await throughTask(report, {});
    const read: string[] = [];
    for (let cursor: string | null | undefined; cursor !== null; ) {
      const query = { limit: '1000', ...(cursor && { cursor }) };
      const event = httpEvent('GET', { query: new URLSearchParams(query).toString() });
      const answer = (await readExpired(event, apiContext())) as { body: string };
      expect(Buffer.byteLength(JSON.stringify(answer))).toBeLessThan(6_291_556);
      const page = JSON.parse(answer.body);
      read.push(...page.rows.map(({ key }: { key: { key: string } }) => key.key));
      cursor = page.nextCursor;
    }
    expect(read.toSorted()).toEqual(keys.toSorted());
  });
});

describe('the local event bus', () => {
  const send = (body: string) => fetch(bus.endpoint, { method: 'POST', body });
  const entry = (detail: string) => ({ Source: 'a', DetailType: 'b', Detail: detail });

  it('the local event bus refuses what EventBridge refuses, and goes on', async () => {
    bus.events.length = 0;
    expect((await send('{')).status).toBe(400);
    expect((await send('{}')).status).toBe(400);
    const answer = await send(JSON.stringify({ Entries: [entry('{'), entry('[]'), entry('{"good":1}')] }));
    const refused = { ErrorCode: 'MalformedDetail' };
    expect(await answer.json()).toMatchObject({
      FailedEntryCount: 2,
      Entries: [refused, refused, { EventId: expect.any(String) }],
    });
    expect(bus.events).toMatchObject([{ source: 'a', detail: { good: 1 } }]);
  });
});

describe('EventBridge', () => {
  it('EventBridge starts a report on schedule, and counts a running one as success', async () => {
    const world = await newWorld();
    const { report } = world.handlers();
    expect(await report(scheduled, lambdaContext())).toMatchObject({ complete: true });
    await world.putLease(lease('holdfast:report', T + 49 * HOUR));
    expect(await report(scheduled, lambdaContext())).toMatchObject({ code: 'LeaseHeld' });
    expect(await throughTask(report, {})).toMatchObject({ outcome: 'LeaseHeld' });
    expect(await post(report, {})).toMatchObject({ status: 409 });
  });

  it('EventBridge receives failures, which end in the dead-letter queue', async () => {
    const world = await expiryWorld();
    const locations = { ...world.locations, nameserviceTable: 'test-nameservice-missing' };
    const broken = await expiryWorld({ locations });
    await expect(broken.handlers().report(scheduled, lambdaContext())).rejects.toMatchObject({ name: 'Unavailable' });
  });

  it('EventBridge receives the summary of each complete report, and of no other', async () => {
    const world = await newWorld();
    await world.putLease(lease('stuck', T));
    const { report } = world.handlers();
    bus.events.length = 0;
    await throughTask(report, {}, lambdaContext(3400)); // its time is up at once
    expect(bus.events).toEqual([]);
    const { body } = await throughTask(report, {});
    await expect.poll(() => bus.events.length).toBe(1);
    const [{ source, 'detail-type': type, detail }] = bus.events as [(typeof bus.events)[number]];
    const { stoppedBy: _, announced: __, ...summary } = body;
    expect({ source, type, detail }).toEqual({
      source: 'holdfast',
      type: 'Expired Records Reported',
      detail: { ...summary, service: 'holdfast-test' },
    });
  });

  it('EventBridge receives every event in the end, however often the bus fails', async () => {
    const { bus, announced, announce } = busThatIsDown();
    const world = await expiryWorld({ announce, segments: 1 });
    const reports: string[] = [];
    for (let run = 0; run < 3; run++) {
      world.clock.advance(1000);
      const { reportId, complete, announced } = await world.report();
      reports.push(reportId);
      expect({ complete, announced }).toEqual({ complete: true, announced: false });
    }
    bus.isDown = false;
    world.clock.advance(1000);
    const last = await world.report();
    expect(last.announced).toBe(true);
    expect(announced).toEqual([...reports, last.reportId]);
  });

  it('EventBridge receives the event of an earlier report from a cut run', async () => {
    const { bus, announced, announce } = busThatIsDown();
    const world = await expiryWorld({ announce });
    const { reportId } = await world.report();
    bus.isDown = false;
    world.clock.advance(120_000);
    expect(await world.report(call({ timeLeftMs: () => 0 }))).toMatchObject({ complete: false, announced: true });
    expect(announced).toEqual([reportId]);
  });

  it.runIf(isFull)('EventBridge receives the latest 96 events after a long outage of the bus', async () => {
    const { bus, announced, announce } = busThatIsDown();
    const world = await expiryWorld({ announce });
    await world.report();
    const store = reportStore(world.dependencies.s3, world.locations.bucket);
    const { text = '', etag } = (await store.get(CHECKPOINT, call())) ?? {};
    const owed = Array.from({ length: 96 }, (_, at) => `20250101T0000000${String(at).padStart(2, '0')}Z-earlier0`);
    for (const reportId of owed)
      await store.put(reportKey(reportId), JSON.stringify({ ...JSON.parse(text), reportId }), call());
    await store.replace(CHECKPOINT, { text: JSON.stringify({ ...JSON.parse(text), owed }), before: etag }, call());
    world.clock.advance(120_000);
    const { reportId } = await world.report();
    bus.isDown = false;
    world.clock.advance(120_000);
    await world.report(call({ timeLeftMs: () => 0 }));
    expect(announced).toEqual([...owed.slice(1), reportId]);
  });

  it('EventBridge counts a report that a later run has taken over as success', async () => {
    const world = await newWorld();
    const { report } = world.handlers();
    await report(scheduled, lambdaContext());
    const store = reportStore(world.dependencies.s3, world.locations.bucket);
    const { text = '', etag } = (await store.get(CHECKPOINT, call())) ?? {};
    const later = { ...JSON.parse(text), fence: Number.MAX_SAFE_INTEGER };
    await store.replace(CHECKPOINT, { text: JSON.stringify(later), before: etag }, call());
    expect(await report(scheduled, lambdaContext())).toMatchObject({ code: 'LeaseLost' });
    expect(await throughTask(report, {})).toMatchObject({ outcome: 'LeaseLost' });
  });

  it('EventBridge starts a clean-up by the event of a report', async () => {
    const world = await newWorld();
    await world.putLease(lease('old', T));
    await world.putLease(lease('young', T + 24 * HOUR + 1));
    const { report, clean } = world.handlers();
    const { body } = await throughTask(report, {});
    const answer = await clean(event('Expired Records Reported', 'holdfast', body), lambdaContext());
    expect(answer).toMatchObject({
      reportId: body.reportId,
      dryRun: false,
      olderThanSeconds: 86_400,
      deleted: { by: { abandonedLease: 1 } },
      spared: { by: { tooYoung: 1 } },
    });
  });
});
