import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { refuseForeign } from './callers.ts';

/** A server of this process. */
export interface Listening {
  url: string;
  /** Cuts off pending requests. */
  stop(): Promise<void>;
}

/**
 * Answers callers on this machine by `handle`, and refuses web pages.
 * @param port 0 for any free port
 * @throws Error if the port is taken
 */
export async function listen(handle: RequestListener, port = 0): Promise<Listening> {
  const server = createServer((request, response) => {
    if (!refuseForeign(request, response)) handle(request, response);
  });
  // After the usual five seconds a caller on a busy machine would write to a connection that is just being closed. Its request would be lost.
  server.keepAliveTimeout = 300_000;
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', resolve);
  });
  const { port: actual } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${actual}`,
    stop: async () => {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
    },
  };
}
