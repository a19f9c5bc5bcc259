import { HoldfastError, refusal, unreachable } from './errors.ts';
import { ROUTES } from './routes.ts';
import type { Credentials } from './sigv4.ts';
import { problemOf, type Transport } from './transport.ts';

/** Where the API is, and as which caller to call it. Without `token` and `credentials`, requests are not signed. */
export interface HttpOptions {
  /** The URL of the API, as `npm run deploy` prints it. */
  endpoint: string;
  /** A JWT, or what gets one; it is asked for each request. */
  token?: string | (() => string | Promise<string>) | undefined;
  /** What gets the AWS credentials, for example a provider of the SDK; it is asked for each request. */
  credentials?: (() => Credentials | Promise<Credentials>) | undefined;
  /** The AWS region. The endpoint says it, unless the API has a domain of its own. */
  region?: string | undefined;
  /** The standard one where it is not given. */
  fetch?: typeof fetch | undefined;
}

/**
 * Calls the API over HTTP.
 * @param wall what the time of a signature is taken from, in epoch milliseconds
 * @throws TypeError where the endpoint is no URL, or credentials come without a region
 */
export function httpTransport(options: HttpOptions, wall: () => number): Transport {
  const { token, credentials, fetch: send = fetch } = options;
  const base = new URL(options.endpoint).href.replace(/\/$/, '');
  const region = options.region ?? /\.execute-api\.([\w-]+)\./.exec(base)?.[1] ?? '';
  if (credentials && !region) throw new TypeError('credentials need a region');
  return async (operation, payload, signal) => {
    const [method = '', path] = ROUTES[operation].split(' ');
    const url = new URL(base + path);
    const body = method === 'POST' ? JSON.stringify(payload) : '';
    if (!body) url.search = queryOf(payload);
    let headers: Record<string, string> = body ? { 'content-type': 'application/json' } : {};
    if (token) headers.authorization = `Bearer ${typeof token === 'string' ? token : await token()}`;
    if (credentials) {
      const { signed } = await import('./sigv4.ts'); // those with a token never load it
      const scope = { region, service: 'execute-api', at: wall() };
      headers = await signed({ method, url, headers, body }, await credentials(), scope);
    }
    try {
      const response = await send(url, { method, headers, signal, ...(body && { body }) });
      return answerOf(response, await response.text());
    } catch (error) {
      if (error instanceof HoldfastError) throw error;
      throw unreachable('the connection failed', error);
    }
  };
}

/** As signatures need it: a blank is %20. */
const queryOf = (payload: object) =>
  `${new URLSearchParams(JSON.parse(JSON.stringify(payload)))}`.replaceAll('+', '%20').replaceAll('*', '%2A');

function answerOf({ ok, status }: Response, text: string): unknown {
  const body = parsed(text);
  const problem = problemOf(body);
  if (problem) throw problem;
  if (ok && body) return body;
  // What is not the service's own comes from what stands in front of it, or was cut.
  throw refusal(ok ? undefined : status, (body as { message?: string })?.message ?? text.slice(0, 200));
}

/** Undefined where the text is no JSON: a proxy's page, or an answer that was cut. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
