import { createServer } from 'node:net';

/** A port that was free a moment ago. */
export function freePort(): Promise<number> {
  return listenOnce(0);
}

/** @throws Error saying which port cannot be had, why, and which variable moves it */
export async function assertFree(port: number, variable: string): Promise<void> {
  await listenOnce(port).catch(({ code }: NodeJS.ErrnoException) => {
    const why = code === 'EADDRINUSE' ? 'is taken' : `cannot be used (${code})`;
    throw new Error(`port ${port} ${why}; set ${variable} to another one`);
  });
}

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
