import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { get } from '../support/stack/adapters.ts';
import { aFew, isFull } from '../support/time/rounds.ts';
import { failure } from '../support/worlds/leases.ts';
import { lineWorld } from '../support/worlds/line.ts';
import { permitsWorld } from '../support/worlds/permits.ts';

const { acquire, heartbeat, release, read, breakPermit, clock, requests, rawItem, putRaw, setRaw } =
  await permitsWorld();

/** The entry of a permit, with all of its parts. */
const ENTRY = {
  M: {
    ...Object.fromEntries(['i', 'v', 'h'].map((part) => [part, { S: 'x' }])),
    ...Object.fromEntries(['b', 't', 'a', 'w'].map((part) => [part, { N: '1' }])),
    e: { N: `${clock.now() + 3_600_000}` },
  },
};

it.each([
  ['an attribute of its own', 'owner', { S: 'somebody' }],
  ['one that begins like an entry', 'history', { M: {} }],
  ['one that is named like an entry', 'h0123456789abcdef', { S: 'text' }],
  ['one that looks like an entry and lacks its parts', 'h0123456789abcdef', { M: { i: { S: 'x' }, e: { N: '1' } } }],
  ['one whose name ends like that of an entry', 'zh0123456789abcdef', ENTRY],
  ['one whose name begins like that of an entry', 'h0123456789abcdef0', ENTRY],
  [
    'one whose expiry is not an instant',
    'h0123456789abcdef',
    { M: { ...ENTRY.M, e: { N: '1000000000000000000000000000000' } } },
  ],
  ['a ring of other types', 'r3', { L: [] }],
  ['a limit that is text', 'last_limit', { S: 'many' }],
])('a record of another client with %s keeps it, and no decision changes', async (what, name, value) => {
  const first = await acquire({ key: what, holder: 'a', limit: 2 });
  await setRaw(what, name, value);
  if (!name.startsWith('f')) await setRaw(what, 'f0123456789abcdef', { N: '7' });
  const second = await acquire({ key: what, holder: 'b', limit: 2 });
  expect((await failure(acquire({ key: what, holder: 'c', limit: 2 }))).code).toBe('LeaseHeld');
  expect((await read(what)).holders.map(({ holder }) => holder)).toEqual(['a', 'b']);
  expect(await heartbeat(first)).toMatchObject({ fence: first.fence });
  expect(await release(first)).toMatchObject({ released: true });
  expect(await breakPermit({ key: what, fence: second.fence })).toMatchObject({ broken: true, holder: 'b' });
  if (!['r3', 'last_limit'].includes(name)) expect((await rawItem(what))?.[name]).toEqual(value);
});

it.each([...Object.keys(ENTRY.M), 'f'])('an entry that lacks its part %s does not count as a permit', async (part) => {
  const key = `without ${part}`;
  await acquire({ key, holder: 'a', limit: 2 });
  await setRaw(key, 'h0123456789abcdef', {
    M: Object.fromEntries(Object.entries(ENTRY.M).filter(([name]) => name !== part)),
  });
  if (part !== 'f') await setRaw(key, 'f0123456789abcdef', { N: '7' });
  expect((await read(key)).holders.map(({ holder }) => holder)).toEqual(['a']);
  await setRaw(key, 'h0123456789abcdef', ENTRY);
  await setRaw(key, 'f0123456789abcdef', { N: '7' });
  expect((await read(key)).holders.map(({ holder }) => holder)).toEqual(['x', 'a']);
});

it.each([
  ['fence', { S: 'high' }],
  ['fence', { N: '1e37' }],
  ['fence', { N: `${Number.MAX_SAFE_INTEGER - 1000}` }],
  ['used', { L: [] }],
])('a record with %s of %j is Unavailable by name', async (attribute, value) => {
  const record = { key: { S: `${attribute} ${JSON.stringify(value)}` }, [attribute]: value };
  await putRaw(record);
  for (const asked of [{ limit: 5 }, { mode: 'exclusive' as const }, { limit: 5, waitSeconds: 5 }]) {
    const { code, message, context } = await failure(acquire({ key: record.key.S, ...asked }));
    expect([code, context.key, message]).toEqual(['Unavailable', record.key.S, expect.stringContaining(attribute)]);
  }
  const stored = await rawItem(record.key.S);
  expect(stored).toMatchObject(attribute === 'fence' && 'N' in value ? {} : record);
  expect(Object.keys(stored ?? {}).toSorted()).toEqual(
    [...new Set([attribute, 'key', 'used', 'lease_version', 'lease_expiry'])].toSorted(),
  );
});

