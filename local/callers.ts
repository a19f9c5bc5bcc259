import type { IncomingMessage, ServerResponse } from 'node:http';

/** Of names under localhost, which browsers resolve to this machine whatever a name server says: S3's buckets. */
const LOOPBACK = /^(127\.0\.0\.1|\[::1\]|([a-z0-9._-]+\.)?localhost)$/i;

/**
 * Why a request is not answered, or undefined. A page of the web that is open in a browser on this machine can send
 * requests to every port of it: then the browser names the page as the `Origin`, or says `cross-site`. Or the page has
 * let its own host name resolve to this machine: then `Host` has that name. Other clients send neither.
 */
function refusal({ headers, socket }: IncomingMessage): string | undefined {
  const { host = '', origin, 'sec-fetch-site': site = 'none' } = headers;
  const [, name = '', port = '80'] = /^(.*?)(?::(\d+))?$/.exec(host) ?? [];
  if (!LOOPBACK.test(name) || Number(port) !== socket.localPort)
    return `the host '${host}' is not one of this machine, with the port ${socket.localPort}`;
  if (origin !== undefined && origin !== `http://${host}`) return `pages of ${origin} may not call the local stack`;
  if (site !== 'none' && site !== 'same-origin') return 'pages of other sites may not call the local stack';
  return undefined;
}

/** Answers what comes from a page of the web. @returns whether it was answered, and must not be handled */
export function refuseForeign(request: IncomingMessage, response: ServerResponse): boolean {
  const message = refusal(request);
  if (message === undefined) return false;
  response.writeHead(403, { 'content-type': 'application/json', connection: 'close' });
  response.end(JSON.stringify({ message }));
  return true;
}
