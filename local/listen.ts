import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { refuseForeign } from './callers.ts';

/** A server of this process. */
export interface Listening {
  url: string;
  /** Cuts off pending requests. */
  stop(): Promise<void>;
}

/** In a container, the loopback interface of the machine does not lead here. */
export const listenAddress = (): string => process.env.LISTEN_ADDRESS || '127.0.0.1';

type Handle = (request: IncomingMessage, response: ServerResponse) => unknown;

/**
 * Answers callers on this machine by `handle`, and refuses web pages. If `handle` fails, that call alone does: it is
 * answered with 500.
 * @param port 0 for any free port
 * @throws Error if the port is taken
 */
export async function listen(handle: Handle, port = 0): Promise<Listening> {
  const server = createServer((request, response) => {
    if (!refuseForeign(request, response)) void answer(handle, request, response);
  });
  // After the usual five seconds a caller on a busy machine would write to a connection that is just being closed. Its request would be lost.
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
    if (!request.complete) return void response.destroy(); // the caller has gone, and there is nothing to answer
    const { name, message } = error as Error;
    console.error(`${request.method} ${request.url}: ${name}: ${message}`);
    if (response.headersSent) return void response.destroy();
    response.writeHead(500, { 'content-type': 'application/json' }).end(JSON.stringify({ message }));
  }
}
