import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { get } from '../support/adapters.ts';
import { failure } from '../support/leases.ts';
import { queueWorld } from '../support/queue.ts';

const world = await queueWorld();
const { acquire, heartbeat, release, breakLease, read, park, repair } = world;
const { grantOf, rawItem, putRaw, clock, requests, steps } = world;
afterAll(() => steps.stop());
beforeEach(() => {
  requests.sent.length = 0;
});

const past = { N: '1600000000' };

describe('a mark that another client wrote', () => {
  const MARKS: [string, AttributeValue][] = [
    ['a number that JavaScript rounds', { N: '9007199254740993' }],
    ['a number beyond every counter', { N: '9.9E+125' }],
    ['a fraction', { N: '1.5' }],
    ['a text', { S: 'yes' }],
    ['a flag', { BOOL: true }],
    ['a list', { L: [{ N: '1' }] }],
  ];

  it.each(MARKS)('%s: goes with the first call that finds nobody parked', async (what, waiters) => {
    const free = `free ${what}`;
    await putRaw({ key: { S: free }, waiters });
    expect(await acquire({ key: free })).toMatchObject({ repeated: false });
    const expired = `expired ${what}`;
    await putRaw({ key: { S: expired }, lease_version: { S: 'v' }, lease_expiry: past, waiters });
    expect(await acquire({ key: expired })).toMatchObject({ repeated: false });
    const held = `held ${what}`;
    const first = await acquire({ key: held });
    await putRaw({ ...(await rawItem(held)), waiters } as never);
    expect(await heartbeat(first)).toMatchObject({ fence: first.fence });
    expect(await release(first)).toEqual({ key: held, released: true });
    expect(await read({ key: held })).toMatchObject({ state: 'released', waiting: 0 });
    for (const key of [free, expired, held]) expect(await rawItem(key)).not.toHaveProperty('waiters');
    expect(requests.sent.length).toBeLessThan(40);
  });

  it.each(MARKS)('%s: the tasks that are parked have their turns all the same', async (what, waiters) => {
    const key = `parked ${what}`;
    const first = await acquire({ key });
    const tasks = [await park({ key }), await park({ key }), await park({ key })].map(({ task }) => task);
    await putRaw({ ...(await rawItem(key)), waiters } as never);
    requests.sent.length = 0;
    await release(first);
    for (const task of tasks) expect(await release(grantOf(task))).toMatchObject({ released: true });
    expect(await rawItem(key)).not.toHaveProperty('waiters');
    expect(requests.sent.length).toBeLessThan(40);
  });
});

describe('a record that no condition fits', () => {
  const RECORDS: [string, Record<string, AttributeValue>][] = [
    ['lease_version', { lease_version: { N: '1' }, lease_expiry: { N: '9000000000' } }],
    ['expires_at', { lease_version: { S: 'v' }, lease_expiry: past, expires_at: { S: 'soon' } }],
    [
      'lease_expiry',
      { lease_version: { S: 'v' }, lease_expiry: { S: 'soon' }, expires_at: { N: '1' }, fence: { S: '1' } },
    ],
    ['fence', { fence: { S: '7' } }],
  ];

  it.each(RECORDS)('by its %s is named after one write, also to a caller who would wait', async (name, attributes) => {
    const key = `bad ${name}`;
    await putRaw({ key: { S: key }, ...attributes });
    const { code, context } = await failure(acquire({ key, waitSeconds: 20 }));
    expect({ code, context }).toEqual({ code: 'Unavailable', context: { key, retryAfterMs: 1000 } });
    expect(requests.sent).toEqual(['PutItem', 'PutItem']);
  });

  it.each(RECORDS)(
    'by its %s fails a parked task’s call and stops no other key of the schedule',
    async (name, attributes) => {
      const key = `bad for tasks ${name}`;
      const beside = `beside ${key}`;
      for (const one of [key, beside]) await acquire({ key: one, ttlSeconds: 2 });
      await park({ key });
      const { task } = await park({ key: beside });
      await putRaw({ key: { S: key }, ...attributes });
      clock.advance(3000);
      requests.sent.length = 0;
      await repair().catch(({ code }) => expect(code).toBe('Unavailable'));
      expect(task.state).toBe('succeeded');
      expect(requests.sent.length).toBeLessThan(60);
    },
  );

  it('may still be read, and broken by the fence that it has', async () => {
    await putRaw({ key: { S: 'odd' }, lease_version: { N: '1' }, fence: { N: '7' }, waiters: { S: 'x' } });
    expect(await read({ key: 'odd' })).toMatchObject({ fence: 7 });
    expect((await failure(breakLease({ key: 'odd', fence: 7 }))).code).toBe('NotFound');
  });
});

describe('what another client wrote as data', () => {
  it.each(['[', '{"a":'])('is shown as text where it is nested too deep for an answer: %s', async (open) => {
    const deep =
      open === '[' ? '['.repeat(150_000) + ']'.repeat(150_000) : `${open.repeat(60_000)}1${'}'.repeat(60_000)}`;
    const prefix = `deep ${open}`;
    await putRaw({ key: { S: `${prefix} 1` }, data: { S: deep } });
    await putRaw({ key: { S: `${prefix} 2` }, data: { S: '{"a":[1]}' } });
    const { outcome, body } = await get(world.handlers.readLeases, { prefix });
    expect(outcome).toBe('ok');
    const leases = body.leases as { key: string; data: unknown }[];
    expect(new Map(leases.map(({ key, data }) => [key, data]))).toEqual(
      new Map<string, unknown>([
        [`${prefix} 1`, deep],
        [`${prefix} 2`, { a: [1] }],
      ]),
    );
    expect((await get(world.handlers.readLeases, { key: `${prefix} 1` })).body.data).toBe(deep);
  });
});

it('a list is cut where its answer would be larger than a function may give', async () => {
  const sizes = await queueWorld();
  const data = { S: '\u0001'.repeat(300_000) };
  for (let at = 0; at < 9; at++) await sizes.putRaw({ key: { S: `large ${at}` }, data });
  const seen: string[] = [];
  let cursor: string | null = null;
  let pages = 0;
  do {
    const answer = await sizes.handlers.readLeases(
      {
        version: '2.0',
        rawQueryString: new URLSearchParams({ limit: '100', ...(cursor !== null && { cursor }) }).toString(),
        headers: {},
        requestContext: { http: { method: 'GET' } },
      } as never,
      (await import('../support/adapters.ts')).lambdaContext(),
    );
    expect(Buffer.byteLength(JSON.stringify(answer))).toBeLessThan(6_291_556);
    const { leases, nextCursor } = JSON.parse((answer as { body: string }).body);
    seen.push(...leases.map(({ key }: { key: string }) => key));
    cursor = nextCursor;
    pages++;
  } while (cursor !== null);
  expect(seen.toSorted()).toEqual(Array.from({ length: 9 }, (_, at) => `large ${at}`));
  expect(pages).toBeGreaterThan(3);
  await sizes.steps.stop();
});
