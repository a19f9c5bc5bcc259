import { createServer } from 'node:net';

/** The range of ports to choose from. It is below the ports of outgoing connections, which begin at 32768 on Linux, and at 49152 elsewhere. */
const [MIN_PORT, MAX_PORT] = [10_240, 32_767];

/** Where the search begins. Processes that search at the same time begin at different ports. 97 and the number of ports have no common divisor. */
let next = process.pid * 97;

/** Finds a port that is free, and that no outgoing connection can get before it is used. Each call returns another port. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = MIN_PORT + (next++ % (MAX_PORT + 1 - MIN_PORT));
    if ((await whyNotFree(port)) === undefined) return port;
  }
}

/**
 * Ports that no browser calls for any page, because the fetch standard blocks them. The list lacks ports below 1024, ports of services on a developer's machine
 * (NFS, X11), and ports that Chromium calls in spite of the standard (4190, 6679).
 */
export const CLOSED_TO_BROWSERS = [
  1719, 1720, 1723, 3659, 5060, 5061, 6566, 6665, 6666, 6667, 6668, 6669, 6697, 10_080,
];

/**
 * Finds a free port for a server that would answer web pages.
 * @param host the address where the server is going to listen
 * @throws Error if every such port is taken
 */
export async function portClosedToBrowsers(host: string): Promise<number> {
  const first = next++ % CLOSED_TO_BROWSERS.length;
  for (const port of [...CLOSED_TO_BROWSERS.slice(first), ...CLOSED_TO_BROWSERS.slice(0, first)])
    if ((await whyNotFree(port, host)) === undefined) return port;
  throw new Error(
    `the DynamoDB emulator needs a port that browsers do not call, and all are taken: ${CLOSED_TO_BROWSERS.join(', ')}`,
  );
}

/** The reason why a server cannot listen on a port. Undefined if it can. */
export const whyNotFree = (port: number, host = '127.0.0.1'): Promise<string | undefined> =>
  new Promise((resolve) => {
    const server = createServer();
    server.once('error', ({ code }: NodeJS.ErrnoException) =>
      resolve(code === 'EADDRINUSE' ? 'is taken' : `cannot be used (${code})`),
    );
    server.listen(port, host, () => server.close(() => resolve(undefined)));
  });
