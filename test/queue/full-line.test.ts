import { PutItemCommand } from '@aws-sdk/client-dynamodb';
import { afterAll, expect, it } from 'vitest';
import { dyingAfter } from '../support/faults/mortal.ts';
import { Timeline } from '../support/time/timeline.ts';
import { failure } from '../support/worlds/leases.ts';
import { queueWorld } from '../support/worlds/line.ts';

// With this quota, one arrival of four counts the line, whatever the record says.
const QUOTA = 128;

const timeline = new Timeline();
const world = await queueWorld({
  clock: timeline,
  quotas: { waitersPerKey: QUOTA, waitersPerNamespace: 10_000 },
});
const { acquire, release, rows, rawItem, putRaw, putTickets, requests, steps } = world;
afterAll(() => steps.stop());

const waiting = (key: string, holder: string, more: object = {}) =>
  acquire({ key, holder, ttlSeconds: 10, waitSeconds: 20, ...more });
/** Three requests put a call in line. Then the call exits, so its row stays. */
const inLine = (key: string, holder: string) => dyingAfter(3, () => waiting(key, holder));

/** As many calls in line, as their rows and the mark would be. The first of them is the row that is there. */
async function fill(key: string, count: number, more: object = {}) {
  await inLine(key, 'the first row');
  const [template] = (await rows(key)).slice(-1);
  const names = Array.from({ length: count - 1 }, (_, index) => `${template?.ticket?.S}-${index}`);
  await putTickets(names.map((name) => ({ ...template, ticket: { S: name } })));
  await putRaw({ ...(await rawItem(key)), waiters: { N: String(count) }, ...more } as never);
}

it('a full line refuses every further caller', async () => {
  const key = 'full line';
  await acquire({ key, holder: 'first', ttlSeconds: 60 });
  await fill(key, QUOTA - 1);
  const { sent } = await dyingAfter(4, () => waiting(key, 'the last one'));
  expect(sent).toEqual(['PutItem', 'PutItem', 'UpdateItem', 'GetItem']); // up to the quota, no call counts the line
  for (let count = 0; count < 5; count++) {
    requests.sent.length = 0;
    const refused = await failure(waiting(key, `late ${count}`));
    // The record says that the line is full, as the count does, so it stays as it is.
    expect(requests.sent).toEqual(['PutItem', 'PutItem', 'UpdateItem', 'Query', 'DeleteItem']);
    expect(refused).toMatchObject({ code: 'QueueFull', context: { quota: 'maxWaitersPerKey', limit: QUOTA } });
  }
  expect(await rows(key)).toHaveLength(QUOTA);
});

it('a call that asks again keeps its position in a line above the quota', async () => {
  const key = 'more than full';
  await acquire({ key, holder: 'first', ttlSeconds: 60 });
  const asked = { requestId: 'early', waitSeconds: 1 };
  const [held] = await timeline.play(() => failure(waiting(key, 'early', asked)));
  const { ticket } = held.context.retryWith as { ticket: string };
  timeline.advance(1);
  await fill(key, QUOTA + 1);
  for (let times = 0; times < 4; times++) {
    const [again] = await timeline.play(() => failure(waiting(key, 'early', { ...asked, ticket })));
    expect(again).toMatchObject({ code: 'LeaseHeld', context: { place: 1, retryWith: { ticket } } });
  }
});

it('callers count a line only once if most arrivals have left, and the record then says how many have left', async () => {
  const key = 'by and by';
  const first = await acquire({ key, holder: 'first', ttlSeconds: 60 });
  await fill(key, 2, { waiters: { N: '1000' } });
  await dyingAfter(5, () => waiting(key, 'counted'));
  expect(await rawItem(key)).toMatchObject({ waiters: { N: '1001' }, line_out: { N: '998' } });
  const { sent } = await dyingAfter(4, () => waiting(key, 'not counted'));
  expect(sent).toEqual(['PutItem', 'PutItem', 'UpdateItem', 'GetItem']); // it looks for its turn at once
  await release(first);
});

it('a caller joins a line that its waiter fills up to the quota if enough earlier arrivals have left', async () => {
  const key = 'just full';
  await acquire({ key, holder: 'first', ttlSeconds: 60 });
  await fill(key, QUOTA - 1, { waiters: { N: '1000' } });
  timeline.advance(1);
  const [last] = await timeline.play(() => failure(waiting(key, 'the last one', { waitSeconds: 1 })));
  expect(last).toMatchObject({ code: 'LeaseHeld', context: { place: 101 } }); // no further is counted
  expect((await failure(waiting(key, 'one too many'))).code).toBe('QueueFull');
});

it('one arrival in four corrects a record that says that more waiters have left than really have', async () => {
  const key = 'sample';
  await acquire({ key, holder: 'first', ttlSeconds: 60 });
  await fill(key, QUOTA, { line_out: { N: '100' } });
  for (let count = 0; count < 3; count++) await inLine(key, `not counted ${count}`);
  const Item = { ...(await rows(key))[0], keep_until: { N: '0' } }; // it has left
  await world.dynamodb.send(new PutItemCommand({ TableName: world.dependencies.waitersTable, Item }));
  expect((await failure(waiting(key, 'the sample'))).code).toBe('QueueFull');
  // The count ended at one more than the quota.
  expect(await rawItem(key)).toMatchObject({ waiters: { N: `${QUOTA + 4}` }, line_out: { N: '3' } });
  for (let count = 0; count < 2; count++) expect((await failure(waiting(key, `late ${count}`))).code).toBe('QueueFull');
});

it('tasks that park count a line only once if most arrivals have left, and the record then says how many have left', async () => {
  const key = 'parked by and by';
  await acquire({ key, holder: 'first', ttlSeconds: 60 });
  await fill(key, 2, { waiters: { N: '1000' } });
  requests.sent.length = 0;
  await world.park({ key, holder: 'counts' });
  expect(await rawItem(key)).toMatchObject({ waiters: { N: '1001' }, line_out: { N: '998' } });
  for (let more = 0; more < 2; more++) await world.park({ key, holder: `task ${more}` });
  expect(requests.sent.filter((command) => command === 'Query')).toHaveLength(1);
});

it('one task in four counts the line, and is refused, if the record says that more waiters have left than really have', async () => {
  const key = 'task sample';
  await acquire({ key, holder: 'first', ttlSeconds: 60 });
  await fill(key, QUOTA, { line_out: { N: '100' } });
  for (let count = 0; count < 3; count++) await inLine(key, `not counted ${count}`);
  expect((await failure(world.park({ key, holder: 'the sample' }))).code).toBe('QueueFull');
  expect(await rawItem(key)).toMatchObject({ waiters: { N: `${QUOTA + 4}` }, line_out: { N: '3' } });
});
