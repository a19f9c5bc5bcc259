import { createRequire } from 'node:module';

type Http = typeof import('node:http');

/** Not an import, which would read each export: one of them loads a module that takes half of the start time of this command. */
const load = createRequire(import.meta.url);

/**
 * The part of `fetch` that a call of the API needs. The global one takes as long to load as Node takes to start, and a job
 * that runs each minute pays for that each time.
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
