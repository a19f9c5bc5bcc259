import type { IncomingMessage, ServerResponse } from 'node:http';
import { pageFiles } from '../console/files.ts';
import { answerPage, type PageFiles } from '../console/serve.ts';

/**
 * The page, as it calls the API of this same server.
 * @param endpoint where that listens
 * @returns what answers a request for a part of the page; false for every other request
 */
export function localPage(endpoint: string) {
  let bundled: Promise<PageFiles> | undefined;
  const files = () => {
    bundled ??= pageFiles().catch((error) => {
      bundled = undefined; // whoever edits the page mends it, and looks again
      throw error;
    });
    return bundled;
  };
  return async (request: IncomingMessage, response: ServerResponse): Promise<boolean> => {
    if (await answerPage(request, response, files)) return true;
    if (request.method !== 'GET' || request.url !== '/console/settings') return false;
    response.writeHead(200, { 'content-type': 'application/json', 'cache-control': 'no-store' });
    response.end(JSON.stringify({ endpoint, write: true, local: true }));
    return true;
  };
}
