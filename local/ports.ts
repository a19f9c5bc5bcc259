import { createServer } from 'node:net';

/** A port that was free a moment ago. */
export function freePort(): Promise<number> {
  return listenOnce(0);
}

/** Why a port cannot be listened on; undefined where it can. */
export const whyNotFree = (port: number): Promise<string | undefined> =>
  listenOnce(port).then(
    () => undefined,
    ({ code }: NodeJS.ErrnoException) => (code === 'EADDRINUSE' ? 'is taken' : `cannot be used (${code})`),
  );

function listenOnce(port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(port, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' && address ? address.port : port));
    });
  });
}
