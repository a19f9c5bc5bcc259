import { load } from './load.ts';

type Http = typeof import('node:http');

/**
 * The part of `fetch` that a call of the API needs. The global `fetch` takes as long to load as Node takes to start, which a job that runs each minute would
 * pay for each time. For the same reason, Node modules are loaded only here.
 */
export const lightFetch = ((url: URL, { method, headers, body, signal }: RequestInit = {}) =>
  new Promise((resolve, reject) => {
    const { request: send } = load(url.protocol === 'https:' ? 'node:https' : 'node:http') as Http;
    const request = send(url, { method, headers: headers as Record<string, string>, signal: signal ?? undefined });
    request.on('error', reject);
    request.on('response', (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', reject);
      response.on('end', () => {
        const status = response.statusCode ?? 0;
        const text = async () => Buffer.concat(chunks).toString('utf8');
        resolve({ ok: status >= 200 && status < 300, status, text, headers: response.headers });
      });
    });
    request.end(body as string | undefined);
  })) as unknown as typeof fetch;
