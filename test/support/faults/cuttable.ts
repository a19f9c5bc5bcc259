import { type IncomingMessage, request, type ServerResponse } from 'node:http';
import { listen } from '../../../local/listen.ts';

/** A proxy that passes requests on until a test cuts it. Then they hang, or their connections break, until the test restores it. */
export async function cuttable(url: string) {
  let state: 'open' | 'hangs' | 'breaks' = 'open';
  const pass = (incoming: IncomingMessage, outgoing: ServerResponse) => {
    if (state === 'breaks') incoming.socket.destroy();
    if (state !== 'open') return;
    const { method, url: path, headers } = incoming;
    const forwarded = request(new URL(path ?? '', url), {
      method,
      headers: { ...headers, host: new URL(url).host },
    });
    forwarded.on('response', (answer) => {
      if (state !== 'open') return;
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(outgoing);
    });
    // To the caller, a service that is gone looks like a broken connection.
    forwarded.on('error', () => incoming.socket.destroy());
    incoming.pipe(forwarded);
  };
  const proxy = await listen(pass);
  return {
    ...proxy,
    cut: (how: 'hangs' | 'breaks') => {
      state = how;
    },
    restore: () => {
      state = 'open';
    },
  };
}

/** An error as Node makes it. */
export const networkError = (code: string, syscall: string): Error =>
  Object.assign(new Error(`${syscall} ${code}`), { code, syscall });

/** An error as the SDK makes it from a service's answer. */
export const serviceError = (name: string, httpStatusCode: number): Error =>
  Object.assign(new Error(name), { name, $metadata: { httpStatusCode } });
