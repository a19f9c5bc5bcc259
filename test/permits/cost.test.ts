import { beforeEach, expect, it } from 'vitest';
import { unitCounter } from '../support/emulators/aws.ts';
import { failure } from '../support/worlds/leases.ts';
import { poolWorld } from '../support/worlds/permits.ts';

const world = await poolWorld();
const { acquire, heartbeat, release, read, breakPermit, clock, requests, form } = world;
const units = unitCounter(world.dynamodb);

beforeEach(() => {
  requests.sent.length = 0;
});

it('the first permit of a key costs one write, and so does the next', async () => {
  await acquire({ key: 'first', limit: 2 });
  await acquire({ key: 'first', holder: 'b', limit: 2 });
  expect(requests.sent).toEqual(['UpdateItem', 'UpdateItem']);
});

it('each call on a permit costs one write, won or lost', async () => {
  await form('one');
  requests.sent.length = 0;
  const granted = await acquire({ key: 'one', limit: 1 });
  await heartbeat(granted);
  await failure(acquire({ key: 'one', holder: 'b', limit: 1 }));
  await release(granted);
  await release(granted);
  await failure(heartbeat(granted));
  expect(requests.sent).toEqual(Array(6).fill('UpdateItem'));
});

it('a repeat of an acquire costs a write, and a write more if the permit names an execution', async () => {
  await form('repeated');
  const execution = 'arn:aws:states:us-east-1:123456789012:execution:machine:run';
  const repeats = [{ requestId: 'plain' }, { requestId: 'named', execution }];
  const costs: number[] = [];
  for (const asked of repeats) {
    const again = () => acquire({ key: 'repeated', limit: 2, ...asked });
    await again();
    requests.sent.length = 0;
    await again();
    costs.push(requests.sent.length);
  }
  expect(costs).toEqual([1, 2]);
});

it('a take-over of an expired permit costs two writes, and a read comes before a break', async () => {
  await acquire({ key: 'two', limit: 1, ttlSeconds: 2 });
  clock.advance(2501);
  requests.sent.length = 0;
  const { fence } = await acquire({ key: 'two', limit: 1 });
  await breakPermit({ key: 'two', fence });
  await read('two');
  expect(requests.sent).toEqual(['UpdateItem', 'UpdateItem', 'GetItem', 'UpdateItem', 'GetItem']);
});

it('64 callers for 64 permits cost 64 writes, in whatever order they arrive', async () => {
  await form('many');
  requests.sent.length = 0;
  const asked = Array.from({ length: 64 }, (_, n) => acquire({ key: 'many', holder: `worker-${n}`, limit: 64 }));
  const granted = await Promise.all(asked);
  expect(requests.sent).toHaveLength(64);
  expect(new Set(granted.map(({ fence }) => fence)).size).toBe(64);
  expect((await read('many')).used).toBe(64);
});

it('a write of a pool pays for the whole record: a write unit for each kilobyte', async () => {
  const unitsOf: number[] = [];
  await form('units');
  for (let n = 0; n < 30; n++)
    unitsOf.push(...(await units(() => acquire({ key: 'units', holder: `worker-${n}`, limit: 200 }))));
  expect(unitsOf.slice(0, 5)).toEqual([1, 1, 1, 1, 1]);
  expect(unitsOf[9]).toBe(2);
  expect(unitsOf[29]).toBe(5);
  // A consistent read takes one for each four kilobytes.
  expect(await units(() => read('units'))).toEqual([2]);
});
