import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { largestParts } from '../../bench/parts.ts';
import { startProxy } from '../../bench/servers/proxy.ts';
import { doubleWrites, startStore, type Write } from '../../bench/servers/store.ts';

const stops: (() => unknown)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

/** A server that answers each request with the same bytes, behind a proxy. */
async function echoes(replyMs = 0) {
  const server = createServer((socket) => socket.on('error', () => {}).pipe(socket)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  stops.push(() => server.close());
  const proxy = await startProxy(`127.0.0.1:${(server.address() as AddressInfo).port}`, replyMs);
  stops.push(proxy.stop);
  const [host, port] = proxy.address.split(':');
  const socket = connect(Number(port), host).on('error', () => {});
  await once(socket, 'connect');
  stops.push(() => socket.destroy());
  const ask = async (line: string) => {
    socket.write(line);
    const [reply] = await once(socket, 'data');
    return String(reply);
  };
  return { proxy, socket, ask };
}

describe('the proxy in front of a server', () => {
  it('the proxy delays each reply by the given time', async () => {
    const { ask } = await echoes(100);
    const startedAt = performance.now();
    expect(await ask('one')).toBe('one');
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(99);
  });
});

describe('double writes at a store', () => {
  const write = (writer: string, fence?: number): Write => ({ writer, at: 0, ...(fence !== undefined && { fence }) });

  it('the double writes are those of the first holder after the first write of the second holder, and a store with fences takes none of them', () => {
    const writes = [write('first', 1), write('second', 2), write('first', 1), write('first', 1)];
    expect(doubleWrites(writes, 'first', 'second')).toEqual({ without: 2, withFences: 0 });
  });

  it('a store with fences takes double writes if the fence of the second holder is no higher', () => {
    const writes = [write('first', 1), write('second', 1), write('first', 1)];
    expect(doubleWrites(writes, 'first', 'second')).toEqual({ without: 1, withFences: 1 });
  });

  it('the double writes under a lock without fences have no count with fences', () => {
    expect(doubleWrites([write('first'), write('second'), write('first')], 'first', 'second')).toEqual({
      without: 1,
      withFences: undefined,
    });
  });

  it('the double writes are none if the second holder never wrote', () => {
    expect(doubleWrites([write('first', 1)], 'first', 'second').without).toBe(0);
  });

  it('the store records all writes in the order of their arrival', async () => {
    const store = await startStore();
    stops.push(store.stop);
    for (const writer of ['first', 'second'])
      await fetch(store.url, { method: 'POST', body: JSON.stringify({ writer }) });
    expect(store.writes.map(({ writer }) => writer)).toEqual(['first', 'second']);
    expect(await store.first('second', 0)).toMatchObject({ writer: 'second' });
    expect(await store.first('third', 0)).toBeUndefined();
  });
});

it('The largest parts of a bundle are counted by package, and own code by folder', () => {
  const inputs = new Map([
    ['node_modules/@smithy/core/a.js', 50],
    ['node_modules/@aws-sdk/x/node_modules/@smithy/core/b.js', 30],
    ['node_modules/zod/mini/c.js', 20],
    ['shared/locks/d.ts', 70],
    ['shared/locks/deeper/e.ts', 5],
  ]);
  expect(largestParts(inputs, 2)).toEqual([
    { part: '@smithy/core', bytes: 80 },
    { part: 'shared/locks', bytes: 75 },
  ]);
});
