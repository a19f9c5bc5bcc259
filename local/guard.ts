import { Agent, type IncomingMessage, request, type ServerResponse } from 'node:http';
import { pipeline } from 'node:stream';
import type { Emulator } from './emulator.ts';
import { listen } from './listen.ts';

/** For requests without a Content-Type, such as those of the Rust crate object_store 0.12. dynoxide refuses such requests. */
const CONTENT_TYPE = 'application/x-amz-json-1.0';

/**
 * A server in front of an emulator that would answer anybody. It passes on requests of callers on this machine, and none of
 * web pages.
 */
export async function startGuard(emulator: Emulator, port: number): Promise<Emulator> {
  const agent = new Agent({ keepAlive: true });
  const { host } = new URL(emulator.endpoint);
  const pass = (incoming: IncomingMessage, outgoing: ServerResponse) => {
    const { method, url: path, headers } = incoming;
    const passed = { 'content-type': CONTENT_TYPE, ...headers, host };
    const forwarded = request(emulator.endpoint, { method, path, agent, headers: passed }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      pipeline(answer, outgoing, () => {}); // an answer that breaks off breaks off here, too
    });
    forwarded.on('error', () => outgoing.destroy()); // the caller's client tries again, as with any lost connection
    outgoing.on('close', () => forwarded.destroy());
    incoming.pipe(forwarded);
  };
  const { url, stop } = await listen(pass, port).catch(async (error) => {
    await emulator.stop();
    throw error;
  });
  return {
    endpoint: url,
    stop: async () => {
      await stop();
      agent.destroy();
      await emulator.stop();
    },
  };
}
