import { Agent, type IncomingMessage, request, type ServerResponse } from 'node:http';
import { pipeline } from 'node:stream';
import type { Emulator } from './emulator.ts';
import { listen } from './listen.ts';

/** The content type of requests that name none, such as those of the Rust crate object_store 0.12, because dynoxide refuses requests without one. */
const CONTENT_TYPE = 'application/x-amz-json-1.0';

/**
 * Starts a server in front of an emulator, which itself would answer web pages too. The server passes on requests of programs on this machine, but not those of web
 * pages.
 */
export async function startGate(emulator: Emulator, port: number): Promise<Emulator> {
  const agent = new Agent({ keepAlive: true });
  const { host } = new URL(emulator.endpoint);
  const pass = (incoming: IncomingMessage, outgoing: ServerResponse) => {
    const { method, url: path, headers } = incoming;
    const passed = { 'content-type': CONTENT_TYPE, ...headers, host };
    const forwarded = request(emulator.endpoint, { method, path, agent, headers: passed }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      pipeline(answer, outgoing, () => {}); // an answer that is cut off is cut off here, too
    });
    forwarded.on('error', () => outgoing.destroy()); // the client of the caller then tries again
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
