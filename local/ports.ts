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

/** Why a port cannot be listened on; undefined if it can. */
export const whyNotFree = (port: number): Promise<string | undefined> =>
  new Promise((resolve) => {
    const server = createServer();
    server.once('error', ({ code }: NodeJS.ErrnoException) =>
      resolve(code === 'EADDRINUSE' ? 'is taken' : `cannot be used (${code})`),
    );
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(undefined)));
  });
