import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { refuseWebPages } from './callers.ts';

/** A server of this process. */
export interface Listening {
  url: string;
  /** Stops the server, and cuts off pending requests. */
  stop(): Promise<void>;
}

/** The address of all servers. A container needs another one, because the loopback interface of the machine does not lead into it. */
export const listenAddress = (): string => process.env.LISTEN_ADDRESS || '127.0.0.1';

type Handle = (request: IncomingMessage, response: ServerResponse) => unknown;

/**
 * Starts a server that answers programs on this machine with `handle`, and refuses web pages. If `handle` fails, only that request fails, with a 500.
 * @param port 0 for any free port
 * @throws Error if the port is taken
 */
export async function listen(handle: Handle, port = 0): Promise<Listening> {
  const server = createServer((request, response) => {
    if (!refuseWebPages(request, response)) void answer(handle, request, response);
  });
  // With the usual five seconds, a caller on a busy machine could write to a connection that is just being closed, and would lose its request.
  server.keepAliveTimeout = 300_000;
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, listenAddress(), resolve);
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

async function answer(handle: Handle, request: IncomingMessage, response: ServerResponse): Promise<void> {
  try {
    await handle(request, response);
  } catch (error) {
    if (!request.complete) return void response.destroy(); // the caller has gone
    const { name, message } = error as Error;
    console.error(`${request.method} ${request.url}: ${name}: ${message}`);
    if (response.headersSent) return void response.destroy();
    response.writeHead(500, { 'content-type': 'application/json' }).end(JSON.stringify({ message }));
  }
}
