import { once } from 'node:events';
import { connect as connectHttp2, createServer as createHttp2Server, type ServerHttp2Stream } from 'node:http2';
import { connect, createServer, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { GetItemCommand, PutItemCommand } from '@aws-sdk/client-dynamodb';
import { afterEach, describe, expect, it } from 'vitest';
import { isOnPath, launch } from '../../bench/servers/launch.ts';
import { PROTOCOLS } from '../../bench/servers/protocols.ts';
import { startLosingProxy } from '../../bench/servers/proxy.ts';
import { newTable, testClient } from '../support/emulators/aws.ts';
import { dynamodbEndpoint } from '../support/emulators/endpoint.ts';

const stops: (() => unknown)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

async function behindProxy(server: keyof typeof PROTOCOLS, target: string) {
  const proxy = await startLosingProxy(target, PROTOCOLS[server]);
  stops.push(proxy.stop);
  return proxy;
}

async function connected(address: string) {
  const [host, port] = address.split(':');
  const socket = connect(Number(port), host).on('error', () => {});
  stops.push(() => socket.destroy());
  await once(socket, 'connect');
  const received: Buffer[] = [];
  socket.on('data', (data: Buffer) => received.push(data));
  return { socket, received: () => Buffer.concat(received) };
}

async function until(isSo: () => boolean) {
  for (let tries = 0; !isSo(); tries++) {
    expect(tries).toBeLessThan(1000);
    await delay(5);
  }
}

it('the proxy loses the reply of DynamoDB to the PutItem of the key, and the SDK repeats the PutItem', async () => {
  const table = await newTable('leases');
  const proxy = await behindProxy('dynamodb', new URL(dynamodbEndpoint()).host);
  const direct = testClient();
  const losing = testClient({ endpoint: `http://${proxy.address}` });
  stops.push(
    () => direct.destroy(),
    () => losing.destroy(),
  );
  const put = (key: string) => losing.send(new PutItemCommand({ TableName: table, Item: { key: { S: key } } }));
  const lost = proxy.loseGrant('the lock');
  const read = new GetItemCommand({ TableName: table, Key: { key: { S: 'the lock' } }, ConsistentRead: true });
  expect((await losing.send(read)).Item).toBeUndefined();
  expect((await put('another')).$metadata.attempts).toBe(1);
  expect((await put('the lock')).$metadata.attempts).toBe(2);
  await lost;
  expect((await direct.send(read)).Item).toEqual({ key: { S: 'the lock' } });
});

describe.skipIf(!isOnPath('redis-server'))('behind a real Redis', () => {
  const command = (...words: string[]) =>
    `*${words.length}\r\n${words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`).join('')}`;

  it('the proxy loses the reply of Redis to the command with the key, and earlier replies arrive, although the client sent all commands together', async () => {
    const server = await launch('redis');
    stops.push(server.stop);
    const proxy = await behindProxy('redis', server.address);
    const { socket, received } = await connected(proxy.address);
    const closed = once(socket, 'close');
    const lost = proxy.loseGrant('the lock');
    const taken = command('SET', 'the lock', 'first', 'NX', 'PX', '9000');
    socket.write([command('PING'), command('HELLO', '3'), taken, command('PING')].join(''));
    await Promise.all([lost, closed]);
    expect(String(received()).startsWith('+PONG\r\n%')).toBe(true);
    expect(String(received())).not.toContain('OK');
    const direct = await connected(server.address);
    direct.socket.write(command('GET', 'the lock'));
    await until(() => direct.received().length > 0);
    expect(String(direct.received())).toBe('$5\r\nfirst\r\n');
  });

  it('the proxy passes on a refusal of Redis, and loses the next reply that grants the key', async () => {
    const server = await launch('redis');
    stops.push(server.stop);
    const proxy = await behindProxy('redis', server.address);
    const { socket, received } = await connected(proxy.address);
    socket.write(command('SET', 'the lock', 'other'));
    await until(() => received().length > 0);
    const closed = once(socket, 'close');
    const lost = proxy.loseGrant('the lock');
    socket.write(command('SET', 'the lock', 'first', 'NX'));
    await until(() => String(received()) === '+OK\r\n$-1\r\n');
    socket.write(command('SET', 'the lock', 'first'));
    await Promise.all([lost, closed]);
    expect(String(received())).toBe('+OK\r\n$-1\r\n');
  });
});

/** A call of gRPC. The message has string fields, each with a number. */
function call(client: ReturnType<typeof connectHttp2>, path: string, fields: Record<number, string>) {
  const message = Buffer.concat(
    Object.entries(fields).map(([field, value]) =>
      Buffer.concat([Buffer.from([(Number(field) << 3) | 2, value.length]), Buffer.from(value)]),
    ),
  );
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  const headers = { ':method': 'POST', ':path': path, 'content-type': 'application/grpc', te: 'trailers' };
  const stream = client.request(headers);
  const received: Buffer[] = [];
  const status = {
    reply: () => Buffer.concat(received),
    failed: false,
    ended: once(stream, 'close').catch(() => {}),
  };
  stream.on('data', (data: Buffer) => received.push(data)).on('error', () => {});
  stream.on('close', () => {
    status.failed = received.length === 0;
  });
  stream.end(Buffer.concat([head, message]));
  return status;
}
/** A client of HTTP/2. */
const dial = (address: string) => {
  const client = connectHttp2(`http://${address}`).on('error', () => {});
  stops.push(() => client.destroy());
  return client;
};

