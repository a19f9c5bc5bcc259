import { HoldfastError, refusal, unreachable } from './errors.ts';
import { queryOf } from './query.ts';
import { READS } from './routes.ts';
import type { Credentials } from './sigv4.ts';
import { problemOf, routeOf, type Transport } from './transport.ts';

/** The address of the API and the identity of the caller. Without `token` and `credentials`, requests have no signature, as for `npm start`. */
export interface HttpOptions {
  /** The URL of the API, as the deployment prints it. With a token or credentials it must be https, unless it is on this machine. */
  endpoint: string;
  /** A JWT, or a function that returns one, for deployments that check JWTs. The function is called for each request, so that it can renew the token. */
  token?: string | (() => string | Promise<string>) | undefined;
  /** A function that returns AWS credentials, for deployments that check IAM, for example a provider of the SDK. It is called for each request. */
  credentials?: (() => Credentials | Promise<Credentials>) | undefined;
  /** The AWS region, for signatures. Needed only if the API has a custom domain: otherwise the endpoint contains the region. */
  region?: string | undefined;
  /** Sends the requests, for example through a proxy. The default is the global `fetch`. */
  fetch?: typeof fetch | undefined;
}

/**
 * True if no other machine can use what the request contains. DNS may resolve a name below localhost to another machine, which could use a token. It could not
 * use a signature, which is valid only for that name.
 */
export const isLoopback = ({ hostname }: URL, hasToken: boolean): boolean =>
  /^(127\.[\d.]+|\[::1]|localhost)$/.test(hostname) || (!hasToken && hostname.endsWith('.localhost'));

/**
 * Calls the API over HTTP.
 * @param wall returns the time for signatures, in epoch milliseconds
 * @throws TypeError if the endpoint is not a URL, a token or credentials would go over http to another machine, or credentials come without a region
 */
export function httpTransport(options: HttpOptions, wall: () => number): Transport {
  const { token, credentials, fetch: send = fetch } = options;
  if (typeof token === 'string') bearer(token);
  const endpoint = urlOf(options.endpoint);
  if ((token || credentials) && endpoint.protocol === 'http:' && !isLoopback(endpoint, Boolean(token)))
    throw new TypeError('endpoint must be https with a token or credentials');
  const base = `${endpoint.href.replace(/\/$/, '')}/v1/`;
  const region = options.region ?? /\.execute-api\.([\w-]+)\./.exec(base)?.[1] ?? '';
  if (credentials && !region) throw new TypeError('credentials need a region');
  return async (operation, payload, signal, namespace) => {
    const method = READS.test(operation) ? 'GET' : 'POST';
    const url = new URL(routeOf(operation, namespace), base);
    let body = JSON.stringify(payload);
    let headers: Record<string, string> = {};
    if (method === 'POST') headers['content-type'] = 'application/json';
    else {
      url.search = queryOf(JSON.parse(body));
      body = '';
    }
    if (token) headers.authorization = bearer(typeof token === 'string' ? token : await token());
    if (credentials) {
      const { signed } = await import('./sigv4.ts'); // callers with a token never load it
      const scope = { region, service: 'execute-api', at: wall() };
      headers = await signed({ method, url, headers, body }, await credentials(), scope);
    }
    try {
      // A redirect would send the token to another server, and turn a POST into a GET.
      const response = await send(url, { method, headers, signal, redirect: 'manual', ...(body && { body }) });
      return answerOf(response, await response.text(), url);
    } catch (error) {
      if (error instanceof HoldfastError) throw error;
      // `fetch` says only that it failed. The reason is in the cause of its error.
      const { cause = error } = error as Error;
      const { message, code } = cause as Error & { code?: string };
      throw unreachable(`the connection to ${url.origin} failed: ${message || code}`, error);
    }
  };
}

/** `fetch` puts a header that it cannot send into its error message, and so the token into a log. @throws TypeError that does not contain the token */
function bearer(token: string): string {
  if (/[^!-~]/.test(token)) throw new TypeError('token must have no blanks, and no line breaks');
  return `Bearer ${token}`;
}

/** Parses an endpoint. A program without types may pass anything. @throws TypeError if it is not a URL of http or https, without a password in it */
export function urlOf(endpoint: string): URL {
  const text = `${endpoint}`.replace(/\/\/.*@/, '//***@');
  if (text === endpoint && URL.canParse(endpoint) && /^https?:/i.test(endpoint)) return new URL(endpoint);
  throw new TypeError(`endpoint must be a URL such as http://127.0.0.1:3000, not ${text}`);
}

function answerOf({ ok, status }: Response, text: string, { origin, pathname }: URL): unknown {
  const body = parsed(text);
  const problem = problemOf(body);
  if (problem) throw problem;
  if (ok && body && typeof body === 'object') return body;
  // An answer in another format comes from a proxy in front of the service, or was cut off.
  const said = `${(body as { message?: string })?.message ?? (text.slice(0, 200) || 'nothing')} (${origin}${pathname})`;
  const isBelow = status === 404 && /.\/v1\//.test(pathname);
  throw refusal(ok ? undefined : status, isBelow ? `${said}: endpoint must have no path` : said);
}

/** Undefined if the text is not JSON, such as the page of a proxy. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
