import type { IncomingMessage, ServerResponse } from 'node:http';

/** The hosts of this machine. Browsers resolve names under localhost, such as those of S3 buckets, to this machine, whatever a name server answers. */
const LOOPBACK = /^(127\.0\.0\.1|\[::1\]|([a-z0-9._-]+\.)?localhost)$/i;

/**
 * The reason why a request is refused, or undefined. A web page that is open in a browser on this machine can send requests to every local port. The
 * browser then names the page as the `Origin`, or sends `cross-site`. If the page makes its own host name resolve to this machine, `Host` is that name.
 * Programs send neither.
 */
function refusal({ headers, socket }: IncomingMessage): string | undefined {
  const { host = '', origin, 'sec-fetch-site': site = 'none' } = headers;
  const [, name = '', port = '80'] = /^(.*?)(?::(\d+))?$/.exec(host) ?? [];
  if (!LOOPBACK.test(name) || Number(port) !== socket.localPort)
    return `the host '${host}' is not one of this machine, with the port ${socket.localPort}`;
  if (origin !== undefined && origin !== `http://${host}`) return `pages of ${origin} may not call this server`;
  if (site !== 'none' && site !== 'same-origin') return 'pages of other sites may not call this server';
  return undefined;
}

/** Refuses a request of a web page. @returns true if the request was refused, and must not be handled */
export function refuseWebPages(request: IncomingMessage, response: ServerResponse): boolean {
  const message = refusal(request);
  if (message === undefined) return false;
  response.writeHead(403, { 'content-type': 'application/json', connection: 'close' });
  response.end(JSON.stringify({ message }));
  return true;
}
