import { type IncomingMessage, request, type ServerResponse } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { type Listening, listen } from '../../../local/listen.ts';

/** Passes requests to DynamoDB on, each PutItem only after a delay. */
export async function lateWrites(url: string, delayMs: () => number): Promise<Listening> {
  const pass = async (incoming: IncomingMessage, outgoing: ServerResponse) => {
    const { method, url: path, headers } = incoming;
    const body = Buffer.concat(await incoming.toArray());
    if (String(headers['x-amz-target']).endsWith('.PutItem')) await delay(delayMs());
    const forwarded = request(new URL(path ?? '', url), { method, headers: { ...headers, host: new URL(url).host } });
    forwarded.on('response', (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(outgoing);
    });
    forwarded.end(body);
  };
  return listen((incoming, outgoing) => void pass(incoming, outgoing));
}