it('a record with an odd weight does not say when there is room', async () => {
  await acquire({ key: 'beyond', holder: 'a', limit: 2 });
  await setRaw('beyond', 'used', { N: '5' });
  expect(await failure(acquire({ key: 'beyond', holder: 'b', limit: 2 }))).toMatchObject({
    code: 'LeaseHeld',
    context: { used: 5, retryAfterMs: 1000 },
  });
});

it.each(['arrivals'])('a record whose %s is not a number fails only waiting calls', async (name) => {
  const key = `text in ${name}`;
  const { leaseId } = await acquire({ key, holder: 'a', limit: 1 });
  await setRaw(key, name, { S: 'x' });
  const { code, message, context } = await failure(acquire({ key, holder: 'b', limit: 1, waitSeconds: 5 }));
  expect([code, context.key, message]).toEqual([
    'Unavailable',
    key,
    expect.stringContaining(`: an operator must correct ${name}`),
  ]);
  expect(await release({ key, leaseId })).toMatchObject({ released: true });
  expect(await acquire({ key, holder: 'c', limit: 1 })).toMatchObject({ used: 1 });
});

it.each([
  ['used', undefined],
  ['its weight', 'w'],
])('a record with %s that became text is named, and stays', async (what, part) => {
  const granted = await acquire({ key: what, holder: 'a', limit: 2 });
  const own = `h${granted.leaseId.split('.')[1]}`;
  const attribute = part ? own : 'used';
  const value = part ? { M: { ...(await rawItem(what))?.[own]?.M, [part]: { S: '1' } } } : { S: '1' };
  await setRaw(what, attribute, value);
  const before = await rawItem(what);
  const { code, message, context, cause } = await failure(release(granted));
  expect([code, context.key, message]).toEqual([
    'Unavailable',
    what,
    expect.stringContaining(`: an operator must correct ${attribute}`),
  ]);
  expect(cause).toMatchObject({ name: 'ValidationException' });
  const breaking = await failure(breakPermit({ key: what, fence: granted.fence }));
  expect(breaking.code).toBe(part ? 'NotFound' : 'Unavailable');
  expect(await rawItem(what)).toEqual(before);
  expect(await acquire({ key: `beside ${what}`, limit: 2 })).toMatchObject({ used: 1 });
});

it('a ttl that became text is named by a heartbeat, or corrected', async () => {
  const granted = await acquire({ key: 'ttl', holder: 'a', limit: 2 });
  const own = `h${granted.leaseId.split('.')[1]}`;
  await setRaw('ttl', own, { M: { ...(await rawItem('ttl'))?.[own]?.M, t: { S: 'long' } } });
  clock.advance(1000);
  const { code, message } = await failure(heartbeat(granted));
  expect([code, message]).toEqual(['Unavailable', expect.stringContaining(`: an operator must correct ${own}`)]);
  expect(await heartbeat({ ...granted, ttlSeconds: 90 })).toMatchObject({ remainingMs: 90_000 });
});

it('an attribute in place of the request’s own entry is Unavailable by name', async () => {
  const asked = { key: 'own', holder: 'a', requestId: 'r', limit: 2 };
  const { leaseId } = await acquire(asked);
  const attribute = `h${leaseId.split('.')[1]}`;
  await putRaw({ key: { S: 'own' }, [attribute]: { S: 'mine' } });
  const { code, message, context } = await failure(acquire(asked));
  expect([code, context.key, message]).toEqual([
    'Unavailable',
    'own',
    expect.stringContaining(`: an operator must correct ${attribute}`),
  ]);
  expect(await acquire({ ...asked, holder: 'b' })).toMatchObject({ used: 1 });
});

it('a record that has only a mark is granted without it', async () => {
  await putRaw({ key: { S: 'mark' }, mark: { S: 'seven' }, arrivals: { N: '7' } });
  expect(await acquire({ key: 'mark', limit: 1 })).toMatchObject({ used: 1, repeated: false });
  expect(await rawItem('mark')).not.toHaveProperty('mark');
});

