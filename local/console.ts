import type { IncomingMessage, ServerResponse } from 'node:http';
import { pageFiles } from '../console/files.ts';
import { answerPage, type PageFiles } from '../console/serve.ts';

/**
 * Serves the page, which calls the API of this same server.
 * @param endpoint the address of this server
 * @returns a function that answers requests for the page, and returns false for every other request
 */
export function localPage(endpoint: string) {
  let bundled: Promise<PageFiles> | undefined;
  const files = () => {
    bundled ??= pageFiles().catch((error) => {
      bundled = undefined; // the next request bundles the page again, when its mistake may have been corrected
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
