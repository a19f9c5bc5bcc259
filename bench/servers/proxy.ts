import type { AddressInfo } from 'node:net';
import { connect, createServer, type Socket } from 'node:net';
import type { Numbered, Protocol } from './protocols.ts';

export interface Proxy {
  /** host:port */
  address: string;
  stop(): Promise<void>;
}

export interface LosingProxy extends Proxy {
  /** Resolves when the server has granted the lock of a key, and the proxy has closed the connection in place of the reply. */
  loseGrant(key: string): Promise<void>;
}

/** One connection between a client and a server. */
interface Way {
  sent(data: Buffer): void;
  /** @returns the bytes that the client receives, and whether the connection then breaks */
  received(data: Buffer): { passed: Buffer; breaks: boolean };
}

const OPEN: Way = { sent: () => {}, received: (passed) => ({ passed, breaks: false }) };

/**
 * A proxy between clients and a server, for any protocol over TCP.
 * @param target host:port
 * @param replyMs how much later each part of a reply arrives, as if the network were slower
 */
export const startProxy = (target: string, replyMs = 0): Promise<Proxy> => relay(target, () => OPEN, replyMs);

/** A proxy that understands the messages of `protocol`, and can break a connection in place of a reply. */
export async function startLosingProxy(target: string, protocol: Protocol): Promise<LosingProxy> {
  let losing: Losing | undefined;
  const proxy = await relay(target, () => way(protocol, () => losing));
  return {
    ...proxy,
    loseGrant: (key) =>
      new Promise((resolve) => {
        losing = {
          key,
          lost: () => {
            losing = undefined;
            resolve();
          },
        };
      }),
  };
}

interface Losing {
  key: string;
  lost(): void;
}

function way(protocol: Protocol, losing: () => Losing | undefined): Way {
  const requests = new Messages(protocol.requestLength);
  const replies = new Messages(protocol.replyLength);
  let asked: Numbered | undefined;
  return {
    sent: (data) => {
      for (const request of requests.add(data)) {
        const { key } = losing() ?? {};
        if (key !== undefined && protocol.takes(request.bytes, key)) asked = request;
      }
    },
    received: (data) => {
      const passed: Buffer[] = [];
      for (const reply of replies.add(data)) {
        const isLost = asked && losing() && protocol.grants(reply, { request: asked, requests: requests.count });
        if (isLost) {
          losing()?.lost();
          return { passed: Buffer.concat(passed), breaks: true };
        }
        passed.push(reply.bytes);
      }
      return { passed: Buffer.concat(passed), breaks: false };
    },
  };
}

/** Splits one direction of a connection into whole messages. */
class Messages {
  count = 0;
  #rest = Buffer.alloc(0);
  readonly #lengthOf: Protocol['requestLength'];

  constructor(lengthOf: Protocol['requestLength']) {
    this.#lengthOf = lengthOf;
  }

  *add(data: Buffer): Generator<Numbered> {
    this.#rest = Buffer.concat([this.#rest, data]);
    while (this.#rest.length > 0) {
      const length = this.#lengthOf(this.#rest, this.count);
      if (length === undefined) return;
      const bytes = this.#rest.subarray(0, length);
      this.#rest = this.#rest.subarray(length);
      yield { bytes, nth: this.count++ };
    }
  }
}

async function relay(target: string, wayOf: () => Way, replyMs = 0): Promise<Proxy> {
  const [host = '', port] = target.split(':');
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const upstream = connect(Number(port), host);
    const { sent, received } = wayOf();
    for (const socket of [client, upstream]) {
      sockets.add(socket.setNoDelay(true));
      socket.on('close', () => sockets.delete(socket));
    }
    const both = () => {
      client.destroy();
      upstream.destroy();
    };
    client.on('error', both).on('close', both);
    upstream.on('error', both);
    client.on('data', (data) => {
      sent(data);
      upstream.write(data);
    });
    upstream.on('data', (data) => {
      const { passed, breaks } = received(data);
      // Timers of the same length fire in their order.
      if (replyMs > 0) setTimeout(() => client.write(passed), replyMs);
      else client.write(passed);
      if (!breaks) return;
      client.destroySoon();
      upstream.destroy();
    });
    upstream.on('close', () => setTimeout(both, replyMs));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    stop: async () => {
      const closed = new Promise((resolve) => server.close(resolve));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
