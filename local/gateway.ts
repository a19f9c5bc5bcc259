import { isUtf8 } from 'node:buffer';
import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { APIGatewayProxyEventV2, APIGatewayProxyStructuredResultV2, Context } from 'aws-lambda';

export type LambdaHandler = (event: unknown, context: Context) => Promise<unknown>;

/** A function as Lambda would run it. */
export interface LocalFunction {
  functionName: string;
  timeoutSeconds: number;
  handler: LambdaHandler;
}

export interface Route extends LocalFunction {
  method: string;
  path: string;
}

/** Lambda takes six megabytes at a synchronous invocation, and a body is most of its event. */
const MOST_EVENT_BYTES = 6 * 1024 * 1024;

/**
 * What API Gateway's HTTP API does in front of the functions, without its authorizers: routes, payload format 2.0,
 * Lambda's payload limit and function timeouts, and the gateway's own answers where no function answers.
 */
export async function startGateway(routes: Route[], port: number): Promise<{ url: string; stop(): Promise<void> }> {
  const server = createServer((request, response) => {
    answer(routes, request, response).catch((error: Error) => {
      console.error(`${request.method} ${request.url}: ${error.name}: ${error.message}`);
      reply(response, 500, { message: 'Internal Server Error' });
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', resolve);
  });
  const { port: actual } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${actual}`, stop: () => close(server) };
}

/** Requests that are under way are cut off. */
async function close(server: Server): Promise<void> {
  const closed = new Promise((resolve) => server.close(resolve));
  server.closeAllConnections();
  await closed;
}

async function answer(routes: Route[], request: IncomingMessage, response: ServerResponse): Promise<void> {
  const [path = '', ...query] = (request.url ?? '').split('?');
  if (request.method === 'GET' && path === '/v1/health') return reply(response, 200, { status: 'ready' });
  const route = routes.find((candidate) => candidate.method === request.method && candidate.path === path);
  if (!route) return reply(response, 404, { message: 'Not Found' });

  const body = await read(request);
  const event = body && httpEvent(request, query.join('?'), route, body);
  if (!event) return reply(response, 413, { message: 'Request Too Long' });
  const result = (await invokeForCaller(route, event)) as APIGatewayProxyStructuredResultV2;
  response.writeHead(result.statusCode ?? 200, result.headers as Record<string, string>);
  response.end(result.body);
}

function reply(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(body));
}

/** Undefined when the body is larger than any function can be sent. */
async function read(request: IncomingMessage): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request) {
    size += chunk.length;
    if (size <= MOST_EVENT_BYTES) chunks.push(chunk); // the rest is read and dropped, so that the answer gets through
  }
  return size <= MOST_EVENT_BYTES ? Buffer.concat(chunks) : undefined;
}

const TEXT_TYPE = /^(text\/|application\/(.*\+)?(json|javascript|xml))/i;

function httpEvent(
  request: IncomingMessage,
  rawQueryString: string,
  route: Route,
  body: Buffer,
): APIGatewayProxyEventV2 | undefined {
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(request.headers)) headers[name] = String(value);
  const isText = TEXT_TYPE.test(headers['content-type'] ?? '') && isUtf8(body);
  const isBase64Encoded = body.length > 0 && !isText;
  const event = {
    version: '2.0',
    routeKey: `${route.method} ${route.path}`,
    rawPath: route.path,
    rawQueryString,
    headers,
    requestContext: {
      accountId: '000000000000',
      apiId: 'local',
      domainName: headers.host ?? '',
      domainPrefix: 'local',
      http: {
        method: route.method,
        path: route.path,
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
  return Buffer.byteLength(JSON.stringify(event)) <= MOST_EVENT_BYTES ? event : undefined;
}

/** What an HTTP API says to its caller after 30 seconds, while a function with more time goes on. */
const GATEWAY_TIMEOUT = {
  statusCode: 503,
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify({ message: 'Service Unavailable' }),
};

/** Starts a function with an event, as EventBridge does. @throws Error what it throws, or that its time is up */
export async function invoke(local: LocalFunction, event: unknown): Promise<unknown> {
  const { context, timedOut, end } = invocation(local);
  return Promise.race([local.handler(event, context), timedOut]).finally(end);
}

async function invokeForCaller(route: Route, event: unknown): Promise<unknown> {
  const { context, timedOut, givenUp, end } = invocation(route);
  return Promise.race([route.handler(event, context), timedOut, givenUp]).finally(end);
}

function invocation({ functionName, timeoutSeconds }: LocalFunction) {
  const endsAt = Date.now() + timeoutSeconds * 1000;
  const context = {
    functionName,
    functionVersion: '$LATEST',
    invokedFunctionArn: `arn:aws:lambda:local:000000000000:function:${functionName}`,
    memoryLimitInMB: '512',
    awsRequestId: randomUUID(),
    logGroupName: `/aws/lambda/${functionName}`,
    logStreamName: 'local',
    callbackWaitsForEmptyEventLoop: true,
    getRemainingTimeInMillis: () => Math.max(0, endsAt - Date.now()),
  } as Context;
  const timers: NodeJS.Timeout[] = [];
  const timedOut = new Promise<never>((_, reject) => {
    const late = () => reject(new Error(`Task timed out after ${timeoutSeconds} seconds`));
    timers.push(setTimeout(late, timeoutSeconds * 1000));
  });
  const givenUp = new Promise((resolve) => {
    timers.push(setTimeout(() => resolve(GATEWAY_TIMEOUT), 30_000));
  });
  return { context, timedOut, givenUp, end: () => timers.forEach(clearTimeout) };
}