it('a record near 400 KB refuses another holder, and serves its own', async () => {
  const granted = await acquire({ key: 'large', holder: 'a', limit: 200 });
  const item = await rawItem('large');
  await putRaw({ ...item, ballast: { S: 'x'.repeat(400 * 1024 - 700) } });
  clock.advance(1000);
  expect(await heartbeat(granted)).toMatchObject({ remainingMs: 60_000 });
  const { code, message, context } = await failure(
    acquire({ key: 'large', holder: 'b'.repeat(256), data: 'd'.repeat(250), limit: 200 }),
  );
  expect([code, context.key, message]).toEqual(['Unavailable', 'large', expect.stringContaining('400 KB')]);
  expect((await read('large')).holders.map(({ holder }) => holder)).toEqual(['a']);
  expect(await release(granted)).toMatchObject({ released: true });
});

it('a record of 200 large holders is below 400 KB', async () => {
  const asked = { limit: 200, holder: 'h'.repeat(256), data: 'd'.repeat(254) };
  await acquire({ key: 'full', ...asked });
  const { key: _, row: __, ...one } = (await rawItem('full')) ?? {};
  expect(Buffer.byteLength(JSON.stringify(one)) * 200).toBeLessThan(400 * 1024);
});

it.each([
  'p.',
  'p.0123456789abcdef.x',
  'p.used.00000000-0000-4000-8000-000000000000',
  'p.0123456789abcdef.00000000-0000-4000-8000-000000000000.8',
  'p.0123456789abcdef.00000000-0000-4000-8000-000000000000 ',
  'p.p.0123456789abcdef.00000000-0000-4000-8000-000000000000',
])('a lease id %j neither proves a grant nor costs a request', async (leaseId) => {
  requests.sent.length = 0;
  expect(await release({ key: 'ids', leaseId })).toEqual({ key: 'ids', released: false, reason: 'unknown' });
  expect((await failure(heartbeat({ key: 'ids', leaseId }))).code).toBe('LeaseLost');
  expect(requests.sent).toEqual([]);
});

it("a guessed secret or another key's lease id does not prove a grant", async () => {
  const granted = await acquire({ key: 'guess', limit: 1 });
  const [p, name] = granted.leaseId.split('.');
  const guess = { key: 'guess', leaseId: `${p}.${name}.00000000-0000-4000-8000-000000000000` };
  for (const proof of [guess, { ...granted, key: 'another' }]) {
    expect(await release(proof)).toMatchObject({ released: false, reason: 'unknown' });
    expect((await failure(heartbeat(proof))).code).toBe('LeaseLost');
  }
  expect(await read('guess')).toMatchObject({ used: 1 });
});

