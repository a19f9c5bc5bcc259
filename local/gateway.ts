import { isUtf8 } from 'node:buffer';
import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { APIGatewayProxyEventV2, APIGatewayProxyStructuredResultV2 } from 'aws-lambda';
import { ACCOUNT } from '../infrastructure/logical-ids.ts';
import { API_ALIAS } from '../shared/lambda/namespaces.ts';
import type { Authorized, Authorizer } from './authorizer.ts';
import { invocation, type LocalFunction } from './lambda.ts';
import { type Listening, listen } from './listen.ts';

export interface Route extends LocalFunction {
  method: string;
  path: string;
}

/** The largest request, in bytes. A synchronous Lambda invocation takes six megabytes, and the body is most of an event. */
const MAX_EVENT_BYTES = 6 * 1024 * 1024;

/** Answers requests that are not calls of the API. Returns false for all others. */
type Page = (request: IncomingMessage, response: ServerResponse) => Promise<boolean>;

interface GatewayOptions {
  page?: Page | undefined;
  authorizer?: Authorizer | undefined;
}

/**
 * Does what an HTTP API of API Gateway does in front of the functions: routes, the authorizer if one is given, payload format 2.0, the payload limit and the
 * Lambda timeouts, and the gateway's own answers if no function answers.
 */
export async function startGateway(routes: Route[], port: number, options: GatewayOptions = {}): Promise<Listening> {
  return listen((request, response) => {
    answer({ routes, ...options }, request, response).catch((error: Error) => {
      console.error(`${request.method} ${request.url}: ${error.name}: ${error.message}`);
      reply(response, 500, { message: 'Internal Server Error' });
    });
  }, port);
}

async function answer(
  { routes, page = async () => false, authorizer }: GatewayOptions & { routes: Route[] },
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const [sent = '', ...query] = (request.url ?? '').split('?');
  const path = decodedPath(sent);
  if (path === undefined) return reply(response, 400, { message: 'Bad Request' });
  const route = routes.find((candidate) => candidate.method === request.method && isOn(path, candidate.path));
  if (!route) return (await page(request, response)) ? undefined : reply(response, 404, { message: 'Not Found' });

  const authorized = await authorizer?.(request.headers.authorization, route);
  if (authorized && 'status' in authorized) return reply(response, authorized.status, { message: authorized.message });
  const body = await read(request);
  const event = body && httpEvent(request, { route, path, rawQueryString: query.join('?'), body, authorized });
  if (!event) return reply(response, 413, { message: 'Request Too Long' });
  const { context, timedOut, end } = invocation({ ...route, alias: API_ALIAS });
  const { promise: givenUp, resolve: giveUp } = Promise.withResolvers<unknown>();
  const timer = setTimeout(giveUp, 30_000, GATEWAY_TIMEOUT);
  const answered = Promise.race([route.handler(event, context), timedOut, givenUp]).finally(() => {
    clearTimeout(timer);
    end();
  });
  const result = (await answered) as APIGatewayProxyStructuredResultV2;
  response.writeHead(result.statusCode ?? 200, result.headers as Record<string, string>);
  response.end(result.body);
}

/**
 * The path as an HTTP API reads it before it searches a route: percent-decoded, and cut at a decoded `?`. The function receives the same text.
 * Undefined if the escapes are not UTF-8.
 */
function decodedPath(sent: string): string | undefined {
  try {
    return decodeURIComponent(sent).split('?', 1)[0];
  } catch {
    return undefined;
  }
}

/** True if a path matches a route, in which `{name}` stands for one segment. */
function isOn(path: string, template: string): boolean {
  const [segments, wanted] = [path.split('/'), template.split('/')];
  return (
    segments.length === wanted.length &&
    wanted.every((one, index) => one === segments[index] || (/^\{\w+\}$/.test(one) && segments[index] !== ''))
  );
}

function reply(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(body));
}

/** Reads the body of a request. Undefined if it is larger than any function accepts. */
async function read(request: IncomingMessage): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request) {
    size += chunk.length;
    if (size <= MAX_EVENT_BYTES) chunks.push(chunk); // the rest is read and dropped, so that the answer gets through
  }
  return size <= MAX_EVENT_BYTES ? Buffer.concat(chunks) : undefined;
}

const TEXT_TYPE = /^(text\/|application\/(.*\+)?(json|javascript|xml))/i;

interface Received {
  route: Route;
  /** The path of the request, decoded. */
  path: string;
  rawQueryString: string;
  body: Buffer;
  authorized: Authorized | undefined;
}

function httpEvent(
  request: IncomingMessage,
  { route, path, rawQueryString, body, authorized }: Received,
): APIGatewayProxyEventV2 | undefined {
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(request.headers)) headers[name] = String(value);
  const isText = TEXT_TYPE.test(headers['content-type'] ?? '') && isUtf8(body);
  const isBase64Encoded = body.length > 0 && !isText;
  const event = {
    version: '2.0',
    routeKey: `${route.method} ${route.path}`,
    rawPath: path,
    rawQueryString,
    headers,
    requestContext: {
      accountId: ACCOUNT,
      apiId: 'local',
      ...authorized,
      domainName: headers.host ?? '',
      domainPrefix: 'local',
      http: {
        method: route.method,
        path,
        protocol: 'HTTP/1.1',
        sourceIp: '127.0.0.1',
        userAgent: headers['user-agent'] ?? '',
      },
      requestId: randomUUID(),
      routeKey: `${route.method} ${route.path}`,
      stage: '$default',
      time: new Date().toISOString(),
      timeEpoch: Date.now(),
    },
    ...(body.length > 0 && { body: body.toString(isBase64Encoded ? 'base64' : 'utf8') }),
    isBase64Encoded,
  };
  return Buffer.byteLength(JSON.stringify(event)) <= MAX_EVENT_BYTES ? event : undefined;
}

/** The answer of an HTTP API after 30 seconds, while a function with a longer timeout continues. */
const GATEWAY_TIMEOUT = {
  statusCode: 503,
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify({ message: 'Service Unavailable' }),
};
