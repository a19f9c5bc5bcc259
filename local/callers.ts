import type { IncomingMessage, ServerResponse } from 'node:http';

/** Names under localhost, such as those of S3 buckets: browsers resolve them to this machine, whatever a name server says. */
const LOOPBACK = /^(127\.0\.0\.1|\[::1\]|([a-z0-9._-]+\.)?localhost)$/i;

/**
 * Why a request is refused, or undefined. A web page that is open in a browser on this machine can send requests to every
 * local port: the browser then names the page as the `Origin`, or says `cross-site`. If the page lets its own host name
 * resolve to this machine, `Host` has that name. Other clients send neither.
 */
function refusal({ headers, socket }: IncomingMessage): string | undefined {
  const { host = '', origin, 'sec-fetch-site': site = 'none' } = headers;
  const [, name = '', port = '80'] = /^(.*?)(?::(\d+))?$/.exec(host) ?? [];
  if (!LOOPBACK.test(name) || Number(port) !== socket.localPort)
    return `the host '${host}' is not one of this machine, with the port ${socket.localPort}`;
  if (origin !== undefined && origin !== `http://${host}`) return `pages of ${origin} may not call what listens here`;
  if (site !== 'none' && site !== 'same-origin') return 'pages of other sites may not call what listens here';
  return undefined;
}

/** Refuses a request of a web page. @returns whether it was refused, and must not be handled */
export function refuseForeign(request: IncomingMessage, response: ServerResponse): boolean {
  const message = refusal(request);
  if (message === undefined) return false;
  response.writeHead(403, { 'content-type': 'application/json', connection: 'close' });
  response.end(JSON.stringify({ message }));
  return true;
}
