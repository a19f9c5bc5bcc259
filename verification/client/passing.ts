import type { IncomingMessage, ServerResponse } from 'node:http';

/** What a caller behind a proxy receives. */
export interface Answer {
  status: number;
  text: string;
  type?: string;
  location?: string;
}

/** Passes a request on to the service. */
export async function pass(target: string, request: IncomingMessage, body: Buffer): Promise<Answer> {
  const { method = '', url = '', headers } = request;
  const type = { 'content-type': headers['content-type'] ?? '' };
  const answer = await fetch(target + url, { method, headers: type, ...(method === 'POST' && { body }) });
  return { status: answer.status, text: await answer.text(), type: answer.headers.get('content-type') ?? '' };
}

export function reply(response: ServerResponse, { status, text, type = 'application/json', location }: Answer): void {
  response.writeHead(status, { 'content-type': type, ...(location && { location }) });
  response.end(text);
}

/** What a gateway answers if no function does. */
export const gatewayError = (status: number): Answer => ({ status, text: '{"message":"Service Unavailable"}' });
