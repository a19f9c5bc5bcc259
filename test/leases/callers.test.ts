import { afterAll, describe, expect, it } from 'vitest';
import { dyingAfter } from '../support/faults/mortal.ts';
import { Timeline } from '../support/time/timeline.ts';
import { failure } from '../support/worlds/leases.ts';
import { queueWorld } from '../support/worlds/line.ts';

const timeline = new Timeline();
const { now, later } = timeline;
const world = await queueWorld({ clock: timeline });
const { acquire, release, withdraw, steps } = world;
const { requests, rows, rawItem, as, park } = world;
afterAll(() => steps.stop());

const WINDOW_MS = 2000;
const MARGIN_MS = 500;

let keys = 0;
const newKey = () => `key ${keys++}`;
const waiting = (key: string, holder: string, more: object = {}) =>
  acquire({ key, holder, ttlSeconds: 10, waitSeconds: 20, ...more });

describe('callers that wait', () => {
  it('get the whole ttl from their claim on, and learn who had the lease before', async () => {
    const key = newKey();
    const first = await acquire({ key, holder: 'first' });
    const [, grant] = await timeline.play(
      () => later(1000, () => release(first)),
      () => waiting(key, 'second'),
    );
    const releasedAt = Date.parse(grant.previous?.at ?? '');
    expect(grant.previous).toEqual({
      ...{ holder: 'first', fence: first.fence, ended: 'released' },
      at: new Date(releasedAt).toISOString(),
    });
    expect(grant).toMatchObject({ holder: 'second', remainingMs: 10_000, repeated: false });
    expect(grant.fence).toBeGreaterThan(first.fence);
    expect(now() - releasedAt).toBeLessThanOrEqual(35); // the next in line looks every 25 to 35 ms
    const record = await rawItem(key);
    expect(record).not.toHaveProperty('claim_ttl_ms');
    expect(record).toMatchObject({ expires_at: { N: `${now() + 10_000}` }, ttl_seconds: { N: '10' } });
    expect(record).toMatchObject({ lease_expiry: { N: `${Math.ceil(now() / 1000) + 10}` }, ttl_ms: { N: '10000' } });
    expect(await release(grant)).toMatchObject({ released: true });
  });

  it('cost seven requests and the looks', async () => {
    const key = newKey();
    const first = await acquire({ key, holder: 'first' });
    const before = requests.sent.length;
    const [, grant] = await timeline.play(
      () => later(300, () => release(first)),
      () => waiting(key, 'second'),
    );
    const sent = requests.sent.slice(before).filter((command) => command !== 'GetItem');
    expect(sent).toEqual([
      ...['PutItem', 'PutItem', 'UpdateItem'], // the first try, the ticket, the mark
      ...['UpdateItem', 'Query', 'UpdateItem'], // the release that loses, the line, the transfer
      ...['UpdateItem', 'DeleteItem'], // the claim, the ticket
    ]);
    await release(grant);
  });

  it('are refused with QueueFull where a thousand wait', async () => {
    const key = newKey();
    await acquire({ key, holder: 'first' });
    const { UpdateItemCommand, BatchWriteItemCommand } = await import('@aws-sdk/client-dynamodb');
    const row = (index: number) => ({
      ...{ key: { S: key }, ticket: { S: `${index}`.padStart(15, '0') }, holder: { S: 'h' }, request_id: { S: 'r' } },
      ...{ parked_at: { N: '1' }, deadline: { N: '9000000000000' }, keep_until: { N: '9000000000000' } },
    });
    for (let from = 0; from < 1001; from += 25) {
      const chunk = Array.from({ length: Math.min(25, 1001 - from) }, (_, index) => row(from + index));
      const puts = chunk.map((Item) => ({ PutRequest: { Item } }));
      const { waitersTable } = world.dependencies;
      await world.dynamodb.send(new BatchWriteItemCommand({ RequestItems: { [waitersTable]: puts } }));
    }
    const mark = new UpdateItemCommand({
      TableName: world.table,
      Key: { key: { S: key } },
      UpdateExpression: 'SET waiters = :mark',
      ExpressionAttributeValues: { ':mark': { N: '1023' } },
    });
    await world.dynamodb.send(mark);
    const [refused] = await timeline.play(() => failure(waiting(key, 'late')));
    expect(refused).toMatchObject({ code: 'QueueFull', context: { key, retryAfterMs: 5000 } });
    expect((await rows(key)).filter(({ holder }) => holder?.S === 'late')).toEqual([]);
  });
});

it('previous names who held before, and no caller that was granted the lease and died before it claimed that', async () => {
  const key = newKey();
  const first = await acquire({ key, holder: 'first' });
  await timeline.play(() => dyingAfter(3, () => waiting(key, 'dead')));
  timeline.advance(1); // a later ticket
  const [, grant] = await timeline.play(
    () => later(1000, () => release(first)),
    () => waiting(key, 'next'),
  );
  expect(grant).toMatchObject({ holder: 'next', previous: { holder: 'first', ended: 'released' } });
});

describe('a claim', () => {
  it('that comes when another has the lease is none: the call is told so, and waits again where it asks again', async () => {
    const key = newKey();
    const first = await acquire({ key, holder: 'first' });
    let other: { leaseId: string; key: string; version: string } | undefined;
    const [, grant] = await timeline.play(
      () =>
        later(100, async () => {
          await release(first);
          requests.faultsOf.UpdateItem = [
            async (send) => {
              timeline.advance(WINDOW_MS + MARGIN_MS + 1);
              requests.faultsOf.UpdateItem = [];
              other = await acquire({ key, holder: 'other' }); // the plain caller that comes in between
              return send();
            },
          ];
        }),
      async () => {
        const { code, context } = await failure(waiting(key, 'second', { requestId: 'late claim' }));
        expect({ code, ...context }).toMatchObject({ code: 'LeaseHeld', retryWith: { requestId: 'late claim' } });
        expect(context).not.toHaveProperty('place');
        return waiting(key, 'second', context.retryWith as object);
      },
      () =>
        later(5000, async () => {
          expect((await rawItem(key))?.lease_version?.S).toBe(other?.version);
          if (other) await release(other);
        }),
    );
    expect(grant).toMatchObject({ holder: 'second', previous: { holder: 'other' }, remainingMs: 10_000 });
    expect(await rows(key)).toEqual([]);
  });
});

describe('a withdrawal', () => {
  const owner = as('arn:aws:iam::1:user/owner');

  it('ends a grant, claimed or not, and hands it on', async () => {
    const key = newKey();
    const first = await acquire({ key, holder: 'first' });
    await timeline.play(() =>
      dyingAfter(3, () => acquire({ key, holder: 'b', requestId: 'w2', waitSeconds: 20 }, owner)),
    );
    timeline.advance(1);
    const { task } = await park({ key, holder: 'task' });
    await release(first); // b has it, unclaimed
    requests.sent.length = 0;
    expect(await withdraw({ key, requestId: 'w2', holder: 'b' }, owner)).toMatchObject({ cancelled: true });
    expect(requests.sent.slice(0, 5)).toEqual(['Query', 'UpdateItem', 'GetItem', 'UpdateItem', 'Query']); // one flag
    expect(task.output).toMatchObject({ holder: 'task', previous: { holder: 'first' } });
    const plain = newKey();
    await acquire({ key: plain, holder: 'b', requestId: 'w3' }, owner);
    expect(await withdraw({ key: plain, requestId: 'w3', holder: 'b' }, owner)).toMatchObject({ cancelled: true });
    expect(await acquire({ key: plain, holder: 'c' })).toMatchObject({ previous: { holder: 'b', ended: 'released' } });
  });
});
