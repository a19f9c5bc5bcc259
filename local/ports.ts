import { createServer } from 'node:net';

/** Below the ports that systems give to outgoing connections: from 32768 on Linux, from 49152 elsewhere. */
const [LEAST, MOST] = [10_240, 32_767];

/** Processes that look for ports at the same time begin in different places. 97 is prime to the number of ports. */
let next = process.pid * 97;

/** A port that was free a moment ago, and that no connection gets by chance before it is taken. No two calls get the same one. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = LEAST + (next++ % (MOST + 1 - LEAST));
    if ((await whyNotFree(port)) === undefined) return port;
  }
}

/**
 * Ports that no browser calls, whatever page asks: the fetch standard blocks them. Left out are those below 1024, those
 * that services of a developer's machine use (NFS, X11), and those that Chromium calls all the same (4190, 6679).
 */
export const CLOSED_TO_BROWSERS = [
  1719, 1720, 1723, 3659, 5060, 5061, 6566, 6665, 6666, 6667, 6668, 6669, 6697, 10_080,
];

/**
 * A port for a server that would answer web pages. It was free a moment ago.
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

/** Why a port cannot be listened on; undefined if it can. */
export const whyNotFree = (port: number, host = '127.0.0.1'): Promise<string | undefined> =>
  new Promise((resolve) => {
    const server = createServer();
    server.once('error', ({ code }: NodeJS.ErrnoException) =>
      resolve(code === 'EADDRINUSE' ? 'is taken' : `cannot be used (${code})`),
    );
    server.listen(port, host, () => server.close(() => resolve(undefined)));
  });
