import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { type Listening, listen } from '../listen.ts';
import type { ApiAnswer, Callbacks } from './callbacks.ts';

/** The callback API over HTTP. SDKs find it by AWS_ENDPOINT_URL_LAMBDA. Signatures are not checked. @param port 0 for any free port */
export const startCallbackApi = (callbacks: Callbacks, port = 0): Promise<Listening> =>
  listen(async (request, response) => reply(response, callbacks.answer(await read(request))), port);

export const read = async (request: IncomingMessage) => ({
  method: request.method ?? '',
  url: request.url ?? '',
  body: await text(request),
});

export function reply(response: ServerResponse, { status, error, body }: ApiAnswer): void {
  response.writeHead(status, {
    'content-type': 'application/json',
    'x-amzn-requestid': randomUUID(),
    ...(error !== undefined && { 'x-amzn-errortype': error }),
  });
  response.end(JSON.stringify(body));
}
