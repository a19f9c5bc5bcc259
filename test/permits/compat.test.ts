import { describe, expect, it } from 'vitest';
import { failure } from '../support/worlds/leases.ts';
import { poolWorld } from '../support/worlds/permits.ts';

const { acquire, heartbeat, release, read, breakPermit, clock, requests, rawItem, putRaw, setRaw } = await poolWorld();

/** All that an entry of a permit has. */
const ENTRY = {
  M: {
    ...Object.fromEntries(['i', 'v', 'h'].map((part) => [part, { S: 'x' }])),
    ...Object.fromEntries(['b', 't', 'a', 'w'].map((part) => [part, { N: '1' }])),
    e: { N: `${clock.now() + 3_600_000}` },
  },
};

describe('what another client writes into a record', () => {
  it.each([
    ['an attribute of its own', 'owner', { S: 'somebody' }],
    ['one that begins like an entry', 'history', { M: {} }],
    ['one that is named like an entry', 'h0123456789abcdef', { S: 'text' }],
    ['one that looks like an entry and lacks its parts', 'h0123456789abcdef', { M: { i: { S: 'x' }, e: { N: '1' } } }],
    ['one whose name ends like that of an entry', 'zh0123456789abcdef', ENTRY],
    ['one whose name begins like that of an entry', 'h0123456789abcdef0', ENTRY],
    [
      'one whose expiry is no instant',
      'h0123456789abcdef',
      {
        M: {
          i: { S: 'x' },
          v: { S: 'x' },
          h: { S: 'x' },
          e: { N: '1000000000000000000000000000000' },
          b: { N: '1' },
          t: { N: '1' },
          a: { N: '1' },
          w: { N: '1' },
        },
      },
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

  it.each([...Object.keys(ENTRY.M), 'f'])(
    'an entry that lacks its part %s is the permit of no holder',
    async (part) => {
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
    },
  );

  it('a weight in use that is no number: Unavailable names it, after two writes', async () => {
    await putRaw({ key: { S: 'text' }, used: { S: '1' } });
    requests.sent.length = 0;
    const { code, context } = await failure(acquire({ key: 'text', limit: 5, waitSeconds: 5 }));
    expect([code, context.key]).toEqual(['Unavailable', 'text']);
    expect(requests.sent).toEqual(['UpdateItem', 'UpdateItem']);
  });

  it.each([
    ['fence', { S: 'high' }],
    ['fence', { N: '1e37' }],
    ['fence', { N: `${Number.MAX_SAFE_INTEGER - 1000}` }],
    ['used', { L: [] }],
  ])(
    'a record of another client with %s of %j is Unavailable by name, and causes no write',
    async (attribute, value) => {
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
    },
  );

  it('a record with a weight in use beyond that of the holders does not say when there will be room', async () => {
    await acquire({ key: 'beyond', holder: 'a', limit: 2 });
    await setRaw('beyond', 'used', { N: '5' });
    expect(await failure(acquire({ key: 'beyond', holder: 'b', limit: 2 }))).toMatchObject({
      code: 'LeaseHeld',
      context: { used: 5, retryAfterMs: 1000 },
    });
  });

  it.each(['arrivals'])(
    'a record of another client with %s that is no number lets callers go on that do not wait, and names the attribute to the others',
    async (name) => {
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
    },
  );

  it.each([
    ['used', undefined],
    ['its weight', 'w'],
  ])(
    'a record of another client with %s that became text is named by release and break, and stays as it is',
    async (what, part) => {
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
    },
  );

  it('a ttl that became text: a heartbeat says so, and one with a ttl of its own mends it', async () => {
    const granted = await acquire({ key: 'ttl', holder: 'a', limit: 2 });
    const own = `h${granted.leaseId.split('.')[1]}`;
    await setRaw('ttl', own, { M: { ...(await rawItem('ttl'))?.[own]?.M, t: { S: 'long' } } });
    clock.advance(1000);
    const { code, message } = await failure(heartbeat(granted));
    expect([code, message]).toEqual(['Unavailable', expect.stringContaining(`: an operator must correct ${own}`)]);
    expect(await heartbeat({ ...granted, ttlSeconds: 90 })).toMatchObject({ remainingMs: 90_000 });
  });

  it('an attribute in the place of the request’s own entry: Unavailable names it', async () => {
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
});

it('a record that has only a mark, with an empty line, is granted to the next caller, which removes the mark', async () => {
  await putRaw({ key: { S: 'mark' }, mark: { S: 'seven' }, arrivals: { N: '7' } });
  expect(await acquire({ key: 'mark', limit: 1 })).toMatchObject({ used: 1, repeated: false });
  expect(await rawItem('mark')).not.toHaveProperty('mark');
});

describe('a record near the 400 KB of DynamoDB', () => {
  it('a record near the 400 KB of DynamoDB refuses another holder in one clear error, and lets its holders extend and release', async () => {
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

  it('a record near the 400 KB of DynamoDB is not reached by 200 holders with the longest names and data', async () => {
    const asked = { limit: 200, holder: 'h'.repeat(256), data: 'd'.repeat(254) };
    await acquire({ key: 'full', ...asked });
    const { key: _, row: __, ...one } = (await rawItem('full')) ?? {};
    expect(Buffer.byteLength(JSON.stringify(one)) * 200).toBeLessThan(400 * 1024);
  });
});

describe('lease ids', () => {
  it.each([
    'p.',
    'p.0123456789abcdef.x',
    'p.used.00000000-0000-4000-8000-000000000000',
    'p.0123456789abcdef.00000000-0000-4000-8000-000000000000.8',
    'p.0123456789abcdef.00000000-0000-4000-8000-000000000000 ',
    'p.p.0123456789abcdef.00000000-0000-4000-8000-000000000000',
  ])('a lease id %j, which Holdfast never gave, proves no grant, and costs no request', async (leaseId) => {
    requests.sent.length = 0;
    expect(await release({ key: 'ids', leaseId })).toEqual({ key: 'ids', released: false, reason: 'unknown' });
    expect((await failure(heartbeat({ key: 'ids', leaseId }))).code).toBe('LeaseLost');
    expect(requests.sent).toEqual([]);
  });

  it('a lease id with a guessed secret, or for another key, proves no grant', async () => {
    const granted = await acquire({ key: 'guess', limit: 1 });
    const [p, name] = granted.leaseId.split('.');
    const guess = { key: 'guess', leaseId: `${p}.${name}.00000000-0000-4000-8000-000000000000` };
    for (const proof of [guess, { ...granted, key: 'another' }]) {
      expect(await release(proof)).toMatchObject({ released: false, reason: 'unknown' });
      expect((await failure(heartbeat(proof))).code).toBe('LeaseLost');
    }
    expect(await read('guess')).toMatchObject({ used: 1 });
  });
});