it('the proxy passes on a reply on another stream that arrives after the request of the key, and loses the reply of the key', async () => {
  let beside: ServerHttp2Stream | undefined;
  const server = createHttp2Server().on('stream', (stream, { ':path': path }) => {
    stream.on('error', () => {});
    if (path === '/watch') beside = stream;
    else beside?.once('close', () => stream.end('the grant')).end('an event');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  stops.push(() => server.close());
  const proxy = await behindProxy('etcd', `127.0.0.1:${(server.address() as { port: number }).port}`);
  const client = dial(proxy.address);
  const watch = call(client, '/watch', { 1: 'everything' });
  await until(() => beside !== undefined);
  const lost = proxy.loseGrant('the lock');
  const put = call(client, '/put', { 1: 'the lock' });
  await Promise.all([lost, put.ended, watch.ended]);
  expect([String(watch.reply()), String(put.reply())]).toEqual(['an event', '']);
});

describe.skipIf(!isOnPath('etcd'))('behind a real etcd', () => {
  it('the proxy loses the reply of etcd on the stream of the key, and replies on other streams arrive', async () => {
    const server = await launch('etcd');
    stops.push(server.stop);
    const proxy = await behindProxy('etcd', server.address);
    const client = dial(proxy.address);
    const before = call(client, '/etcdserverpb.KV/Put', { 1: 'another', 2: 'value' });
    await before.ended;
    expect(before.failed).toBe(false);
    const lost = proxy.loseGrant('the lock');
    const beside = call(client, '/etcdserverpb.KV/Range', { 1: 'another' });
    await beside.ended;
    expect(String(beside.reply())).toContain('value');
    const put = call(client, '/etcdserverpb.KV/Put', { 1: 'the lock', 2: 'first' });
    await Promise.all([lost, put.ended]);
    expect(put.failed).toBe(true);
    const read = call(dial(server.address), '/etcdserverpb.KV/Range', { 1: 'the lock' });
    await read.ended;
    expect(String(read.reply())).toContain('first');
  });
});

describe('in front of a server with the protocol of ZooKeeper', () => {
  const int = (value: number) => {
    const bytes = Buffer.alloc(4);
    bytes.writeInt32BE(value);
    return bytes;
  };
  const frame = (...parts: Buffer[]) => {
    const body = Buffer.concat(parts);
    return Buffer.concat([int(body.length), body]);
  };
  const text = (value: string) => Buffer.concat([int(value.length), Buffer.from(value)]);
  /** A request without data and ACLs, because the proxy does not read these fields. */
  const create = (xid: number, path: string, flags = 3) => frame(int(xid), int(15), text(path), int(flags));
  const reply = (xid: number, error = 0) => frame(int(xid), Buffer.alloc(8), int(error));
  const session = frame(int(0), Buffer.alloc(40));

  /** A server that sends no replies by itself. */
  async function silent() {
    const clients: Socket[] = [];
    const server = createServer((socket) => clients.push(socket.on('error', () => {}))).listen(0, '127.0.0.1');
    await once(server, 'listening');
    stops.push(() => server.close());
    const { port } = server.address() as { port: number };
    const proxy = await behindProxy('zookeeper', `127.0.0.1:${port}`);
    const client = await connected(proxy.address);
    await until(() => clients.length > 0);
    return { ...client, proxy, answer: (...frames: Buffer[]) => clients[0]?.write(Buffer.concat(frames)) };
  }

  it('the proxy loses the reply of ZooKeeper with the xid of the create, and the reply to a ping arrives', async () => {
    const { socket, received, proxy, answer } = await silent();
    socket.write(session);
    answer(session);
    const closed = once(socket, 'close');
    const lost = proxy.loseGrant('the lock');
    socket.write(
      Buffer.concat([create(1, '/bench/the lock', 4), create(2, '/bench/the lock/x-lock-'), frame(int(-2), int(11))]),
    );
    await delay(20); // The requests pass before the replies.
    const before = [reply(1), reply(-2)];
    answer(...before, reply(2));
    await Promise.all([lost, closed]);
    expect(received()).toEqual(Buffer.concat([session, ...before]));
  });

  it('the proxy passes on the reply to a create that ZooKeeper refuses, and loses the reply to the next create', async () => {
    const { socket, received, proxy, answer } = await silent();
    socket.write(session);
    answer(session);
    const closed = once(socket, 'close');
    const lost = proxy.loseGrant('the lock');
    socket.write(create(1, '/bench/the lock/x-lock-'));
    await delay(20);
    answer(reply(1, -101));
    await until(() => received().length > session.length);
    socket.write(create(2, '/bench/the lock/x-lock-'));
    await delay(20);
    answer(reply(2));
    await Promise.all([lost, closed]);
    expect(received()).toEqual(Buffer.concat([session, reply(1, -101)]));
  });
});
