import { timingSafeEqual } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { type HoldfastError, isHoldfastError } from '../../../clients/typescript/src/errors.ts';
import { READS, ROUTES } from '../../../clients/typescript/src/routes.ts';
import type { Operation, Transport } from '../../../clients/typescript/src/transport.ts';
import { pageFiles } from '../../../console/files.ts';
import { answerPage } from '../../../console/serve.ts';
import { type Listening, listen } from '../../../local/listen.ts';

export interface ConsoleOptions {
  /** The address of the API, which the page shows. */
  endpoint: string;
  /** The namespace of all calls of the page. */
  namespace?: string | undefined;
  /** True if the API is `npm start` on this machine. */
  local: boolean;
  /** True to pass on calls that change something. */
  write: boolean;
  /** The value of `x-holdfast-token` that each call must have. */
  token: string;
  /** 0 for any free port. */
  port: number;
  transport: Transport;
}

/** The calls of the page that change something. Other calls that change something are never passed on. */
const WRITES: readonly Operation[] = ['breakLease', 'cancelWaiter', 'capKey', 'runNext', 'clean', 'report'];

/** The largest request, in bytes. The page's own requests are far smaller. */
const MAX_BODY_BYTES = 64 * 1024;

/**
 * Serves the page on this machine, and passes its calls on with the credentials of the transport, so that the browser needs none.
 * @throws Error if the port is taken
 */
export const startConsole = (options: ConsoleOptions): Promise<Listening> =>
  listen((request, response) => {
    answer(options, request, response).catch((error: Error) => reply(response, 502, { message: error.message }));
  }, options.port);

async function answer(options: ConsoleOptions, request: IncomingMessage, response: ServerResponse): Promise<void> {
  if (await answerPage(request, response, pageFiles)) return;
  if (!hasToken(request, options.token))
    return reply(response, 401, {
      message: 'This tab has no token, or the token of an earlier start of the command.',
    });
  const { method, url = '' } = request;
  const [path = '', query = ''] = url.split('?');
  if (method === 'GET' && path === '/console/settings') {
    const { endpoint, namespace, write, local } = options;
    return reply(response, 200, { endpoint, namespace, write, local });
  }
  const operation = operationAt(method, path);
  if (!operation || (method !== 'GET' && !WRITES.includes(operation)))
    return reply(response, 404, { message: `${method} ${path} is not a call of this page` });
  if (method !== 'GET' && !options.write)
    return reply(response, 403, { message: 'holdfast console only reads unless it is started with --write' });
  const payload = method === 'GET' ? Object.fromEntries(new URLSearchParams(query)) : await bodyOf(request);
  if (payload === undefined) return reply(response, 400, { message: 'the body is not a JSON object, or is too large' });
  await passOn({ operation, payload, options }, response);
}

/** The call of the API at a path. Undefined if there is none. */
const operationAt = (method: string | undefined, path: string): Operation | undefined =>
  (Object.keys(ROUTES) as Operation[]).find(
    (one) => (READS.test(one) ? 'GET' : 'POST') === method && new URL(ROUTES[one], 'http://x/v1/').pathname === path,
  );

function hasToken({ headers }: IncomingMessage, token: string): boolean {
  const given = Buffer.from(String(headers['x-holdfast-token'] ?? ''));
  const wanted = Buffer.from(token);
  return given.length === wanted.length && timingSafeEqual(given, wanted);
}

async function bodyOf(request: IncomingMessage): Promise<object | undefined> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request) {
    size += chunk.length;
    if (size <= MAX_BODY_BYTES) chunks.push(chunk);
  }
  if (size > MAX_BODY_BYTES) return undefined;
  try {
    const body: unknown = JSON.parse(Buffer.concat(chunks).toString());
    return typeof body === 'object' && body !== null && !Array.isArray(body) ? body : undefined;
  } catch {
    return undefined;
  }
}

interface Passed {
  operation: Operation;
  payload: object;
  options: ConsoleOptions;
}

/** Sends one try, because the page repeats its calls itself. If the page is closed, the call ends. */
async function passOn({ operation, payload, options }: Passed, response: ServerResponse): Promise<void> {
  const gone = new AbortController();
  response.once('close', () => gone.abort());
  try {
    reply(response, 200, await options.transport(operation, payload, gone.signal, options.namespace));
  } catch (error) {
    if (gone.signal.aborted) return;
    if (!isHoldfastError(error)) throw error;
    const { name: _, ...problem } = { ...error, message: error.message };
    // The page takes a 401 for an error of this server's token, so a 401 of the API becomes a 403.
    const status = error.status === 401 ? 403 : (error.status ?? 502);
    reply(response, status, { ...problem, detail: detailOf(error) });
  }
}

const detailOf = ({ status, message }: HoldfastError): string =>
  status === 401 ? `${message} (the credentials are not accepted)` : message;

function reply(response: ServerResponse, status: number, body: unknown): void {
  if (response.headersSent || response.destroyed) return;
  response.writeHead(status, { 'content-type': 'application/json', 'cache-control': 'no-store' });
  response.end(JSON.stringify(body));
}