describe('odd records', async () => {
  const world = await lineWorld();
  const { acquire, heartbeat, release, breakLease, read, park, repair } = world;
  const { grantOf, rawItem, putRaw, clock, requests, steps } = world;
  afterAll(() => steps.stop());
  beforeEach(() => {
    requests.sent.length = 0;
  });

  const past = { N: '1600000000' };

  describe('odd marks', () => {
    const MARKS: [string, AttributeValue][] = [
      ['a number that JavaScript rounds', { N: '9007199254740993' }],
      ['a number beyond every counter', { N: '9.9E+125' }],
      ['a text', { S: 'yes' }],
      ['a list', { L: [{ N: '1' }] }],
    ];

    it.each(aFew(1, MARKS))(
      "the first call removes another client's mark (%s) if no task is parked",
      async (what, mark) => {
        const free = `free ${what}`;
        await putRaw({ key: { S: free }, mark });
        expect(await acquire({ key: free })).toMatchObject({ repeated: false });
        const expired = `expired ${what}`;
        await putRaw({ key: { S: expired }, lease_version: { S: 'v' }, lease_expiry: past, mark });
        expect(await acquire({ key: expired })).toMatchObject({ repeated: false });
        const held = `held ${what}`;
        const first = await acquire({ key: held });
        await putRaw({ ...(await rawItem(held)), mark } as never);
        expect(await heartbeat(first)).toMatchObject({ fence: first.fence });
        expect(await release(first)).toEqual({ key: held, released: true });
        expect(await read({ key: held })).toMatchObject({ state: 'released', waiting: 0 });
        for (const key of [free, expired, held]) expect(await rawItem(key)).not.toHaveProperty('mark');
        expect(requests.sent.length).toBeLessThan(40);
      },
    );

    it.each(aFew(1, MARKS))(
      "another client's mark (%s) does not keep parked tasks from their grants",
      async (what, mark) => {
        const key = `parked ${what}`;
        const first = await acquire({ key });
        const tasks = [await park({ key }), await park({ key }), await park({ key })].map(({ task }) => task);
        await putRaw({ ...(await rawItem(key)), mark } as never);
        requests.sent.length = 0;
        await release(first);
        tasks.push((await park({ key })).task); // now there is a mark that counts
        for (const task of tasks) expect(await release(grantOf(task))).toMatchObject({ released: true });
        expect(await rawItem(key)).not.toHaveProperty('mark');
        expect(requests.sent.length).toBeLessThan(40);
      },
    );
  });

  it('a call gives up if a mark comes back whenever it is removed', async () => {
    const key = { S: 'marked again' };
    const marked = (mark: string) => putRaw({ key, mark: { S: mark } });
    await marked('first');
    requests.sent.length = 0;
    requests.faultsOf.UpdateItem = Array.from({ length: 100 }, (_, nth) => async (send) => {
      const answer = await send();
      await marked(`${nth}`);
      return answer;
    });
    const { code, context } = await failure(acquire({ key: key.S }));
    requests.faultsOf = {};
    expect({ code, context }).toMatchObject({ code: 'LeaseHeld', context: { holder: null, retryAfterMs: 1000 } });
    expect(requests.sent.length).toBeLessThan(120);
    expect(await acquire({ key: key.S })).toMatchObject({ repeated: false });
  });

  it.each([
    ['lease_version', { lease_version: { N: '1' }, lease_expiry: { N: '9000000000' } }],
    ['lease_expiry', { lease_version: { S: 'v' }, lease_expiry: { S: 'soon' } }],
  ])('a record with an odd %s is held until it is corrected', async (name, attributes) => {
    const key = `odd ${name}`;
    await putRaw({ key: { S: key }, ...attributes });
    for (const asked of [{}, { limit: 2 }])
      expect((await failure(acquire({ key, ...asked }))).context).toMatchObject({ holder: null, used: 1 });
    expect(await read({ key })).toMatchObject({ state: 'held', holder: null, fence: null });
    expect((await failure(breakLease({ key, fence: 7 }))).code).toBe('Conflict');
  });

  it('a record that no condition fits does not stop the schedule for other keys', async () => {
    const key = 'bad for tasks';
    const beside = `beside ${key}`;
    for (const one of [key, beside]) await acquire({ key: one, ttlSeconds: 2 });
    await park({ key });
    const { task } = await park({ key: beside });
    await putRaw({ key: { S: key }, fence: { S: '7' } });
    clock.advance(3000);
    requests.sent.length = 0;
    await repair().catch(({ code }) => expect(code).toBe('Unavailable'));
    expect(await rawItem(key)).toMatchObject({ fence: { S: '7' } });
    expect(task.state).toBe('succeeded');
    expect(requests.sent.length).toBeLessThan(60);
  });

  it.each(aFew(1, ['[', '{"a":']))('data that is nested too deep for an answer is shown as text: %s', async (open) => {
    const deep =
      open === '[' ? '['.repeat(150_000) + ']'.repeat(150_000) : `${open.repeat(60_000)}1${'}'.repeat(60_000)}`;
    const prefix = `deep ${open}`;
    for (const [nth, data] of [deep, '{"a":[1]}'].entries()) {
      const key = `${prefix} ${nth}`;
      await acquire({ key });
      const { h, ...item } = (await rawItem(key)) ?? {};
      await putRaw({ ...item, h: { M: { ...h?.M, d: { S: data } } } });
    }
    const { outcome, body } = await get(world.handlers.readLeases, { prefix });
    expect(outcome).toBe('ok');
    const leases = body.leases as { key: string; data: unknown }[];
    expect(new Map(leases.map(({ key, data }) => [key, data]))).toEqual(
      new Map<string, unknown>([
        [`${prefix} 0`, deep],
        [`${prefix} 1`, { a: [1] }],
      ]),
    );
    expect((await get(world.handlers.readLeases, { key: `${prefix} 0` })).body.data).toBe(deep);
  });

  it.runIf(isFull)('a list is cut at what a function may answer', async () => {
    const sizes = await lineWorld();
    const d = { S: '\u0001'.repeat(300_000) };
    for (let at = 0; at < 9; at++) {
      await sizes.acquire({ key: `large ${at}` });
      const { h, ...item } = (await sizes.rawItem(`large ${at}`)) ?? {};
      await sizes.putRaw({ ...item, h: { M: { ...h?.M, d } } });
    }
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
        (await import('../support/stack/adapters.ts')).apiContext(),
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
});
