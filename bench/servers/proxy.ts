import type { AddressInfo } from 'node:net';
import { connect, createServer, type Socket } from 'node:net';

export interface Proxy {
  /** host:port */
  address: string;
  /**
   * Resolves when a reply was dropped, to what a client sends from now on. The connection breaks instead.
   * @param after how many replies to the same client arrive before
   */
  dropReply(after: number): Promise<void>;
  stop(): Promise<void>;
}

interface Dropping {
  /** The connection whose request came first. */
  asked?: Socket;
  after: number;
  dropped(): void;
}

/**
 * Stands between clients and a server of any protocol over TCP.
 * @param target host:port
 * @param replyMs how much later each part of a reply arrives, as if the way were longer
 */
export async function startProxy(target: string, replyMs = 0): Promise<Proxy> {
  const [host = '', port] = target.split(':');
  const sockets = new Set<Socket>();
  let dropping: Dropping | undefined;
  const server = createServer((client) => {
    const upstream = connect(Number(port), host);
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
    client.on('data', (sent) => {
      if (dropping) dropping.asked ??= client;
      upstream.write(sent);
    });
    upstream.on('data', (reply) => {
      if (dropping?.asked === client && dropping.after-- === 0) {
        dropping.dropped();
        dropping = undefined;
        return both();
      }
      // Timers of the same length end in their order.
      if (replyMs > 0) setTimeout(() => client.write(reply), replyMs);
      else client.write(reply);
    });
    upstream.on('close', () => setTimeout(both, replyMs));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    dropReply: (after) =>
      new Promise((dropped) => {
        dropping = { after, dropped };
      }),
    stop: async () => {
      const closed = new Promise((resolve) => server.close(resolve));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
